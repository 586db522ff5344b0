// A part of an array that is written over, where data says that it begins: a thread an element of the part where the result lies on
// the array, else of the result.
#pragma once
#include "kernels/sort.cuh"

namespace shardarray::device {

struct UpdateDim {
  std::int64_t n, m;   ///< of x and of the part
  std::int64_t first;  ///< global index of the tile's first element
  Address start;       ///< where the part begins, by batch entry
  DType type;          ///< of that
  bool varies;         ///< else it begins where x does
  std::uint8_t unused[6];
};
struct UpdateItem {
  Address x, part, out;
  List<UpdateDim> dims;
  std::int64_t elements, each;  ///< that threads write, and of a batch entry
  bool in_place;
  std::uint8_t unused[7];
};
struct UpdateTable {
  List<UpdateItem> items;
  std::uint32_t bytes, unused;
};

SHARDARRAY_DEVICE inline std::int64_t part_begin(const Bases& bases, const UpdateDim& d, std::int64_t entry) {
  if (!d.varies) return 0;
  const std::uint32_t bytes = d.type == DType::int32 ? 4 : 8;
  return static_cast<std::int64_t>(read_integer(d.type, address_of(bases, d.start) + entry * bytes)) -
         d.first;
}

SHARDARRAY_DEVICE inline void update(const Grid& g, const std::byte* table, std::byte*, const Bases& bases) {
  const UpdateTable& t = *reinterpret_cast<const UpdateTable*>(table);
  const UpdateItem& u = entries(table, t.items)[g.item];
  const UpdateDim* const dims = entries(table, u.dims);
  for (std::int64_t at = first_point(g); at < u.elements; at += point_step(g)) {
    const std::int64_t entry = at / u.each;
    std::int64_t rest = at - entry * u.each, to = 0, from = 0, to_step = 1, from_step = 1;
    bool inside = true;
    for (std::uint32_t k = u.dims.count; k-- > 0;) {
      const UpdateDim& d = dims[k];
      const std::int64_t size = u.in_place ? d.m : d.n, i = rest % size;
      rest /= size;
      const std::int64_t begin = part_begin(bases, d, entry);
      const std::int64_t of_x = u.in_place ? i + begin : i, of_part = u.in_place ? i : i - begin;
      inside = inside && of_x >= 0 && of_x < d.n && of_part >= 0 && of_part < d.m;
      to += of_x * to_step;
      from += of_part * from_step;
      to_step *= d.n;
      from_step *= d.m;
    }
    to += entry * to_step;
    from += entry * from_step;
    if (inside)
      copy_element(address_of(bases, u.out) + to * t.bytes, address_of(bases, u.part) + from * t.bytes,
                   t.bytes);
    else if (!u.in_place)
      copy_element(address_of(bases, u.out) + to * t.bytes, address_of(bases, u.x) + to * t.bytes, t.bytes);
  }
}

}  // namespace shardarray::device
