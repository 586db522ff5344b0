// Running reductions along a dimension: of the blocks of a line from the identity, each behind its carry. Here a thread makes a line;
// scan_tiles.cuh shares them among the threads of a block, and is what is launched.
#pragma once
#include <limits>

#include "kernels/arithmetic.cuh"

namespace shardarray::device {

inline constexpr std::int64_t scan_block_length = 1024;  // elements

/// What a launch in tiles does.
enum class ScanStage : std::uint32_t {
  all,
  totals,   ///< what each block amounts to, into scratch memory
  carries,  ///< in its place what stands in front of the block; what a line ends with
  put       ///< the blocks once more, behind their carries
};
/// How scan_tiles.cuh goes through lines: a tile is so many blocks of so many neighbouring lines, in so many sets of these.
struct ScanShape {
  std::uint32_t row_bytes, columns, blocks, sets;  ///< of a block of a line, where it stands in a tile
  std::int64_t across;          ///< tiles beside each other until all `inner` lines are in one
  std::int64_t groups, chunks;  ///< tiles beside and, along a line, behind each other
};
/// Lines of `length` elements, `inner` apart.
struct ScanItem {
  Address x, out, totals;  ///< totals: an element a line, where they are asked for
  std::uint64_t carries;   ///< bytes into scratch memory: a ScanCarry for each block of each line
  std::int64_t lines, length, inner;
  ScanShape shape;
};
/// Bits of what stands in front of a block, and of what was rounded off on the way.
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

/// How elements and carries become one. `type`: of float sums.
template <class Combine> struct ScanRule {
  Combine combine;
  DType type;
  bool is_float_sum;

  /// A carry and a value of its block.
  SHARDARRAY_DEVICE std::uint64_t carried(const ScanCarry& c, std::uint64_t local) const {
    return combine(c.total, is_float_sum ? combine(local, c.lost) : local);
  }
  /// What stands behind a block that ends with `local`.
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

/// A thread a line.
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
