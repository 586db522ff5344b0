// Rows of op_cases.h: elements that data chooses, parts that begin where data says.
#include "op_cases.h"
#include "shardarray/indexing.h"

namespace shardarray::testing {
namespace indexing_rows {

using S = std::span<const Array>;
using H = const Hosts&;
using I = const Shape&;

using Mode = std::optional<TakeMode>;
/// The position among n that an element of an index means; -1 outside.
std::int64_t place_of(const HostArray& index, I i, std::int64_t n, Mode mode = {}) {
  auto at = static_cast<std::int64_t>(read(index, i));
  if (mode == TakeMode::wrap) return (at % n + n) % n;
  if (at < 0) at += n;
  if (mode == TakeMode::clip) return std::clamp<std::int64_t>(at, 0, n - 1);
  return at < 0 || at >= n ? -1 : at;
}
/// A number where a part of `size` among n begins.
std::int64_t begin_of(const HostArray& start, std::int64_t n, std::int64_t size) {
  const auto at = static_cast<std::int64_t>(read(start, {}));
  return std::clamp<std::int64_t>(at < 0 ? at + n : at, 0, n - size);
}
OpInput index_in(Shape shape, double lo, double hi) { return {std::move(shape), lo, hi, DType::int32}; }

}  // namespace indexing_rows

using namespace indexing_rows;

static void add_chosen(Cases& c) {
  c.push_back({"x[rows]",
               [](S x) { return x[0][x[1]]; },
               [](H x) {
                 return build({4, 6}, [&](I i) { return read(x[0], {place_of(x[1], {i[0]}, 10), i[1]}); });
               },
               {{{10, 6}}, index_in({4}, -10, 9)},
               true,
               0});
  c.push_back({"x[columns, newaxis]",
               [](S x) {
                 return x[0][{all, newaxis, x[1]}];
               },
               [](H x) {
                 return build({10, 1, 2, 2}, [&](I i) {
                   return read(x[0], {i[0], place_of(x[1], {i[2], i[3]}, 6)});
                 });
               },
               {{{10, 6}}, index_in({2, 2}, -6, 5)},
               true,
               0});
  c.push_back({"x[rows, part, columns]",
               [](S x) {
                 return x[0][{x[1], slice(1, 3), x[2]}];
               },
               [](H x) {
                 return build({4, 5, 2}, [&](I i) {
                   return read(x[0], {place_of(x[1], {i[0], 0}, 10), i[2] + 1, place_of(x[2], {i[1]}, 6)});
                 });
               },
               {{{10, 4, 6}}, index_in({4, 1}, -10, 9), index_in({5}, -6, 5)},
               true,
               0});
  c.push_back({"at.get",
               [](S x) { return x[0].at(x[1]).get({.mode = TakeMode::fill, .fill_value = 7}); },
               [](H x) {
                 return build({5, 6}, [&](I i) {
                   const std::int64_t at = place_of(x[1], {i[0]}, 10);
                   return at < 0 ? 7 : read(x[0], {at, i[1]});
                 });
               },
               {{{10, 6}}, index_in({5}, -14, 14)},
               true,
               0});
}

static void add_updates(Cases& c) {
  using A = const Array&;
  using D = double;
  using O = const IndexOptions&;
  const auto updates = [&](std::string name, auto f, D (*change)(D, D), double tolerance) {
    // rows, some of them several times or outside
    const auto of_rows = [&](const char* which, Mode mode, double lo, double hi) {
      c.push_back({name + which,
                   [f, mode](S x) { return f(x[0].at(x[1]), x[2], {.mode = mode}); },
                   [change, mode](H x) {
                     return build({10, 6}, [&](I i) {
                       double r = read(x[0], i);
                       for (std::int64_t k = 0; k < 7; k++)
                         if (place_of(x[1], {k}, 10, mode) == i[0]) r = change(r, read(x[2], {k, i[1]}));
                       return r;
                     });
                   },
                   {{{10, 6}}, index_in({7}, lo, hi), {{7, 6}, -2, 2}},
                   true,
                   tolerance});
    };
    of_rows(" of rows", std::nullopt, -12, 12);
    of_rows(" of rows, the nearest", TakeMode::clip, -14, 14);
    of_rows(" of rows, around", TakeMode::wrap, -25, 25);
    c.push_back({name + " of one row",
                 [f](S x) { return f(x[0].at(x[1]), x[2], {}); },
                 [change](H x) {
                   return build({12, 9}, [&](I i) {
                     const double r = read(x[0], i);
                     return place_of(x[1], {}, 12) == i[0] ? change(r, read(x[2], {i[1]})) : r;
                   });
                 },
                 {{{12, 9}}, index_in({}, -14, 14), {{9}, -2, 2}},
                 true,
                 tolerance});
    c.push_back({name + " of one element in a part",
                 [f](S x) {
                   return f(x[0].at({x[1], slice(1, 3), x[2]}), x[3], {});
                 },
                 [change](H x) {
                   return build({9, 4, 6}, [&](I i) {
                     const double r = read(x[0], i);
                     const bool is_it = i[1] > 0 && i[1] < 3 && place_of(x[1], {}, 9) == i[0] &&
                                        place_of(x[2], {}, 6) == i[2];
                     return is_it ? change(r, read(x[3], {i[1] - 1})) : r;
                   });
                 },
                 {{{9, 4, 6}}, index_in({}, -12, 12), index_in({}, -8, 8), {{2}, -2, 2}},
                 true,
                 tolerance});
    c.push_back({name + " of elements in a part",
                 [f](S x) {
                   return f(x[0].at({x[1], slice(1, 3), x[2]}), x[3], {});
                 },
                 [change](H x) {
                   return build({10, 4, 6}, [&](I i) {
                     double r = read(x[0], i);
                     for (std::int64_t k = 0; k < 5; k++)
                       if (i[1] > 0 && i[1] < 3 && place_of(x[1], {k}, 10) == i[0] &&
                           place_of(x[2], {k}, 6) == i[2])
                         r = change(r, read(x[3], {k, i[1] - 1}));
                     return r;
                   });
                 },
                 {{{10, 4, 6}}, index_in({5}, 0, 2), index_in({5}, 0, 2), {{5, 2}, -2, 2}},
                 true,
                 tolerance});
  };
  updates(
      "at.set", [](const IndexedArray& x, A v, O o) { return x.set(v, o); }, [](D, D b) { return b; }, 0);
  updates(
      "at.add", [](const IndexedArray& x, A v, O o) { return x.add(v, o); }, [](D a, D b) { return a + b; },
      1e-6);
  updates(
      "at.mul", [](const IndexedArray& x, A v, O o) { return x.mul(v, o); }, [](D a, D b) { return a * b; },
      1e-6);
  updates(
      "at.min", [](const IndexedArray& x, A v, O o) { return x.min(v, o); },
      [](D a, D b) { return std::min(a, b); }, 0);
  updates(
      "at.max", [](const IndexedArray& x, A v, O o) { return x.max(v, o); },
      [](D a, D b) { return std::max(a, b); }, 0);
  // of a row that is chosen several times the product of its values
  const OpInput base{{10, 6}, 0.5, 2}, divisors{{7, 6}, 0.5, 1.5};
  const auto product_at = [](H x, I i) {
    double r = 1;
    for (std::int64_t k = 0; k < 7; k++)
      if (place_of(x[1], {k}, 10) == i[0]) r *= read(x[2], {k, i[1]});
    return r;
  };
  c.push_back({"at.divide of rows",
               [](S x) { return x[0].at(x[1]).divide(x[2]); },
               [=](H x) {
                 return build({10, 6}, [&](I i) { return read(x[0], i) / product_at(x, i); });
               },
               {base, index_in({7}, -12, 12), divisors},
               true,
               1e-6});
  c.push_back({"at.power of rows",
               [](S x) { return x[0].at(x[1]).power(x[2]); },
               [=](H x) {
                 return build({10, 6}, [&](I i) { return std::pow(read(x[0], i), product_at(x, i)); });
               },
               {base, index_in({7}, -12, 12), divisors},
               true,
               2e-6});
  c.push_back({"at.divide of a part",
               [](S x) {
                 return x[0].at({slice(1, 4), 2}).divide(x[1]);
               },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   const bool is_it = i[0] > 0 && i[0] < 4 && i[1] == 2;
                   return is_it ? read(x[0], i) / read(x[1], {i[0] - 1}) : read(x[0], i);
                 });
               },
               {base, {{3}, 0.5, 2}},
               true,
               1e-6});
  c.push_back({"at.set where a mask is true",
               [](S x) { return x[0].at(x[1] > 0).set(x[2]); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   return read(x[1], {i[0]}) > 0 ? read(x[2], {i[1]}) : read(x[0], i);
                 });
               },
               {{{10, 6}}, index_in({10}, -3, 3), {{6}}},
               true,
               0});
  c.push_back({"put_along_axis",
               [](S x) { return put_along_axis(x[0], x[1], x[2], 0); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   double r = read(x[0], i);
                   for (std::int64_t k = 0; k < 4; k++)
                     if (place_of(x[1], {k, i[1]}, 10) == i[0]) r = read(x[2], {k, i[1]});
                   return r;
                 });
               },
               {{{10, 6}}, index_in({4, 6}, -12, 12), {{4, 6}}},
               true,
               0});
}

