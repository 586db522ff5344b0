#include "ops/windows.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/count_text.h"

namespace shardarray::windows {

Shape per_dimension(const char* function, const char* what, const Shape& given, std::size_t rank) {
  if (given.empty()) return Shape::filled(rank, 1);
  if (given.size() != rank && given.size() != 1)
    throw ShapeError(fmt::format(
        "{}: {} {} for {}. There is one number for each of them, or one for all. Add or remove numbers.",
        function, what, to_string(given), count_text(rank, "spatial dimension")));
  for (const std::int64_t n : given)
    if (n < 1)
      throw ShapeError(
          fmt::format("{}: {} {}. They are 1 or more. Correct them.", function, what, to_string(given)));
  return given.size() == rank ? given : Shape::filled(rank, given[0]);
}

std::string rule_of(const char* function, const Padding& padding) {
  std::string rule = padding.rule();
  for (char& c : rule) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (rule.empty() && padding.widths().empty()) return "VALID";
  if (!rule.empty() && rule != "VALID" && rule != "SAME" && rule != "SAME_LOWER")
    throw Error(fmt::format(
        "{}: padding \"{}\". The rules are \"VALID\", \"SAME\" and \"SAME_LOWER\". Use one of them, or give "
        "widths.",
        function, padding.rule()));
  return rule;
}

Widths widths_of(const char* function, const Padding& padding, const Shape& sizes, const Shape& reaches,
                 const Shape& strides) {
  const std::string rule = rule_of(function, padding);
  const std::size_t rank = sizes.size(), given = padding.widths().size();
  if (rule.empty()) {
    if (given != rank && given != 1)
      throw ShapeError(
          fmt::format("{}: {} of padding for {}. There is one pair for each of them, or one for all. Add or "
                      "remove widths.",
                      function, count_text(given, "width"), count_text(rank, "spatial dimension")));
    return given == rank ? padding.widths() : Widths(rank, padding.widths()[0]);
  }
  Widths r;
  for (std::size_t d = 0; d < rank; d++) {
    const std::int64_t windows = sizes[d] / strides[d] + (sizes[d] % strides[d] != 0),
                       wanted = windows == 0 ? 0 : add_sizes(mul_sizes(windows - 1, strides[d]), reaches[d]),
                       missing = rule == "VALID" ? 0 : std::max<std::int64_t>(0, wanted - sizes[d]),
                       less = missing / 2, more = missing - less;
    r.emplace_back(rule == "SAME" ? std::pair(less, more) : std::pair(more, less));
  }
  return r;
}

Array surrounded(const char* function, const Array& x, const Shape& dims, const Widths& widths,
                 const Shape& dilation, std::uint64_t bits) {
  const std::size_t rank = x.shape().size();
  Shape wide = x.shape(), step = Shape::filled(rank, 1);
  const Shape no_width = Shape::filled(rank, 0);
  for (std::size_t k = 0; k < dims.size(); k++) {
    const auto d = static_cast<std::size_t>(dims[k]);
    step[d] = dilation[k];
    wide[d] = reach(wide[d], dilation[k]);
  }
  Shape from = no_width, to = wide, before = no_width, behind = no_width;
  for (std::size_t k = 0; k < dims.size(); k++) {
    const auto d = static_cast<std::size_t>(dims[k]);
    const auto [lo, hi] = widths[k];
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (lo > most || hi > most || lo < -most || hi < -most || wide[d] > byte_limit || wide[d] + lo + hi < 0)
      throw ShapeError(
          fmt::format("{}: padding {} and {} of {}. What is left is not negative, and a size is at most "
                      "2^40. Correct the widths.",
                      function, lo, hi, count_text(wide[d], "element")));
    before[d] = std::max<std::int64_t>(lo, 0);
    behind[d] = std::max<std::int64_t>(hi, 0);
    // negative widths may remove padding of the other side
    from[d] = std::min(wide[d], std::max<std::int64_t>(-lo, 0));
    to[d] = std::max(from[d], wide[d] - std::max<std::int64_t>(-hi, 0));
    const std::int64_t rest = wide[d] + lo + hi - (before[d] + (to[d] - from[d]) + behind[d]);
    if (hi < 0) before[d] += rest;
    else behind[d] += rest;
  }
  const Array apart = step == Shape::filled(rank, 1) ? x : primitive::embed(x, no_width, step, wide);
  return primitive::pad(primitive::slice(apart, from, to), before, behind, bits);
}

}  // namespace shardarray::windows
