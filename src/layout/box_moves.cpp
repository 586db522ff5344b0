#include "layout/box_moves.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/at.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// `a` minus `b` as disjoint boxes, at most two per dimension.
void cut_out(const Box& a, const Box& b, std::vector<Box>& out) {
  const Box common = intersect(a, b);
  if (common.empty()) {
    out.push_back(a);
    return;
  }
  Box rest = a;
  for (std::size_t d = 0; d < a.lo.size(); d++) {
    const std::int64_t below = common.lo[d] - rest.lo[d],
                       above = rest.lo[d] + rest.size[d] - common.lo[d] - common.size[d];
    for (const auto& [lo, size] :
         {std::pair{rest.lo[d], below}, std::pair{common.lo[d] + common.size[d], above}}) {
      if (size == 0) continue;
      out.push_back(rest);
      out.back().lo[d] = lo;
      out.back().size[d] = size;
    }
    rest.lo[d] = common.lo[d];
    rest.size[d] = common.size[d];
  }
}

// The distinct non-empty boxes, each with the positions that hold it, ordered by their first position.
std::vector<std::pair<Box, std::vector<int>>> distinct(const std::vector<Box>& sources) {
  std::vector<int> order;
  for (int p = 0; p < static_cast<int>(sources.size()); p++)
    if (!at(sources, p).empty()) order.push_back(p);
  const auto before = [](const Shape& a, const Shape& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::stable_sort(order.begin(), order.end(), [&](int p, int q) {
    const Box &a = at(sources, p), &b = at(sources, q);
    return a.lo == b.lo ? before(a.size, b.size) : before(a.lo, b.lo);
  });
  std::vector<std::pair<Box, std::vector<int>>> out;
  for (int p : order)
    if (!out.empty() && out.back().first == at(sources, p)) out.back().second.push_back(p);
    else out.push_back({at(sources, p), {p}});
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second[0] < b.second[0]; });
  return out;
}

std::vector<Box> boxes_in(const std::vector<std::pair<Box, std::vector<int>>>& parts) {
  std::vector<Box> boxes;
  boxes.reserve(parts.size());
  for (const auto& part : parts) boxes.push_back(part.first);
  return boxes;
}

}  // namespace

std::vector<Box> disjoint(const std::vector<Box>& boxes) {
  std::vector<Box> apart;
  for (const Box& box : boxes) {
    std::vector<Box> parts{box};
    for (std::size_t k = 0, before = apart.size(); k < before; k++) {
      std::vector<Box> left;
      for (const Box& part : parts) cut_out(part, apart[k], left);
      parts = std::move(left);
    }
    for (Box& part : parts)
      if (!part.empty()) apart.push_back(std::move(part));
  }
  return apart;
}

HeldBoxes::HeldBoxes(const std::vector<Box>& sources) : HeldBoxes(distinct(sources), sources.size()) {}

HeldBoxes::HeldBoxes(std::vector<std::pair<Box, std::vector<int>>> parts, std::size_t positions)
    : box_of_(positions, -1), index_(boxes_in(parts)) {
  for (auto& [box, owners] : parts) {
    for (int p : owners) at(box_of_, p) = static_cast<int>(owners_.size());
    owners_.push_back(std::move(owners));
  }
}

BoxSenders::BoxSenders(const std::vector<Box>& sources, std::vector<int> memory)
    : held_(sources), memory_(std::move(memory)), sent_(sources.size(), 0) {
  const std::vector<Box>& boxes = held_.boxes();
  for (int b = 0; b < static_cast<int>(boxes.size()); b++) {
    overlaps_.push_back(held_.meeting(at(boxes, b)));
    std::erase(overlaps_.back(), b);
    std::set<Load>& loads = loads_.emplace_back();
    for (int p : held_.owners(b)) loads.insert(loads.end(), {0, p});
  }
}

// An owner in the target's memory, else the least loaded owner; among equals the one nearest to `target`.
int BoxSenders::sender(int box, int target) const {
  if (!memory_.empty()) {
    const std::vector<int>& owners = held_.owners(box);
    const auto here =
        std::ranges::find_if(owners, [&](int p) { return at(memory_, p) == at(memory_, target); });
    if (here != owners.end()) return *here;
  }
  const std::set<Load>& loads = at(loads_, box);
  const std::int64_t least = loads.begin()->first;
  const auto above = loads.lower_bound({least, target});
  const bool has_above = above != loads.end() && above->first == least;
  if (above == loads.begin()) return above->second;
  const int below = std::prev(above)->second;
  return has_above && above->second - target < target - below ? above->second : below;
}

void BoxSenders::count(int box, int from, std::int64_t elements) {
  if (at(sent_, from) == 0) busy_.push_back(from);
  at(loads_, box).erase({at(sent_, from), from});
  at(sent_, from) += elements;
  at(loads_, box).insert({at(sent_, from), from});
}

void BoxSenders::restart() {
  for (int p : busy_) {
    std::set<Load>& loads = at(loads_, held_.box_of(p));
    loads.erase({at(sent_, p), p});
    at(sent_, p) = 0;
    loads.insert({0, p});
  }
  busy_.clear();
}

void BoxSenders::fill(const Box& target, int p, std::vector<BoxMove>& out) {
  std::int64_t missing = target.elements();
  if (missing == 0) return;
  std::vector<int> wanted = held_.meeting(target), taken;
  // Prefer what position p itself holds.
  const auto own = std::find(wanted.begin(), wanted.end(), held_.box_of(p));
  if (own != wanted.end()) std::rotate(wanted.begin(), own, own + 1);
  for (int b : wanted) {
    if (missing == 0) break;
    std::vector<Box> parts = {intersect(target, at(held_.boxes(), b))};
    for (int other : at(overlaps_, b)) {
      if (std::find(taken.begin(), taken.end(), other) == taken.end()) continue;
      std::vector<Box> left;
      for (const Box& part : parts) cut_out(part, at(held_.boxes(), other), left);
      parts = std::move(left);
    }
    if (!at(overlaps_, b).empty()) taken.push_back(b);
    if (parts.empty()) continue;
    const int from = held_.box_of(p) == b ? p : sender(b, p);
    for (const Box& part : parts) {
      out.push_back({from, p, part});
      missing -= part.elements();
      if (from != p) count(b, from, part.elements());
    }
  }
  if (missing != 0)
    throw InternalError(
        fmt::format("box_moves: {} elements of the target at position {} are in no source. The sources must "
                    "cover every target. Please report this.",
                    missing, p));
}

}  // namespace shardarray
