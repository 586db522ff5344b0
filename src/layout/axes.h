// Calculating with sub-axes. A sub-axis (pre, size) is the run [pre, pre * size) of the divisor chain of n.
#pragma once
#include <optional>
#include <string>

#include "layout/layout.h"

namespace shardarray {

constexpr std::int32_t end_of(SubAxis a) { return a.pre * a.size; }

/// Drops size 1 and merges neighbours, most significant first: (1,2),(2,3) -> (1,6).
AxisList merged(const AxisList& axes);
/// Sorted by pre, then merged: for lists whose order does not matter.
AxisList sorted_merged(AxisList axes);
/// Every pair is independent and all fit into n devices.
bool disjoint(const AxisList& axes, int n);

/// What two lists share at their most significant end, and what is left of each.
struct CommonPrefix {
  AxisList common, rest_a, rest_b;
};
CommonPrefix common_prefix(const AxisList& a, const AxisList& b);
/// The sub-axes that cover both lists, sorted: exact unless two sub-axes overlap without a common refinement.
AxisList cover(const AxisList& a, const AxisList& b);
/// `axes` without `removed`; nothing unless every removed sub-axis lies inside one of `axes`.
std::optional<AxisList> without_axes(const AxisList& axes, const AxisList& removed);
/// What of `axes` lies in none of `others`, and what lies in one, in the order of `axes`.
AxisList outside_of(const AxisList& axes, const AxisList& others);
AxisList shared_axes(const AxisList& axes, const AxisList& others);
/// `axes` cut at the ends of the sub-axes of `at` that fall inside.
AxisList cut(const AxisList& axes, const AxisList& at);
/// The lists one behind the other.
AxisList concatenated(const std::vector<AxisList>& lists);
/// Product of the sizes.
std::int64_t product(const AxisList& axes);
/// `{1:4,8:2}`.
std::string to_string(const AxisList& axes);

}  // namespace shardarray
