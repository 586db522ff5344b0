// What matmul_layouts has measured, as a table with notes.
#pragma once
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "layouts_results.h"

namespace bench {

constexpr std::size_t kTableWidth = 112;

/// Prints results.
class Report {
 public:
  explicit Report(const LayoutResults& x) : x_(x) {}
  void print() const {
    print_machine();
    print_table();
    print_notes();
  }

 private:
  using Widths = std::array<std::size_t, 4>;  // of A, B, C and the collectives
  std::string cut_text(const LayoutRow& r, std::size_t matrix) const;
  Widths widths(std::size_t shown) const;
  std::string table_line(std::size_t index, const Widths& w) const;
  void print_machine() const;
  void print_rates() const;
  void print_table() const;
  void print_notes() const;
  void print_choices() const;
  std::string choice_text(const Choice& c) const;
  template <class Better, class Ratio>
  void print_losing(const char* title, const Better& better, const Ratio& ratio) const;

  const LayoutResults& x_;
};

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
  if (r.bytes <= r.least.bytes + 1)
    return r.bytes < 0.99 * r.least.bytes ? fmt::format("{:.2f}", r.bytes / r.least.bytes) : "1";
  return r.least.bytes == 0 ? "inf" : fmt::format("{:.2f}", r.bytes / r.least.bytes);
}

// What products of these elements are made of.
inline std::string computed_in(const ElementType& t) {
  return t.half() ? fmt::format(" of {}, in which {} is computed", shardarray::short_name(t.sums), t.name)
                  : "";
}
// What the peak leaves out: units that multiply bf16 faster than float32, which the library does not use.
inline std::string units_left_out([[maybe_unused]] const ElementType& t) {
#if defined(__x86_64__)
  if (t.dtype == shardarray::bfloat16 && __builtin_cpu_supports("avx512bf16"))
    return " (not this CPU's units for bf16, which are faster)";
#endif
  return "";
}

inline void Report::print_machine() const {
  fmt::print("C[{},{}] = A[{},{}] B[{},{}] {} on {} {} devices, mesh {}; {}{}\n", x_.o.m, x_.o.n, x_.o.m,
             x_.o.k, x_.o.k, x_.o.n, x_.o.dtype, x_.product.devices(),
             x_.o.cuda() ? "logical CUDA" : "virtual CPU", x_.o.mesh, x_.machine,
             x_.load >= 0 ? fmt::format(", load {:.1f} at start", x_.load) : "");
  if (x_.load >= x_.workers) fmt::print("other programs were running: these times are disturbed\n");
  print_rates();
  fmt::print("replicas      {}\n\n",
             x_.o.share ? "separate memories and work; column `shared`: one memory, computed once"
                        : "separate memories and work (sharing is off; --share-replicas shows what it wins)");
}

inline void Report::print_rates() const {
  const bool cuda = x_.o.cuda();
  const ElementType& type = x_.o.type();
  if (x_.rates.flops > 0)
    fmt::print("peak          {:8.1f} GFLOP/s  {}, best of this run\n", x_.rates.flops / 1e9,
               cuda ? x_.peak_name
                    : fmt::format("multiply-adds{}, in registers, {}, all workers{}", computed_in(type),
                                  x_.peak_name, units_left_out(type)));
  else
    fmt::print(
        "peak          not measured: there is no multiply-add loop for this CPU, so no share of peak\n");
  if (x_.blas) {
    const Case& c = x_.cases[*x_.blas];
    const double best = x_.best(*x_.blas);
    fmt::print("{:<13} {:8.1f} GFLOP/s  this product{} on one device{}: median {}, best {}{}\n",
               cuda ? "one device" : "BLAS", x_.product.flops() / c.time() / 1e9,
               cuda || !type.half() ? "" : " in f32", cuda ? "" : ", all workers", time_text(c.time()),
               time_text(best),
               x_.rates.flops > 0
                   ? fmt::format(" ({:.0f} % of peak)", 100 * x_.product.flops() / best / x_.rates.flops)
                   : "");
  }
  fmt::print("copies        {:8.1f} GB/s     {} by all devices, one matrix each, best of this run\n",
             x_.rates.bytes / 1e9, cuda ? "read, doubled and written" : "received");
}

