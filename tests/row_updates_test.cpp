// x.at(arrays of positions): every way to update and kind of index, wherever operands lie, against plain loops over the updates.
#include <doctest/doctest.h>

#include <algorithm>
#include <complex>
#include <functional>
#include <random>

#include "shardarray/shardarray.h"

namespace row_updates_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;
using sa::Shape;
using Values = std::vector<std::complex<double>>;

namespace {

enum Way { set, add, mul, min, max, ways };
Array changed(const sa::IndexedArray& at, Way way, const Array& v, const sa::IndexOptions& o = {}) {
  switch (way) {
    case set: return at.set(v, o);
    case add: return at.add(v, o);
    case mul: return at.mul(v, o);
    case min: return at.min(v, o);
    default: return at.max(v, o);
  }
}
std::complex<double> changed(Way way, bool is_bool, std::complex<double> a, std::complex<double> b) {
  switch (way) {
    case set: return b;
    case add: return is_bool ? std::complex<double>(a.real() + b.real() > 0 ? 1 : 0) : a + b;
    case mul: return a * b;
    case min: return std::min(a.real(), b.real());
    default: return std::max(a.real(), b.real());
  }
}

/// Which element of x each element of the update meets; -1: none.
struct Case {
  Shape shape, of_arrays;  ///< x; the arrays' common shape
  std::vector<int> own;    ///< by dimension of x: its array, or -1
  std::vector<std::vector<std::int64_t>> positions;
  sa::TakeMode mode = sa::TakeMode::drop;
  Shape update;
  std::vector<std::int64_t> element;
};
std::int64_t found(std::int64_t i, std::int64_t n, sa::TakeMode mode) {
  if (mode == sa::TakeMode::wrap) return ((i % n) + n) % n;
  if (i < 0) i += n;
  if (mode == sa::TakeMode::clip) return std::clamp<std::int64_t>(i, 0, n - 1);
  return i < 0 || i >= n ? -1 : i;
}
void find_elements(Case& c) {
  std::vector<std::size_t> arrays, rest;  // dimensions
  for (std::size_t d = 0; d < c.shape.size(); d++) (c.own[d] < 0 ? rest : arrays).push_back(d);
  const bool together = arrays.back() - arrays.front() + 1 == arrays.size();
  const std::size_t before = together ? arrays.front() : 0;
  for (std::size_t k = 0; k < before; k++) c.update.push_back(c.shape[rest[k]]);
  for (const std::int64_t n : c.of_arrays) c.update.push_back(n);
  for (std::size_t k = before; k < rest.size(); k++) c.update.push_back(c.shape[rest[k]]);
  const std::size_t mine = c.of_arrays.size();
  for (std::int64_t e = 0; e < sa::num_elements(c.update); e++) {
    std::vector<std::int64_t> at(c.update.size());
    std::int64_t left = e;
    for (std::size_t d = at.size(); d-- > 0; left /= c.update[d]) at[d] = left % c.update[d];
    std::int64_t in_arrays = 0;
    for (std::size_t d = 0; d < mine; d++) in_arrays = in_arrays * c.of_arrays[d] + at[before + d];
    std::int64_t to = 0;
    std::size_t k = 0;
    bool inside = true;
    for (std::size_t d = 0; d < c.shape.size(); d++) {
      std::int64_t i = 0;
      if (c.own[d] < 0) {
        i = at[k < before ? k : k + mine];
        k++;
      } else {
        i = found(c.positions[static_cast<std::size_t>(c.own[d])][static_cast<std::size_t>(in_arrays)],
                  c.shape[d], c.mode);
      }
      inside = inside && i >= 0;
      to = to * c.shape[d] + i;
    }
    c.element.push_back(inside ? to : -1);
  }
}
Values updated(const Case& c, Way way, bool is_bool, const Values& x, const Values& v) {
  Values r = x;
  for (std::size_t e = 0; e < v.size(); e++)
    if (c.element[e] >= 0) {
      auto& to = r[static_cast<std::size_t>(c.element[e])];
      to = changed(way, is_bool, to, v[e]);
    }
  return r;
}

class Random {
 public:
  explicit Random(unsigned seed) : rng_(seed) {}
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(rng_() % static_cast<unsigned>(n)); }
  bool chance(int n) { return below(n) == 0; }
  Case any_case() {
    Case c;
    const std::int64_t rank = 1 + below(3);
    for (std::int64_t d = 0; d < rank; d++) c.shape.push_back(1 + below(chance(3) ? 20 : 7));
    std::int64_t arrays = 0;
    while (arrays == 0) {
      c.own.clear();
      arrays = 0;
      for (std::int64_t d = 0; d < rank; d++) c.own.push_back(chance(2) ? static_cast<int>(arrays++) : -1);
    }
    for (std::int64_t d = chance(5) ? 2 : 1; d > 0; d--) c.of_arrays.push_back(chance(12) ? 0 : 1 + below(6));
    const sa::TakeMode modes[] = {sa::TakeMode::drop, sa::TakeMode::drop, sa::TakeMode::clip,
                                  sa::TakeMode::wrap};
    c.mode = modes[below(4)];
    for (std::int64_t d = 0; d < rank; d++) {
      if (c.own[static_cast<std::size_t>(d)] < 0) continue;
      const std::int64_t n = c.shape[static_cast<std::size_t>(d)],
                         few = chance(2) ? std::min<std::int64_t>(n, 2) : n;
      std::vector<std::int64_t> at(static_cast<std::size_t>(sa::num_elements(c.of_arrays)));
      for (std::int64_t& i : at) i = chance(6) ? below(4 * n + 4) - 2 * n - 2 : below(few);
      c.positions.push_back(at);
    }
    find_elements(c);
    return c;
  }
  Values numbers(std::int64_t count, sa::DType t) {
    Values v;
    for (std::int64_t k = 0; k < count; k++) {
      const double re = static_cast<double>(t == sa::bool_ ? below(2) : below(4));
      v.emplace_back(re, sa::is_complex(t) ? static_cast<double>(below(4)) : 0);
    }
    return v;
  }
  /// Some placement on 8 devices, or none.
  Array put(const Array& x) {
    if (x.ndim() == 0 || chance(3)) return x;
    const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
    const P all[] = {P(), P("x"), P("y"), P(sa::axes("x", "y")), P(sa::none, "x"), P("y", "x"), P("x", "y")};
    return sa::device_put(x, sa::NamedSharding(mesh, all[below(x.ndim() > 1 ? 7 : 4)]));
  }

