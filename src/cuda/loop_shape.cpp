#include "cuda/loop_shape.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/ceil_div.h"
#include "base/nest_axes.h"
#include "cuda/half_casts.h"
#include "cuda/kept_rows.h"
#include "cuda/run_values.h"
#include "kernels/lanes.cuh"
#include "kernels/loop_table.cuh"
#include "kernels/transposed.cuh"

namespace shardarray::cuda {
namespace {

constexpr std::uint32_t access_bytes = 16;
constexpr std::uint32_t longest_run = 256;  // operations in a run's text
constexpr std::uint32_t longest_shared =
    512;  // if sharing within the run saves a quarter of its points' separate work
constexpr std::uint32_t longest_column = 64;     // for columns: with 1024 threads each has 64 registers
constexpr std::int64_t few_columns = 16;         // half a warp
constexpr std::int64_t longest_kept = 48 << 10;  // elements: longer rows are never kept
constexpr std::int64_t few_rows = 2048;          // as warps too few to fill a large GPU
constexpr std::uint32_t most_row_warps = 8;
constexpr std::int64_t few_in_tile = 16;          // points along an axis that are too few for tiles
constexpr std::uint32_t shared_bytes = 48 << 10;  // per block

/// Of a run of points.
std::uint32_t cost(const Kernel& k, const HalfCasts& halves, const RunValues& values, std::uint32_t run) {
  std::uint32_t all = 0;
  for (std::size_t v = 0; v < k.code.size(); v++)
    if (halves.is_needed(v))
      all += (halves.is_cast(v) ? 1 : operation_cost(k.code[v])) * (run / values.group(v));
  return all;
}
std::uint32_t cost(const Kernel& k, const LoopShape& shape, std::uint32_t run) {
  const HalfCasts halves(k);
  return cost(k, halves, RunValues(k, shape, LoopOperands(k), halves, run), run);
}

bool is_loaded(const Kernel& k, std::size_t argument) {
  return !k.args[argument].indirect && std::any_of(k.code.begin(), k.code.end(), [&](const Instr& in) {
    return in.code == Code::load && in.imm == argument;
  });
}
/// Contiguous along this axis, and strided along the last one.
bool lies_along(const LoopShape& shape, std::size_t operand, std::uint32_t axis) {
  return shape.move(operand, axis) == LoopShape::Move::one &&
         shape.move(operand, shape.outer_axes - 1) == LoopShape::Move::any;
}

}  // namespace

bool has_inner_stage(const Kernel& k) {
  return std::any_of(k.stages.begin(), k.stages.end(), [](const Stage& s) { return s.inner; });
}

bool moves_in_runs(const LoopShape& shape, std::size_t operand) {
  using Move = LoopShape::Move;
  const std::uint32_t last = shape.outer_axes - 1;
  for (std::uint32_t x = 0; x < last; x++)
    if (shape.move(operand, x) == Move::one) return false;  // runs that begin anywhere, as in windows
  return shape.move(operand, last) == Move::one;
}

std::uint32_t run_length(const Kernel& k, const LoopShape& shape) {
  if (has_inner_stage(k) || shape.outer_axes == 0 || !shape.runs) return 1;
  int in_runs = 0, scattered = 0;  // loads
  const std::vector<std::size_t> in_tiles = transposed(k, shape);
  std::size_t widest = 0;
  for (const Instr& in : k.code) {
    if (in.code != Code::load && in.code != Code::store) continue;
    const bool whole = moves_in_runs(shape, in.imm);
    if (whole) widest = std::max(widest, itemsize(k.args[in.imm].type));
    if (in.code == Code::store && !whole) return 1;
    if (in.code == Code::load && std::find(in_tiles.begin(), in_tiles.end(), in.imm) != in_tiles.end())
      continue;
    if (in.code == Code::load && whole) in_runs++;
    else if (in.code == Code::load && shape.move(in.imm, shape.outer_axes - 1) != LoopShape::Move::none)
      scattered++;
  }
  if (widest == 0 || scattered > in_runs) return 1;
  std::uint32_t run = access_bytes / static_cast<std::uint32_t>(widest);
  const std::uint32_t one = cost(k, shape, 1);
  const auto fits = [&](std::uint32_t all) {
    return all <= longest_run || (all <= longest_shared && 4 * all <= 3 * run * one);
  };
  while (run > 1 && !fits(cost(k, shape, run))) run /= 2;
  return run;
}

std::vector<std::size_t> transposed(const Kernel& k, const LoopShape& shape) {
  std::vector<std::size_t> all;
  if (shape.tile_side == 0) return all;
  std::int64_t left = shared_bytes;
  for (std::size_t a = 0; a < k.args.size(); a++) {
    const std::int64_t bytes = tile_bytes(k, shape, a);
    if (bytes > left || !is_loaded(k, a) || !lies_along(shape, a, shape.tile_axis)) continue;
    all.push_back(a);
    left -= bytes;
  }
  return all;
}
std::uint32_t tile_bytes(const Kernel& k, const LoopShape& shape, std::size_t argument) {
  const auto size = static_cast<std::uint32_t>(itemsize(k.args[argument].type));
  const std::uint32_t bytes = shape.tile_side * device::transposed_pitch(size, shape.tile_side) * size;
  return (bytes + access_bytes - 1) / access_bytes * access_bytes;
}
PrintedBounds printed_bounds(const Kernel& k, const LoopShape& shape) {
  constexpr std::uint32_t most = device::printed_threads, lanes = device::warp_lanes;
  constexpr std::uint32_t busy = 768;  // threads per multiprocessor, with 80 registers each
  if (shape.columns) return {device::column_threads, 1};
  const std::uint32_t bytes = KeptRows(k, HalfCasts(k), shape).bytes();
  std::uint32_t threads = most;
  if (shape.row_warps > 1) threads = shape.row_warps * lanes;
  else if (bytes > 0) threads = std::min(std::bit_floor(shared_bytes / bytes) * lanes, most);
  // Without a bound on blocks, ptxas spills small kernels to allow more threads.
  return {threads, bytes > 0 ? busy / threads : most * 2 / threads};
}

std::uint32_t operation_cost(const Instr& in) {
  constexpr std::uint32_t function = 32;
  if (in.code == Code::constant || in.code == Code::index) return 0;
  return in.code == Code::call || in.code == Code::rem ? function : 1;
}

LoopOperands::LoopOperands(const Kernel& k) : arguments(k.args.size()) {
  for (const Instr& in : k.code) {
    const auto dim = static_cast<std::size_t>(in.imm);
    if (in.code == Code::index && number_of_index(dim) == count()) indices.push_back(dim);
  }
}
std::size_t LoopOperands::number_of_index(std::size_t dim) const {
  return arguments +
         static_cast<std::size_t>(std::find(indices.begin(), indices.end(), dim) - indices.begin());
}

LoopAxes::LoopAxes(const Loop& loop, const LoopOperands& operands)
    : loop_(loop), operands_(operands), items_(loop.items.size()) {
  const Kernel& k = *loop.kernel;
  const auto outer = static_cast<std::size_t>(k.outer), dims = outer + static_cast<std::size_t>(k.inner);
  for (std::size_t d = 0; d < dims; d++) {
    if (d == outer) outer_ = first_ = count_;
    add(d);
  }
  if (dims == outer) outer_ = count_;
}

std::vector<std::int64_t> LoopAxes::steps(std::size_t item, std::size_t dim) const {
  const Kernel& k = *loop_.kernel;
  std::vector<std::int64_t> s;
  for (std::size_t a = 0; a < operands_.arguments; a++)
    s.push_back(loop_.items[item].args[a].strides[dim] * static_cast<std::int64_t>(itemsize(k.args[a].type)));
  for (const std::size_t i : operands_.indices) s.push_back(i == dim);
  return s;
}

/// If a dimension has at most one point, its strides do not matter.
bool LoopAxes::may_join(std::size_t item, std::int64_t extent, const std::vector<std::int64_t>& steps) const {
  const Item& it = items_[item];
  return extent <= 1 || it.extents.back() <= 1 || goes_on(it.strides.back(), steps, extent);
}

void LoopAxes::add(std::size_t dim) {
  const auto extent = [&](std::size_t item) { return loop_.items[item].extents[dim]; };
  bool moves = false, join = count_ > first_;
  for (std::size_t i = 0; i < items_.size(); i++) {
    moves = moves || extent(i) != 1;
    join = join && may_join(i, extent(i), steps(i, dim));
  }
  if (!moves) return;
  for (std::size_t i = 0; i < items_.size(); i++) {
    Item& it = items_[i];
    if (join) {
      it.extents.back() *= extent(i);
      if (extent(i) > 1) it.strides.back() = steps(i, dim);
    } else {
      it.extents.push_back(extent(i));
      it.strides.push_back(steps(i, dim));
    }
  }
  if (!join) count_++;
}

std::vector<std::int64_t> LoopAxes::strides(std::size_t item) const {
  std::vector<std::int64_t> all;
  for (std::size_t o = 0; o < operands_.count(); o++)
    for (std::size_t x = 0; x < count_; x++) all.push_back(items_[item].strides[x][o]);
  return all;
}

LoopShape::Move LoopAxes::move(std::size_t operand, std::size_t axis) const {
  const std::int64_t one = operand < operands_.arguments
                               ? static_cast<std::int64_t>(itemsize(loop_.kernel->args[operand].type))
                               : 1;
  bool none = true, by_one = true;
  for (const Item& it : items_) {
    if (it.extents[axis] <= 1) continue;
    none = none && it.strides[axis][operand] == 0;
    by_one = by_one && it.strides[axis][operand] == one;
  }
  return none ? LoopShape::Move::none : by_one ? LoopShape::Move::one : LoopShape::Move::any;
}

LoopShape LoopAxes::shape() const {
  LoopShape s;
  s.outer_axes = outer();
  s.axes = count();
  for (const Item& it : items_) {
    std::int64_t outer = 1, inner = 1;
    for (std::size_t x = 0; x < count_; x++) (x < outer_ ? outer : inner) *= it.extents[x];
    s.small = s.small && std::max(outer, inner) <= LoopShape::most_small;
  }
  for (std::size_t o = 0; o < operands_.count(); o++)
    for (std::size_t x = 0; x < count_; x++) s.moves.push_back(move(o, x));
  s.index_unit = index_unit(s);
  s.columns = in_columns(s);
  if (!s.columns) s.row_warps = row_warps();
  s.kept_points = kept_points(s);
  if (s.kept_points == 0 && !has_few_rows()) s.row_warps = 1;
  choose_tiles(s);
  return s;
}

std::uint32_t LoopAxes::index_unit(const LoopShape& shape) const {
  std::uint32_t bits = most_in_run;  // only the lowest set bit counts
  for (std::size_t o = operands_.arguments; outer_ > 0 && o < operands_.count(); o++) {
    if (shape.move(o, outer() - 1) == LoopShape::Move::none) continue;
    const std::size_t dim = operands_.indices[o - operands_.arguments];
    for (const Loop::Item& item : loop_.items) bits |= static_cast<std::uint32_t>(item.start[dim]);
  }
  return bits & (~bits + 1);
}
std::uint32_t LoopAxes::row_warps() const {
  if (count_ == outer_) return 1;
  std::int64_t longest = 0;
  for (const Item& it : items_) {
    std::int64_t points = 1;
    for (std::size_t x = outer_; x < count_; x++) points *= it.extents[x];
    longest = std::max(longest, points);
  }
  const auto blocks = static_cast<std::uint64_t>(longest / loop_.kernel->order.block);
  return std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(blocks, 1, most_row_warps)));
}
bool LoopAxes::has_few_rows() const {
  std::int64_t rows = 0;
  for (const Item& it : items_) {
    std::int64_t points = 1;
    for (std::size_t x = 0; x < outer_; x++) points *= it.extents[x];
    rows += points;
  }
  return rows < few_rows;
}

