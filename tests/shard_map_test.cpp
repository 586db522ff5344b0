// shard_map: programs of local shards compared with plain computations, transfers, derivatives, refusals.
#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace shard_map_test {

using namespace transforms_test;
using program_test::check_received;
using program_test::transfers;
using sa::axes;
using sa::P;

namespace {

sa::Mesh mesh_x() { return sa::make_mesh({{"x", 8}}); }
sa::Mesh mesh_xy() { return sa::make_mesh({{"x", 4}, {"y", 2}}); }
Array numbers(const Shape& shape, int seed = 0) { return program_test::numbers(shape, sa::float32, seed); }
Array on(const Array& x, const sa::Mesh& mesh, const P& spec) {
  return sa::device_put(x, sa::NamedSharding(mesh, spec));
}
bool lies(const Array& x, const sa::Mesh& mesh, const P& spec) {
  return x.sharding().is_equivalent_to(sa::NamedSharding(mesh, spec), x.ndim());
}
// The transfers that f(args...) plans, after a run that counts what arrives.
template <class F, class... A> std::string moves(const F& f, const A&... args) {
  const auto j = sa::jit(f);
  check_received(j, args...);
  return transfers(sa::explain(j, args...));
}

}  // namespace

TEST_CASE("shard_map: the function sees its piece") {
  const Array x = numbers({16, 4});
  Shape seen;
  const auto f = sa::shard_map(
      [&](const Array& v) {
        seen = v.shape();
        return v * 2 + sa::axis_index("x");
      },
      {mesh_x(), P("x"), P("x")});
  const Array y = f(x);
  CHECK(seen == Shape{2, 4});
  Values want = values(2 * x);
  for (std::size_t k = 0; k < want.size(); k++) want[k] += static_cast<double>(k / 8);
  CHECK(values(y) == want);
  CHECK(lies(y, mesh_x(), P("x")));
  const Array placed = on(x, mesh_x(), P("x"));
  CHECK(moves(f, placed).empty());
  CHECK(values(sa::jit(f)(placed)) == want);
}

TEST_CASE("shard_map: matrix products four ways") {
  const Array a = numbers({16, 8}), b = numbers({8, 24}, 1);
  const Values want = values(sa::matmul(a, b));
  const sa::Mesh m = mesh_x();
  const auto product = [](const Array& p, const Array& q) { return sa::matmul(p, q); };
  // the contracted dimension is cut: sums of partial products, whole or in parts
  const auto whole =
      sa::shard_map([&](const Array& p, const Array& q) { return sa::psum(product(p, q), "x"); },
                    {m, {P(sa::none, "x"), P("x")}, P()});
  CHECK(values(whole(a, b)) == want);
  CHECK(lies(whole(a, b), m, P()));
  const auto parts = sa::shard_map(
      [&](const Array& p, const Array& q) {
        return sa::psum_scatter(product(p, q), "x", {.axis = 1, .tiled = true});
      },
      {m, {P(sa::none, "x"), P("x")}, P(sa::none, "x")});
  CHECK(values(parts(a, b)) == want);
  CHECK(lies(parts(a, b), m, P(sa::none, "x")));
  // rows are cut, and so are the weights: gathered where they are used
  const auto gathered = sa::shard_map(
      [&](const Array& p, const Array& q) { return product(p, sa::all_gather(q, "x", {.tiled = true})); },
      {m, {P("x"), P("x")}, P("x")});
  CHECK(values(gathered(a, b)) == want);
  // columns become rows and back
  const auto turned = sa::shard_map(
      [&](const Array& p, const Array& q) {
        const Array rows = sa::all_to_all(p, "x", {.split_axis = 0, .concat_axis = 1, .tiled = true});
        return sa::all_to_all(product(rows, q), "x", {.split_axis = 1, .concat_axis = 0, .tiled = true});
      },
      {m, {P(sa::none, "x"), P()}, P(sa::none, "x")});
  CHECK(values(turned(a, b)) == want);
  CHECK(lies(turned(a, b), m, P(sa::none, "x")));
  const Array ac = on(a, m, P(sa::none, "x")), br = on(b, m, P("x")), ar = on(numbers({1024, 8}), m, P("x"));
  CHECK(moves(whole, ac, br) == "all_reduce{x} 2688");      // 2 * 7/8 of 16 x 24 numbers
  CHECK(moves(parts, ac, br) == "reduce_scatter{x} 1344");  // 7/8
  CHECK(moves(gathered, ar, br) == "all_gather{x} 672");    // 7/8 of 8 x 24 numbers
}

