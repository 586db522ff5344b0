// Writes a part into an array, or combines it with what is there, at a position given by data: one thread per element of the part.
#pragma once
#include <type_traits>

#include "kernels/sort.cuh"

namespace shardarray::device {

struct UpdateDim {
  std::int64_t n, m;   ///< sizes of x and of the part
  std::int64_t first;  ///< global index of the tile's first element
  Address start;       ///< start of the part, by batch entry
  DType type;          ///< of `start`
  bool varies;         ///< else it starts where x does
  std::uint8_t unused[6];
};
struct UpdateItem {
  Address part, out;
  List<UpdateDim> dims;
  std::int64_t elements, each;  ///< of the part, and per batch entry
};
struct UpdateTable {
  List<UpdateItem> items;
  Instruction combine;
  std::uint32_t bytes, unused;
};

SHARDARRAY_DEVICE inline std::int64_t part_begin(const Bases& bases, const UpdateDim& d, std::int64_t entry) {
  if (!d.varies) return 0;
  const std::uint32_t bytes = d.type == DType::int32 ? 4 : 8;
  return static_cast<std::int64_t>(read_integer(d.type, address_of(bases, d.start) + entry * bytes)) -
         d.first;
}

template <class Combine>
SHARDARRAY_DEVICE void update(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const UpdateTable& t = *reinterpret_cast<const UpdateTable*>(table);
  const Combine combine{t.combine};
  const UpdateItem& u = entries(table, t.items)[g.item];
  const UpdateDim* const dims = entries(table, u.dims);
  for (std::int64_t at = first_point(g); at < u.elements; at += point_step(g)) {
    const std::int64_t entry = at / u.each;
    std::int64_t rest = at - entry * u.each, to = 0, step = 1;
    bool inside = true;
    for (std::uint32_t k = u.dims.count; k-- > 0;) {
      const UpdateDim& d = dims[k];
      const std::int64_t i = rest % d.m + part_begin(bases, d, entry);
      rest /= d.m;
      inside = inside && i >= 0 && i < d.n;
      to += i * step;
      step *= d.n;
    }
    if (!inside) continue;
    std::byte* const out = address_of(bases, u.out) + (entry * step + to) * t.bytes;
    const std::byte* const part = address_of(bases, u.part) + at * t.bytes;
    if constexpr (std::is_same_v<Combine, NoCombine>) copy_element(out, part, t.bytes);
    else write_bits(out, t.bytes, combine(read_bits(out, t.bytes), read_bits(part, t.bytes)));
  }
}

}  // namespace shardarray::device
