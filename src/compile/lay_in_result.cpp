#include "compile/lay_in_result.h"

#include <algorithm>

#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

// Whether every dimension stays sharded by a prefix of its sub-axes.
bool gathers(const Layout& from, const Layout& to) {
  const auto stays = [](const AxisList& before, const AxisList& after) {
    return before.size() >= after.size() && std::equal(after.begin(), after.end(), before.begin());
  };
  return from.order() == to.order() &&
         std::equal(from.dims().begin(), from.dims().end(), to.dims().begin(), to.dims().end(), stays);
}

// Whether tiles of `from` may be contiguous in those of `to`, for a value of this shape: `to` has one element per tile in the dimensions
// before one that is gathered.
bool gathers_rows(const Layout& from, const Layout& to, const Shape& shape) {
  if (!gathers(from, to)) return false;
  int last = from.rank();
  while (last > 0 &&
         from.dims()[static_cast<std::size_t>(last - 1)] == to.dims()[static_cast<std::size_t>(last - 1)])
    last--;
  for (int d = 0; d < last - 1; d++)
    if (shape[d] > to.tiles(d)) return false;
  return true;
}

bool is_plain(const LocalValue& v) { return !v.windows && v.layout->unreduced().empty(); }

// The offset of `part` in `tile`, if all of it is there and contiguous. With uneven sizes it may reach beyond the tile.
std::optional<std::int64_t> first_in(const Box& part, const Box& tile) {
  if (intersect(part, tile).elements() != part.elements()) return std::nullopt;
  std::size_t d = 0;
  while (d < tile.size.size() && tile.size[d] == 1) d++;
  for (std::size_t k = d + 1; k < tile.size.size(); k++)
    if (part.size[k] != tile.size[k]) return std::nullopt;
  return d == tile.size.size() ? 0 : (part.lo[d] - tile.lo[d]) * row_major(tile.size)[d];
}

}  // namespace

PartPlaces::PartPlaces(const LocalStep& s, const FlatGraph& g, Addresses& at, std::uint64_t alignment)
    : s_(s),
      at_(at),
      alignment_(alignment),
      node_(s.node < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(s.node)]) {
  const LocalValue& target = at.value(s.out[0]);
  is_possible_ =
      (is_between_layouts(s) ? gathers_rows(*at.value(s.in[0]).layout, *target.layout, target.type.shape)
                             : s.assembly || (node_ != nullptr && node_->op->boxes)) &&
      is_plain(target) && at.storage(s.out[0]).memory == s.out[0];
}

const PartPlaces::Parts& PartPlaces::parts(int position) {
  const auto [it, fresh] = parts_.try_emplace(position);
  Parts& parts = it->second;
  if (!fresh) return parts;
  parts.resize(s_.in.size());
  const Box& tile = at_.tile(s_.out[0], position);
  const auto own = static_cast<std::size_t>(at_.local(at_.value(s_.out[0]).layout, position));
  const std::vector<BoxSource> sources =
      s_.assembly ? s_.assembly->sources[own] : node_->op->boxes(node_->call(), tile);
  std::vector<bool> seen(s_.in.size(), false);
  std::int64_t covered = 0;
  for (const BoxSource& b : sources) {
    covered += b.out.elements();
    if (b.out.empty()) continue;
    const auto k = static_cast<std::size_t>(b.operand);
    const Box& part = at_.tile(s_.in[k], position);
    const bool whole = !seen[k] && b.in_lo == part.lo && b.out.size == part.size &&
                       std::ranges::all_of(b.step, [](std::int64_t n) { return n == 1; });
    parts[k] = whole ? std::optional(b.out) : std::nullopt;
    seen[k] = true;
  }
  if (covered != tile.elements())
    parts.assign(s_.in.size(), std::nullopt);  // a fill first writes the whole tile
  return parts;
}

std::optional<Within> PartPlaces::within(std::size_t operand) {
  const int from = s_.in[operand], to = s_.out[0];
  const LocalValue& source = at_.value(from);
  if (!is_possible_ || !is_plain(source)) return std::nullopt;
  Within w{at_.storage(from).memory, to, {}};
  const Memory& memory = at_.memory(from);
  const auto size = static_cast<std::int64_t>(itemsize(source.type.dtype));
  for (std::size_t i = 0; i < memory.device.size(); i++) {
    const int p = memory.device[i];
    const Box& part = at_.tile(from, p);
    w.places.push_back({at_.instance(to, p), 0});
    if (part.empty()) continue;
    const std::optional<Box> box = is_between_layouts(s_) ? part : parts(p)[operand];
    const auto first = box ? first_in(*box, at_.tile(to, p)) : std::nullopt;
    if (!first || part.elements() * size != static_cast<std::int64_t>(memory.bytes[i])) return std::nullopt;
    w.places.back().offset = static_cast<std::uint64_t>(*first * size);
    if (w.places.back().offset % alignment_ != 0) return std::nullopt;
  }
  return w;
}

}  // namespace shardarray