// The flat positions of what is not zero.
static std::vector<std::int64_t> nonzero_places(const HostArray& x) {
  std::vector<std::int64_t> r;
  for (std::size_t k = 0; k < x.data.size(); k++)
    if (x.data[k] != 0) r.push_back(static_cast<std::int64_t>(k));
  return r;
}
static double at_or(const std::vector<std::int64_t>& places, std::int64_t k, double otherwise) {
  return k < std::ssize(places) ? static_cast<double>(places[static_cast<std::size_t>(k)]) : otherwise;
}

static void add_positions(Cases& c) {
  const OpInput flags = index_in({10, 6}, -1, 1);
  c.push_back({"flatnonzero",
               [](S x) { return flatnonzero(x[0], 40, -3); },
               [](H x) {
                 const auto places = nonzero_places(x[0]);
                 return build({40}, [&](I i) { return at_or(places, i[0], -3); });
               },
               {flags},
               false,
               0});
  c.push_back({"nonzero",
               [](S x) { return nonzero(x[0], 50)[1]; },
               [](H x) {
                 const auto places = nonzero_places(x[0]);
                 return build({50}, [&](I i) {
                   return i[0] < std::ssize(places)
                              ? static_cast<double>(places[static_cast<std::size_t>(i[0])] % 6)
                              : 0;
                 });
               },
               {flags},
               false,
               0});
  c.push_back({"argwhere",
               [](S x) { return argwhere(x[0], 20, -1); },
               [](H x) {
                 const auto places = nonzero_places(x[0]);
                 return build({20, 2}, [&](I i) {
                   const double at = at_or(places, i[0], -1);
                   return at < 0 ? -1 : i[1] == 0 ? std::floor(at / 6) : std::fmod(at, 6);
                 });
               },
               {flags},
               false,
               0});
  c.push_back({"compress",
               [](S x) { return compress(x[1], x[0], 5, 0, 9); },
               [](H x) {
                 const auto places = nonzero_places(x[1]);
                 return build({5, 6}, [&](I i) {
                   const double at = at_or(places, i[0], -1);
                   return at < 0 ? 9 : read(x[0], {static_cast<std::int64_t>(at), i[1]});
                 });
               },
               {{{10, 6}}, index_in({9}, -1, 1)},
               true,
               0});
  c.push_back({"extract",
               [](S x) { return extract(x[1], x[0], 45, 9); },
               [](H x) {
                 const auto places = nonzero_places(x[1]);
                 return build({45}, [&](I i) {
                   const double at = at_or(places, i[0], -1);
                   return at < 0 ? 9 : x[0].data[static_cast<std::size_t>(at)];
                 });
               },
               {{{10, 6}}, flags},
               true,
               0});
  c.push_back({"unravel_index",
               [](S x) {
                 return unravel_index(x[0], {4, 6})[0];
               },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   const double at = read(x[0], i);
                   return std::floor(std::clamp(at < 0 ? at + 24 : at, 0.0, 23.0) / 6);
                 });
               },
               {index_in({10, 6}, -30, 30)},
               false,
               0});
  c.push_back({"ravel_multi_index",
               [](S x) {
                 return ravel_multi_index({x[0], x[1]}, {4, 6}, TakeMode::wrap);
               },
               [](H x) {
                 const auto wrapped = [](double v, double n) { return v - n * std::floor(v / n); };
                 return build({10, 6}, [&](I i) {
                   return wrapped(read(x[0], i), 4) * 6 + wrapped(read(x[1], {i[1]}), 6);
                 });
               },
               {index_in({10, 6}, -9, 9), index_in({6}, -9, 9)},
               false,
               0});
  const auto triangle = [&](const char* name, auto f, bool upper) {
    c.push_back({name,
                 [f](S) {
                   const auto [rows, columns] = f(4, 1, 6);
                   return rows * 10 + columns;
                 },
                 [upper](H) {
                   Numbers r;
                   for (int i = 0; i < 4; i++)
                     for (int k = 0; k < 6; k++)
                       if (upper ? k >= i + 1 : k <= i + 1) r.push_back(10 * i + k);
                   return r;
                 },
                 {},
                 false,
                 0});
  };
  triangle(
      "tril_indices", [](int n, int k, int m) { return tril_indices(n, k, m); }, false);
  triangle(
      "triu_indices", [](int n, int k, int m) { return triu_indices(n, k, m); }, true);
  c.push_back(
      {"choose",
       [](S x) {
         return choose(x[0], {x[1], x[2]});
       },
       [](H x) {
         return build({10, 6}, [&](I i) { return read(x[0], i) < 1 ? read(x[1], i) : read(x[2], {i[1]}); });
       },
       {index_in({10, 6}, -2, 3), {{10, 6}}, {{6}}},
       true,
       0});
}

