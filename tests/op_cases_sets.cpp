// Rows of op_cases.h: sets of values, parts put in and left out, blocks, bits.
#include <set>

#include "op_cases.h"
#include "shardarray/indexing.h"
#include "shardarray/sets.h"

namespace shardarray::testing {
namespace set_rows {

using S = std::span<const Array>;
using H = const Hosts&;
using I = const Shape&;

OpInput whole_in(Shape shape, double lo, double hi) { return {std::move(shape), lo, hi, DType::int32}; }
std::set<double> values_of(const HostArray& x) { return {x.data.begin(), x.data.end()}; }
/// The first `size` of them, with `fill` behind.
Numbers of_size(const std::set<double>& values, std::size_t size, double fill) {
  Numbers r(values.begin(), values.end());
  r.resize(size, fill);
  return r;
}
template <class Keep> std::set<double> kept(const std::set<double>& values, const Keep& keep) {
  std::set<double> r;
  for (double v : values)
    if (keep(v)) r.insert(v);
  return r;
}

}  // namespace set_rows

using namespace set_rows;

static void add_uniques(Cases& c) {
  const OpInput few = whole_in({10, 6}, -4, 4);
  c.push_back({"unique",
               [](S x) { return unique(x[0], 12, 99); },
               [](H x) { return of_size(values_of(x[0]), 12, 99); },
               {few},
               false,
               0});
  c.push_back({"unique of floats, fewer than there are",
               [](S x) { return unique(x[0], 40); },
               [](H x) { return of_size(values_of(x[0]), 40, 0); },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               0});
  c.push_back({"unique_all indices",
               [](S x) { return unique_all(x[0], 12).indices; },
               [](H x) {
                 const auto& d = x[0].data;
                 const auto first = [&](double v) {
                   return static_cast<double>(std::find(d.begin(), d.end(), v) - d.begin());
                 };
                 const std::set<double> all = values_of(x[0]);
                 Numbers r;
                 for (double v : all) r.push_back(first(v));
                 r.resize(12, first(*all.begin()));
                 return r;
               },
               {few},
               false,
               0});
  c.push_back({"unique_all inverse",
               [](S x) { return unique_all(x[0], 3).inverse_indices; },
               [](H x) {
                 const std::set<double> all = values_of(x[0]);
                 return build({10, 6}, [&](I i) {
                   return static_cast<double>(std::distance(all.begin(), all.find(read(x[0], i))));
                 });
               },
               {few},
               false,
               0});
  c.push_back({"unique_all counts",
               [](S x) { return unique_all(x[0], 12).counts; },
               [](H x) {
                 Numbers r;
                 for (double v : values_of(x[0]))
                   r.push_back(static_cast<double>(std::count(x[0].data.begin(), x[0].data.end(), v)));
                 r.resize(12, 0);
                 return r;
               },
               {few},
               false,
               0});
}

static void add_sets_of_two(Cases& c) {
  const std::vector<OpInput> two{whole_in({10, 6}, -9, 9), whole_in({10}, -6, 12)};
  c.push_back({"isin", [](S x) { return isin(x[0], x[1]); },
               [](H x) {
                 const std::set<double> b = values_of(x[1]);
                 return build({10, 6}, [&](I i) { return static_cast<double>(b.contains(read(x[0], i))); });
               },
               two, false, 0});
  c.push_back({"union1d", [](S x) { return union1d(x[0], x[1], 30, -50); },
               [](H x) {
                 std::set<double> all = values_of(x[0]);
                 all.merge(values_of(x[1]));
                 return of_size(all, 30, -50);
               },
               two, false, 0});
  c.push_back({"intersect1d", [](S x) { return intersect1d(x[0], x[1], 14); },
               [](H x) {
                 const std::set<double> b = values_of(x[1]),
                                        both = kept(values_of(x[0]), [&](double v) { return b.contains(v); });
                 return of_size(both, 14, both.empty() ? 0 : *both.begin());
               },
               two, false, 0});
  c.push_back({"setdiff1d", [](S x) { return setdiff1d(x[0], x[1], 20); },
               [](H x) {
                 const std::set<double> b = values_of(x[1]);
                 return of_size(kept(values_of(x[0]), [&](double v) { return !b.contains(v); }), 20, 0);
               },
               two, false, 0});
  c.push_back({"setxor1d", [](S x) { return setxor1d(x[0], x[1], 25, 7); },
               [](H x) {
                 const std::set<double> a = values_of(x[0]), b = values_of(x[1]);
                 std::set<double> all = a;
                 all.insert(b.begin(), b.end());
                 return of_size(kept(all, [&](double v) { return a.contains(v) != b.contains(v); }), 25, 7);
               },
               two, false, 0});
}

static void add_edits(Cases& c) {
  c.push_back({"insert",
               [](S x) { return insert(x[0], 3, x[1], 0); },
               [](H x) {
                 return build({14, 6}, [&](I i) {
                   if (i[0] >= 3 && i[0] < 7) return read(x[1], {i[0] - 3, i[1]});
                   return read(x[0], {i[0] < 3 ? i[0] : i[0] - 4, i[1]});
                 });
               },
               {{{10, 6}}, {{4, 6}}},
               true,
               0});
  c.push_back({"insert in front of several",
               [](S x) {
                 return insert(x[0], {5, 0, -6}, x[1], 1);
               },
               [](H x) {  // in front of 0 the second and the third value, in front of 5 the first
                 return build({10, 9}, [&](I i) {
                   if (i[1] == 7) return read(x[1], {0});
                   if (i[1] < 2) return read(x[1], {i[1] + 1});
                   return read(x[0], {i[0], i[1] == 8 ? 5 : i[1] - 2});
                 });
               },
               {{{10, 6}}, {{3}}},
               true,
               0});
  c.push_back({"insert a column",
               [](S x) { return insert(x[0], -1, x[1], 1); },
               [](H x) {
                 return build({10, 7}, [&](I i) {
                   return i[1] == 5 ? read(x[1], {i[0]}) : read(x[0], {i[0], i[1] < 5 ? i[1] : 5});
                 });
               },
               {{{10, 6}}, {{10}}},
               true,
               0});
  c.push_back({"delete_",
               [](S x) {
                 return delete_(x[0], {1, -3, 1}, 0);
               },
               [](H x) {
                 const std::int64_t from[] = {0, 2, 3, 4, 5, 6, 8, 9};
                 return build({8, 6}, [&](I i) { return read(x[0], {from[i[0]], i[1]}); });
               },
               {{{10, 6}}},
               true,
               0});
  c.push_back(
      {"fill_diagonal",
       [](S x) { return fill_diagonal(x[0], x[1]); },
       [](H x) {
         return build({10, 6}, [&](I i) { return i[0] == i[1] ? read(x[1], {i[0]}) : read(x[0], i); });
       },
       {{{10, 6}}, {{6}}},
       true,
       0});
}

static void add_blocks(Cases& c) {
  c.push_back({"block",
               [](S x) {
                 return block({{x[0], x[1]}, {x[2]}});
               },
               [](H x) {
                 return build({11, 8}, [&](I i) {
                   if (i[0] == 10) return read(x[2], {i[1]});
                   return i[1] < 6 ? read(x[0], i) : read(x[1], {i[0], i[1] - 6});
                 });
               },
               {{{10, 6}}, {{10, 2}}, {{8}}},
               true,
               0});
  c.push_back({"block_diag",
               [](S x) {
                 return block_diag({x[0], x[1]});
               },
               [](H x) {
                 return build({13, 11}, [&](I i) {
                   if (i[0] < 10) return i[1] < 6 ? read(x[0], i) : 0;
                   return i[1] < 6 ? 0 : read(x[1], {i[0] - 10, i[1] - 6});
                 });
               },
               {{{10, 6}}, {{3, 5}}},
               true,
               0});
  c.push_back({"hsplit, vsplit, dsplit",
               [](S x) {
                 return vsplit(hsplit(dsplit(x[0], 2)[1], {1, 4})[1], 5)[3];
               },
               [](H x) {
                 return build({2, 3, 1}, [&](I i) { return read(x[0], {i[0] + 6, i[1] + 1, 1}); });
               },
               {{{10, 6, 2}}},
               true,
               0});
  c.push_back({"unstack",
               [](S x) { return unstack(x[0], 1)[4]; },
               [](H x) { return build({10}, [&](I i) {
                           return read(x[0], {i[0], 4});
                         }); },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"matrix_transpose",
               [](S x) { return matrix_transpose(x[0]); },
               [](H x) {
                 return build({3, 6, 10}, [&](I i) { return read(x[0], {i[0], i[2], i[1]}); });
               },
               {{{3, 10, 6}}},
               true,
               0});
  c.push_back({"packbits",
               [](S x) { return packbits(x[0], 0); },
               [](H x) {
                 return build({2, 6}, [&](I i) {
                   double byte = 0;
                   for (std::int64_t k = 0; k < 8; k++) {
                     const std::int64_t row = i[0] * 8 + k;
                     byte = 2 * byte + (row < 10 && read(x[0], {row, i[1]}) != 0 ? 1 : 0);
                   }
                   return byte;
                 });
               },
               {whole_in({10, 6}, -1, 1)},
               false,
               0});
  c.push_back({"unpackbits",
               [](S x) { return unpackbits(x[0], {.axis = 1, .count = 20, .order = BitOrder::little}); },
               [](H x) {
                 return build({10, 20}, [&](I i) {
                   const auto byte = static_cast<std::int64_t>(read(x[0], {i[0], i[1] / 8}));
                   return static_cast<double>(byte >> (i[1] % 8) & 1);
                 });
               },
               {{{10, 3}, 0, 255, DType::uint8}},
               false,
               0});
}

Cases set_cases() {
  Cases c;
  add_uniques(c);
  add_sets_of_two(c);
  add_edits(c);
  add_blocks(c);
  return c;
}

}  // namespace shardarray::testing
