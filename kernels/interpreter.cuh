// The interpreter of kernel IR: runs any Loop step, instruction by instruction. Values are in 8-byte slots that the host assigned.
//   points  no inner stage: one thread per point
//   rows    one warp per outer point. All lanes compute outer stages, lane 0 stores. Inner point j is computed by lane j % 32; sums are in
//           the order of kernel.h.
#pragma once
#include "kernels/loop_table.cuh"
#include "kernels/warp.cuh"

namespace shardarray::device {

struct LoopStage {
  std::uint32_t begin, end;                   ///< instructions
  std::uint32_t first_reduction, reductions;  ///< of an inner stage
  std::uint32_t inner, unused;
};
struct Reduction {
  Instruction combine;     ///< of two values of its type
  std::uint64_t identity;  ///< bits
  std::uint16_t result, total, lost;
  std::uint8_t compensated;  ///< sums of floats: rounding errors are accumulated in `lost`
};
/// A point's coordinates along the item's axes.
struct LoopPoint {
  std::int64_t at[most_axes];
};
SHARDARRAY_DEVICE inline void find_coordinates(LoopPoint& p, const std::int64_t* extents, std::uint32_t first,
                                               std::uint32_t end, std::int64_t flat) {
  for (std::uint32_t d = end; d > first; d--) {
    p.at[d - 1] = flat % extents[d - 1];
    flat /= extents[d - 1];
  }
}

/// An item as its threads see it.
struct LoopView {
  const Instruction* code;
  const LoopArgument* arguments;
  const std::int64_t *extents, *strides;
  std::uint32_t axes;
  const Bases& bases;

  SHARDARRAY_DEVICE LoopView(const std::byte* table, const LoopItem& item, const Bases& b)
      : code(entries(table, reinterpret_cast<const LoopTable*>(table)->code)),
        arguments(reinterpret_cast<const LoopArgument*>(table + item.arguments)),
        extents(reinterpret_cast<const std::int64_t*>(table + item.extents)),
        strides(reinterpret_cast<const std::int64_t*>(table + item.strides)),
        axes(item.axes),
        bases(b) {}

  SHARDARRAY_DEVICE std::int64_t distance(std::uint64_t argument, const LoopPoint& p,
                                          std::uint32_t end) const {
    std::int64_t bytes = 0;
    for (std::uint32_t d = 0; d < end; d++) bytes += p.at[d] * strides[argument * axes + d];
    return bytes;
  }
  /// `end`: the number of the stage's axes.
  SHARDARRAY_DEVICE std::byte* place(std::uint64_t argument, const LoopPoint& p, std::uint32_t end) const {
    return address_of(bases, arguments[argument].address) + distance(argument, p, end);
  }

