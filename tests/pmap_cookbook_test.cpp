// The cells of JAX's pmap cookbook, written as in examples/pmap_cookbook.cpp, against JAX's numbers.
#include <cmath>
#include <sstream>

#include "golden.h"
#include "scale.h"
#include "transforms_helpers.h"

namespace pmap_cookbook_test {

using namespace transforms_test;
using golden::Json;

namespace {

std::vector<Json> cases(const std::string& name, const std::string& file = "pmap_document_old.json") {
  const Json all = golden::load(file);
  std::vector<Json> r;
  for (const Json& c : all["cases"])
    if (c["name"] == name) r.push_back(c);
  REQUIRE_MESSAGE(!r.empty(), name);
  return r;
}
std::string printed(const Array& x) {
  std::ostringstream out;
  out << everywhere(x) << "\n";
  return out.str();
}
Array shifted(const Array& x, int by) {
  sa::Permutation perm;
  const auto n = static_cast<int>(sa::axis_size("i"));
  for (int i = 0; i < n; i++) perm.push_back({i, (i + by + n) % n});
  return sa::ppermute(x, "i", perm);
}
// One step of a rule of three neighbours on a slice of the board.
Array step(const Array& slice, int rule) {
  const Array b =
      sa::concatenate({shifted(slice[sa::slice(-1, sa::none)], 1), slice, shifted(slice[sa::slice(1)], -1)});
  return (Array(rule) >> (b[sa::slice(-2)] * 4 + b[sa::slice(1, -1)] * 2 + b[sa::slice(2, sa::none)])) & 1;
}
std::string row(const Array& board) {
  std::string text;
  for (const int cell : everywhere(board).to_vector<int>()) text += cell ? '*' : ' ';
  return text;
}

}  // namespace

TEST_CASE("pmap cookbook: pure maps") {
  for (const Json& c : cases("square")) {
    const Array y =
        sa::pmap([](const Array& x) { return sa::square(x); })(sa::arange(c["attrs"]["n"].get<int>()));
    CHECK(golden::same_bits(y, c["outputs"]["y"]));
    CHECK(printed(y) == c["outputs"]["printed"].get<std::string>());
    CHECK(printed(y / 2) == c["outputs"]["printed y/2"].get<std::string>());
    CHECK(everywhere(y[2]).item<int>() == 4);
  }
  const auto f = [](const Array& x, const Array& y) { return sa::tanh(sa::dot(x, y)); };
  const Json v = cases("vmap_f")[0], p = cases("pmap_f")[0];
  CHECK(golden::close(sa::vmap(f)(golden::array(v["inputs"][0]), golden::array(v["inputs"][1])), v["outputs"],
                      1e-5, 1e-6));
  CHECK(golden::close(sa::pmap(f)(golden::array(p["inputs"][0]), golden::array(p["inputs"][1])), p["outputs"],
                      1e-5, 1e-6));
  const Json b = cases("broadcast_argument")[0];
  const auto scaled =
      sa::pmap([](const Array& x, const Array& w) { return x * sa::sum(w); }, {.in_axes = {0, sa::none}});
  CHECK(golden::close(scaled(golden::array(b["inputs"]["x"]), golden::array(b["inputs"]["w"])), b["outputs"],
                      1e-5, 1e-6));
}

TEST_CASE("pmap cookbook: matrices made, multiplied and averaged where they are") {
  for (const Json& c : cases("random_matrices")) {
    const sa::random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
    const Shape shape(c["attrs"]["shape"].get<std::vector<std::int64_t>>());
    const Array keys = sa::random::split(sa::random::PRNGKey(0), 8);
    CHECK(golden::same_bits(keys, c["outputs"]["keys"]));
    const Array mats = sa::pmap([=](const Array& key) { return sa::random::normal(key, shape); })(keys);
    const auto product = sa::pmap([](const Array& x) { return sa::dot(x, x.T()); });
    const auto mean = sa::pmap([](const Array& x) { return sa::mean(x); });
    CHECK(sa::explain(product, mats).transfers().empty());
    const Array result = product(mats);
    CHECK(sa::explain(mean, result).transfers().empty());
    CHECK(golden::close(mean(result), c["outputs"]["result_mean"], 1e-4, 1e-5));
    for (std::size_t k = 0; k < 8; k++) {
      const auto v = golden::values(mats[static_cast<int>(k)]);
      double sum = 0;
      for (const double x : v) sum += x;
      CHECK(sum / static_cast<double>(v.size()) ==
            doctest::Approx(c["outputs"]["mats"][k]["mean_f64"].get<double>()).epsilon(1e-5));
    }
  }
}

TEST_CASE("pmap cookbook: collectives, nested maps") {
  const auto normalize = sa::pmap([](const Array& x) { return x / sa::psum(x, "i"); }, {.axis_name = "i"});
  for (const Json& c : cases("normalize"))
    CHECK(golden::close(normalize(golden::array(c["inputs"])), c["outputs"]["y"], 1e-6));
  CHECK(printed(normalize(sa::arange(4.0))) ==
        cases("normalize")[0]["outputs"]["printed"].get<std::string>());
  const auto norms = sa::pmap(sa::pmap(
                                  [](const Array& x) {
                                    return std::tuple(x / sa::psum(x, "rows"), x / sa::psum(x, "cols"),
                                                      x / sa::psum(x, {"rows", "cols"}));
                                  },
                                  {.axis_name = "cols"}),
                              {.axis_name = "rows"});
  for (const Json& c : cases("nested_normalize")) {
    const auto [rows, cols, both] = norms(golden::array(c["inputs"]));
    CHECK(golden::close(rows, c["outputs"]["row_normed"], 1e-6));
    CHECK(golden::close(cols, c["outputs"]["col_normed"], 1e-6));
    CHECK(golden::close(both, c["outputs"]["doubly_normed"], 1e-6));
  }
}

TEST_CASE("pmap cookbook: rules of cells with halo exchange") {
  for (const Json& c : cases("rule")) {
    const int rule = c["attrs"]["rule"].get<int>(), n = c["attrs"]["devices"].get<int>();
    Array board = sa::zeros({c["attrs"]["cells"].get<int>()}, sa::int32)
                      .at({c["attrs"]["live"][0].get<int>()})
                      .set(1)
                      .reshape({n, -1});
    const auto next = sa::pmap([=](const Array& slice) { return step(slice, rule); }, {.axis_name = "i"});
    for (const Json& want : c["outputs"]["rows"]) {
      CHECK(row(board) == want.get<std::string>());
      board = next(board);
    }
  }
}

TEST_CASE("pmap cookbook: derivatives") {
  const auto normalize = sa::pmap([](const Array& x) { return x / sa::psum(x, "i"); }, {.axis_name = "i"});
  const Json n = cases("grad_of_pmap_normalize")[0];
  CHECK(golden::close(
      sa::grad([&](const Array& x) { return sa::sum(sa::sin(normalize(x))); })(golden::array(n["inputs"])),
      n["outputs"], 1e-4, 1e-6));
  const Json c = cases("grad_of_pmap")[0];
  const auto weighted = sa::pmap([](const Array& v) { return sa::sin(v) * sa::sum(v); });
  CHECK(golden::close(
      sa::grad([&](const Array& x) { return sa::sum(weighted(x)); })(golden::array(c["inputs"])),
      c["outputs"], 1e-5, 1e-5));
  const auto g = sa::pmap([](const Array& x) {
    const Array y = sa::sin(x);
    const auto inner =
        sa::pmap([=](const Array& z) { return sa::cos(z) * sa::tan(sa::sum(y)) * sa::sum(sa::tanh(x)); });
    return sa::grad([=](const Array& w) { return sa::sum(inner(w)); })(x);
  });
  for (const Json& m : cases("nested_grad")) {
    const Array x = golden::array(m["inputs"]);
    CHECK(golden::close(g(x), m["outputs"]["f"], 1e-5, 1e-5));
    CHECK(golden::close(sa::grad([&](const Array& v) { return sa::sum(g(v)); })(x),
                        m["outputs"]["grad_sum_f"], 1e-5, 1e-4));
  }

  // the argument has lain on four devices since another map was evaluated, and this one needs eight
  const Array x = sa::arange(8.0).reshape({4, 2});
  sa::pmap([](const Array& v) { return v * 2; })(x).block_until_ready();
  check_near(sa::grad([&](const Array& v) { return sa::sum(weighted(v)); })(x),
             values(sa::grad([](const Array& v) {
               return sa::sum(sa::sin(v) * sa::sum(v, {.axis = 1, .keepdims = true}));
             })(x)));
  CHECK(golden::close(sa::grad([&](const Array& v) { return sa::sum(g(v)); })(x),
                      cases("nested_grad")[0]["outputs"]["grad_sum_f"], 1e-5, 1e-4));
  const Array y = sa::pmap([](const Array& v) { return v * 1; })(x);
  CHECK(y.devices().size() == 4);
  CHECK(golden::close(sa::grad([&](const Array& v) { return sa::sum(g(v)); })(y),
                      cases("nested_grad")[0]["outputs"]["grad_sum_f"], 1e-5, 1e-4));
}

// 30 million numbers, twice and in both modes.
TEST_CASE("pmap cookbook: the random matrices of its own size") {
  if (!sa::testing::full_scale() || sa::testing::is_sanitized()) return;
  for (const Json& c : cases("random_matrices_document_size", "pmap_document.json")) {
    const sa::random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
    const Shape shape = golden::shape_of(c["attrs"]["shape"]);
    const Array keys = sa::random::split(sa::random::PRNGKey(c["attrs"]["seed"].get<int>()), 8);
    for (std::size_t k = 0; k < c["outputs"].size(); k++) {
      const Json& out = c["outputs"][k];
      const Array key = keys[static_cast<int>(k)];
      const std::vector<std::uint32_t> bits =
          everywhere(sa::random::bits(key, shape)).to_vector<std::uint32_t>();
      std::uint32_t sum = 0, all = 0;
      for (const std::uint32_t b : bits) {
        sum += b;
        all ^= b;
      }
      CHECK(sum == out["bits"]["sum_bits_mod_2_32"].get<std::uint32_t>());
      CHECK(all == out["bits"]["xor_bits"].get<std::uint32_t>());
      const Array m = sa::random::normal(key, shape), wide = m.astype(sa::float64);
      CHECK(golden::close(values(m[{0, sa::slice(4)}]), golden::numbers(out["mats"]["first"]), 5e-7, 1e-7));
      CHECK(golden::close(values(m[{-1, sa::slice(-4, sa::none)}]), golden::numbers(out["mats"]["last"]),
                          5e-7, 1e-7));
      CHECK(everywhere(sa::mean(wide)).item<double>() ==
            doctest::Approx(out["mats"]["mean_f64"].get<double>()).epsilon(1e-4));
      // the mean of m m^T is the square of the sums of its columns over that of the number of its rows
      double squares = 0;
      for (const double v : values(sa::sum(wide, 0))) squares += v * v;
      const auto rows = static_cast<double>(shape[0]);
      CHECK(squares / (rows * rows) == doctest::Approx(out["mean_of_m_mT_f64"].get<double>()).epsilon(1e-5));
    }
  }
}

namespace {

// The products and functions of a jaxpr, or of print_graph's text, in order: `f32[2,4] dot`.
std::vector<std::string> primitives(const std::string& text) {
  std::vector<std::string> r;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    const std::size_t type = line.find_last_of(" :", equals - 1) + 1, op = equals + 3;
    std::string name = line.substr(op, line.find_first_of(" [", op) - op);
    if (name == "dot_general") name = "dot";
    if (name == "dot" || name == "tanh") r.push_back(line.substr(type, equals - type) + " " + name);
  }
  return r;
}

}  // namespace

TEST_CASE("pmap cookbook: functions, mapped and not, are recorded as JAX's primitives of JAX's types") {
  const auto f = [](const Array& x, const Array& y) { return sa::tanh(sa::dot(x, y)); };
  for (const char* file : {"pmap_document.json", "pmap_document_old.json"}) {
    CAPTURE(file);
    const Json out = cases("jaxprs", file)[0]["outputs"];
    const Array x = sa::ones({2, 3}), y = sa::ones({3, 4}), xs = sa::ones({8, 2, 3}),
                ys = sa::ones({8, 3, 4});
    CHECK(primitives(sa::print_graph(f, x, y)) == primitives(out["f"]));
    CHECK(primitives(sa::print_graph(sa::vmap(f), xs, ys)) == primitives(out["vmap(f)"]));
    // JAX shows what one device does, here all have one text
    std::vector<std::string> each_device = primitives(sa::print_graph(sa::pmap(f), xs, ys));
    for (std::string& line : each_device)
      if (line.starts_with("f32[8,")) line.erase(4, 2);
    CHECK(each_device == primitives(out["pmap(f)"]));
  }
}

}  // namespace pmap_cookbook_test