inline std::string Report::cut_text(const LayoutRow& r, std::size_t matrix) const {
  const ProductLayout& l = r.layout;
  if (matrix == 2 && !r.c_spelling.empty()) return r.c_spelling;
  return to_text(matrix == 0 ? l.a : matrix == 1 ? l.b : l.c, x_.product.mesh);
}

inline Report::Widths Report::widths(std::size_t shown) const {
  Widths w{1, 1, 1, 11};
  for (std::size_t k = 0; k < shown; k++) {
    for (std::size_t i = 0; i < 3; i++) w[i] = std::max(w[i], cut_text(x_.rows[k], i).size());
    w[3] = std::max(w[3], x_.rows[k].collectives.size());
  }
  const std::size_t others = w[0] + w[1] + w[2] + 82 + (x_.o.share ? 17 : 0);
  w[3] = std::min(w[3], kTableWidth > others + 11 ? kTableWidth - others : 11);
  return w;
}

template <class... C> std::string table_columns(const C&... c) {
  return fmt::format(
      "{:>3}{:2} {:<{}} {:<{}} {:<{}} {:<{}} {:>9} {:>5} {:>8} {:>9} {:>9} {:>4} {:>7} {:>5} {}", c...);
}

inline std::string Report::table_line(std::size_t index, const Widths& w) const {
  const LayoutRow& r = x_.rows[index];
  std::string moves = r.collectives.size() <= w[3] ? r.collectives : r.short_collectives;
  if (moves.size() > w[3]) moves = moves.substr(0, w[3] - 3) + "...";
  const bool peak = x_.rates.flops > 0;
  std::string text = table_columns(
      index + 1, fmt::format("{}{}", index == 0 ? "*" : "", r.picked ? "a" : ""), cut_text(r, 0), w[0],
      cut_text(r, 1), w[1], cut_text(r, 2), w[2], moves.empty() ? "none" : moves, w[3], amount(r.bytes, "B"),
      times_least(r), amount(r.flops, ""), peak ? time_text(x_.floor(r)) : "-", time_text(x_.seconds(r)),
      fmt::format("{:.1f}", 100 * x_.timed(r).spread()), fmt::format("{:.1f}", x_.gflops(r)),
      peak ? fmt::format("{:.0f}%", 100 * x_.peak_share(r)) : "-", x_.bound(r));
  if (x_.o.share)
    text += fmt::format("{:>{}} {:>5.2f}x", time_text(x_.cases[r.shared].time()), 18 - x_.bound(r).size(),
                        ratio(x_.timed(r), x_.cases[r.shared]));
  return text;
}

inline void Report::print_table() const {
  const std::size_t shown =
      x_.o.top > 0 ? std::min(x_.rows.size(), static_cast<std::size_t>(x_.o.top)) : x_.rows.size();
  const Widths w = widths(shown);
  fmt::print("{}{}\n",
             table_columns("#", "", "A", w[0], "B", w[1], "C", w[2], "collectives", w[3], "bytes/dev",
                           "least", "FLOP/dev", "floor", "time", "+-%", "GFLOP/s", "peak", "bound"),
             x_.o.share ? "       shared   wins" : "");
  for (std::size_t k = 0; k < shown; k++) fmt::print("{}\n", table_line(k, w));
  if (shown < x_.rows.size()) fmt::print("... and {} slower ones\n", x_.rows.size() - shown);
}

// For each A and B of which several C's were measured: the library's own beside the fastest.
inline void Report::print_choices() const {
  constexpr std::size_t kMost = 12;
  if (std::none_of(x_.rows.begin(), x_.rows.end(), [](const LayoutRow& r) { return r.picked; })) return;
  fmt::print("\na: the C that the library picks for this A and B where nothing asks for another\n");
  const std::vector<Choice> all = choices(x_);
  for (std::size_t k = 0; k < std::min(kMost, all.size()); k++) fmt::print("  {}\n", choice_text(all[k]));
  if (all.size() > kMost)
    fmt::print("  and {} more, down to {:.2f} times\n", all.size() - kMost, all.back().ratio);
}
inline std::string Report::choice_text(const Choice& c) const {
  const LayoutRow &own = x_.rows[c.picked], &best = x_.rows[c.best];
  const auto cost = [](const LayoutRow& r) {
    return fmt::format("{} and {} flops", amount(r.bytes, "B"), amount(r.flops, ""));
  };
  std::string text = fmt::format("A {}, B {}: it picks C {} (#{})", cut_text(own, 0), cut_text(own, 1),
                                 cut_text(own, 2), c.picked + 1);
  if (c.picked == c.best) return text + fmt::format(", the fastest of {}", c.measured);
  return text +
         fmt::format(", {:.2f} times the time of {} (#{}), the fastest of {}{}; {} a device, against {}",
                     c.ratio, cut_text(best, 2), c.best + 1, c.measured,
                     c.tie ? ", and within their spreads" : "", cost(own), cost(best));
}

