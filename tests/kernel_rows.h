// Rows that several stages read, as softmax and layer norms do.
#pragma once
#include <cstdint>
#include <random>
#include <utility>

#include "cuda_launches.h"
#include "kernel_helpers.h"
#include "runtime/kernel_builder.h"

namespace shardarray::test {

struct RowsOf {
  DType type;
  std::int64_t rows, length, gap;  // `gap` elements from row to row
  bool in_place = false;
  int operations = 1;  // for each element before the second reduction
};
/// A reduction of each row of x, then one of what is left of it with a row that all share, then both from all of its elements.
inline KernelCase rows_in_stages(const RowsOf& r, std::uint64_t seed) {
  const DType t = r.type;
  KernelCase c;
  KernelBuilder b(1, 1);
  const int x = b.arg({t}), shared = b.arg({t}), out = b.arg({t, true});
  const auto less = [&](int v, int w) { return b.binary(t == bool_ ? Code::xor_ : Code::sub, v, w); };
  const auto less_of_all = [&](int v, int most) {
    for (int k = 0; k < r.operations; k++) v = less(v, most);
    return v;
  };
  b.begin_stage(true);
  const int most = b.reduce(t == bool_ ? Reducer::any : Reducer::max, b.load(x));
  b.begin_stage(true);
  const int total =
      b.reduce(t == bool_ ? Reducer::all : Reducer::sum, less(less_of_all(b.load(x), most), b.load(shared)));
  b.begin_stage(true);
  const int left = r.operations > 1 ? less_of_all(b.load(x), most) : b.load(x);
  b.store(out, less(less(left, total), less(most, b.load(shared))));
  c.kernel = b.finish();
  c.extents = {r.rows, r.length};
  c.start = {0, 0};
  const std::int64_t all = r.rows * r.gap;
  c.args = {{{r.gap, 1}, 0, all}, {{0, 1}, 0, r.length}, {{r.gap, 1}, 0, all}};
  if (r.in_place) c.args[2].alias = 0;
  Random random(seed);
  c.inputs = {random_elements(random, t, all), random_elements(random, t, r.length),
              Bytes(static_cast<std::size_t>(all) * itemsize(t))};
  return c;
}

/// Of every size, in whole runs of 16 bytes and in others, by a warp and by several; some with values that take longer to compute
/// again than to keep.
inline std::vector<RowsOf> rows_of_all_sizes() {
  std::vector<RowsOf> all;
  for (const DType t : {float32, float64, int16, uint8, bool_})
    for (const std::int64_t n : {2, 31, 33, 64, 1025}) all.push_back({t, 5, n, n + n % 3, n % 2 == 0});
  for (const auto& [n, gap] : {std::pair<std::int64_t, std::int64_t>{1024, 1024},
                               {4096, 4100},
                               {6144, 6147},
                               {2049, 2049},
                               {12000, 12000},
                               {20001, 20004}})
    for (const int operations : {1, 20}) all.push_back({float32, 5, n, gap, n == 4096, operations});
  for (const DType t : {float64, int16, bool_})
    for (const std::int64_t n : {33, 2100}) all.push_back({t, 3, n, n, n == 33, 20});
  return all;
}

}  // namespace shardarray::test