 private:
  std::mt19937 rng_;
};

Array array_of(const Values& v, const Shape& shape, sa::DType t) {
  std::vector<double> re;
  for (const auto& e : v) re.push_back(e.real());
  if (sa::is_complex(t)) return sa::array(v, shape).astype(t);
  return sa::array(re, shape).astype(t);
}
Values values_of(const Array& x) {
  const auto re = sa::real(x).astype(sa::float64).to_vector<double>();
  const auto im = sa::imag(x).astype(sa::float64).to_vector<double>();
  Values v;
  for (std::size_t k = 0; k < re.size(); k++) v.emplace_back(re[k], im[k]);
  return v;
}

sa::IndexedArray at(const Array& x, const Case& c, const std::vector<Array>& indices) {
  sa::Indices list;
  for (const int own : c.own) {
    if (own < 0) list.emplace_back(sa::slice(sa::none));
    else list.emplace_back(indices[static_cast<std::size_t>(own)]);
  }
  return x.at(sa::Subscript(list));
}

}  // namespace

TEST_CASE("updates of rows: values are those of loops, for all dtypes, indices and places") {
  Random random(7);
  const sa::DType dtypes[] = {sa::float32, sa::bool_,  sa::uint8,     sa::bfloat16,   sa::float16, sa::int8,
                              sa::int32,   sa::uint64, sa::complex64, sa::complex128, sa::float64};
  const sa::DType index_types[] = {sa::int32, sa::int64, sa::int8, sa::int16};
  for (int round = 0; round < 400; round++) {
    CAPTURE(round);
    const sa::DType t = dtypes[random.below(std::size(dtypes))];
    const Case c = random.any_case();
    const Way way = static_cast<Way>(random.below(sa::is_complex(t) ? 2 : ways));
    const std::string type = sa::name(t), shape = sa::to_string(c.shape), part = sa::to_string(c.update);
    CAPTURE(type);
    const int how = way;
    CAPTURE(how);
    CAPTURE(shape);
    CAPTURE(part);
    const Values x = random.numbers(sa::num_elements(c.shape), t),
                 v = random.numbers(sa::num_elements(c.update), t);
    const Values want = values_of(array_of(updated(c, way, t == sa::bool_, x, v), c.shape, t));
    std::vector<Array> indices;
    for (const auto& p : c.positions)
      indices.push_back(random.put(sa::array(p, c.of_arrays).astype(index_types[random.below(4)])));
    const auto f = [&](const Array& a, const Array& b, const std::vector<Array>& i) {
      return changed(at(a, c, i), way, b, {.mode = c.mode});
    };
    const Array there = random.put(array_of(x, c.shape, t)), update = random.put(array_of(v, c.update, t));
    const auto jitted = sa::jit(f);
    CHECK(values_of(jitted(there, update, indices)) == want);
    CHECK(values_of(there) == x);  // as it was
    CHECK(values_of(f(there, update, indices)) == want);
    Array given = array_of(x, c.shape, t);
    if (there.committed()) given = sa::device_put(given, there.sharding());
    given.block_until_ready();
    const Array got = jitted(std::move(given), update, indices);
    CHECK(got.dtype() == t);
    CHECK(values_of(got) == want);
    // rows of a map: of x and the update, or of the update alone
    const bool own_x = random.chance(2);
    const auto mapped = sa::vmap(f, {.in_axes = {own_x ? sa::Axes(0) : sa::Axes(sa::none), 0, sa::none}});
    const Array two = sa::stack(std::vector<Array>{update, update}),
                rows = own_x ? sa::stack(std::vector<Array>{there, there}) : there;
    const Array both = sa::jit(mapped)(rows, two, indices);
    CHECK(values_of(both[0]) == want);
    CHECK(values_of(both[1]) == want);
  }
}

