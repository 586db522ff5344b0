// The numbers of data/sharding_propagation.json: the shardings of JAX's results for small jitted functions on a mesh of 4 x 2, and the
// bytes that its programs move. Ours have the same shardings and move no more, except for the rows that say why not.
#include <functional>
#include <map>

#include "golden.h"
#include "program_of.h"

namespace jax_propagation_test {

namespace sa = shardarray;
using namespace program_test;
using golden::Json;
using Arrays = std::vector<Array>;
using Function = Arrays (*)(const Arrays& x, const Json& kw);

namespace {

P spec_of(const Json& j) {
  std::vector<sa::SpecEntry> entries;
  for (const Json& e : j) {
    if (e.is_null()) entries.emplace_back(sa::none);
    else if (e.is_string()) entries.emplace_back(e.get<std::string>());
    else entries.emplace_back(sa::axes(e[0].get<std::string>(), e[1].get<std::string>()));
  }
  return P(std::move(entries));
}
sa::AxisSet axis_of(const Json& kw) {
  return kw.contains("axis") ? sa::AxisSet(kw["axis"].get<int>()) : sa::AxisSet();
}
int number(const Json& kw, const char* name) { return kw[name].get<int>(); }
template <auto& f> Arrays reduced(const Arrays& x, const Json& kw) {
  return {f(x[0], {.axis = axis_of(kw)})};
}
template <auto& f> Arrays along(const Arrays& x, const Json& kw) { return {f(x[0], number(kw, "axis"))}; }
template <auto& f> Arrays joined(const Arrays& x, const Json& kw) { return {f(x, number(kw, "axis"))}; }

Array mlp(const Array& x, const Array& a, const Array& b) {
  return sa::matmul(sa::relu(sa::matmul(x, a)), b);
}
Array loss(const Array& x, const Array& y, const Array& a, const Array& b) {
  return sa::mean(sa::square(y - mlp(x, a, b)));
}
Array constrained(const Array& x, const Json& kw) { return sa::filter_shard(x, on_xy(spec_of(kw["spec"]))); }
Arrays pair_of(const auto& pair) { return {pair.first, pair.second}; }

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> table = {
      {"neg", [](const Arrays& x, const Json&) -> Arrays { return {-x[0]}; }},
      {"add", [](const Arrays& x, const Json&) -> Arrays { return {x[0] + x[1]}; }},
      {"add_bias", [](const Arrays& x, const Json&) -> Arrays { return {x[0] + x[1]}; }},
      {"tanh_chain",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::tanh(sa::sin(x[0]) * 2 + 1)}; }},
      {"where", [](const Arrays& x, const Json&) -> Arrays { return {sa::where(x[0], x[1], x[2])}; }},
      {"transpose", [](const Arrays& x, const Json&) -> Arrays { return {x[0].T()}; }},
      {"reshape",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::reshape(x[0], golden::shape_of(kw["to"]))};
       }},
      {"matmul", [](const Arrays& x, const Json&) -> Arrays { return {sa::matmul(x[0], x[1])}; }},
      {"matmul_t", [](const Arrays& x, const Json&) -> Arrays { return {sa::matmul(x[0], x[1].T())}; }},
      {"bmm",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::einsum("bij,bjk->bik", x[0], x[1])}; }},
      {"einsum",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::einsum.contract(kw["spec"].get<std::string>(), x)};
       }},
      {"sum", reduced<sa::sum>},
      {"max", reduced<sa::max>},
      {"mean", reduced<sa::mean>},
      {"argmax", reduced<sa::argmax>},
      {"logsumexp", reduced<sa::logsumexp>},
      {"softmax", [](const Arrays& x, const Json&) -> Arrays { return {sa::softmax(x[0])}; }},
      {"layernorm",
       [](const Arrays& x, const Json&) -> Arrays {
         const sa::ReduceOptions last{.axis = -1, .keepdims = true};
         return {(x[0] - sa::mean(x[0], last)) / sa::sqrt(sa::var(x[0], last) + 1e-5)};
       }},
      {"cumsum", along<sa::cumsum>},
      {"sort", along<sa::sort>},
      {"reverse", along<sa::flip>},
      {"roll",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::roll(x[0], number(kw, "by"), number(kw, "axis"))};
       }},
      {"concat", joined<sa::concatenate>},
      {"stack", joined<sa::stack>},
      {"slice",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {x[0][sa::slice(number(kw, "lo"), number(kw, "hi"))]};
       }},
      {"slice_cols",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {x[0][{sa::all, sa::slice(number(kw, "lo"), number(kw, "hi"))}]};
       }},
      {"pad",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::pad(x[0], kw["pad"].get<std::vector<std::pair<std::int64_t, std::int64_t>>>())};
       }},
      {"gather_rows", [](const Arrays& x, const Json&) -> Arrays { return {x[0][x[1]]}; }},
      {"one_hot_matmul",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::matmul(sa::one_hot(x[0], x[1].shape()[0]), x[1])};
       }},
      {"scatter_add", [](const Arrays& x, const Json&) -> Arrays { return {x[0].at(x[1]).add(x[2])}; }},
      {"broadcast",
       [](const Arrays& x, const Json& kw) -> Arrays {
         Shape shape = x[0].shape();
         shape.insert(0, number(kw, "n"));
         return {sa::broadcast_to(x[0], shape)};
       }},
      {"outer", [](const Arrays& x, const Json&) -> Arrays { return {sa::outer(x[0], x[1])}; }},
      {"dynamic_slice",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::dynamic_slice_in_dim(x[0], x[1], number(kw, "n"), number(kw, "axis"))};
       }},
      {"mlp", [](const Arrays& x, const Json&) -> Arrays { return {mlp(x[0], x[1], x[2])}; }},
      {"mlp_loss", [](const Arrays& x, const Json&) -> Arrays { return {loss(x[0], x[1], x[2], x[3])}; }},
      {"mlp_grad",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto [a, b] = sa::grad<2, 3>(loss)(x[0], x[1], x[2], x[3]);
         return {a, b};
       }},
      {"remat_grad",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto sum_of = [](const Array& v, const Array& a, const Array& b) {
           return sa::sum(sa::checkpoint(mlp)(v, a, b));
         };
         const auto [a, b] = sa::grad<1, 2>(sum_of)(x[0], x[1], x[2]);
         return {a, b};
       }},
      {"psum_like_dp",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::grad([&](const Array& w) { return sa::mean(sa::square(sa::matmul(x[1], w))); })(x[0])};
       }},
      {"iota_add",
       [](const Arrays& x, const Json&) -> Arrays {
         const std::int64_t n = x[0].shape()[0];
         return {x[0] + sa::arange(n).astype(sa::float32).reshape({n, 1})};
       }},
      {"normal_add",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0] + sa::random::normal(sa::random::PRNGKey(0), x[0].shape())};
       }},
      {"scan_sum",
       [](const Arrays& x, const Json&) -> Arrays {
         const auto step = [](const Array& s, const Array& row) { return std::pair(s + row, s); };
         return pair_of(sa::scan(step, sa::zeros(x[0].shape()[1]), x[0]));
       }},
      {"vmap_dot", [](const Arrays& x, const Json&) -> Arrays { return {sa::vmap(sa::dot)(x[0], x[1])}; }},
      {"conv1d",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::conv_general_dilated(x[0], x[1], {.padding = "SAME"})};
       }},
      {"conv2d",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::conv_general_dilated(x[0], x[1], {.padding = "SAME"})};
       }},
      {"max_pool",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::max_pool(x[0], {2}, {.strides = {2}})}; }},
      {"constrain", [](const Arrays& x, const Json& kw) -> Arrays { return {constrained(x[0], kw)}; }},
      {"matmul_constrain",
       [](const Arrays& x, const Json& kw) -> Arrays { return {constrained(sa::matmul(x[0], x[1]), kw)}; }},
      {"constrain_middle",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::matmul(constrained(sa::relu(sa::matmul(x[0], x[1])), kw), x[2])};
       }},
      {"sum_constrain",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {constrained(sa::sum(x[0], number(kw, "axis")), kw)};
       }},
      {"attention",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::matmul(sa::softmax(sa::einsum("bqhd,bkhd->bhqk", x[0], x[1])),
                            sa::einsum("bkhd->bhkd", x[2]))};
       }},
      {"sum_of_products",
       [](const Arrays& x, const Json&) -> Arrays { return {sa::matmul(x[0], x[1]) + x[2]}; }},
      {"two_outputs", [](const Arrays& x, const Json&) -> Arrays { return {sa::sum(x[0], 0), sa::sum(x[0], 1)}; }},
      {"trace", [](const Arrays& x, const Json&) -> Arrays { return {sa::trace(x[0])}; }},
      {"dot_self", [](const Arrays& x, const Json&) -> Arrays { return {sa::matmul(x[0], x[0].T())}; }},
      {"fft",
       [](const Arrays& x, const Json& kw) -> Arrays {
         return {sa::abs(sa::fft::fft(x[0], {.axis = number(kw, "axis")}))};
       }},
      {"cholesky",
       [](const Arrays& x, const Json&) -> Arrays {
         return {sa::linalg::cholesky(sa::matmul(x[0], x[0].T()) + 10 * sa::eye(x[0].shape()[0]))};
       }},
      {"diff", [](const Arrays& x, const Json& kw) -> Arrays { return {sa::diff(x[0], 1, number(kw, "axis"))}; }},
      {"halo",
       [](const Arrays& x, const Json&) -> Arrays {
         return {x[0][sa::slice(-2)] + x[0][sa::slice(1, -1)] + x[0][sa::slice(2, sa::none)]};
       }},
      {"tile",
       [](const Arrays& x, const Json& kw) -> Arrays { return {sa::tile(x[0], golden::shape_of(kw["reps"]))}; }},
      {"split_add",
       [](const Arrays& x, const Json& kw) -> Arrays {
         const Arrays parts = sa::split(x[0], number(kw, "n"), number(kw, "axis"));
         return {parts[0] + parts[1]};
       }},
      {"eye_matmul", [](const Arrays& x, const Json&) -> Arrays { return {sa::matmul(x[0], sa::eye(x[0].shape()[1]))}; }},
      {"bitcast", [](const Arrays& x, const Json&) -> Arrays { return {sa::bitcast(x[0], sa::uint32)}; }},
      {"top_k", [](const Arrays& x, const Json& kw) -> Arrays { return pair_of(sa::top_k(x[0], number(kw, "n"))); }}};
  return table;
}

