#include "layout/box_index.h"

#include <algorithm>

#include "base/at.h"

namespace shardarray {
namespace {

bool starts_before(const Shape& a, const Shape& b) {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

bool meets(const Box& a, const Box& b) {
  for (std::size_t d = 0; d < a.lo.size(); d++)
    if (a.lo[d] >= b.lo[d] + b.size[d] || b.lo[d] >= a.lo[d] + a.size[d]) return false;
  return true;
}

}  // namespace

BoxIndex::BoxIndex(std::vector<Box> boxes) : boxes_(std::move(boxes)) {
  for (std::size_t k = 0; k < boxes_.size(); k++)
    if (!boxes_[k].empty()) order_.push_back(static_cast<int>(k));
  std::stable_sort(order_.begin(), order_.end(),
                   [&](int a, int b) { return starts_before(at(boxes_, a).lo, at(boxes_, b).lo); });
  starts_.resize(order_.empty() ? 0 : at(boxes_, order_[0]).lo.size());
  for (std::size_t d = 0; d < starts_.size(); d++) {
    Starts& s = starts_[d];
    for (int k : order_) {
      s.values.push_back(at(boxes_, k).lo[d]);
      s.longest = std::max(s.longest, at(boxes_, k).size[d]);
    }
    std::sort(s.values.begin(), s.values.end());
    s.values.erase(std::unique(s.values.begin(), s.values.end()), s.values.end());
  }
}

std::vector<int> BoxIndex::candidates(const Box& b) const {
  std::vector<int> found;
  if (order_.empty() || b.empty()) return found;
  // Per dimension, the starts of boxes that may reach `b`: [first, last).
  std::vector<std::size_t> first, last;
  std::size_t cells = 1;
  for (std::size_t d = 0; d < starts_.size(); d++) {
    const std::vector<std::int64_t>& v = starts_[d].values;
    const auto begin = std::upper_bound(v.begin(), v.end(), b.lo[d] - starts_[d].longest);
    const auto end = std::lower_bound(begin, v.end(), b.lo[d] + b.size[d]);
    if (begin == end) return found;
    first.push_back(static_cast<std::size_t>(begin - v.begin()));
    last.push_back(static_cast<std::size_t>(end - v.begin()));
    if (cells < order_.size()) cells *= last.back() - first.back();
  }
  if (cells >= order_.size()) {  // at least as many cells as boxes
    found = order_;
    std::sort(found.begin(), found.end());
    return found;
  }
  std::vector<std::size_t> place = first;
  Shape lo = Shape::filled(starts_.size(), 0);
  for (;;) {
    for (std::size_t d = 0; d < place.size(); d++) lo[d] = starts_[d].values[place[d]];
    auto k = std::partition_point(order_.begin(), order_.end(),
                                  [&](int x) { return starts_before(at(boxes_, x).lo, lo); });
    for (; k != order_.end() && at(boxes_, *k).lo == lo; ++k) found.push_back(*k);
    std::size_t d = 0;
    while (d < place.size() && ++place[d] == last[d]) {
      place[d] = first[d];
      d++;
    }
    if (d == place.size()) break;
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<int> BoxIndex::meeting(const Box& b) const {
  std::vector<int> found = candidates(b);
  std::erase_if(found, [&](int k) { return !meets(at(boxes_, k), b); });
  return found;
}

}  // namespace shardarray