TEST_CASE("shard_map: a ring of products, one step of neighbours at a time") {
  const Array a = numbers({16, 8}), b = numbers({8, 24}, 1);
  sa::Permutation ring;
  for (int k = 0; k < 8; k++) ring.emplace_back(k, (k + 1) % 8);
  const auto f = sa::shard_map(
      [&](const Array& p, const Array& q) {  // [2,8] and [1,24]
        Array sum = sa::zeros({2, 24}), piece = q;
        const Array all = sa::arange(8), here = sa::axis_index("x");
        for (int k = 0; k < 8; k++) {
          const Array mine = sa::equal(all, (here - k + 8) % 8).astype(sa::float32);  // the row that has come
          sum = sum + sa::sum(p * mine, {.axis = 1, .keepdims = true}) * piece;
          piece = sa::ppermute(piece, "x", ring);
        }
        return sum;
      },
      {mesh_x(), {P("x"), P("x")}, P("x")});
  CHECK(values(f(a, b)) == values(sa::matmul(a, b)));
}

TEST_CASE("shard_map: two axes") {
  const sa::Mesh m = mesh_xy();
  const Array x = numbers({8, 6});
  const auto rows =
      sa::shard_map([](const Array& v) { return sa::psum(sa::sum(v, 1), "y"); }, {m, P("x", "y"), P("x")});
  CHECK(values(rows(x)) == values(sa::sum(x, 1)));
  CHECK(lies(rows(x), m, P("x")));
  const auto all = sa::shard_map(
      [](const Array& v) {
        return sa::psum(sa::sum(v), {"x", "y"});
      },
      {m, P("x", "y"), P()});
  CHECK(values(all(x)) == values(sa::sum(x)));
  // both axes on one dimension, x most significant
  const auto place = sa::shard_map(
      [](const Array& v) {
        return v * 0 + sa::axis_index({"x", "y"});
      },
      {m, P(axes("x", "y")), P(axes("x", "y"))});
  CHECK(values(place(sa::zeros({8}))) == Values{0, 1, 2, 3, 4, 5, 6, 7});
  const auto turned = sa::shard_map(
      [](const Array& v) {
        return v * 0 + sa::axis_index({"x", "y"});
      },
      {m, P(axes("y", "x")), P(axes("y", "x"))});
  CHECK(values(turned(sa::zeros({8}))) == Values{0, 2, 4, 6, 1, 3, 5, 7});
  // a matrix in blocks: a row of blocks times a column of blocks
  const Array a = numbers({8, 4}), b = numbers({4, 6}, 2);
  const auto blocks = sa::shard_map(
      [](const Array& p, const Array& q) {
        return sa::matmul(sa::all_gather(p, "y", {.axis = 1, .tiled = true}),
                          sa::all_gather(q, "x", {.tiled = true}));
      },
      {m, {P("x", "y"), P("x", "y")}, P("x", "y")});
  CHECK(values(blocks(a, b)) == values(sa::matmul(a, b)));
  CHECK(lies(blocks(a, b), m, P("x", "y")));
}

TEST_CASE("shard_map: trees, specs in lists, results that are the same everywhere") {
  const sa::Mesh m = mesh_x();
  const Array x = numbers({8, 3}), w = numbers({3}, 1);
  const auto f = sa::shard_map(
      [](const Layer& l, const std::vector<Array>& v) {
        return std::pair(v[0] * l.weight + l.bias, std::vector{sa::psum(sa::sum(v[0], 0), "x"), l.weight});
      },
      {m, {{P(), P("x")}, P("x")}, {P("x"), P()}});
  const auto [rows, whole] = f(Layer{w, numbers({8, 1}, 2)}, std::vector{x});
  CHECK(values(rows) == values(x * w + numbers({8, 1}, 2)));
  CHECK(values(whole[0]) == values(sa::sum(x, 0)));
  CHECK(lies(whole[0], m, P()));
  CHECK(values(whole[1]) == values(w));
  // equal pieces make up a whole where the spec names the axis
  const auto repeated = sa::shard_map([](const Array& v) { return v * 2; }, {m, P(), P("x")});
  const Array r = repeated(w);
  CHECK(r.shape() == Shape{24});
  for (int k = 0; k < 8; k++) CHECK(values(r[sa::slice(3 * k, 3 * k + 3)]) == values(2 * w));
}