static void add_dynamic_parts(Cases& c) {
  c.push_back({"dynamic_slice",
               [](S x) {
                 return dynamic_slice(x[0], {x[1], x[2]}, {4, 5});
               },
               [](H x) {
                 return build({4, 5}, [&](I i) {
                   return read(x[0], {begin_of(x[1], 10, 4) + i[0], begin_of(x[2], 6, 5) + i[1]});
                 });
               },
               {{{10, 6}}, index_in({}, -12, 12), index_in({}, -8, 8)},
               true,
               0});
  const auto updated = [&](std::string name, auto f, Shape size) {
    c.push_back({std::move(name), [f](S x) { return f(x); },
                 [size](H x) {
                   return build({10, 6}, [&](I i) {
                     const std::int64_t row = i[0] - begin_of(x[1], 10, size[0]),
                                        column = size[1] == 6 ? i[1] : i[1] - begin_of(x[2], 6, size[1]);
                     const bool inside = row >= 0 && row < size[0] && column >= 0 && column < size[1];
                     return inside ? read(x.back(), {row, column}) : read(x[0], i);
                   });
                 },
                 size[1] == 6
                     ? std::vector<OpInput>{{{10, 6}}, index_in({}, -12, 12), {size}}
                     : std::vector<OpInput>{{{10, 6}}, index_in({}, -12, 12), index_in({}, -8, 8), {size}},
                 true, 0});
  };
  updated("dynamic_update_slice", [](S x) { return dynamic_update_slice(x[0], x[3], {x[1], x[2]}); }, {4, 5});
  updated("dynamic_update_slice_in_dim", [](S x) { return dynamic_update_slice_in_dim(x[0], x[2], x[1]); },
          {4, 6});
  c.push_back({"dynamic_slice_in_dim",
               [](S x) { return dynamic_slice_in_dim(x[0], x[1], 3, 1); },
               [](H x) {
                 return build({10, 3}, [&](I i) { return read(x[0], {i[0], begin_of(x[1], 6, 3) + i[1]}); });
               },
               {{{10, 6}}, index_in({}, -8, 8)},
               true,
               0});
  c.push_back({"dynamic_index_in_dim",
               [](S x) { return dynamic_index_in_dim(x[0], x[1], 0, false); },
               [](H x) { return build({6}, [&](I i) {
                           return read(x[0], {begin_of(x[1], 10, 1), i[0]});
                         }); },
               {{{10, 6}}, index_in({}, -12, 12)},
               true,
               0});
}

Cases indexing_cases() {
  Cases c;
  add_chosen(c);
  add_updates(c);
  add_positions(c);
  add_dynamic_parts(c);
  return c;
}

}  // namespace shardarray::testing
