// Running reductions along a dimension:
//   blocks   a thread a block: its running reduction from the identity, into the output
//   carries  a thread a line: what stands in front of each block, into scratch memory; what a line ends with
//   put      a thread an element: the block's carry combined with it
#pragma once
#include <limits>

#include "kernels/arithmetic.cuh"

namespace shardarray::device {

/// Lines of `length` elements, `inner` apart.
struct ScanItem {
  Address x, out, totals;  ///< totals: an element a line, where they are asked for
  std::uint64_t carries;   ///< bytes into scratch memory: ScanCarry of block b of line l at b * lines + l
  std::int64_t lines, length, inner;
};
/// Bits of what stands in front of a block, and of what was rounded off on the way.
struct ScanCarry {
  std::uint64_t total, lost;
};
struct ScanTable {
  List<ScanItem> items;
  Instruction combine;
  std::uint64_t identity;
  std::int64_t block, step;  ///< elements of a block; 1 from the first element on, -1 from the last
  std::uint32_t bytes, has_totals, is_float_sum, unused;
};

/// The element that is the `at`-th of a line, counted in all elements.
SHARDARRAY_DEVICE inline std::int64_t scanned_element(const ScanTable& t, const ScanItem& s,
                                                      std::int64_t line, std::int64_t at) {
  const std::int64_t place = t.step < 0 ? s.length - 1 - at : at;
  return (line / s.inner * s.length + place) * s.inner + line % s.inner;
}
SHARDARRAY_DEVICE inline std::int64_t block_end(const ScanTable& t, const ScanItem& s, std::int64_t block) {
  const std::int64_t end = (block + 1) * t.block;
  return end < s.length ? end : s.length;
}

template <class Combine>
SHARDARRAY_DEVICE void scan_blocks(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const ScanTable& t = *reinterpret_cast<const ScanTable*>(table);
  const Combine combine{t.combine};
  const ScanItem& s = entries(table, t.items)[g.item];
  const std::byte* const x = address_of(bases, s.x);
  std::byte* const out = address_of(bases, s.out);
  const std::int64_t blocks = (s.length + t.block - 1) / t.block;
  for (std::int64_t p = first_point(g); p < s.lines * blocks; p += point_step(g)) {
    const std::int64_t line = p % s.lines, block = p / s.lines;
    std::uint64_t local = t.identity;
    for (std::int64_t i = block * t.block; i < block_end(t, s, block); i++) {
      const std::int64_t at = scanned_element(t, s, line, i) * t.bytes;
      local = combine(local, read_bits(x + at, t.bytes));
      write_bits(out + at, t.bytes, local);
    }
  }
}

/// A carry and a value of its block.
template <class Combine>
SHARDARRAY_DEVICE std::uint64_t carried(const ScanTable& t, const ScanCarry& c, std::uint64_t local) {
  const Combine combine{t.combine};
  if (t.is_float_sum) local = combine(local, c.lost);
  return combine(c.total, local);
}
/// What stands behind a block that ends with `local`.
template <class Combine>
SHARDARRAY_DEVICE ScanCarry behind(const ScanTable& t, const ScanCarry& c, std::uint64_t local) {
  ScanCarry next{carried<Combine>(t, c, local), 0};
  if (t.is_float_sum) {
    const std::uint64_t off = rounded_off_bits(t.combine.type, c.total, Combine{t.combine}(local, c.lost));
    const bool is_finite = t.combine.type == DType::float32
                               ? scalar::abs(value_of<float>(off)) <= std::numeric_limits<float>::max()
                               : scalar::abs(value_of<double>(off)) <= std::numeric_limits<double>::max();
    if (is_finite) next.lost = off;
  }
  return next;
}

template <class Combine>
SHARDARRAY_DEVICE void scan_carries(const Grid& g, const std::byte* table, std::byte* scratch,
                                    const Bases& bases) {
  const ScanTable& t = *reinterpret_cast<const ScanTable*>(table);
  const ScanItem& s = entries(table, t.items)[g.item];
  const std::byte* const out = address_of(bases, s.out);
  auto* const carries = reinterpret_cast<ScanCarry*>(scratch + s.carries);
  for (std::int64_t line = first_point(g); line < s.lines; line += point_step(g)) {
    ScanCarry carry{t.identity, 0};
    for (std::int64_t block = 0; block * t.block < s.length; block++) {
      carries[block * s.lines + line] = carry;
      const std::int64_t last = scanned_element(t, s, line, block_end(t, s, block) - 1);
      carry = behind<Combine>(t, carry, read_bits(out + last * t.bytes, t.bytes));
    }
    if (t.has_totals) write_bits(address_of(bases, s.totals) + line * t.bytes, t.bytes, carry.total);
  }
}

template <class Combine>
SHARDARRAY_DEVICE void scan_put(const Grid& g, const std::byte* table, std::byte* scratch,
                                const Bases& bases) {
  const ScanTable& t = *reinterpret_cast<const ScanTable*>(table);
  const ScanItem& s = entries(table, t.items)[g.item];
  std::byte* const out = address_of(bases, s.out);
  const auto* const carries = reinterpret_cast<const ScanCarry*>(scratch + s.carries);
  for (std::int64_t at = first_point(g); at < s.lines * s.length; at += point_step(g)) {
    const std::int64_t line = at / (s.length * s.inner) * s.inner + at % s.inner,
                       place = at / s.inner % s.length, i = t.step < 0 ? s.length - 1 - place : place;
    std::byte* const to = out + at * t.bytes;
    write_bits(to, t.bytes,
               carried<Combine>(t, carries[i / t.block * s.lines + line], read_bits(to, t.bytes)));
  }
}

}  // namespace shardarray::device