TEST_CASE("shard_map: manual over one axis, automatic over the other") {
  const sa::Mesh m = mesh_xy();
  const Array x = numbers({16, 8}), w = numbers({8, 4}, 1);
  const auto f = sa::shard_map(
      [](const Array& v, const Array& u) {
        return sa::psum(sa::matmul(sa::transpose(v), v), "x") * sa::sum(u);
      },
      {m, {P("x"), P()}, P(), {"x"}});
  const Values want = values(sa::matmul(sa::transpose(x), x) * sa::sum(w));
  CHECK(values(f(x, w)) == want);
  const Array px = on(x, m, P("x", "y")), pw = on(w, m, P("y"));
  CHECK(values(sa::jit(f)(px, pw)) == want);
  // rows along x, columns along y: elementwise work moves nothing and keeps both
  const auto square =
      sa::shard_map([](const Array& v) { return v * v + sa::axis_index("x"); }, {m, P("x"), P("x"), {"x"}});
  CHECK(moves(square, px).empty());
  CHECK(lies(sa::jit(square)(px), m, P("x", "y")));
  // a sum over x is one over x only; one over the columns is the compiler's, over y
  const auto sums =
      sa::shard_map([](const Array& v) { return sa::psum(sa::sum(v, 0), "x"); }, {m, P("x"), P(), {"x"}});
  CHECK(values(sa::jit(sums)(px)) == values(sa::sum(x, 0)));
  CHECK(moves(sums, px) == "all_reduce{x} 24");  // 2 * 3/4 of 4 numbers
  CHECK(lies(sa::jit(sums)(px), m, P("y")));
  const auto across = sa::shard_map([](const Array& v) { return sa::sum(v, 1); }, {m, P("x"), P("x"), {"x"}});
  CHECK(values(sa::jit(across)(px)) == values(sa::sum(x, 1)));
  CHECK(moves(across, px) == "all_reduce{y} 16");  // 2 * 1/2 of 4 numbers
}

TEST_CASE("shard_map: in jit, in grad, in both") {
  const sa::Mesh m = mesh_x();
  const Array x = numbers({16, 4}) / 8.0, w = numbers({4, 3}, 1) / 8.0;
  const auto f = sa::shard_map(
      [](const Array& v, const Array& u) {
        const Array y = sa::sin(sa::matmul(v, u));
        return std::pair(y * sa::sum(v), sa::psum(sa::sum(y), "x"));
      },
      {m, {P("x"), P()}, {P("x"), P()}});
  const auto loss = [&](const Array& v, const Array& u) {
    const auto [rows, total] = f(v, u);
    return sa::sum(rows * rows) + total * total;
  };
  const auto plain = [](const Array& v, const Array& u) {
    const Array y = sa::sin(sa::matmul(v, u));
    const Array pairs = sa::sum(sa::reshape(v, {8, 8}), 1);
    const Array rows = sa::reshape(y, {8, 2, 3}) * sa::reshape(pairs, {8, 1, 1});
    return sa::sum(rows * rows) + sa::square(sa::sum(y));
  };
  CHECK(at(loss(x, w)) == doctest::Approx(at(plain(x, w))).epsilon(1e-5));
  const auto both = [](const auto& g) { return sa::grad(g, {.argnums = {0, 1}}); };
  const auto [px, pw] = both(plain)(x, w);
  const auto [gx, gw] = both(loss)(x, w);
  check_near(gx, values(px), 1e-4);
  check_near(gw, values(pw), 1e-4);
  const auto [jx, jw] = sa::jit(both(loss))(on(x, m, P("x")), on(w, m, P()));
  check_near(jx, values(px), 1e-4);
  check_near(jw, values(pw), 1e-4);
  const Array e = numbers({4, 3}, 2) / 64.0;
  const double slope = (at(plain(x, w + e)) - at(plain(x, w - e))) / 2;
  CHECK(at(sa::sum(gw * e)) == doctest::Approx(slope).epsilon(2e-2));
  // a gradient inside: of each piece's own loss
  const auto own = sa::shard_map(
      [](const Array& v) { return sa::grad([](const Array& u) { return sa::sum(u) * sa::sum(u); })(v); },
      {m, P("x"), P("x")});
  const Array sums = sa::sum(sa::reshape(x, {8, 8}), {.axis = 1, .keepdims = true});
  check_near(own(x), values(sa::broadcast_to(2 * sums, {8, 8})));
  // rows of a batch
  const auto batch =
      sa::vmap(sa::shard_map([](const Array& v) { return v - sa::pmax(v, "x"); }, {m, P("x"), P("x")}));
  const Array z = numbers({5, 8});
  CHECK(values(batch(z)) == values(z - sa::max(z, {.axis = 1, .keepdims = true})));
}

