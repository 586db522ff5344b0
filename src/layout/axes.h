// Arithmetic of sub-axes. A sub-axis (pre, size) is the interval [pre, pre * size) of a divisor chain of n.
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
/// Whether all pairs are independent and all fit into n devices.
bool disjoint(const AxisList& axes, int n);

/// The common most significant part of two lists, and the rest of each.
struct CommonPrefix {
  AxisList common, rest_a, rest_b;
};
CommonPrefix common_prefix(const AxisList& a, const AxisList& b);
/// The sub-axes that cover both lists, sorted: exact unless two sub-axes overlap without a common refinement.
AxisList cover(const AxisList& a, const AxisList& b);
/// `axes` without `removed`; nullopt unless every removed sub-axis lies inside one of `axes`.
std::optional<AxisList> without_axes(const AxisList& axes, const AxisList& removed);
/// The parts of `axes` outside of `others`, and those inside, in the order of `axes`.
AxisList outside_of(const AxisList& axes, const AxisList& others);
AxisList shared_axes(const AxisList& axes, const AxisList& others);
/// `axes` split at the boundaries of `at` that fall inside them.
AxisList cut(const AxisList& axes, const AxisList& at);
/// The lists appended to each other.
AxisList concatenated(const std::vector<AxisList>& lists);
/// Product of the sizes.
std::int64_t product(const AxisList& axes);
/// `{1:4,8:2}`.
std::string to_string(const AxisList& axes);

}  // namespace shardarray
