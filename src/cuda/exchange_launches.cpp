// Exchanges: one launch that fills tiles, if any need it, then one that moves all pieces.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/nest_axes.h"
#include "cuda/step_launches.h"
#include "kernels/exchange.cuh"
#include "runtime/evaluate_instruction.h"
#include "runtime/step_ranges.h"

namespace shardarray::cuda {
namespace {

/// The instruction that combines two elements. `any` ORs the bits of any dtype; min and max of bool are AND and OR.
std::optional<device::Instruction> combining_instruction(Reducer reducer, DType t) {
  constexpr DType bits[] = {uint8, uint16, uint32, uint64};  // by log2 of the bytes
  const bool is_bool = t == bool_;
  const bool number = !is_bool && t != float16 && t != bfloat16 && !is_complex(t);
  device::Instruction in{};
  in.type = t;
  if (reducer == Reducer::any) {
    if (itemsize(t) > 8) return std::nullopt;
    int log2 = 0;
    while ((std::size_t{1} << log2) < itemsize(t)) log2++;
    in.type = bits[log2];
    in.code = Code::or_;
  } else if (is_bool) {
    if (reducer == Reducer::sum || reducer == Reducer::prod) return std::nullopt;
    in.code = reducer == Reducer::max ? Code::or_ : Code::and_;
  } else {
    if (!number || reducer == Reducer::all) return std::nullopt;
    in.code = combining_code(reducer);
  }
  in.from = in.type;
  return in;
}

void add_fill(const Step& step, const Exchange& x, std::vector<KernelLaunch>& to) {
  LaunchTable table;
  table.reserve<device::FillTable>();
  device::FillTable t{};
  t.bytes = static_cast<std::uint32_t>(itemsize(x.dtype));
  t.bits[0] = x.fill_bits;  // complex128: the real part
  std::vector<device::FillItem> items;
  std::int64_t most = 0;
  for (const Exchange::Item& item : x.items) {
    if (!item.fill) continue;
    const auto elements = static_cast<std::int64_t>(item.dst_bytes / t.bytes);
    items.push_back({device_address(item.dst), elements});
    most = std::max(most, elements);
  }
  add_launch(step, "shardarray_fill", t, items, most, std::move(table), to);
}

std::vector<device::MoveAxis> axes_of(const Exchange::Piece& p, std::int64_t bytes) {
  std::vector<device::MoveAxis> axes;
  for (std::size_t d = 0; d < p.extents.size(); d++)
    append_axis<&device::MoveAxis::src, &device::MoveAxis::dst>(
        axes, {p.extents[d], p.src_strides[d] * bytes, p.dst_strides[d] * bytes});
  return axes;
}

/// Bytes that a copy may move per access, at most 16: all rows, strides and bases are multiples of it.
std::int64_t unit_of_copy(const Exchange::Piece& p, const std::vector<device::MoveAxis>& axes,
                          std::int64_t bytes, std::uint64_t alignment) {
  if (p.sources.size() != 1 || axes.empty()) return bytes;
  const device::MoveAxis& row = axes.back();
  if (row.src != bytes || row.dst != bytes) return bytes;
  std::uint64_t all = p.dst.offset | p.sources[0].ref.offset |
                      static_cast<std::uint64_t>(row.extent * bytes) | alignment | 16;
  for (std::size_t d = 0; d + 1 < axes.size(); d++)
    all |= static_cast<std::uint64_t>(axes[d].src) | static_cast<std::uint64_t>(axes[d].dst);
  return static_cast<std::int64_t>(all & -all);  // its lowest bit
}

device::MoveItem move_item(const Exchange::Item& item, std::int64_t bytes, std::uint64_t alignment,
                           LaunchTable& table) {
  device::MoveItem out{};
  std::vector<device::MovePiece> pieces;
  for (const Exchange::Piece& p : item.pieces) {
    const std::int64_t elements = num_elements(p.extents);
    if (elements == 0 || p.sources.empty() || lies_there(p)) continue;
    device::MovePiece piece{};
    piece.dst = device_address(p.dst);
    std::vector<device::MoveAxis> axes = axes_of(p, bytes);
    const std::int64_t unit = unit_of_copy(p, axes, bytes, alignment);
    if (unit != bytes) axes.back() = {axes.back().extent * bytes / unit, unit, unit};
    piece.axes = table.add(axes);
    std::vector<device::Address> sources;
    for (const Exchange::Source& s : p.sources) sources.push_back(device_address(s.ref));
    piece.sources = table.add(sources);
    piece.first = out.units;
    piece.bytes = static_cast<std::uint32_t>(unit);
    out.units += elements * bytes / unit;
    pieces.push_back(piece);
  }
  out.pieces = table.add(pieces);
  return out;
}

void add_moves(const Step& step, const Exchange& x, std::uint64_t alignment, std::vector<KernelLaunch>& to) {
  LaunchTable table;
  table.reserve<device::MoveTable>();
  device::MoveTable t{};
  if (x.reducer != Reducer::none) {
    const auto combine = combining_instruction(x.reducer, x.dtype);
    if (!combine) {
      throw CompileError(fmt::format(
          "{} over devices: CUDA has no kernel for {}. Sums, products and extrema take integers, float32 "
          "and float64; all takes bool. Convert the operand first.",
          name(x.reducer), name(x.dtype)));
    }
    t.combine = *combine;
  }
  std::vector<device::MoveItem> items;
  std::int64_t most = 0;
  for (const Exchange::Item& item : x.items) {
    items.push_back(move_item(item, static_cast<std::int64_t>(itemsize(x.dtype)), alignment, table));
    most = std::max(most, items.back().units);
  }
  const char* const kernel =
      x.reducer == Reducer::none ? "shardarray_copy" : SHARDARRAY_COMBINING("shardarray_move", t.combine);
  add_launch(step, kernel, t, items, most, std::move(table), to);
}

}  // namespace

void add_exchange_launches(const Step& step, const Exchange& exchange, std::uint64_t alignment,
                           std::vector<KernelLaunch>& to) {
  add_fill(step, exchange, to);
  add_moves(step, exchange, alignment, to);
}

}  // namespace shardarray::cuda