  /// The result of any instruction but store and reduce.
  SHARDARRAY_DEVICE std::uint64_t result(const Instruction& in, const std::uint64_t* slots,
                                         const LoopPoint& p, std::uint32_t end) const {
    switch (in.code) {
      case Code::index:
        return arguments[in.imm].address.offset + static_cast<std::uint64_t>(distance(in.imm, p, end));
      case Code::load: return read_bits(place(in.imm, p, end), in.detail);
      case Code::load_at: {
        const LoopArgument& arg = arguments[in.imm];
        const auto row = static_cast<std::int64_t>(slots[in.a]);
        if (row < arg.lo || row - arg.lo >= arg.count) return 0;
        return read_bits(place(in.imm, p, end) + (row - arg.lo) * arg.row_stride, in.detail);
      }
      default: return evaluate(in, slots[in.a], slots[in.b], slots[in.c]);
    }
  }
  SHARDARRAY_DEVICE void store(const Instruction& in, const std::uint64_t* slots, const LoopPoint& p,
                               std::uint32_t end) const {
    write_bits(place(in.imm, p, end), in.detail, slots[in.a]);
  }
};

template <int slots>
SHARDARRAY_DEVICE void loop_points(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const LoopTable& t = *reinterpret_cast<const LoopTable*>(table);
  const LoopItem& item = entries(table, t.items)[g.item];
  const LoopView view(table, item, bases);
  std::uint64_t values[slots];
  LoopPoint p;
  for (std::int64_t at = first_point(g); at < item.outer_points; at += point_step(g)) {
    find_coordinates(p, view.extents, 0, item.outer_axes, at);
    for (std::uint32_t i = 0; i < t.code.count; i++) {
      const Instruction& in = view.code[i];
      if (in.code == Code::store) view.store(in, values, p, item.outer_axes);
      else values[in.dst] = view.result(in, values, p, item.outer_axes);
    }
  }
}

/// The rows of one warp.
template <int slots> class LoopRows {
 public:
  SHARDARRAY_DEVICE LoopRows(const std::byte* table, const LoopItem& item, const Bases& bases)
      : t_(*reinterpret_cast<const LoopTable*>(table)),
        item_(item),
        view_(table, item, bases),
        stages_(entries(table, t_.stages)),
        reductions_(entries(table, t_.reductions)) {}

  SHARDARRAY_DEVICE void run(std::int64_t row) {
    find_coordinates(outer_, view_.extents, 0, item_.outer_axes, row);
    for (std::uint32_t s = 0; s < t_.stages.count; s++) {
      if (stages_[s].inner) inner_stage(stages_[s]);
      else outer_stage(stages_[s]);
      SHARDARRAY_SYNC_LANES();
    }
  }

 private:
  /// One instruction at a time: an output may alias an input, which all lanes read before lane 0 writes.
  SHARDARRAY_DEVICE void outer_stage(const LoopStage& stage) {
    for (std::uint32_t i = stage.begin; i < stage.end; i++) {
      const Instruction& in = view_.code[i];
      if (in.code == Code::store) {
        SHARDARRAY_SYNC_LANES();
        SHARDARRAY_LANES(lane) if (lane == 0) view_.store(in, values_.of(lane), outer_, item_.outer_axes);
      } else {
        SHARDARRAY_LANES(lane) {
          std::uint64_t* const v = values_.of(lane);
          v[in.dst] = view_.result(in, v, outer_, item_.outer_axes);
        }
      }
    }
  }

  SHARDARRAY_DEVICE void inner_stage(const LoopStage& stage) {
    const Reduction* const first = reductions_ + stage.first_reduction;
    const Reduction* const end = first + stage.reductions;
    open(first, end, true);
    for (std::int64_t begin = 0; begin < item_.inner_points; begin += t_.block) {
      const std::int64_t left = item_.inner_points - begin,
                         stop = begin + (left < t_.block ? left : t_.block);
      if (begin > 0) open(first, end, false);
      SHARDARRAY_LANES(lane) {
        for (std::int64_t j = begin + lane; j < stop; j += warp_lanes) inner_point(stage, lane, j);
      }
      for (const Reduction* r = first; r < end; r++) close_block(*r);
    }
    for (const Reduction* r = first; r < end; r++) close(*r);
  }
  SHARDARRAY_DEVICE void inner_point(const LoopStage& stage, std::uint32_t lane, std::int64_t j) {
    std::uint64_t* const v = values_.of(lane);
    LoopPoint p = outer_;
    find_coordinates(p, view_.extents, item_.outer_axes, item_.axes, j);
    for (std::uint32_t i = stage.begin; i < stage.end; i++) {
      const Instruction& in = view_.code[i];
      if (in.code == Code::store) view_.store(in, v, p, item_.axes);
      else if (in.code == Code::reduce)
        v[in.dst] = evaluate(reductions_[in.imm].combine, v[in.dst], v[in.a], 0);
      else v[in.dst] = view_.result(in, v, p, item_.axes);
    }
  }

  /// Sets all lanes to the identity; before the first block, the total too.
  SHARDARRAY_DEVICE void open(const Reduction* first, const Reduction* end, bool total) {
    SHARDARRAY_LANES(lane) {
      std::uint64_t* const v = values_.of(lane);
      for (const Reduction* r = first; r < end; r++) {
        v[r->result] = r->identity;
        if (!total) continue;
        v[r->total] = r->identity;
        v[r->lost] = 0;
      }
    }
  }
  /// With one block its result is the total.
  SHARDARRAY_DEVICE bool has_blocks() const { return item_.inner_points > t_.block; }
  SHARDARRAY_DEVICE void close_block(const Reduction& r) {
    values_.fold(r.result, r.combine);
    if (!has_blocks()) return;
    SHARDARRAY_LANES(lane) {
      std::uint64_t* const v = values_.of(lane);
      const std::uint64_t total = v[r.total], part = v[r.result];
      if (r.compensated) {
        const std::uint64_t off = rounded_off_bits(r.combine.type, total, part);
        v[r.lost] = evaluate(r.combine, v[r.lost], off, 0);
      }
      v[r.total] = evaluate(r.combine, total, part, 0);
    }
  }
  SHARDARRAY_DEVICE void close(const Reduction& r) {
    if (!has_blocks()) return;
    SHARDARRAY_LANES(lane) {
      std::uint64_t* const v = values_.of(lane);
      v[r.result] = r.compensated ? with_rounded_off_bits(r.combine.type, v[r.total], v[r.lost]) : v[r.total];
    }
  }

  const LoopTable& t_;
  const LoopItem& item_;
  LoopView view_;
  const LoopStage* stages_;
  const Reduction* reductions_;
  LoopPoint outer_;
  WarpValues<slots> values_;
};

/// The rows of the thread's warp.
template <int slots>
SHARDARRAY_DEVICE void loop_rows(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const LoopTable& t = *reinterpret_cast<const LoopTable*>(table);
  const LoopItem& item = entries(table, t.items)[g.item];
  LoopRows<slots> rows(table, item, bases);
  const std::int64_t step = point_step(g) / warp_lanes;
  for (std::int64_t row = first_point(g) / warp_lanes; row < item.outer_points; row += step) rows.run(row);
}

}  // namespace shardarray::device
