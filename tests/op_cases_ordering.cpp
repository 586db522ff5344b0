// Rows of op_cases.h: sorting by keys, searching, counting, segments.
#include "op_cases.h"

namespace shardarray::testing {
namespace ordering_rows {

using S = std::span<const Array>;
using I = const Shape&;
using H = const Hosts&;

/// The positions of a line by a strict order of them.
template <class Less> Numbers positions_by(std::size_t n, Less less) {
  std::vector<std::size_t> at(n);
  std::iota(at.begin(), at.end(), std::size_t{0});
  std::stable_sort(at.begin(), at.end(), less);
  return Numbers(at.begin(), at.end());
}
std::int64_t segment_of(const HostArray& ids, std::int64_t row) {
  return static_cast<std::int64_t>(ids.data[static_cast<std::size_t>(row)]);
}

}  // namespace ordering_rows

using namespace ordering_rows;

static void add_orders(Cases& c) {
  c.push_back({"sort descending",
               [](S x) { return sort(x[0], {.axis = 0, .descending = true}); },
               [](H x) {
                 return along(x[0], 0, [](Numbers v) {
                   std::sort(v.begin(), v.end(), std::greater<>());
                   return v;
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               0});
  c.push_back({"argsort descending",
               [](S x) { return argsort(x[0], {.axis = 0, .descending = true}); },
               [](H x) {
                 return along(x[0], 0, [](const Numbers& v) {
                   return positions_by(v.size(), [&](std::size_t a, std::size_t b) { return v[a] > v[b]; });
                 });
               },
               {{{10, 6}, -2, 2, DType::int32}},
               false,
               0});
  c.push_back({"argpartition",
               [](S x) { return argpartition(x[0], 3, 0); },
               [](H x) {
                 return along(x[0], 0, [](const Numbers& v) {
                   return positions_by(v.size(), [&](std::size_t a, std::size_t b) { return v[a] < v[b]; });
                 });
               },
               {{{10, 6}, -2, 2, DType::int32}},
               false,
               0});
  c.push_back({"partition",
               [](S x) { return partition(x[0], -4, 0); },
               [](H x) {
                 return along(x[0], 0, [](Numbers v) {
                   std::sort(v.begin(), v.end());
                   return v;
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               0});
  c.push_back({"lexsort",
               [](S x) {
                 return lexsort({x[0], x[1]}, 0);
               },
               [](H x) {
                 const HostArray both{
                     x[0].shape, build(x[0].shape, [&](I i) { return read(x[1], i) * 100 + read(x[0], i); })};
                 return along(both, 0, [](const Numbers& v) {
                   return positions_by(v.size(), [&](std::size_t a, std::size_t b) { return v[a] < v[b]; });
                 });
               },
               {{{10, 6}, -3, 3, DType::int32}, {{10, 6}, -1, 1, DType::int32}},
               false,
               0});
  const auto largest = [](H x, bool positions) {
    return build({10, 2}, [&](I i) {
      Numbers line;
      for (std::int64_t k = 0; k < 6; k++) line.push_back(read(x[0], {i[0], k}));
      const Numbers at =
          positions_by(line.size(), [&](std::size_t a, std::size_t b) { return line[a] > line[b]; });
      const double which = at[static_cast<std::size_t>(i[1])];
      return positions ? which : line[static_cast<std::size_t>(which)];
    });
  };
  c.push_back({"top_k",
               [](S x) { return top_k(x[0], 2).first; },
               [largest](H x) { return largest(x, false); },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               0});
  c.push_back({"top_k positions",
               [](S x) { return top_k(x[0], 2).second; },
               [largest](H x) { return largest(x, true); },
               {{{10, 6}, -1, 1, DType::int32}},
               false,
               0});
}

static void add_searches(Cases& c) {
  // The table is sorted on the way.
  const auto search = [&](std::string name, Side side) {
    c.push_back({std::move(name),
                 [side](S x) { return searchsorted(sort(x[0]), x[1], side); },
                 [side](H x) {
                   return build({6, 3}, [&](I i) {
                     const double v = read(x[1], i);
                     return static_cast<double>(
                         std::count_if(x[0].data.begin(), x[0].data.end(),
                                       [&](double e) { return side == Side::left ? e < v : e <= v; }));
                   });
                 },
                 {{{10}, -4, 4, DType::int32}, {{6, 3}, -5, 5, DType::int32}},
                 false,
                 0});
  };
  search("searchsorted", Side::left);
  search("searchsorted right", Side::right);
  c.push_back({"digitize",
               [](S x) { return digitize(x[1], flip(sort(x[0]))); },
               [](H x) {
                 return build({6, 3}, [&](I i) {
                   const double v = read(x[1], i);
                   return static_cast<double>(
                       std::count_if(x[0].data.begin(), x[0].data.end(), [&](double e) { return e > v; }));
                 });
               },
               {{{10}, -2, 2, DType::float32, false, true}, {{6, 3}}},
               false,
               0});
}

static void add_counts(Cases& c) {
  c.push_back({"bincount",
               [](S x) { return bincount(x[0], 5); },
               [](H x) {
                 Numbers r(5, 0.0);
                 for (double v : x[0].data)
                   if (v < 5) r[static_cast<std::size_t>(std::max(v, 0.0))]++;
                 return r;
               },
               {{{10, 6}, -2, 7, DType::int32}},
               false,
               0});
  c.push_back({"bincount weights",
               [](S x) { return bincount(x[0], x[1], 5); },
               [](H x) {
                 Numbers r(5, 0.0);
                 for (std::size_t k = 0; k < x[0].data.size(); k++)
                   if (x[0].data[k] < 5)
                     r[static_cast<std::size_t>(std::max(x[0].data[k], 0.0))] += x[1].data[k];
                 return r;
               },
               {{{10, 6}, -2, 7, DType::int32}, {{10, 6}}},
               true,
               5e-6});
  c.push_back({"histogram",
               [](S x) {
                 return histogram(x[0], 4, {{-1.0, 1.0}}).first;
               },
               [](H x) {
                 Numbers r(4, 0.0);
                 for (double v : x[0].data)
                   if (v >= -1 && v <= 1)
                     r[static_cast<std::size_t>(std::min(3.0, std::floor((v + 1) * 2)))]++;
                 return r;
               },
               {{{10, 6}}},
               false,
               0});
  c.push_back({"histogram edges",
               [](S x) { return histogram(x[0], 4).second; },
               [](H x) {
                 const auto [low, high] = std::minmax_element(x[0].data.begin(), x[0].data.end());
                 Numbers r;
                 for (int k = 0; k <= 4; k++) r.push_back(*low + (*high - *low) * k / 4);
                 return r;
               },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               1e-6});
  c.push_back({"take_along_axis",
               [](S x) { return take_along_axis(x[0], x[1], 0); },
               [](H x) {
                 return build({4, 6}, [&](I i) {
                   const auto at = static_cast<std::int64_t>(read(x[1], i));
                   return read(x[0], {at < 0 ? at + 10 : at, i[1]});
                 });
               },
               {{{10, 6}}, {{4, 6}, -10, 9, DType::int32}},
               true,
               0});
  c.push_back({"take_along_axis of one column",
               [](S x) { return take_along_axis(x[0], x[1], 1, TakeMode::clip); },
               [](H x) {
                 return build({10, 4}, [&](I i) {
                   const auto at = static_cast<std::int64_t>(read(x[1], {0, i[1]}));  // -1 is the last one
                   return read(x[0], {i[0], std::clamp<std::int64_t>(at < 0 ? at + 6 : at, 0, 5)});
                 });
               },
               {{{10, 6}}, {{1, 4}, -9, 9, DType::int32}},
               true,
               0});
}

static void add_rows_of_all(Cases& c) {
  c.push_back({"take_along_axis of one row for all",
               [](S x) { return take_along_axis(x[0], x[1], 1); },
               [](H x) {
                 return build({10, 4}, [&](I i) {
                   return read(x[0], {0, static_cast<std::int64_t>(read(x[1], i))});
                 });
               },
               {{{1, 6}}, {{10, 4}, 0, 5, DType::int32}},
               true,
               0});
}

static void add_segments(Cases& c) {
  const auto segments = [&](std::string name, auto f, double start, double (*combine)(double, double),
                            OpInput in, double tolerance) {
    in.shape = {10, 6};
    c.push_back({std::move(name),
                 [f](S x) { return f(x[0], x[1], 4); },
                 [=](H x) {
                   return build({4, 6}, [&](I i) {
                     double r = start;
                     for (std::int64_t row = 0; row < 10; row++)
                       if (segment_of(x[1], row) == i[0]) r = combine(r, read(x[0], {row, i[1]}));
                     return r;
                   });
                 },
                 {in, {{10}, -1, 4, DType::int32}},
                 is_floating(in.dtype),
                 tolerance});
  };
  using A = const Array&;
  using D = double;
  segments(
      "segment_sum", [](A x, A ids, int n) { return segment_sum(x, ids, n); }, 0,
      [](D a, D b) { return a + b; }, values(-2, 2), 2e-6);
  segments(
      "segment_prod", [](A x, A ids, int n) { return segment_prod(x, ids, n); }, 1,
      [](D a, D b) { return a * b; }, values(-2, 2), 2e-6);
  // integers: an empty segment has their lowest (highest) value
  segments(
      "segment_max", [](A x, A ids, int n) { return segment_max(x, ids, n); }, -2147483648.0,
      [](D a, D b) { return std::max(a, b); }, whole(-99, 99), 0);
  segments(
      "segment_min", [](A x, A ids, int n) { return maximum(minimum(segment_min(x, ids, n), 9), -9); }, 9,
      [](D a, D b) { return std::min(a, b); }, {{}, -2, 2, DType::float32, false, true}, 0);
}

Cases ordering_cases() {
  Cases c;
  add_orders(c);
  add_searches(c);
  add_counts(c);
  add_rows_of_all(c);
  add_segments(c);
  return c;
}

}  // namespace shardarray::testing