bool LoopAxes::is_long(std::size_t axis) const {
  return std::all_of(items_.begin(), items_.end(), [&](const Item& it) {
    const bool empty = std::find(it.extents.begin(), it.extents.end(), 0) != it.extents.end();
    return empty || it.extents[axis] >= few_in_tile;
  });
}

/// The axis along which most bytes per point are contiguous, if all results are so along the last one. Many operands get smaller tiles.
void LoopAxes::choose_tiles(LoopShape& shape) const {
  const Kernel& k = *loop_.kernel;
  if (has_inner_stage(k) || outer_ < 2 || !is_long(outer_ - 1)) return;
  for (const Instr& in : k.code)
    if (in.code == Code::store && shape.move(in.imm, outer() - 1) != LoopShape::Move::one) return;
  std::size_t most = 0, operands = 0;
  for (std::uint32_t x = 0; x + 1 < outer(); x++) {
    std::size_t bytes = 0, count = 0;
    for (std::size_t a = 0; a < k.args.size(); a++) {
      if (!is_loaded(k, a) || !lies_along(shape, a, x)) continue;
      bytes += itemsize(k.args[a].type);
      count++;
    }
    if (bytes <= most || !is_long(x)) continue;
    most = bytes;
    operands = count;
    shape.tile_axis = x;
  }
  if (most == 0) return;
  shape.tile_side = 64;
  if (transposed(k, shape).size() < operands) shape.tile_side = 32;
}

