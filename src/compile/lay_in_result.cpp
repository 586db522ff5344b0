#include "compile/lay_in_result.h"

#include <algorithm>

#include "runtime/step_ranges.h"

namespace shardarray {
namespace {

// Every dimension is cut by no more than before, in the same way.
bool gathers(const Layout& from, const Layout& to) {
  const auto stays = [](const AxisList& before, const AxisList& after) {
    return before.size() >= after.size() && std::equal(after.begin(), after.end(), before.begin());
  };
  return from.order() == to.order() &&
         std::equal(from.dims().begin(), from.dims().end(), to.dims().begin(), to.dims().end(), stays);
}

// Of sources that make all of `tile`, where all of `part` goes at once.
std::optional<Box> place_of(const std::vector<BoxSource>& sources, std::size_t operand, const Box& part,
                            const Box& tile) {
  std::optional<Box> there;
  std::int64_t covered = 0;
  for (const BoxSource& b : sources) {
    covered += b.out.elements();
    if (static_cast<std::size_t>(b.operand) != operand || b.out.empty()) continue;
    const bool whole = b.in_lo == part.lo && b.out.size == part.size &&
                       std::ranges::all_of(b.step, [](std::int64_t n) { return n == 1; });
    if (there || !whole) return std::nullopt;
    there = b.out;
  }
  return covered == tile.elements() ? there : std::nullopt;
}

// The first element of `part` in `tile`, where all of it lies there in a row. Tiles of unequal sizes may reach beyond.
std::optional<std::int64_t> first_in(const Box& part, const Box& tile) {
  if (intersect(part, tile).elements() != part.elements()) return std::nullopt;
  std::size_t d = 0;
  while (d < tile.size.size() && tile.size[d] == 1) d++;
  for (std::size_t k = d + 1; k < tile.size.size(); k++)
    if (part.size[k] != tile.size[k]) return std::nullopt;
  return d == tile.size.size() ? 0 : (part.lo[d] - tile.lo[d]) * row_major(tile.size)[d];
}

}  // namespace

std::optional<Within> within_result(const LocalStep& s, std::size_t operand, const FlatGraph& g,
                                    Addresses& at, std::uint64_t alignment) {
  const int from = s.in[operand], to = s.out[0];
  const LocalValue &source = at.value(from), &target = at.value(to);
  const bool is_transfer = is_between_layouts(s);
  const FlatNode* const n = s.node < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(s.node)];
  const bool has_boxes = s.assembly || (n != nullptr && n->op->boxes);
  if (!(is_transfer ? gathers(*source.layout, *target.layout) : has_boxes)) return std::nullopt;
  for (const LocalValue* const v : {&source, &target})
    if (v->windows || !v->layout->unreduced().empty()) return std::nullopt;
  if (at.storage(to).memory != to) return std::nullopt;
  Within w{at.storage(from).memory, to, {}};
  const Memory& memory = at.memory(from);
  const auto size = static_cast<std::int64_t>(itemsize(source.type.dtype));
  for (std::size_t i = 0; i < memory.device.size(); i++) {
    const int p = memory.device[i];
    const Box part = at.tile(from, p), tile = at.tile(to, p);
    w.places.push_back({at.instance(to, p), 0});
    if (part.empty()) continue;
    const std::optional<Box> box =
        is_transfer  ? part
        : s.assembly ? place_of(s.assembly->sources[static_cast<std::size_t>(at.local(target.layout, p))],
                                operand, part, tile)
                     : place_of(n->op->boxes(n->call(), tile), operand, part, tile);
    const auto first = box ? first_in(*box, tile) : std::nullopt;
    if (!first || part.elements() * size != static_cast<std::int64_t>(memory.bytes[i])) return std::nullopt;
    w.places.back().offset = static_cast<std::uint64_t>(*first * size);
    if (w.places.back().offset % alignment != 0) return std::nullopt;
  }
  return w;
}

}  // namespace shardarray
