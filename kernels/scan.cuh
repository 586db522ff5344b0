// Prefix scans along a dimension: each block of a line is scanned from the identity and combined with its carry. Here one thread per line;
// scan_tiles.cuh, which is what is launched, shares lines among the threads of a block.
#pragma once
#include <limits>

#include "kernels/arithmetic.cuh"

namespace shardarray::device {

inline constexpr std::int64_t scan_block_length = 1024;  // elements

/// What a launch of the tiled scan does.
enum class ScanStage : std::uint32_t {
  all,
  totals,   ///< each block's total, into scratch memory
  carries,  ///< replaces these by the carries into the blocks; also writes the lines' totals
  put       ///< scans the blocks again, with their carries
};
/// How scan_tiles.cuh traverses lines: a tile is `blocks` blocks of `columns` neighbouring lines, in `sets` sets of these.
struct ScanShape {
  std::uint32_t row_bytes, columns, blocks, sets;  ///< row_bytes: of a line's block in a tile
  std::int64_t across;                             ///< tiles side by side that cover all `inner` lines
  std::int64_t groups, chunks;                     ///< tiles side by side, and along a line
};
/// Lines of `length` elements with stride `inner`.
struct ScanItem {
  Address x, out, totals;  ///< totals: one element per line, if requested
  std::uint64_t carries;   ///< byte offset in scratch memory: a ScanCarry per block of each line
  std::int64_t lines, length, inner;
  ScanShape shape;
};
/// Bits of the reduction of everything before a block, and of its accumulated rounding error.
struct ScanCarry {
  std::uint64_t total, lost;
};
struct ScanTable {
  List<ScanItem> items;
  Instruction combine;
  std::uint64_t identity;
  ScanStage stage;
  std::uint32_t bytes, is_reverse, has_totals, is_float_sum, unused;
};

/// How elements and carries combine. `type`: of float sums.
template <class Combine> struct ScanRule {
  Combine combine;
  DType type;
  bool is_float_sum;

  /// A carry combined with a value of its block.
  SHARDARRAY_DEVICE std::uint64_t carried(const ScanCarry& c, std::uint64_t local) const {
    return combine(c.total, is_float_sum ? combine(local, c.lost) : local);
  }
  /// The carry after a block whose scan ends with `local`.
  SHARDARRAY_DEVICE ScanCarry behind(const ScanCarry& c, std::uint64_t local) const {
    ScanCarry next{carried(c, local), 0};
    if (is_float_sum) {
      const std::uint64_t off = rounded_off_bits(type, c.total, combine(local, c.lost));
      const bool is_finite = type == DType::float32
                                 ? scalar::abs(value_of<float>(off)) <= std::numeric_limits<float>::max()
                                 : scalar::abs(value_of<double>(off)) <= std::numeric_limits<double>::max();
      if (is_finite) next.lost = off;
    }
    return next;
  }
};

/// One thread per line.
template <class Combine>
SHARDARRAY_DEVICE void scan_lines(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const ScanTable& t = *reinterpret_cast<const ScanTable*>(table);
  const ScanItem& s = entries(table, t.items)[g.item];
  const ScanRule<Combine> rule{Combine{t.combine}, t.combine.type, t.is_float_sum != 0};
  const std::byte* const x = address_of(bases, s.x);
  std::byte* const out = address_of(bases, s.out);
  const std::int64_t length = s.length, inner = s.inner;
  const std::uint32_t bytes = t.bytes;
  for (std::int64_t line = first_point(g); line < s.lines; line += point_step(g)) {
    const std::int64_t first = line / inner * length * inner + line % inner;
    ScanCarry carry{t.identity, 0};
    std::uint64_t local = t.identity;
    SHARDARRAY_POINTS
    for (std::int64_t i = 0; i < length; i++) {
      if (i > 0 && i % scan_block_length == 0) {
        carry = rule.behind(carry, local);
        local = t.identity;
      }
      const std::int64_t at = (first + (t.is_reverse ? length - 1 - i : i) * inner) * bytes;
      local = rule.combine(local, read_bits(x + at, bytes));
      write_bits(out + at, bytes, rule.carried(carry, local));
    }
    if (t.has_totals)
      write_bits(address_of(bases, s.totals) + line * bytes, bytes, rule.carried(carry, local));
  }
}

}  // namespace shardarray::device