// Of sum(w * result): overwritten updates have no derivative; equal extrema share theirs.
TEST_CASE("updates of rows: derivatives are those of loops") {
  Random random(11);
  const sa::DType dtypes[] = {sa::float32, sa::float64, sa::bfloat16};
  for (int round = 0; round < 200; round++) {
    CAPTURE(round);
    const sa::DType t = dtypes[random.below(3)];
    const Case c = random.any_case();
    const Way way = static_cast<Way>(random.below(t == sa::bfloat16 ? 2 : ways));
    const int how = way;
    CAPTURE(how);
    const auto size = static_cast<std::size_t>(sa::num_elements(c.shape));
    const Values x = random.numbers(static_cast<std::int64_t>(size), t),
                 v = random.numbers(sa::num_elements(c.update), t),
                 w = random.numbers(static_cast<std::int64_t>(size), t);
    Values dx = w, dv(v.size(), 0.0);
    for (std::size_t k = 0; k < size; k++) {
      std::vector<std::size_t> mine;
      for (std::size_t e = 0; e < v.size(); e++)
        if (c.element[e] == static_cast<std::int64_t>(k)) mine.push_back(e);
      if (mine.empty()) continue;
      std::vector<double> all{x[k].real()};  // x, then the updates
      for (const std::size_t e : mine) all.push_back(v[e].real());
      const auto [least, most] = std::minmax_element(all.begin(), all.end());
      const double best = way == min ? *least : *most;
      const auto equal = static_cast<double>(std::count(all.begin(), all.end(), best));
      for (std::size_t j = 0; j < all.size(); j++) {
        double slope = way == add || (way == set && j + 1 == all.size()) ? 1 : 0;
        if (way == mul) {
          slope = 1;
          for (std::size_t other = 0; other < all.size(); other++)
            if (other != j) slope *= all[other];
        }
        if (way >= min) slope = all[j] == best ? 1 / equal : 0;
        (j == 0 ? dx[k] : dv[mine[j - 1]]) = w[k].real() * slope;
      }
    }
    std::vector<Array> indices;
    for (const auto& p : c.positions)
      indices.push_back(random.put(sa::array(p, c.of_arrays).astype(sa::int32)));
    const Array weights = array_of(w, c.shape, t);
    const auto f = sa::jit(sa::grad([&](const std::pair<Array, Array>& both) {
      return sa::sum(weights * changed(at(both.first, c, indices), way, both.second, {.mode = c.mode}));
    }));
    const auto [of_x, of_v] =
        f(std::pair(random.put(array_of(x, c.shape, t)), random.put(array_of(v, c.update, t))));
    const auto near = [](const Array& a, const Values& want) {
      const Values got = values_of(a);
      REQUIRE(got.size() == want.size());
      for (std::size_t k = 0; k < got.size(); k++)
        CHECK(std::abs(got[k] - want[k]) <= 1e-5 * (1 + std::abs(want[k])));
    };
    near(of_x, dx);
    near(of_v, dv);
  }
}