Array operand(const Json& in, int seed) {
  const Shape shape = golden::shape_of(in[0]);
  if (in.size() < 3) return numbers(shape, sa::float32, seed);
  if (in[2] == "bool") return numbers(shape, sa::float32, seed) > 0;
  return sa::abs(numbers(shape, sa::int32, seed)) % 4;
}

/// What the busiest device receives by the sizes of JAX's results at most: a sum goes round twice.
std::int64_t most_received(const Json& outputs) {
  std::int64_t bytes = 0;
  for (const Json& c : outputs["collectives"])
    bytes += c["bytes"].get<std::int64_t>() * (c["kind"] == "all-reduce" ? 2 : 1);
  return bytes;
}

std::string label(const Json& c) {
  std::string text = c["name"];
  for (const Json& in : c["attrs"]["in"]) text += " " + in[0].dump() + in[1].dump();
  if (c["attrs"].contains("kw")) text += " " + c["attrs"]["kw"].dump();
  return c["attrs"]["out_spec"].is_null() ? text : text + " -> " + c["attrs"]["out_spec"].dump();
}

/// Which results lie elsewhere, and whether more moves; empty: as JAX.
std::pair<std::string, std::string> differences(const Json& c) {
  const Json &a = c["attrs"], &out = c["outputs"];
  const Json kw = a.value("kw", Json::object());
  const Function function = functions().at(c["name"]);
  Arrays plain, placed;
  for (const Json& in : a["in"]) {
    plain.push_back(operand(in, static_cast<int>(plain.size())));
    placed.push_back(sa::device_put(plain.back(), on_xy(spec_of(in[1]))));
  }
  const auto body = [function, &kw](const Arrays& x) { return function(x, kw); };
  sa::JitOptions options;
  if (!a["out_spec"].is_null()) options.out_shardings = on_xy(spec_of(a["out_spec"]));
  const auto f = sa::jit(body, options);
  const std::int64_t moved = bytes_received(sa::explain(f, placed));
  const Arrays got = f(placed), want = sa::jit(body)(plain);
  REQUIRE(got.size() == out["out_specs"].size());
  std::string places;
  for (std::size_t k = 0; k < got.size(); k++) {
    const Json& result = out["out_specs"][k];
    CHECK(got[k].shape() == golden::shape_of(result["shape"]));
    CHECK(got[k].dtype() == golden::dtype_named(result["dtype"]));
    CHECK(golden::close(values(got[k]), values(want[k]), 1e-5, 1e-5));
    if (!got[k].sharding().is_equivalent_to(on_xy(spec_of(result["spec"])), got[k].ndim()))
      places += got[k].sharding().to_string() + ", JAX " + result["spec"].dump() + "; ";
  }
  const std::int64_t most = most_received(out);
  if (moved <= most) return {places, ""};
  return {places, std::to_string(moved) + " bytes, JAX " + std::to_string(most)};
}

