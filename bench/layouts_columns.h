// The columns of a table of layouts, in the terminal and in Markdown files.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "layouts_results.h"

namespace bench {

// Three digits: `4.19 MB`, `268 M`.
inline std::string amount(double v, const char* unit) {
  if (v == 0) return "0";
  const char* const prefix[] = {"", "K", "M", "G", "T", "P"};
  std::size_t k = 0;
  while (v >= 999.5 && k < 5) v /= 1000, k++;
  const std::string name = std::string(prefix[k]) + unit;
  return fmt::format("{:.3g}{}{}", v, name.empty() ? "" : " ", name);
}
inline std::string times_least(const LayoutRow& r) {
  if (std::isinf(r.least.bytes)) return "-";  // no known strategy computes so little
  if (r.bytes <= r.least.bytes + 1)
    return r.bytes < 0.99 * r.least.bytes ? fmt::format("{:.2f}", r.bytes / r.least.bytes) : "1";
  return r.least.bytes == 0 ? "inf" : fmt::format("{:.2f}", r.bytes / r.least.bytes);
}
inline std::string seconds_or_dash(double seconds) { return seconds > 0 ? time_text(seconds) : "-"; }
inline std::string cut_text(const LayoutResults& x, const LayoutRow& r, char matrix) {
  if (matrix == 'C' && !r.c_spelling.empty()) return r.c_spelling;
  if (matrix == 'V') return r.layout.v ? to_text(*r.layout.v, x.product.mesh) : "-";
  return to_text(matrix == 'A' ? r.layout.a : matrix == 'B' ? r.layout.b : r.layout.c, x.product.mesh);
}

struct LayoutColumn {
  const char* heading;
  bool right;  ///< the alignment of the text
  std::string (*text)(const LayoutResults& x, const LayoutRow& r);
};

inline constexpr std::array layout_columns{
    LayoutColumn{"A", false, [](const LayoutResults& x, const LayoutRow& r) { return cut_text(x, r, 'A'); }},
    LayoutColumn{"B", false, [](const LayoutResults& x, const LayoutRow& r) { return cut_text(x, r, 'B'); }},
    LayoutColumn{"V", false, [](const LayoutResults& x, const LayoutRow& r) { return cut_text(x, r, 'V'); }},
    LayoutColumn{"C", false, [](const LayoutResults& x, const LayoutRow& r) { return cut_text(x, r, 'C'); }},
    LayoutColumn{"collectives", false,
                 [](const LayoutResults&, const LayoutRow& r) {
                   return r.collectives.empty() ? "none" : r.collectives;
                 }},
    LayoutColumn{"bytes/dev", true,
                 [](const LayoutResults&, const LayoutRow& r) { return amount(r.bytes, "B"); }},
    LayoutColumn{"least", true, [](const LayoutResults&, const LayoutRow& r) { return times_least(r); }},
    LayoutColumn{"FLOP/dev", true,
                 [](const LayoutResults&, const LayoutRow& r) { return amount(r.flops, ""); }},
    LayoutColumn{"memory", true,
                 [](const LayoutResults&, const LayoutRow& r) { return amount(r.memory, "B"); }},
    LayoutColumn{"floor", true,
                 [](const LayoutResults& x, const LayoutRow& r) { return seconds_or_dash(x.floor(r)); }},
    LayoutColumn{"t_lo", true,
                 [](const LayoutResults&, const LayoutRow& r) { return seconds_or_dash(r.overlapped()); }},
    LayoutColumn{"t_hi", true,
                 [](const LayoutResults&, const LayoutRow& r) { return seconds_or_dash(r.predicted()); }},
    LayoutColumn{"time", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.timed ? time_text(x.seconds(r)) : std::string("-");
                 }},
    LayoutColumn{"+-%", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.timed ? fmt::format("{:.1f}", 100 * x.spread(r)) : std::string("-");
                 }},
    LayoutColumn{"p99", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.timed ? time_text(percentile_99(x.timed(r))) : std::string("-");
                 }},
    LayoutColumn{"/t_hi", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.timed && r.predicted() > 0 ? fmt::format("{:.2f}", x.seconds(r) / r.predicted())
                                                       : std::string("-");
                 }},
    LayoutColumn{
        "GFLOP/s", true,
        [](const LayoutResults& x, const LayoutRow& r) { return fmt::format("{:.1f}", x.gflops(r)); }},
    LayoutColumn{"peak", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return x.rates.flops > 0 ? fmt::format("{:.0f}%", 100 * x.peak_share(r))
                                            : std::string("-");
                 }},
    LayoutColumn{"busbw", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.bytes > 0 ? fmt::format("{:.2f} GB/s", r.bytes / x.seconds(r) / 1e9)
                                      : std::string("-");
                 }},
    LayoutColumn{"bound", false, [](const LayoutResults& x, const LayoutRow& r) { return x.bound(r); }},
    LayoutColumn{"shared", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.shared ? time_text(x.cases[*r.shared].time()) : std::string("-");
                 }},
    LayoutColumn{"wins", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.shared ? fmt::format("{:.2f}x", ratio(x.timed(r), x.cases[*r.shared]))
                                   : std::string("-");
                 }},
    LayoutColumn{"JAX", true,
                 [](const LayoutResults&, const LayoutRow& r) { return seconds_or_dash(r.jax); }},
    LayoutColumn{"/JAX", true,
                 [](const LayoutResults& x, const LayoutRow& r) {
                   return r.jax > 0 && r.timed ? fmt::format("{:.3f}", x.seconds(r) / r.jax)
                                               : std::string("-");
                 }},
};

/// The columns with these headings. Throws std::invalid_argument for unknown ones.
inline std::vector<LayoutColumn> columns_named(const std::vector<std::string>& headings) {
  std::vector<LayoutColumn> out;
  for (const std::string& heading : headings) {
    const auto found = std::ranges::find(layout_columns, heading,
                                         [](const LayoutColumn& c) { return std::string_view(c.heading); });
    if (found == layout_columns.end()) {
      std::string all;
      for (const LayoutColumn& c : layout_columns)
        all += fmt::format("{}{}", all.empty() ? "" : ",", c.heading);
      throw std::invalid_argument(
          fmt::format("--columns: there is no column '{}'. Write some of {}.", heading, all));
    }
    out.push_back(*found);
  }
  return out;
}
/// The columns without --columns.
inline std::vector<std::string> usual_columns(const LayoutResults& x) {
  std::vector<std::string> names{"A", "B", "C", "collectives", "bytes/dev", "least", "FLOP/dev"};
  const auto add = [&](std::initializer_list<const char*> more) {
    names.insert(names.end(), more.begin(), more.end());
  };
  if (x.product.chain) names.insert(names.begin() + 2, "V");
  if (x.measured()) add({"floor", "t_hi", "time", "+-%", "/t_hi", "peak", "bound"});
  else add({"memory", "t_lo", "t_hi", "bound"});
  if (x.o.share) add({"shared", "wins"});
  if (!x.o.jax.empty()) add({"JAX", "/JAX"});
  return names;
}

}  // namespace bench
