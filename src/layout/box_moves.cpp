// Who sends which box to whom.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/at.h"
#include "layout/transfer.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

// `a` without `b` as disjoint boxes, at most two per dimension.
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

// The positions that hold one box.
struct Owners {
  Box box;
  std::vector<int> positions;
};

// The smallest box with all that is wanted.
Box hull(const std::vector<Box>& boxes) {
  Box all;
  for (const Box& b : boxes) {
    if (b.empty()) continue;
    if (all.lo.size() != b.lo.size()) all = b;
    for (std::size_t d = 0; d < b.lo.size(); d++) {
      const std::int64_t end = std::max(all.lo[d] + all.size[d], b.lo[d] + b.size[d]);
      all.lo[d] = std::min(all.lo[d], b.lo[d]);
      all.size[d] = end - all.lo[d];
    }
  }
  return all;
}

// Who holds something of `wanted`, in the order of their first positions.
std::vector<Owners> owners_of(const std::vector<Box>& sources, const Box& wanted) {
  std::vector<int> order;
  for (int p = 0; p < static_cast<int>(sources.size()); p++)
    if (const Box& s = at(sources, p);
        !s.empty() && s.lo.size() == wanted.lo.size() && !intersect(s, wanted).empty())
      order.push_back(p);
  const auto before = [](const Shape& a, const Shape& b) {
    return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
  };
  std::stable_sort(order.begin(), order.end(), [&](int p, int q) {
    const Box &a = at(sources, p), &b = at(sources, q);
    return a.lo == b.lo ? before(a.size, b.size) : before(a.lo, b.lo);
  });
  std::vector<Owners> out;
  for (int p : order)
    if (!out.empty() && out.back().box == at(sources, p)) out.back().positions.push_back(p);
    else out.push_back({at(sources, p), {p}});
  std::sort(out.begin(), out.end(),
            [](const Owners& a, const Owners& b) { return a.positions[0] < b.positions[0]; });
  return out;
}

// The least loaded owner, nearest to `target` among equals.
int sender(const Owners& owners, int target, const std::vector<std::int64_t>& sent) {
  return *std::min_element(owners.positions.begin(), owners.positions.end(), [&](int a, int b) {
    return std::tuple(sent[a], std::abs(a - target), a) < std::tuple(sent[b], std::abs(b - target), b);
  });
}

}  // namespace

std::vector<BoxMove> box_moves(const std::vector<Box>& sources, const std::vector<Box>& targets) {
  const std::vector<Owners> owners = owners_of(sources, hull(targets));
  std::vector<std::int64_t> sent(sources.size(), 0);
  std::vector<BoxMove> out;
  for (int p = 0; p < static_cast<int>(targets.size()); p++) {
    std::int64_t missing = targets[p].elements();
    std::vector<Box> have;  // what is already there, as parts of the target
    const auto take = [&](int from, const Box& box) {
      out.push_back({from, p, box});
      missing -= box.elements();
      if (from != p) sent[from] += box.elements();
    };
    if (missing > 0 && p < static_cast<int>(sources.size())) {
      const Box own = intersect(targets[p], sources[p]);
      if (!own.empty()) {
        take(p, own);
        have.push_back(own);
      }
    }
    for (const Owners& o : owners) {
      if (missing == 0) break;
      const Box common = intersect(targets[p], o.box);
      if (common.empty()) continue;
      std::vector<Box> parts = {common};
      for (const Box& h : have) {
        std::vector<Box> left;
        for (const Box& part : parts) cut_out(part, h, left);
        parts = std::move(left);
      }
      if (parts.empty()) continue;
      const int from = sender(o, p, sent);
      for (const Box& part : parts) take(from, part);
      have.push_back(common);
    }
    if (missing != 0)
      throw InternalError(fmt::format(
          "box_moves: {} elements of the target at position {} are in no source. The sources must "
          "cover every target. Please report this.",
          missing, p));
  }
  return out;
}

}  // namespace shardarray
