// Collectives: JAX's numbers under every map, transposes, second derivatives, refusals.
#include <functional>
#include <numeric>

#include "golden.h"
#include "messages.h"
#include "transforms_helpers.h"

namespace collectives_test {

using namespace transforms_test;
using golden::Json;

namespace {

using Fn = std::function<Array(const Array&)>;

const Json& cases() {
  static const Json all = golden::load("collectives.json")["cases"];
  return all;
}

sa::NamedAxes names_of(const Json& j) {
  sa::NamedAxes names{"i"};
  names.names = j.is_string() ? std::vector{j.get<std::string>()} : j.get<std::vector<std::string>>();
  return names;
}

// The collective of a row of the file, for one position.
Array apply(const Json& row, const Array& x) {
  const std::string name = row["name"];
  const Json& a = row["attrs"];
  const auto number = [&](const char* key) { return a.value(key, 0); };
  const bool tiled = a.value("tiled", false);
  const sa::NamedAxes axis = names_of(a["axis_name"]);
  const auto groups = a.value("axis_index_groups", sa::Groups{});
  if (name == "psum") return sa::psum(x, axis, {groups});
  if (name == "pmean") return sa::pmean(x, axis, {groups});
  if (name == "pmax") return sa::pmax(x, axis, {groups});
  if (name == "pmin") return sa::pmin(x, axis, {groups});
  if (name == "all_gather") return sa::all_gather(x, axis, {number("axis"), tiled, groups});
  if (name == "psum_scatter") return sa::psum_scatter(x, axis, {number("scatter_dimension"), tiled, groups});
  if (name == "all_to_all")
    return sa::all_to_all(x, axis, {number("split_axis"), number("concat_axis"), tiled, groups});
  if (name == "pswapaxes") return sa::pswapaxes(x, axis, number("axis"), {groups});
  if (name == "ppermute") return sa::ppermute(x, axis, a["perm"].get<sa::Permutation>());
  if (name == "pshuffle") return sa::pshuffle(x, axis, a["perm"].get<std::vector<int>>());
  if (name == "pbroadcast") return sa::pbroadcast(x, axis, number("source"));
  if (name == "pargmax") return sa::argmax(sa::all_gather(x, axis), 0);
  if (name == "pargmin") return sa::argmin(sa::all_gather(x, axis), 0);
  if (name == "axis_index") return sa::axis_index(axis);
  if (name == "psum_const") return x * 0 + sa::psum(a["const"].get<double>(), axis, {groups});
  if (name == "reduce_then_scatter")
    return sa::all_gather(sa::psum_scatter(x, axis, {.tiled = true}), axis, {.tiled = true});
  throw sa::Error("no collective " + name);
}

// f of one position, over all of them: i outside, j inside.
Fn mapped(const Fn& f, const std::string& how) {
  if (how == "pmap") return sa::pmap(f, {.axis_name = "i"});
  if (how == "vmap") return sa::vmap(f, {.axis_name = "i"});
  if (how == "pmap_pmap") return sa::pmap(sa::pmap(f, {.axis_name = "j"}), {.axis_name = "i"});
  if (how == "pmap_vmap") return sa::pmap(sa::vmap(f, {.axis_name = "j"}), {.axis_name = "i"});
  if (how == "vmap_vmap") return sa::vmap(sa::vmap(f, {.axis_name = "j"}), {.axis_name = "i"});
  throw sa::Error("no map " + how);
}
Fn mapped(const Json& row) {
  return mapped([&row](const Array& x) { return apply(row, x); }, row["attrs"]["map"]);
}

double dot(const Array& a, const Array& b) {
  const Values x = values(a), y = values(b);
  REQUIRE(x.size() == y.size());
  return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
}

// f under the map of `row` has the numbers of `truth`, derivative included.
void check_row(const Json& row, const Json& truth) {
  CAPTURE(row["name"].get<std::string>());
  CAPTURE(row["attrs"].dump());
  const Fn f = mapped(row);
  const Array x = golden::array(truth["inputs"]["x"]);
  const Json& out = truth["outputs"];
  // exact but for the sign of zero, which some of JAX's lose in a sum with zeros; pmean divides
  const double tolerance = row["name"] == "pmean" ? 1e-6 : 0;
  const auto same = [&](const Array& got, const Json& want) {
    return got.dtype() == golden::dtype_named(want["dtype"]) && golden::close(got, want, tolerance);
  };
  CHECK(same(f(x), out["y"]));
  if (out.contains("vjp_raises"))
    CHECK(contains(
        error<sa::Error>([&] { sa::grad([&](const Array& v) { return sa::sum(f(v)); })(x); }),
        "grad: differentiation rule for '" + row["name"].get<std::string>() + "' not implemented ("));
  if (!out.contains("cotangent")) return;
  const Array cotangent = golden::array(out["cotangent"]);
  const auto [y, pull] = sa::vjp(f, x);
  const Array vjp = std::get<0>(pull(cotangent));
  if (out.contains("vjp")) CHECK(same(vjp, out["vjp"]));
  else {  // JAX's transpose is wrong here
    CHECK(vjp.shape() == x.shape());
    CHECK(dot(cotangent, golden::array(out["y"])) == doctest::Approx(dot(vjp, x)));
  }
}

// The row of another map with the same collective, for what JAX cannot do under this one.
const Json& same_under(const std::string& map, const Json& row) {
  Json attrs = row["attrs"];
  attrs["map"] = map;
  for (const Json& other : cases())
    if (other["name"] == row["name"] && other["attrs"] == attrs && !other.contains("skipped")) return other;
  throw sa::Error("no such row");
}

}  // namespace

TEST_CASE("collectives: JAX's numbers and derivatives") {
  int checked = 0;
  for (const Json& row : cases()) {
    if (row.contains("skipped")) continue;
    check_row(row, row);
    checked++;
  }
  CHECK(checked == 341);
}

TEST_CASE("collectives: what JAX cannot do under vmap is what pmap does") {
  int checked = 0;
  for (const Json& row : cases()) {
    if (!row.contains("skipped") || row["name"] == "pbroadcast") continue;
    check_row(row, same_under(row["attrs"]["map"] == "vmap" ? "pmap" : "pmap_pmap", row));
    checked++;
  }
  CHECK(checked == 21);
}

TEST_CASE("collectives: pbroadcast") {
  for (const Json& row : cases()) {
    if (row["name"] != "pbroadcast") continue;
    CAPTURE(row["attrs"].dump());
    const Array x = golden::array(row["inputs"]["x"]);
    const Values v = values(x);
    const std::size_t source = row["attrs"]["source"], size = v.size() / 8;
    Values want, summed(v.size(), 0.0);
    for (std::size_t k = 0; k < v.size(); k++) want.push_back(v[source * size + k % size]);
    CHECK(values(mapped(row)(x)) == want);
    if (x.dtype() != sa::float32) continue;
    const auto [y, pull] = sa::vjp(mapped(row), x);
    for (std::size_t k = 0; k < v.size(); k++) summed[source * size + k % size] += v[k];
    CHECK(values(std::get<0>(pull(x))) == summed);
  }
}

// ---------------------------------------------------------------- second derivatives
TEST_CASE("collectives: second derivatives against differences of the first") {
  const std::vector<std::pair<std::string, Fn>> table = {
      {"psum", [](const Array& x) { return sa::psum(x, "i"); }},
      {"psum in groups",
       [](const Array& x) {
         return sa::psum(x, "i", {{{0, 2, 3}, {1}}});
       }},
      {"pmean", [](const Array& x) { return sa::pmean(x, "i"); }},
      {"ppermute",
       [](const Array& x) {
         return sa::ppermute(x, "i", {{0, 1}, {1, 3}, {3, 0}});
       }},
      {"pshuffle",
       [](const Array& x) {
         return sa::pshuffle(x, "i", {2, 0, 3, 1});
       }},
      {"pbroadcast", [](const Array& x) { return sa::pbroadcast(x, "i", 2); }},
      {"pswapaxes", [](const Array& x) { return sa::pswapaxes(x, "i", 1); }},
      {"all_gather", [](const Array& x) { return sa::all_gather(x, "i", {.axis = -1}); }},
      {"all_gather in groups",
       [](const Array& x) {
         return sa::all_gather(x, "i", {0, true, {{3, 0}, {1, 2}}});
       }},
      {"psum_scatter", [](const Array& x) { return sa::psum_scatter(x, "i"); }},
      {"psum_scatter in groups",
       [](const Array& x) {
         return sa::psum_scatter(x, "i", {0, true, {{3, 0}, {1, 2}}});
       }},
      {"all_to_all",
       [](const Array& x) { return sa::all_to_all(x, "i", {.split_axis = 1, .concat_axis = 0}); }},
      {"all_to_all tiled",
       [](const Array& x) {
         return sa::all_to_all(x, "i", {0, 1, true, {}});
       }},
  };
  const auto eighths = [](int seed) {
    Values v;
    for (int k = 0; k < 64; k++) v.push_back((k * 29 + seed * 13) % 37 / 8.0 - 2);
    return sa::array(v, {4, 4, 4}, sa::float64);
  };
  const Array x = eighths(0), v = eighths(1), w = eighths(2);
  for (const auto& entry : table)
    for (const char* how : {"vmap", "pmap"}) {
      CAPTURE(entry.first);
      CAPTURE(how);
      const Fn inside = [&](const Array& own) {
        const Array y = entry.second(own * own);
        return y * y * 0.25 + y * (1.0 + sa::axis_index("i"));
      };
      const Fn f = mapped(inside, how);
      const auto g = sa::grad([&](const Array& p) { return sa::sum(f(p)); });
      const auto product = [&](const Array& of) { return sa::jvp(g, x, of).second; };
      // g is cubic: two differences give the derivative without an error but rounding
      const auto difference = [&](double e) { return (g(x + e * v) - g(x - e * v)) / (2 * e); };
      const Array hv = product(v), want = (4.0 * difference(1.0) - difference(2.0)) / 3.0;
      CHECK(golden::close(values(hv), values(want), 1e-9, 1e-9));
      CHECK(dot(w, hv) == doctest::Approx(dot(v, product(w))).epsilon(1e-12));  // symmetric
      const auto slope = sa::grad([&](const Array& p) { return sa::sum(g(p) * v); });
      CHECK(golden::close(values(slope(x)), values(hv), 1e-12, 1e-12));
    }
}

TEST_CASE("collectives: derivatives inside of the map are those of classic JAX") {
  const Array p = sa::arange(4).astype(sa::float32);
  for (const char* how : {"vmap", "pmap"}) {
    CAPTURE(how);
    const auto gradient = [&](const Fn& sum) {
      const Fn loss = [sum](const Array& x) { return sum(x) * (1 + sa::axis_index("i")); };
      return values(mapped(sa::grad(loss), how)(p));
    };
    CHECK(gradient([](const Array& x) { return sa::psum(x, "i"); }) == Values{10, 10, 10, 10});
    CHECK(gradient([](const Array& x) {
            return sa::psum(x, "i", {{{0, 2}, {3, 1}}});
          }) == Values{4, 6, 4, 6});
    CHECK(gradient([](const Array& x) {
            return sa::pmean(x, "i", {{{0}, {1, 2, 3}}});
          }) == Values{1, 9, 9, 9});
    const Fn minus = sa::grad([](const Array& x) { return -sa::psum(x, "i"); });
    CHECK(values(mapped(minus, how)(p)) == Values{-4, -4, -4, -4});
  }
}

// A value that is the same for all positions, in every dtype and however it comes about, over more positions than small integers
// count: as the sum of so many rows.
TEST_CASE("collectives: a sum over equal rows wraps and rounds as one over rows") {
  for (const std::int64_t n : {3, 300, 70000}) {
    const Array rows = sa::zeros({n, 1});
    for (const sa::DType t : {sa::bool_, sa::int8, sa::int16, sa::int32, sa::int64, sa::uint8, sa::uint16,
                              sa::uint32, sa::uint64, sa::float32, sa::float64}) {
      CAPTURE(n);
      CAPTURE(name(t));
      const Array held = sa::array({3.0}).astype(t);
      const auto over = [&](const Fn& f) {
        return values(sa::vmap(f, {.out_axes = sa::none, .axis_name = "i"})(rows))[0];
      };
      const double want = over([&](const Array& r) { return sa::psum(held + r.astype(t), "i")[0]; });
      const double mean = over([&](const Array& r) { return sa::pmean(held + r.astype(t), "i")[0]; });
      for (const bool jitted : {false, true}) {
        const Fn sum = [&](const Array&) { return sa::psum(held, "i")[0]; };
        CHECK(over([&](const Array& r) { return jitted ? sa::jit(sum)(r) : sum(r); }) == want);
      }
      CHECK(over([&](const Array&) { return sa::psum(sa::full({}, 3, t), "i"); }) == want);
      CHECK(over([&](const Array&) { return sa::pmean(held, "i")[0]; }) == mean);
      CHECK(over([&](const Array&) { return sa::pmean(sa::full({}, 3, t), "i"); }) == mean);
    }
  }
}

// ---------------------------------------------------------------- more than the file has
TEST_CASE("collectives: a ring sends every position's value to the one behind it") {
  using namespace shardarray;
  CHECK(ring(4) == Permutation{{0, 1}, {1, 2}, {2, 3}, {3, 0}});
  CHECK(ring(3, -1) == Permutation{{0, 2}, {1, 0}, {2, 1}});
  CHECK(ring(1) == Permutation{{0, 0}});
  CHECK(ring(3, INT64_MIN) == ring(3, INT64_MIN % 3 + 3));
  const Array x = arange(8.0);
  for (const int shift : {1, -1, 3, 8, -11}) {
    const auto f = [=](const Array& a) { return ppermute(a, "i", ring(axis_size("i"), shift)); };
    const auto got = everywhere(pmap(f, {.axis_name = "i"})(x)).to_vector<float>();
    for (int k = 0; k < 8; k++)
      CHECK(got[static_cast<std::size_t>(((k + shift) % 8 + 8) % 8)] == static_cast<float>(k));
  }
  CHECK_SAYS(
      ring(0),
      "ring: of 0 positions. A ring has at least one, and their numbers are ints. Give axis_size(axis).",
      Error);
}

TEST_CASE("collectives: trees, sizes, literals, axes from the end") {
  for (const char* how : {"vmap", "pmap"}) {
    CAPTURE(how);
    const auto over = [&](const Fn& f) { return mapped(f, how); };
    const Array x = sa::array({1, 2, 3, 4, 5, 6}, {3, 2}, sa::float32);
    std::int64_t size = 0;
    const Array y = over([&](const Array& v) {
      size = sa::axis_size("i");
      const Layer sum = sa::psum(Layer{v, v * 10}, "i");
      const auto most = sa::pmax(std::vector{v, -v}, "i");
      return sa::stack({sum.weight, sum.bias, most[0], most[1]}, 0);
    })(x);
    CHECK(size == 3);
    const Values one = {9, 12, 90, 120, 5, 6, -1, -2};
    Values all;
    for (int k = 0; k < 3; k++) all.insert(all.end(), one.begin(), one.end());
    CHECK(values(y) == all);
    CHECK(over([](const Array& v) { return sa::all_gather(v, "i", {.axis = -1}); })(x).shape() ==
          Shape{3, 2, 3});
    CHECK(values(over([](const Array& v) { return sa::all_gather(v, "i", {.axis = -1}); })(x)) ==
          Values{1, 3, 5, 2, 4, 6, 1, 3, 5, 2, 4, 6, 1, 3, 5, 2, 4, 6});
    // equal values at all positions
    CHECK(values(over([](const Array& v) {
            return v * 0 + sa::psum(sa::array({1.0, 2.0}), "i");
          })(x)) == Values{3, 6, 3, 6, 3, 6});
    CHECK(values(over([](const Array& v) { return v * 0 + sa::all_gather(2.0, "i")[0]; })(x)) ==
          Values(6, 2.0));
  }
}

TEST_CASE("collectives: one inside of jit, of vmap, twice, and with nothing mapped below it") {
  const Array x = sa::arange(8).astype(sa::float32);
  const auto total = sa::jit([](const Array& v) { return sa::psum(v, "i"); });
  const auto f = [&](const Array& v) { return v + total(v) * total(2 * v); };
  Values want;
  for (int k = 0; k < 8; k++) want.push_back(k + 28 * 56);
  CHECK(values(sa::vmap(f, {.axis_name = "i"})(x)) == want);
  CHECK(values(sa::pmap(f, {.axis_name = "i"})(x)) == want);
  // vmap outside and inside of the axis
  const Array pairs = sa::reshape(x, {4, 2});
  const auto sums = [](const Array& v) { return sa::psum(v, "i"); };
  const Values columns = {12, 16, 12, 16, 12, 16, 12, 16};
  CHECK(values(sa::vmap(sa::vmap(sums, {.axis_name = "i"}), {.in_axes = 1, .out_axes = 1})(pairs)) ==
        columns);
  CHECK(values(sa::vmap(sa::vmap(sums), {.axis_name = "i"})(pairs)) == columns);
  CHECK(values(sa::vmap(sa::pmap(sums, {.axis_name = "i"}), {.in_axes = 1, .out_axes = 1})(pairs)) ==
        columns);
  CHECK(values(sa::pmap(sa::vmap(sums), {.axis_name = "i"})(pairs)) == columns);
}

// ---------------------------------------------------------------- messages
TEST_CASE("collectives: messages") {
  const auto message = [](const Fn& f, const Shape& shape = {4, 3}) {
    return error<sa::Error>([&] { sa::vmap(f, {.axis_name = "i"})(sa::ones(shape)); });
  };
  CHECK(error<sa::TraceError>([] { sa::psum(sa::ones({2}), "i"); }) ==
        "psum: unbound axis name 'i'. In scope: none. A name is bound by vmap, pmap or shard_map with "
        "axis_name.");
  CHECK(message([](const Array& x) { return sa::psum(x, "k"); }) ==
        "psum: unbound axis name 'k'. In scope: 'i'. A name is bound by vmap, pmap or shard_map with "
        "axis_name.");
  CHECK(error<sa::TraceError>([] {
          const auto f = [](const Array& x) { return sa::axis_index("k") + x; };
          sa::pmap(sa::vmap(f, {.axis_name = "j"}), {.axis_name = "i"})(sa::ones({2, 2}));
        }) ==
        "axis_index: unbound axis name 'k'. In scope: 'i', 'j'. A name is bound by vmap, pmap or shard_map "
        "with "
        "axis_name.");
  CHECK(error<sa::TraceError>([] {
          sa::vmap([](const Array& x) { return sa::psum(x, "k"); })(sa::ones({4, 3}));
        }) ==
        "psum: unbound axis name 'k'. In scope: a map without a name. A name is bound by vmap, pmap or "
        "shard_map with axis_name.");
  CHECK(message([](const Array& x) {
          return sa::psum(x, sa::NamedAxes(std::initializer_list<std::string>{}));
        }) == "psum: no axis is named. Give at least one.");
  CHECK(message([](const Array& x) {
          return sa::psum(x, {"i", "i"});
        }) == "psum: axis 'i' is named twice. Name each once.");
  for (const sa::Groups& groups : {sa::Groups{{0, 1}, {2}}, {{0, 1}, {1, 2, 3}}, {{0, 1}, {2, 4}}})
    CHECK(contains(message([&](const Array& x) { return sa::psum(x, "i", {groups}); }),
                   "psum: groups must cover all indices exactly once, but [["));
  CHECK(message([](const Array& x) {
          return sa::psum(x, "i", {{{0, 1}, {2}}});
        }) ==
        "psum: groups must cover all indices exactly once, but [[0, 1], [2]] do not cover 0..3 of axis 'i'.");
  CHECK(message([](const Array& x) {
          return sa::all_gather(x, "i", {.groups = {{0, 1, 2}, {3}}});
        }) ==
        "all_gather: groups must have one size, but got [[0, 1, 2], [3]]. Only reductions take others.");
  CHECK(error<sa::Error>([] {
          const auto f = [](const Array& x) { return sa::psum(x, {"i", "j"}, {{{0, 1}, {2, 3}}}); };
          sa::vmap(sa::vmap(f, {.axis_name = "j"}), {.axis_name = "i"})(sa::ones({2, 2}));
        }) == "psum: groups over several axes. Map one axis of the product's size instead.");
  CHECK(message([](const Array& x) {
          return sa::ppermute(x, "i", {{0, 1}, {2, 1}});
        }) ==
        "ppermute: sources and destinations must be unique, but the destination of (2, 1) occurs twice. A "
        "position "
        "sends and receives once at most. Remove a pair.");
  CHECK(
      message([](const Array& x) {
        return sa::ppermute(x, "i", {{0, 1}, {0, 2}});
      }) ==
      "ppermute: sources and destinations must be unique, but the source of (0, 2) occurs twice. A position "
      "sends and receives once at most. Remove a pair.");
  CHECK(message([](const Array& x) {
          return sa::ppermute(x, "i", {{4, 1}});
        }) ==
        "ppermute: (4, 1) is out of range for an axis of size 4. A pair is (source, destination), positions "
        "count from 0. Correct it.");
  CHECK(message([](const Array& x) {
          return sa::pshuffle(x, "i", {0, 1, 1, 2});
        }) ==
        "pshuffle: `perm` does not represent a permutation: [0, 1, 1, 2] of an axis of size 4. It names each "
        "position once. Correct it.");
  CHECK(message([](const Array& x) { return sa::pbroadcast(x, "i", 4); }) ==
        "pbroadcast: source 4 is out of range for an axis of size 4. Positions count from 0. Correct it.");
  CHECK(message([](const Array& x) { return sa::all_gather(x, "i", {.axis = 2}); }) ==
        "all_gather: axis 2 is out of bounds for a value of rank 2.");
  CHECK(message([](const Array& x) { return sa::all_gather(x, "i", {.axis = 1, .tiled = true}); }) ==
        "all_gather: axis 1 is out of bounds for a value of rank 1.");
  CHECK(message([](const Array& x) { return sa::psum_scatter(x, "i"); }) ==
        "psum_scatter: axis 0 of f32[3] must have the size of the mapped axis, 4. For several rows each say "
        "{.tiled = true}.");
  CHECK(message([](const Array& x) { return sa::psum_scatter(x, "i", {.tiled = true}); }) ==
        "psum_scatter: dimension 0 of f32[3] must be divisible by the 4 parts of the axis.");
  CHECK(message([](const Array& x) { return sa::all_to_all(x, "i"); }) ==
        "all_to_all: split_axis 0 of f32[3] must have the size of the mapped axis, 4. For several rows each "
        "say "
        "{.tiled = true}.");
  CHECK(message([](const Array& x) { return sa::all_to_all(x, "i", {.split_axis = 1}); }) ==
        "all_to_all: split_axis 1 is out of bounds for a value of rank 1.");
  CHECK(message([](const Array& x) { return sa::all_to_all(x, "i", {.concat_axis = -2}); }, {4, 4}) ==
        "all_to_all: concat_axis -2 is out of bounds for a value of rank 1.");
  // The inner one of two maps has no positions.
  const auto nobody = [](const auto& f) {
    const auto inner = [f](const Array& y) { return sa::vmap(f, {.axis_name = "j"})(y); };
    return error<sa::ShapeError>([&] { sa::vmap(inner, {.axis_name = "i"})(sa::zeros({2, 0, 0})); });
  };
  const std::string rest =
      ": the axis 'j' has size 0. What is cut into as many parts as an axis has positions needs one at "
      "least. "
      "Map an axis that is not empty.";
  for (const bool tiled : {false, true}) {
    CHECK(nobody([=](const Array& x) {
            return sa::psum_scatter(x, {"i", "j"}, {.tiled = tiled});
          }) == "psum_scatter" + rest);
    CHECK(nobody([=](const Array& x) {
            return sa::all_to_all(x, {"i", "j"}, {.tiled = tiled});
          }) == "all_to_all" + rest);
  }
}

}  // namespace collectives_test
