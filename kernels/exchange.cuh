// Exchanges: tiles are filled; boxes are copied, or combined from several sources in the given order.
#pragma once
#include "kernels/arithmetic.cuh"

namespace shardarray::device {

struct FillItem {
  Address dst;
  std::int64_t elements;
};
struct FillTable {
  List<FillItem> items;
  std::uint64_t bits[2];  ///< the element's bytes, up to 16
  std::uint32_t bytes;    ///< per element: 1, 2, 4, 8 or 16
};

struct MoveAxis {
  std::int64_t extent, src, dst;  ///< strides in bytes
};
struct MovePiece {
  Address dst;
  List<MoveAxis> axes;
  List<Address> sources;  ///< at least one
  std::int64_t first;     ///< its offset among the item's units
  std::uint32_t bytes;    ///< per unit: an element, or in a copy several, up to 16 bytes
  std::uint32_t unused;
};
struct MoveItem {
  List<MovePiece> pieces;
  std::int64_t units;  ///< of all pieces
};
struct MoveTable {
  List<MoveItem> items;
  Instruction combine;  ///< of two elements, if pieces have several sources
};

SHARDARRAY_DEVICE inline void fill_tiles(const Grid& g, const std::byte* table, std::byte*,
                                         const Bases& bases) {
  const FillTable& t = *reinterpret_cast<const FillTable*>(table);
  const FillItem& item = entries(table, t.items)[g.item];
  std::byte* const dst = address_of(bases, item.dst);
  SHARDARRAY_POINTS
  for (std::int64_t i = first_point(g); i < item.elements; i += point_step(g)) {
    if (t.bytes == 16) reinterpret_cast<Bytes16*>(dst)[i] = {t.bits[0], t.bits[1]};
    else write_bits(dst + i * t.bytes, t.bytes, t.bits[0]);
  }
}

/// The piece that contains a unit: the last one that starts at or before it.
SHARDARRAY_DEVICE inline const MovePiece& piece_of(const MovePiece* pieces, std::uint32_t count,
                                                   std::int64_t unit) {
  std::uint32_t low = 0;
  for (std::uint32_t high = count; high - low > 1;) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (pieces[middle].first <= unit) low = middle;
    else high = middle;
  }
  return pieces[low];
}

/// Byte offsets of a piece's unit in its source and destination.
struct MoveDistance {
  std::int64_t src = 0, dst = 0;
};
template <class Number>
SHARDARRAY_DEVICE inline MoveDistance distance_of(const MoveAxis* axes, std::uint32_t count, Number unit) {
  MoveDistance d;
  SHARDARRAY_POINTS
  for (std::uint32_t x = count; x-- > 0;) {
    const std::int64_t at = x == 0 ? static_cast<std::int64_t>(unit)  // what the other axes leave
                                   : take_off(unit, static_cast<Number>(axes[x].extent));
    d.src += at * axes[x].src;
    d.dst += at * axes[x].dst;
  }
  return d;
}

template <class Combine>
SHARDARRAY_DEVICE void move_boxes(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const MoveTable& t = *reinterpret_cast<const MoveTable*>(table);
  const Combine combine{t.combine};
  const MoveItem& item = entries(table, t.items)[g.item];
  const MovePiece* const pieces = entries(table, item.pieces);
  SHARDARRAY_POINTS
  for (std::int64_t i = first_point(g); i < item.units; i += point_step(g)) {
    const MovePiece& piece = piece_of(pieces, item.pieces.count, i);
    const MoveAxis* const axes = entries(table, piece.axes);
    const auto unit = static_cast<std::uint64_t>(i - piece.first);
    const MoveDistance d = item.units >> 32 == 0  // 64-bit divisions are slow
                               ? distance_of(axes, piece.axes.count, static_cast<std::uint32_t>(unit))
                               : distance_of(axes, piece.axes.count, unit);
    const Address* const sources = entries(table, piece.sources);
    std::byte* const dst = address_of(bases, piece.dst) + d.dst;
    if (piece.sources.count == 1) {
      copy_element(dst, address_of(bases, sources[0]) + d.src, piece.bytes);
      continue;
    }
    const auto element = [&](std::uint32_t s) {
      return read_bits(address_of(bases, sources[s]) + d.src, piece.bytes);
    };
    std::uint64_t x = element(0);
    constexpr std::uint32_t ahead = 7;  // with the first one, eight loads in flight
    SHARDARRAY_POINTS
    for (std::uint32_t s = 1; s < piece.sources.count; s += ahead) {
      std::uint64_t next[ahead];
      for (std::uint32_t k = 0; k < ahead; k++) next[k] = s + k < piece.sources.count ? element(s + k) : 0;
      for (std::uint32_t k = 0; k < ahead; k++)
        if (s + k < piece.sources.count) x = combine(x, next[k]);
    }
    write_bits(dst, piece.bytes, x);
  }
}

}  // namespace shardarray::device