inline void Report::print_notes() const {
  double sum = 0, shared = 0;
  std::vector<double> first;
  for (const LayoutRow& r : x_.rows) {
    sum += x_.seconds(r);
    shared += x_.o.share ? x_.cases[r.shared].time() : 0;
    first.push_back(x_.timed(r).first);
  }
  fmt::print(
      "\n{} layout{}, sum of medians {}{}; every piece of every result is exact{}\n"
      "first calls (plan, compile, run, check) take {} in the median\n",
      x_.rows.size(), x_.rows.size() == 1 ? "" : "s", time_text(sum),
      x_.o.share ? fmt::format(", shared {}", time_text(shared)) : "",
      x_.o.type().half() ? ", but for one rounding" : "", time_text(median(first)));
  print_choices();
  fmt::print("\n");
  const double by_bytes = crossover_m(x_.product, {}),
               by_time = x_.rates.flops > 0 ? crossover_m(x_.product, x_.rates) : 0;
  auto from = [](double m) {
    return std::isfinite(m) ? fmt::format("from m = {:.0f} on", std::ceil(m)) : std::string("at no m");
  };
  fmt::print("B cut along k, A and C whole: gathering B moves less than all-reducing partial products {}",
             from(by_bytes));
  if (x_.rates.flops > 0)
    fmt::print(";\nby the rates above, the repeated work included, it is faster {}", from(by_time));
  fmt::print(". Here m = {}.\n", x_.o.m);
  print_losing(
      "plans that receive more than a known strategy with no more flops",
      [](const LayoutRow& r) { return r.least; },
      [](const LayoutRow& r, const Strategy& s) {
        return (r.bytes - s.bytes > 1 ? r.bytes : s.bytes) / std::max(s.bytes, 1.0);
      });
  if (x_.rates.flops > 0)
    print_losing(
        "plans that are slower than a known strategy by the rates above",
        [&](const LayoutRow& r) { return fastest(r.known, x_.rates, x_.product.devices()); },
        [&](const LayoutRow& r, const Strategy& s) {
          const Strategy plan{"", r.flops, r.bytes};
          return predicted_seconds(x_.rates, plan, x_.product.devices()) /
                 predicted_seconds(x_.rates, s, x_.product.devices());
        });
}

// The layouts whose plans are worse than `better(row)`, by more than a twentieth in `ratio`, worst first.
template <class Better, class Ratio>
void Report::print_losing(const char* title, const Better& better, const Ratio& ratio) const {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<double, const LayoutRow*>> losing;
  for (const LayoutRow& r : x_.rows)
    if (const double times = ratio(r, better(r)); times > 1.05) losing.emplace_back(times, &r);
  if (losing.empty()) return;
  std::stable_sort(losing.begin(), losing.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  fmt::print("\n{}: {}\n", title, losing.size());
  for (std::size_t k = 0; k < std::min(kMost, losing.size()); k++) {
    const LayoutRow& r = *losing[k].second;
    const Strategy s = better(r);
    fmt::print("  {}  {:.2f}x: {} and {} flops per device, {}; known: {} and {}{}\n", r.name, losing[k].first,
               amount(r.bytes, "B"), amount(r.flops, ""),
               r.collectives.empty() ? "no transfer" : r.collectives, amount(s.bytes, "B"),
               amount(s.flops, ""), s.where.empty() ? "" : " with " + s.where);
  }
  if (losing.size() > kMost) fmt::print("  and {} more\n", losing.size() - kMost);
}

}  // namespace bench