TEST_CASE("updates of rows: a donated array is written in place, and nothing else of its size is needed") {
  const std::int64_t n = 600, m = 64;
  const Array i = sa::array(std::vector<int>{5, 3, 5, 77, -1}),
              j = sa::array(std::vector<int>{5, 3, 5, 60, -1});
  const sa::slice all(sa::none);
  struct Row {
    const char* name;
    std::function<sa::IndexedArray(const Array&)> at;
    std::function<P()> place;
  };
  const Row rows[] = {
      {"rows", [&](const Array& x) { return x.at(i); }, [] { return P("x"); }},
      {"rows by columns", [&](const Array& x) { return x.at(i); }, [] { return P(sa::none, "x"); }},
      {"rows in a grid", [&](const Array& x) { return x.at(i); }, [] { return P("x", "y"); }},
      {"columns",
       [&](const Array& x) {
         return x.at({all, j});
       },
       [] { return P("x", "y"); }},
      {"elements",
       [&](const Array& x) {
         return x.at({i, j});
       },
       [] { return P("x"); }},
      {"elements of a row",
       [&](const Array& x) {
         return x.at({7, j});
       },
       [] { return P(); }}};
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const Row& row : rows)
    for (const sa::DType t : {sa::float32, sa::int32, sa::bfloat16, sa::complex64})
      for (int w = 0; w < (t == sa::complex64 ? 2 : ways); w++)
        for (const bool cut : {false, true}) {
          const std::string name = row.name, type = sa::name(t);
          CAPTURE(name);
          CAPTURE(type);
          CAPTURE(w);
          CAPTURE(cut);
          Array x = sa::zeros({n, m}, t) + Array(1).astype(t);
          if (cut) x = sa::device_put(x, sa::NamedSharding(mesh, row.place()));
          x.block_until_ready();
          const auto f = sa::jit(
              [&](const Array& y) { return changed(row.at(y), static_cast<Way>(w), Array(2).astype(t)); });
          const sa::Explanation plan = sa::explain(f, sa::donated(x));
          CAPTURE(plan.to_string());
          CHECK(plan.donations().at(0).reused);
          const auto tile =
              static_cast<std::uint64_t>(sa::num_elements(x.sharding().shard_shape(x.shape()))) *
              sa::itemsize(t);
          CHECK(plan.peak_bytes_per_device <= tile + tile / 4 + 8192);
          CHECK(plan.transfers().empty());
        }
}

TEST_CASE("updates of rows: x is read elsewhere, is the update, holds nothing, is carried by loops") {
  const Array x = sa::array(std::vector<float>{1, 2, 3, 4, 5, 6}), i = sa::array(std::vector<int>{4, 0, 4});
  const auto check = [](const auto& f, const Array& a, const std::vector<float>& want) {
    CHECK(sa::jit(f)(a).template to_vector<float>() == want);
    CHECK(sa::jit(f)(a + 0).template to_vector<float>() == want);
    CHECK(f(a).template to_vector<float>() == want);
  };
  check(
      [&](const Array& a) {
        return a.at(i).add(sa::array(std::vector<float>{10, 20, 30})) + a;
      },
      x, {22, 4, 6, 8, 50, 12});
  check([&](const Array& a) { return a.at(i).set(a[i] * 2) - sa::sum(a); }, x,
        {-19, -19, -18, -17, -11, -15});
  check(
      [&](const Array& a) {
        return a.at(sa::array(std::vector<int>{5, 4, 3, 2, 1, 0})).set(a);
      },
      x, {6, 5, 4, 3, 2, 1});
  check(
      [&](const Array& a) {
        return a.at(sa::array(std::vector<int>{1, 2, 3, 4, 5, 0})).add(a);
      },
      x, {7, 3, 5, 7, 9, 11});
  check([&](const Array& a) { return a.at(i).set(0).at(i).add(1).at(sa::array(std::vector<int>{1})).mul(3); },
        x, {1, 6, 3, 4, 2, 6});
  check([&](const Array& a) { return a.at(sa::zeros({0}, sa::int32)).set(sa::zeros({0})); }, x,
        {1, 2, 3, 4, 5, 6});
  check(
      [&](const Array& a) {
        return sa::fori_loop(
            0, 4, [&](const Array& k, const Array& c) { return c.at(i + k % 2).add(sa::sum(c) * 0 + k); }, a);
      },
      x, {3, 6, 3, 4, 9, 14});
  check(
      [&](const Array& a) {
        return sa::cond(
            sa::sum(a) > 0, [&](const Array& c) { return c.at(i).set(c[i] + 1); },
            [&](const Array& c) { return c.at(i).mul(2); }, a);
      },
      x, {2, 2, 3, 4, 6, 6});
  // each element is its own row
  const Array whole = sa::array(std::vector<std::int64_t>{3, 3, -7, 100});
  check(
      [&](const Array& a) {
        return a.at(whole).max(sa::array(std::vector<float>{9, 8, 50, 50}));
      },
      x, {1, 2, 3, 9, 5, 6});
  CHECK(sa::zeros({0, 3}).at(sa::zeros({0}, sa::int32)).add(1).shape() == Shape{0, 3});
  CHECK(sa::zeros({3, 0}).at(i - 3).add(1).shape() == Shape{3, 0});
}

}  // namespace row_updates_test
