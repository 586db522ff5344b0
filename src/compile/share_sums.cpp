#include "compile/share_sums.h"

#include <algorithm>
#include <map>
#include <utility>

#include "runtime/devices.h"
#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

constexpr std::uint64_t least_bytes =
    1 << 16;                           // below, a second message costs more than the bytes that it saves
constexpr std::int64_t boundary = 64;  // bytes: parts begin at cache lines of the tile

Exchange without_items(const Exchange& x) {
  Exchange r;
  r.dtype = x.dtype;
  r.transfer = x.transfer;
  r.fixed_order = x.fixed_order;
  return r;
}

/// Whether it is a sum of the whole tile, contiguous on both sides.
bool is_large_sum(const Exchange::Item& item, DType dtype) {
  if (item.fill || item.pieces.size() != 1 || item.dst_bytes < least_bytes) return false;
  const Exchange::Piece& p = item.pieces[0];
  return p.sources.size() > 1 &&
         static_cast<std::uint64_t>(num_elements(p.extents)) * itemsize(dtype) == item.dst_bytes &&
         is_packed(p.extents, p.src_strides) && is_packed(p.extents, p.dst_strides);
}

Ref behind(Ref r, std::uint64_t bytes) {
  r.offset += bytes;
  return r;
}

/// Elements [first, first + n) of a tile.
struct Part {
  std::int64_t n;
  std::uint64_t first_byte, bytes;

  Exchange::Item from(int device, Ref dst, std::vector<Exchange::Source> sources) const {
    return {device, dst, bytes, false, {{{n}, {1}, {1}, dst, std::move(sources)}}};
  }
};

}  // namespace

Exchange share_sums(Exchange& sums, const DeviceOrder& order) {
  Exchange shares = without_items(sums);
  if (sums.reducer == Reducer::none || !spans_processes(order.devices())) return shares;
  // Tiles of one size that sum the same memory.
  std::map<std::vector<std::pair<std::uint32_t, std::uint64_t>>, std::vector<Exchange::Item*>> same;
  for (Exchange::Item& item : sums.items) {
    if (!is_large_sum(item, sums.dtype)) continue;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> read{{0, item.dst_bytes}};
    for (const Exchange::Source& s : item.pieces[0].sources) read.emplace_back(s.ref.base, s.ref.offset);
    same[std::move(read)].push_back(&item);
  }
  const auto process_of = [&](const Exchange::Item* item) {
    return order.devices()[static_cast<std::size_t>(item->device)].process_index;
  };
  for (const auto& [read, items] : same) {
    const int first = process_of(items[0]);
    if (std::all_of(items.begin(), items.end(), [&](const auto* i) { return process_of(i) == first; }))
      continue;
    const auto itemsize = static_cast<std::int64_t>(shardarray::itemsize(sums.dtype));
    const std::int64_t elements = static_cast<std::int64_t>(items[0]->dst_bytes) / itemsize;
    const auto count = static_cast<std::int64_t>(items.size());
    const std::int64_t step = std::max<std::int64_t>(1, boundary / itemsize);
    const std::int64_t most = (elements + count * step - 1) / (count * step) * step;
    std::vector<Ref> tiles;
    for (const Exchange::Item* item : items) tiles.push_back(item->dst);
    for (std::int64_t k = 0; k < count; k++) {
      const std::int64_t begin = std::min(k * most, elements), end = std::min(begin + most, elements);
      const Part part{end - begin, static_cast<std::uint64_t>(begin * itemsize),
                      static_cast<std::uint64_t>((end - begin) * itemsize)};
      Exchange::Item& own = *items[static_cast<std::size_t>(k)];
      std::vector<Exchange::Source> sources = std::move(own.pieces[0].sources);
      for (Exchange::Source& s : sources) s.ref = behind(s.ref, part.first_byte), s.first += part.first_byte;
      own = part.from(own.device, behind(own.dst, part.first_byte), std::move(sources));
      for (std::int64_t j = 0; j < count; j++)
        if (j != k && part.n > 0)
          shares.items.push_back(part.from(items[static_cast<std::size_t>(j)]->device,
                                           behind(tiles[static_cast<std::size_t>(j)], part.first_byte),
                                           {{own.dst, own.device, part.bytes, 0}}));
    }
  }
  return shares;
}

}  // namespace shardarray