// Where ours lie elsewhere, and why.
const std::map<std::string, std::string> elsewhere = {
    {R"(add [8,32]["x","y"] [8,32]["y","x"])", "one operand comes to the other; JAX gathers both"},
    {R"(reshape [8,32][null,"y"] {"to":[256]})", "pieces of rows change places; JAX gathers them"},
    {R"(reshape [8,32]["x","y"] {"to":[2,4,32]})", "the four rows of x are 2 by 2; JAX gathers them"},
    {R"(reshape [16,6]["x",null] {"to":[6,16]})", "half of the cut fits; JAX gathers"},
    {R"(matmul [8,32][null,"x"] [32,16]["x",null])", "the idle axis takes half of the work"},
    {R"(matmul [8,32]["x",null] [32,16][null,"x"])", "the idle axis takes half of the work"},
    {R"(matmul [4096,512]["x",null] [512,512]["x",null])", "the idle axis takes half of the work"},
    {R"(sort [8,32]["x",null] {"axis":0})", "columns are sorted where they come to; JAX sends them back"},
    {R"(pad [8,32]["x",null] {"pad":[[1,1],[0,0]]})", "10 rows are cut in 4; JAX gathers what is uneven"},
    {R"(halo [8,32]["x",null])", "6 rows are cut in 4; JAX gathers what is uneven"},
    {R"(tile [8,32]["x",null] {"reps":[2,1]})", "columns are cut where rows repeat; JAX gathers"},
    {R"(psum_like_dp [8,32][null,null] [16,8]["x",null])", "the idle axis takes half of the work"},
    {R"(constrain [9,5][null,null] {"spec":["x",null]})", "9 rows are cut in 4 as asked for; JAX gathers"},
    {R"(attention [4,8,2,4][null,"x",null,null] [4,8,2,4][null,"x",null,null] [4,8,2,4][null,"x",null,null])",
     "batches and heads come to their devices; JAX gathers keys and values"}};

}  // namespace

TEST_CASE("propagation: results lie where JAX leaves them, and no more moves") {
  int seen = 0;
  std::size_t others = 0;
  const Json all = golden::load("sharding_propagation.json");
  for (const Json& c : all["cases"]) {
    const std::string name = label(c);
    CAPTURE(name);
    const auto [places, moved] = differences(c);
    CHECK(moved == "");
    if (!elsewhere.contains(name)) CHECK(places == "");
    else if (!places.empty()) others++;
    seen++;
  }
  CHECK(seen == 105);
  CHECK(others == elsewhere.size());
}

}  // namespace jax_propagation_test