TEST_CASE("shard_map: messages") {
  const sa::Mesh m = mesh_xy();
  const auto run = [&](const Shape& shape, const sa::Specs& in, const sa::Specs& out,
                       std::vector<std::string> names = {}) {
    return error<sa::Error>([&] {
      sa::shard_map([](const Array& v) { return v; }, {m, in, out, std::move(names)})(sa::ones(shape));
    });
  };
  CHECK(run({10, 4}, P("x"), P("x")) ==
        "shard_map: argument 0 f32[10,4]: dimension 0 of size 10 is not divisible by 4, the size of "
        "PartitionSpec('x',). "
        "The function sees equal pieces: pad it to 12.");
  CHECK(run({10, 9}, P(axes("x", "y")), P()) ==
        "shard_map: argument 0 f32[10,9]: dimension 0 of size 10 is not divisible by 8, the size of "
        "PartitionSpec(('x', "
        "'y'),). The function sees equal pieces: pad it to 16.");
  CHECK(run({8}, P("z"), P()) ==
        "shard_map: argument 0 has spec PartitionSpec('z',), but 'z' is no axis that the map is over. Those "
        "are x, y. Name one of them.");
  CHECK(run({8}, P("y"), P(), {"x"}) ==
        "shard_map: argument 0 has spec PartitionSpec('y',), but 'y' is no axis that the map is over. Those "
        "are x. Name one of them.");
  CHECK(run({8}, P("x", "x"), P()) ==
        "shard_map: argument 0 has spec PartitionSpec('x', 'x') of length 2, but its rank is 1 (f32[8]). "
        "A spec has at most one entry for each dimension. Drop entries.");
  CHECK(run({8, 8}, P("x", "x"), P()) ==
        "shard_map: argument 0 has spec PartitionSpec('x', 'x'), which names axis 'x' twice. A mesh axis "
        "cuts at most one "
        "dimension. Remove one of them.");
  CHECK(run({8}, P("x"), P("x", "y")) ==
        "shard_map: result 0 has spec PartitionSpec('x', 'y') of length 2, but its rank is 1 (f32[2]). "
        "A spec has at most one entry for each dimension. Drop entries.");
  CHECK(run({8}, P("x"), P()) ==
        "shard_map: result 0 f32[2] differs along axis 'x', which its spec PartitionSpec() does not name. "
        "Name it, or "
        "combine the values (psum, all_gather).");
  CHECK(run({8, 2}, P("x", "y"), P("x")) ==
        "shard_map: result 0 f32[2,1] differs along axis 'y', which its spec PartitionSpec('x',) does not "
        "name. Name it, "
        "or combine the values (psum, all_gather).");
  CHECK(contains(run({8}, P("x"), P("x"), {"z"}), "'z'"));
  CHECK(contains(run({8}, {P("x"), P("x")}, P("x")), "shard_map: in_specs"));
  CHECK(error<sa::TreeError>([&] {
          sa::shard_map([](const Array& a, const Array& b) { return a + b; }, {m, {P(), P(), P()}, P()})(
              sa::ones({2}), sa::ones({2}));
        }) ==
        "shard_map: in_specs has 3 entries for 2 parts. A list needs one entry for each argument, element or "
        "field. Write "
        "one spec for all of them, or one for each.");
  CHECK(error<sa::TraceError>([&] {
          const auto inner = [](const Array& v) { return sa::pmap([](const Array& e) { return e; })(v); };
          sa::shard_map(inner, {m, P("x"), P("x")})(sa::ones({8}));
        }) ==
        "pmap: inside shard_map the devices are those of its mesh. Use vmap, or shard_map over more axes.");
  CHECK(contains(error<sa::TraceError>([&] {
                   sa::shard_map([](const Array& v) { return sa::psum(v, "y"); },
                                 {m, P("x"), P("x"), {"x"}})(sa::ones({8}));
                 }),
                 "psum: unbound axis name 'y'. In scope: 'x'."));
}

}  // namespace shard_map_test
