#include "layout/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace shardarray {

AxisList merged(const AxisList& axes) {
  AxisList out;
  for (SubAxis a : axes) {
    if (a.size == 1) continue;
    if (!out.empty() && end_of(out.back()) == a.pre) out.back().size *= a.size;
    else out.push_back(a);
  }
  return out;
}

AxisList sorted_merged(AxisList axes) {
  std::sort(axes.begin(), axes.end());
  return merged(axes);
}

bool disjoint(const AxisList& axes, int n) {
  AxisList sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  std::int32_t end = 1;
  for (SubAxis a : sorted) {
    if (a.pre < 1 || a.size < 1 || a.pre % end != 0) return false;
    end = end_of(a);
  }
  return n % end == 0;
}

CommonPrefix common_prefix(const AxisList& a, const AxisList& b) {
  CommonPrefix out{{}, merged(a), merged(b)};
  while (!out.rest_a.empty() && !out.rest_b.empty()) {
    SubAxis &x = out.rest_a.front(), &y = out.rest_b.front();
    const std::int32_t g = std::gcd(x.size, y.size);
    if (x.pre != y.pre || g == 1) break;
    out.common.push_back({x.pre, g});
    for (SubAxis* s : {&x, &y}) *s = {s->pre * g, s->size / g};
    if (x.size == 1) out.rest_a.erase(out.rest_a.begin());
    if (y.size == 1) out.rest_b.erase(out.rest_b.begin());
  }
  out.common = merged(out.common);
  return out;
}

AxisList cover(const AxisList& a, const AxisList& b) {
  AxisList all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::sort(all.begin(), all.end());
  AxisList out;
  for (SubAxis s : all) {
    if (s.size == 1) continue;
    if (out.empty() || s.pre > end_of(out.back())) out.push_back(s);
    else if (end_of(s) > end_of(out.back()))
      out.back().size = std::lcm(end_of(out.back()), end_of(s)) / out.back().pre;
  }
  return out;
}

std::optional<AxisList> without_axes(const AxisList& axes, const AxisList& removed) {
  AxisList left = axes;
  for (SubAxis r : removed) {
    const auto it = std::find_if(left.begin(), left.end(), [&](SubAxis a) {
      return a.pre <= r.pre && r.pre % a.pre == 0 && end_of(a) % end_of(r) == 0;
    });
    if (it == left.end()) return std::nullopt;
    const SubAxis before{it->pre, r.pre / it->pre}, after{end_of(r), end_of(*it) / end_of(r)};
    *it = after;
    left.insert(it, before);
  }
  return merged(left);
}

AxisList cut(const AxisList& axes, const AxisList& at) {
  AxisList out;
  for (SubAxis a : axes) {
    std::vector<std::int32_t> points;
    for (SubAxis s : at)
      for (std::int32_t point : {s.pre, end_of(s)})
        if (point > a.pre && point < end_of(a)) points.push_back(point);
    std::sort(points.begin(), points.end());
    for (std::int32_t point : points)
      if (point > a.pre && point % a.pre == 0 && end_of(a) % point == 0) {
        out.push_back({a.pre, point / a.pre});
        a = {point, end_of(a) / point};
      }
    out.push_back(a);
  }
  return out;
}

// Requires one divisor chain: of 6 devices, the half (1,2) and the third (1,3) are unrelated.
static bool is_inside(SubAxis a, const AxisList& others) {
  return std::any_of(others.begin(), others.end(),
                     [&](SubAxis o) { return a.pre % o.pre == 0 && end_of(o) % end_of(a) == 0; });
}
AxisList outside_of(const AxisList& axes, const AxisList& others) {
  AxisList out;
  for (SubAxis a : cut(axes, others))
    if (!is_inside(a, others)) out.push_back(a);
  return merged(out);
}
AxisList shared_axes(const AxisList& axes, const AxisList& others) {
  AxisList out;
  for (SubAxis a : cut(axes, others))
    if (is_inside(a, others)) out.push_back(a);
  return merged(out);
}

AxisList concatenated(const std::vector<AxisList>& lists) {
  AxisList out;
  for (const AxisList& l : lists) out.insert(out.end(), l.begin(), l.end());
  return out;
}

std::int64_t product(const AxisList& axes) {
  std::int64_t n = 1;
  for (SubAxis a : axes) n *= a.size;
  return n;
}

std::string to_string(const AxisList& axes) {
  std::vector<std::string> parts;
  for (SubAxis a : axes) parts.push_back(fmt::format("{}:{}", a.pre, a.size));
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

}  // namespace shardarray
