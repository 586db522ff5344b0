#include "cuda/scan_launches.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/ceil_div.h"
#include "cuda/sort_launches.h"
#include "cuda/step_launches.h"
#include "kernels/scan_tiles.cuh"
#include "runtime/evaluate_instruction.h"
#include "runtime/lines.h"

namespace shardarray::cuda {
namespace {

static_assert(device::scan_block_length == scan_block && device::tile_threads == block_threads);

// Two per multiprocessor of a large GPU: with fewer, tiles of one line are scanned in parallel, and read twice. A guess, to be measured.
constexpr std::int64_t fewest_groups = 256;

const char* tiles_kernel(std::uint32_t bytes) {
  switch (bytes) {
    case 1: return "shardarray_scan_tiles_1";
    case 2: return "shardarray_scan_tiles_2";
    case 4: return "shardarray_scan_tiles_4";
    default: return "shardarray_scan_tiles_8";
  }
}

device::ScanTable scan_table(const LibraryCall& x) {
  const std::vector<std::int64_t>& params = x.items[0].params;
  const auto reducer = static_cast<Reducer>(params[1]);
  const DType type = x.in_types[0];
  device::ScanTable t{};
  t.combine.code = combining_code(reducer);
  t.combine.type = t.combine.from = type;
  t.identity = identity_bits(reducer, type);
  t.bytes = static_cast<std::uint32_t>(itemsize(type));
  t.is_reverse = params[2] < 0;
  t.has_totals = x.out_types.size() > 1;
  t.is_float_sum = reducer == Reducer::sum && is_floating(type);
  return t;
}

/// How the lines, with elements of so many bytes, are divided into tiles.
device::ScanShape scan_shape(const Lines& l, std::uint32_t bytes) {
  if (l.count == 0) return {};
  const std::int64_t blocks = ceil_div(l.length, scan_block),
                     row = ceil_div(std::min(l.length, scan_block) * bytes,
                                    std::int64_t{device::scan_row_unit}) *
                               device::scan_row_unit +
                           device::scan_row_gap;
  // One thread scans a row.
  const std::int64_t rows = std::min<std::int64_t>(device::scan_tile_bytes / row, device::tile_threads);
  const std::int64_t columns =
      l.inner <= rows ? l.inner : static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(rows)));
  const std::int64_t blocks_each = std::clamp<std::int64_t>(blocks, 1, rows / columns),
                     across = ceil_div(l.inner, columns),
                     sets = across == 1 && blocks_each >= blocks ? rows / (columns * blocks_each) : 1;
  device::ScanShape s{};
  s.row_bytes = static_cast<std::uint32_t>(row);
  s.columns = static_cast<std::uint32_t>(columns);
  s.blocks = static_cast<std::uint32_t>(blocks_each);
  s.sets = static_cast<std::uint32_t>(sets);
  s.across = across;
  s.groups = ceil_div(l.count / l.inner * across, sets);
  s.chunks = ceil_div(blocks, blocks_each);
  return s;
}

}  // namespace

void add_scan(const Step& step, const LibraryCall& x, std::uint64_t, std::vector<KernelLaunch>& to) {
  const DType type = x.in_types[0];
  if (!is_integer(type) && type != float32 && type != float64)
    refuse_dtype("scan", type, "integers, float32 or float64");
  LaunchTable table;
  table.reserve<device::ScanTable>();
  device::ScanTable t = scan_table(x);
  std::vector<device::ScanItem> items;
  std::int64_t groups = 0;                                              // over all items
  std::int64_t lines = 0, blocks = 0, most_groups = 0, most_tiles = 0;  // of the largest item
  bool one_tile = true;                                                 // for every line
  std::uint64_t scratch = 0;
  for (const LibraryCall::Item& item : x.items) {
    const Lines l = lines_along(item.in_shapes[0], item.params[0]);
    const std::int64_t carries = l.count * ceil_div(l.length, scan_block);
    const Ref totals = t.has_totals ? item.out[1] : Ref{};
    const device::ScanShape shape = scan_shape(l, t.bytes);
    items.push_back({device_address(item.in[0]), device_address(item.out[0]), device_address(totals), scratch,
                     l.count, l.length, l.inner, shape});
    scratch += static_cast<std::uint64_t>(carries) * sizeof(device::ScanCarry);
    one_tile = one_tile && shape.chunks <= 1;
    groups += shape.groups;
    most_groups = std::max(most_groups, shape.groups);
    most_tiles = std::max(most_tiles, shape.groups * shape.chunks);
    lines = std::max(lines, l.count);
    blocks = std::max(blocks, carries);
  }
  if (blocks == 0 && !t.has_totals) return;
  const auto add = [&](device::ScanStage stage, std::int64_t thread_blocks) {
    t.stage = stage;
    add_launch(step, tiles_kernel(t.bytes), t, items, thread_blocks * device::tile_threads, table, to);
  };
  const std::size_t first = to.size();
  if (one_tile || groups >= fewest_groups) {
    add(device::ScanStage::all, most_groups);
    if (to.size() == first) return;
    to.back().any_block_kernel = SHARDARRAY_COMBINING("shardarray_scan", t.combine);
    to.back().points = lines;
    return;
  }
  add(device::ScanStage::totals, most_tiles);
  add(device::ScanStage::carries, lines);
  add(device::ScanStage::put, most_tiles);
  for (std::size_t k = first; k < to.size(); k++) to[k].scratch_bytes = scratch;
}

}  // namespace shardarray::cuda