std::int64_t LoopAxes::tiles(const LoopShape& shape) const {
  const std::int64_t side = shape.tile_side;
  std::int64_t most = 0;
  for (const Item& it : items_) {
    std::int64_t tiles = 1;
    for (std::size_t x = 0; x < outer_; x++)
      tiles *= x == shape.tile_axis || x + 1 == outer_ ? ceil_div(it.extents[x], side) : it.extents[x];
    most = std::max(most, tiles);
  }
  return most;
}

std::uint32_t LoopAxes::kept_points(LoopShape shape) const {
  if (shape.axes != shape.outer_axes + 1) return 0;
  std::int64_t longest = 0;
  for (const Item& it : items_) longest = std::max(longest, it.extents[outer_]);
  if (longest > longest_kept) return 0;
  constexpr std::int64_t lanes = device::warp_lanes;
  shape.kept_points = static_cast<std::uint32_t>(ceil_div(longest, lanes) * lanes);
  const Kernel& k = *loop_.kernel;
  return KeptRows(k, HalfCasts(k), shape).empty() ? 0 : shape.kept_points;
}

bool LoopAxes::in_columns(const LoopShape& shape) const {
  using Move = LoopShape::Move;
  const Kernel& k = *loop_.kernel;
  if (outer_ == 0 || count_ == outer_ || cost(k, shape, 1) > longest_column) return false;
  for (const Item& it : items_) {
    const bool empty = std::find(it.extents.begin(), it.extents.end(), 0) != it.extents.end();
    if (!empty && it.extents[outer_ - 1] < few_columns) return false;
  }
  int columns = 0, rows = 0;
  std::int32_t v = 0;
  for (const Stage& s : k.stages) {
    for (; v < s.end; v++) {
      const Instr& in = k.code[static_cast<std::size_t>(v)];
      if (!s.inner || (in.code != Code::load && in.code != Code::store)) continue;
      const Move across = shape.move(in.imm, outer() - 1), along = shape.move(in.imm, count() - 1);
      if (across == Move::none || along == Move::none) continue;  // the same either way
      columns += across == Move::one;
      rows += along == Move::one;
    }
  }
  return columns > rows;
}

}  // namespace shardarray::cuda
