// The results of matmul_layouts as a table with notes.
#pragma once
#include <cmath>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "layouts_code.h"
#include "layouts_table.h"

namespace bench {

/// Results as text; the table's lines have `width` characters.
class Report {
 public:
  explicit Report(const LayoutResults& x, std::size_t width = kUsualWidth) : x_(x) {
    print_machine();
    text_ += LayoutTable(x_).text(width);
    print_notes();
  }
  const std::string& text() const { return text_; }

 private:
  template <class... T> void print(fmt::format_string<T...> format, T&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(args)...);
  }
  void print_machine();
  void print_product(const char* name, std::optional<std::size_t> index, const std::string& what);
  void print_rates();
  void print_notes();
  void print_measured();
  void print_prediction();
  void print_crossover();
  void print_choices();
  std::string choice_text(const Choice& c) const;
  template <class Better, class Ratio>
  void print_losing(const char* title, const Better& better, const Ratio& ratio);

  const LayoutResults& x_;
  std::string text_;
};

// The type in which products of these elements are computed.
inline std::string computed_in(const ElementType& t) {
  return t.half() ? fmt::format(" of {}, in which {} is computed", shardarray::short_name(t.sums), t.name)
                  : "";
}
// Units that the peak leaves out: faster ones for bf16, which the library does not use.
inline std::string units_left_out([[maybe_unused]] const ElementType& t) {
#if defined(__x86_64__)
  if (t.dtype == shardarray::bfloat16 && __builtin_cpu_supports("avx512bf16"))
    return " (not this CPU's units for bf16, which are faster)";
#endif
  return "";
}

inline void Report::print_machine() {
  print("C[{},{}] = A[{},{}] B[{},{}]{} {} on {} {} devices, mesh {}; {}{}\n", x_.o.m, x_.product.columns(),
        x_.o.m, x_.o.k, x_.o.k, x_.o.n, x_.o.chain ? fmt::format(" V[{},{}]", x_.o.n, x_.o.k) : "",
        x_.o.dtype, x_.product.devices(), x_.o.kind_of_devices(), x_.o.mesh, x_.machine,
        x_.load >= 0 ? fmt::format(", load {:.1f} at start", x_.load) : "");
  if (x_.o.described()) {
    print("predicted from the machine's numbers; nothing was measured\n\n");
    return;
  }
  if (const std::string why = x_.disturbed(); !why.empty()) print("{}: these times are disturbed\n", why);
  print_rates();
  print("replicas      {}\n\n",
        x_.o.share ? "separate memories and work; column `shared`: one memory, computed once"
                   : "separate memories and work (sharing is off; --share-replicas shows what it wins)");
}

inline void Report::print_product(const char* name, std::optional<std::size_t> index,
                                  const std::string& what) {
  if (!index) return;
  const Case& c = x_.cases[*index];
  const double best = x_.best(*index);
  print("{:<13} {:8.1f} GFLOP/s  {} on one device{}: median {}, best {}{}\n", name,
        c.options.flops / c.time() / 1e9, what, x_.o.cuda() ? "" : ", all workers", time_text(c.time()),
        time_text(best),
        x_.rates.flops > 0 ? fmt::format(" ({:.0f} % of peak)", 100 * c.options.flops / best / x_.rates.flops)
                           : "");
}

inline void Report::print_rates() {
  const bool cuda = x_.o.cuda();
  const ElementType& type = x_.o.type();
  if (x_.rates.flops > 0)
    print("peak          {:8.1f} GFLOP/s  {}, best of this run\n", x_.rates.flops / 1e9,
          cuda ? x_.peak_name
               : fmt::format("multiply-adds{}, in registers, {}, all workers{}", computed_in(type),
                             x_.peak_name, units_left_out(type)));
  else print("peak          not measured: there is no multiply-add loop for this CPU, so no share of peak\n");
  print_product("one device", x_.one_device,
                x_.o.chain ? "A B by the library" : "this product by the library");
  print_product(
      "BLAS", x_.blas,
      fmt::format("{}{} by the BLAS{}", x_.o.chain ? "A B" : "this product", type.half() ? " in f32" : "",
                  x_.blas_library.empty() ? "" : " (" + x_.blas_library + ")"));
  print("copies        {:8.1f} GB/s     {} by all devices, one matrix each, best of this run\n",
        x_.rates.bytes / 1e9, cuda ? "read, doubled and written" : "received");
}

