// Whole programs, and the best known plans for them: bytes that the busiest device receives, on a mesh x=4, y=2.
// XLA's bytes are those of JAX 0.10.2 (Shardy, 8 CPU devices): the smaller of its partitioner's output, with all-reduce + slice
// counted as a reduce-scatter, and of the compiled program. A better plan replaces `best`.
#pragma once
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace known_plans {

namespace sa = shardarray;
using sa::all;
using sa::Array;
using sa::none;
using sa::P;
using sa::Shape;

using Arrays = std::vector<Array>;
struct Operand {
  Shape shape;
  Shape small;  ///< the shape to run
  P spec;
  sa::DType dtype = sa::float32;
};
struct KnownPlan {
  std::string name;
  std::vector<Operand> operands;
  std::function<Arrays(const Arrays&)> f;
  std::vector<P> results;
  std::int64_t xla, best;
  std::string how = {};      ///< the best plan
  std::int64_t planned = 0;  ///< what this library plans, if that is more
  std::string because = {};  ///< and why
};
/// f with its results sharded as the row says.
inline std::function<Arrays(const Arrays&)> placing(const KnownPlan& k, const sa::Mesh& mesh) {
  return [&k, mesh](const Arrays& v) {
    Arrays r = k.f(v);
    for (std::size_t i = 0; i < r.size(); i++)
      r[i] = sa::filter_shard(r[i], sa::NamedSharding(mesh, k.results[i]));
    return r;
  };
}
/// The plan of program k.
inline sa::Explanation plan_of(const KnownPlan& k, const sa::Mesh& mesh) {
  Arrays args;
  for (const Operand& o : k.operands)
    args.push_back(sa::shape_dtype_struct(o.shape, o.dtype, sa::NamedSharding(mesh, o.spec)));
  return sa::explain(sa::jit(placing(k, mesh)), args);
}
inline std::int64_t bytes_of(const sa::Explanation& e) { return e.received_bytes_per_device(); }

inline Array layer_norm(const Array& x, const Array& g, const Array& b) {
  const Array d = x - sa::mean(x, {.axis = {-1}, .keepdims = true});
  return d * sa::rsqrt(sa::mean(d * d, {.axis = {-1}, .keepdims = true}) + 1e-5) * g + b;
}

/// x, g1, b1, wq, wk, wv, wo, g2, b2, w1, w2; heads of 32.
inline Array block_loss(const Arrays& v) {
  const Array h = layer_norm(v[0], v[1], v[2]);
  const auto heads = [&](const Array& w) { return sa::einsum("bsd,dhe->bshe", h, w); };
  const Array q = heads(v[3]), k = heads(v[4]), values = heads(v[5]);
  const Array a = sa::softmax(sa::einsum("bqhe,bkhe->bhqk", q, k) / std::sqrt(32.0));
  const Array x = v[0] + sa::einsum("bqhe,hed->bqd", sa::einsum("bhqk,bkhe->bqhe", a, values), v[6]);
  const Array out = x + sa::matmul(sa::gelu(sa::matmul(layer_norm(x, v[7], v[8]), v[9])), v[10]);
  return sa::mean(out * out);
}
inline Array mlp_loss(const Arrays& v) {  // x, w1, w2
  const Array y = sa::matmul(sa::relu(sa::matmul(v[0], v[1])), v[2]);
  return sa::mean(y * y);
}
/// (loss, its gradients with respect to the arguments from `first` on).
template <class F> Arrays loss_and_gradients(const F& f, const Arrays& v, std::size_t first) {
  auto [loss, gradients] = sa::value_and_grad(f)(v);
  Arrays r{loss};
  r.insert(r.end(), gradients.begin() + static_cast<std::ptrdiff_t>(first), gradients.end());
  return r;
}

inline std::vector<KnownPlan> known_plans() {
  const P whole, x("x"), y("y"), xy(sa::axes("x", "y"));
  const auto square = [](const P& p) { return Operand{{512, 512}, {32, 32}, p}; };
  std::vector<KnownPlan> plans = {
      {"transformer block, forward and backward",
       {{{8, 128, 256}, {8, 8, 64}, x},
        {{256}, {64}, whole},
        {{256}, {64}, whole},
        {{256, 8, 32}, {64, 2, 32}, P(none, "y")},
        {{256, 8, 32}, {64, 2, 32}, P(none, "y")},
        {{256, 8, 32}, {64, 2, 32}, P(none, "y")},
        {{8, 32, 256}, {2, 32, 64}, y},
        {{256}, {64}, whole},
        {{256}, {64}, whole},
        {{256, 1024}, {64, 128}, P(none, "y")},
        {{1024, 256}, {128, 64}, y}},
       [](const Arrays& v) { return loss_and_gradients(block_loss, v, 1); },
       {whole, whole, whole, P(none, "y"), P(none, "y"), P(none, "y"), y, whole, whole, P(none, "y"), y},
       3'414'022,
       3'281'926,
       "2 all_reduce{y} forward, 2 backward, then the gradients' sums over x; what y repeats of them is "
       "divided"},
      {"FSDP MLP, forward and backward",
       {{{512, 1024}, {64, 32}, xy}, {{1024, 4096}, {32, 64}, xy}, {{4096, 1024}, {64, 32}, xy}},
       [](const Arrays& v) {
         const Arrays all = loss_and_gradients(mlp_loss, v, 1);
         return Arrays(all.begin() + 1, all.end());
       },
       {xy, xy},
       61'472'768,
       9'175'040,
       "gather x, w1 to columns, all_reduce y, dw1 back"},
      {"Megatron MLP, forward and backward, rows on y",
       {{{512, 1024}, {64, 32}, y}, {{1024, 4096}, {32, 64}, P(none, "x")}, {{4096, 1024}, {64, 32}, x}},
       [](const Arrays& v) { return loss_and_gradients(mlp_loss, v, 0); },
       {whole, y, P(none, "x"), x},
       11'534'340,
       10'485'764,
       "all_reduce{x} of y and of dx; dw1 and dw2, cut by y too, of gathered operands, then gathered"},
      {"embedding and its gradient, vocabulary on x",
       {{{32000, 256}, {64, 16}, x}, {{64, 128}, {8, 8}, y, sa::int32}, {{64, 128, 256}, {8, 8, 16}, y}},
       [](const Arrays& v) {
         const auto look_up = [&](const Array& table) { return sa::take(table, v[1], 0); };
         const auto [rows, pull] = sa::vjp(look_up, v[0]);
         return Arrays{rows, std::get<0>(pull(v[2]))};
       },
       {y, x},
       14'483'456,
       10'502'144,
       "masked take, all_reduce{x}; all_gather{y} of de and ids, masked sums"},
      {"two convolutions and a pool, height on x, batch on y",
       {{{4, 64, 64, 16}, {4, 16, 8, 4}, P("y", "x")},
        {{3, 3, 16, 32}, {3, 3, 4, 8}, whole},
        {{3, 3, 32, 64}, {3, 3, 8, 4}, whole}},
       [](const Arrays& v) {
         const auto conv = [](const Array& a, const Array& k) {
           return sa::relu(sa::conv_general_dilated(
               a, k, {.padding = "SAME", .dimension_numbers = {"NHWC", "HWIO", "NHWC"}}));
         };
         return Arrays{conv(sa::max_pool(conv(v[0], v[1]), {1, 2, 2, 1}, {.strides = {1, 2, 2, 1}}), v[2])};
       },
       {P("y", "x")},
       32'768,
       32'768,
       "a row of each neighbour in front of each convolution"},
      {"layer norm, forward and backward, features on x, rows on y",
       {{{1024, 4096}, {16, 32}, P("y", "x")},
        {{4096}, {32}, x},
        {{4096}, {32}, x},
        {{1024, 4096}, {16, 32}, P("y", "x")}},
       [](const Arrays& v) {
         const auto [out, pull] = sa::vjp(layer_norm, v[0], v[1], v[2]);
         const auto [dx, dg, db] = pull(v[3]);
         return Arrays{out, dx, dg, db};
       },
       {P("y", "x"), P("y", "x"), x, x},
       20'480,
       20'480,
       "2 numbers per row forward, 2 backward over x, gradients of g and b over y"},
      {"running sum along x",
       {{{8, 65536}, {8, 64}, P(none, "x")}},
       [](const Arrays& v) { return Arrays{sa::cumsum(v[0], 1)}; },
       {P(none, "x")},
       1'572'864,
       96,
       "totals of the tiles"},
      {"sort along x",
       {{{65536}, {64}, x}},
       [](const Arrays& v) { return Arrays{sa::sort(v[0], 0)}; },
       {x},
       196'608,
       49'920,
       "sample sort, on random data",
       98'432,
       "how much each device gets of a sample sort depends on the data; by columns it gets its part twice, "
       "in "
       "sizes that are known before the run"},
      {"sums into rows of a table on x",
       {{{4096}, {32}, x, sa::int32}, {{4096, 64}, {32, 4}, x}},
       [](const Arrays& v) {
         return Arrays{sa::zeros({v[1].shape()[0] * 16, v[1].shape()[1]}).at(v[0]).add(v[1])};
       },
       {x},
       4'726'784,
       798'720,
       "all_gather{x} of rows and their places, masked sums"},
      {"stencil, periodic, 5 points, 4 steps",
       {{{1024, 1024}, {16, 16}, P("x", "y")}},
       [](const Arrays& v) {
         Array u = v[0];
         for (int k = 0; k < 4; k++)
           u = u + 0.1 * (sa::roll(u, 1, 0) + sa::roll(u, -1, 0) + sa::roll(u, 1, 1) + sa::roll(u, -1, 1) -
                          4 * u);
         return Arrays{u};
       },
       {P("x", "y")},
       24'576,
       24'576,
       "a row or column of each neighbour in each step"},
      {"16 largest of rows on x",
       {{{64, 32000}, {4, 32768}, P("y", "x")}},
       [](const Arrays& v) {
         const auto [values, places] = sa::top_k(v[0], 16);
         return Arrays{values, places};
       },
       {y, y},
       7'168'000,
       7'168,
       "the 16 largest of each tile, of which each device merges some rows"},
      {"attention, positions on x, batch on y",
       {{{2, 4, 4096, 64}, {2, 4, 32, 8}, P("y", none, "x")},
        {{2, 4, 4096, 64}, {2, 4, 32, 8}, P("y", none, "x")},
        {{2, 4, 4096, 64}, {2, 4, 32, 8}, P("y", none, "x")}},
       [](const Arrays& v) {
         const Array a = sa::softmax(sa::einsum("bhqd,bhkd->bhqk", v[0], v[1]) / 8.0);
         return Arrays{sa::einsum("bhqk,bhkd->bhqd", a, v[2])};
       },
       {P("y", none, "x")},
       6'291'456,
       3'145'728,
       "all_to_all from positions to heads, and back"},
  };
  struct Chain {
    const char *a, *bc;
    std::int64_t xla, best, planned = 0;
  };
  const auto placed = [&](const std::string& how) {
    return how == "row" ? xy : how == "col" ? P(none, sa::axes("x", "y")) : P("x", "y");
  };
  for (const Chain& c : {Chain{"row", "row", 1'835'008, 1'114'112, 1'179'648},
                         {"row", "col", 1'835'008, 1'114'112, 1'179'648},
                         {"row", "2d", 1'835'008, 1'114'112},
                         {"col", "row", 1'835'008, 1'114'112},
                         {"col", "col", 1'835'008, 1'114'112},
                         {"col", "2d", 1'671'168, 1'081'344},
                         {"2d", "row", 1'703'936, 1'048'576},
                         {"2d", "col", 1'703'936, 1'048'576},
                         {"2d", "2d", 1'048'576, 1'048'576}})
    plans.push_back({std::string("A B C, A ") + c.a + ", B and C " + c.bc,
                     {square(placed(c.a)), square(placed(c.bc)), square(placed(c.bc))},
                     [](const Arrays& v) { return Arrays{sa::matmul(sa::matmul(v[0], v[1]), v[2])}; },
                     {placed(c.a)},
                     c.xla,
                     c.best,
                     "x and y on two of m, n and k in both products",
                     c.planned,
                     c.planned ? "of pairs of places not all are tried" : ""});
  return plans;
}

}  // namespace known_plans