// For each A and B with several measured C's: the library's choice and the fastest.
inline void Report::print_choices() {
  constexpr std::size_t kMost = 12;
  if (std::none_of(x_.rows.begin(), x_.rows.end(), [](const LayoutRow& r) { return r.picked; })) return;
  print("\na: the C that the library picks for this A and B where nothing asks for another\n");
  const std::vector<Choice> all = choices(x_);
  for (std::size_t k = 0; k < std::min(kMost, all.size()); k++) print("  {}\n", choice_text(all[k]));
  if (all.size() > kMost)
    print("  and {} more, down to {:.2f} times\n", all.size() - kMost, all.back().ratio);
}
inline std::string Report::choice_text(const Choice& c) const {
  const LayoutRow &own = x_.rows[c.picked], &best = x_.rows[c.best];
  const auto cost = [](const LayoutRow& r) {
    return fmt::format("{} and {} flops", amount(r.bytes, "B"), amount(r.flops, ""));
  };
  std::string text =
      fmt::format("A {}, B {}{}: it picks C {} (#{})", cut_text(x_, own, 'A'), cut_text(x_, own, 'B'),
                  own.layout.v ? ", V " + cut_text(x_, own, 'V') : "", cut_text(x_, own, 'C'), c.picked + 1);
  if (c.picked == c.best) return text + fmt::format(", the fastest of {}", c.measured);
  return text +
         fmt::format(", {:.2f} times the time of {} (#{}), the fastest of {}{}; {} a device, against {}",
                     c.ratio, cut_text(x_, best, 'C'), c.best + 1, c.measured,
                     c.tie ? ", and within their spreads" : "", cost(own), cost(best));
}

inline void Report::print_notes() {
  if (x_.measured()) print_measured();
  print_prediction();
  print_choices();
  if (!x_.o.chain) print_crossover();
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
  print("\nthe first one as code, behind #include <shardarray/shardarray.h>:\n{}", code(x_, x_.rows.front()));
}

inline void Report::print_measured() {
  std::vector<double> first;
  for (const LayoutRow& r : x_.rows) first.push_back(x_.timed(r).first);
  print(
      "\n{} layout{}; every piece of every result is exact{}\n"
      "first calls (plan, compile, run, check) take {} in the median\n",
      x_.rows.size(), x_.rows.size() == 1 ? "" : "s", x_.o.type().half() ? ", but for one rounding" : "",
      time_text(median(first)));
}

// How well t_hi predicts the order and the times.
inline void Report::print_prediction() {
  const std::optional<Prediction> p = prediction(x_);
  if (!p || x_.rows.size() < 2) return;
  print(
      "t_hi: ranks correlate with the measured ones by {:.2f}, its error is {:.0f} % in the median\n"
      "the fastest by t_hi is {} (#{}{}), {:.1f} % slower than the fastest measured\n",
      p->correlation, 100 * p->median_error, x_.rows[p->first].name, p->first + 1,
      p->alike > 1 ? fmt::format(", the slowest of {} alike", p->alike) : "", 100 * p->regret);
}

inline void Report::print_crossover() {
  const double by_bytes = crossover_m(x_.product, {}),
               by_time = x_.rates.flops > 0 ? crossover_m(x_.product, x_.rates) : 0;
  auto from = [](double m) {
    return std::isfinite(m) ? fmt::format("from m = {:.0f} on", std::ceil(m)) : std::string("at no m");
  };
  print("\nB cut along k, A and C whole: gathering B moves less than all-reducing partial products {}",
        from(by_bytes));
  if (x_.rates.flops > 0)
    print(";\nby the rates above, the repeated work included, it is faster {}", from(by_time));
  print(". Here m = {}.\n", x_.o.m);
}

// The layouts whose plans are worse than `better(row)` by more than 5 % in `ratio`, worst first.
template <class Better, class Ratio>
void Report::print_losing(const char* title, const Better& better, const Ratio& ratio) {
  constexpr std::size_t kMost = 12;
  std::vector<std::pair<double, const LayoutRow*>> losing;
  for (const LayoutRow& r : x_.rows)
    if (const double times = ratio(r, better(r)); times > 1.05) losing.emplace_back(times, &r);
  if (losing.empty()) return;
  std::stable_sort(losing.begin(), losing.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  print("\n{}: {}\n", title, losing.size());
  for (std::size_t k = 0; k < std::min(kMost, losing.size()); k++) {
    const LayoutRow& r = *losing[k].second;
    const Strategy s = better(r);
    print("  {}  {:.2f}x: {} and {} flops per device, {}; known: {} and {}{}\n", r.name, losing[k].first,
          amount(r.bytes, "B"), amount(r.flops, ""), r.collectives.empty() ? "no transfer" : r.collectives,
          amount(s.bytes, "B"), amount(s.flops, ""), s.where.empty() ? "" : " with " + s.where);
  }
  if (losing.size() > kMost) print("  and {} more\n", losing.size() - kMost);
}

}  // namespace bench
