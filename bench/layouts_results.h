// The results of matmul_layouts, how well they were predicted, and how far the C's that the library picks are from the best.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "bench.h"
#include "layouts_options.h"
#include "strategies.h"

namespace bench {

struct LayoutRow {
  ProductLayout layout;
  bool picked = false;  ///< C is the library's choice, or equals it
  std::string name, collectives, short_collectives;
  std::string result;           ///< the type of C, as from type_string()
  std::string c_spelling;       ///< for a C that is none of the cuts
  double flops = 0, bytes = 0;  ///< of the busiest device
  double moved = 0;             ///< by all devices
  double memory = 0;            ///< peak of the busiest device, operands included
  double math = 0, comm = 0;    ///< seconds of steps and of transfers, by the machine's rates
  Strategy least;               ///< the fewest bytes with no more flops
  std::vector<Strategy> known;
  std::optional<std::size_t> timed, shared;  ///< cases; shared: only with --share-replicas
  double jax = 0;                            ///< JAX's seconds; 0: not measured
  /// Times by the machine's rates, if arithmetic and transfers overlap completely, and if not at all. A model, no bounds: a measured
  /// time can be shorter.
  double overlapped() const { return std::max(math, comm); }
  double predicted() const { return math + comm; }
  bool same_plan(const LayoutRow& o) const {
    return collectives == o.collectives && flops == o.flops && bytes == o.bytes && moved == o.moved;
  }
};

/// Everything that was measured, or predicted.
struct LayoutResults {
  LayoutOptions o;
  Product product;
  std::vector<Case> cases;
  std::vector<LayoutRow> rows;
  std::string machine;             ///< what it ran on
  std::vector<std::size_t> peaks;  ///< cases of multiply-adds
  std::optional<std::size_t>
      one_device;  ///< the case of this product by the library, on one device with all workers
  std::optional<std::size_t> blas;  ///< the same by the BLAS
  std::size_t copies = 0;           ///< the case of copies
  double copied = 0;                ///< bytes in one call of it
  std::string blas_library;         ///< as blas_library()
  int workers = 1;
  double load = -1;  ///< before the run; negative: unknown
  Rates rates;       ///< best of the run
  std::string peak_name;
  std::optional<std::size_t> peak;  ///< the fastest of `peaks`
  std::size_t not_measured = 0;     ///< layouts that --measure left out

  bool measured() const { return !rows.empty() && rows.front().timed.has_value(); }
  /// The best rates of the run.
  void find_rates() {
    for (const std::size_t p : peaks) {
      const double flops = cases[p].options.flops / best(p);
      if (flops > rates.flops) rates.flops = flops, peak = p, peak_name = cases[p].name;
    }
    rates.bytes = copied / best(copies);
  }
  /// Sorts the rows by predicted time, equal ones by memory.
  void sort_by_prediction() {
    sort_by([](const LayoutRow& r) { return std::pair(r.predicted(), r.memory); });
  }
  /// Sorts the rows by measured time, if there is one.
  void sort() {
    if (!measured()) return sort_by_prediction();
    sort_by([&](const LayoutRow& r) { return seconds(r); });
  }
  const Case& timed(const LayoutRow& r) const { return cases[*r.timed]; }
  /// Measured, otherwise predicted.
  double seconds(const LayoutRow& r) const { return r.timed ? timed(r).time() : r.predicted(); }
  double spread(const LayoutRow& r) const { return r.timed ? timed(r).spread() : 0; }
  double gflops(const LayoutRow& r) const { return product.flops() / seconds(r) / 1e9; }
  double peak_share(const LayoutRow& r) const { return product.flops() / seconds(r) / rates.flops; }
  double best(std::size_t index) const {
    return *std::min_element(cases[index].seconds.begin(), cases[index].seconds.end());
  }
  std::string bound(const LayoutRow& r) const;
  /// A sign that other programs were running; empty: none.
  std::string disturbed() const {
    constexpr double quiet = 0.1;  // spread of the pure multiply-adds
    if (load >= workers) return "other programs were running";
    const double peak_spread = peak ? cases[*peak].spread() : 0;
    return peak_spread > quiet
               ? fmt::format("other programs were running (the peak spreads by {:.0f} %)", 100 * peak_spread)
               : "";
  }
  /// The least seconds of the best known strategy; 0: there is no peak.
  double floor(const LayoutRow& r) const {
    return rates.flops > 0 ? floor_seconds(r.known, rates, product.devices()) : 0;
  }

 private:
  template <class Key> void sort_by(const Key& key) { std::ranges::stable_sort(rows, {}, key); }
};

/// `all_gather` -> `ag`.
inline std::string initials(const std::string& kind) {
  const std::size_t second = kind.find('_');
  return second == kind.npos ? kind.substr(0, 2) : std::string{kind[0], kind[kind.rfind('_') + 1]};
}

/// OpenBLAS's version and the name of its kernels, from openblas_get_config: the name comes after its settings and before those of
/// threads. Empty for another library.
inline std::string blas_library(const std::string& config) {
  std::vector<std::string> words;
  std::istringstream text(config);
  for (std::string word; text >> word;)
    if (!word.starts_with("MAX_THREADS") && word != "SINGLE_THREADED") words.push_back(word);
  if (words.size() < 3 || words[0] != "OpenBLAS") return "";
  return fmt::format("OpenBLAS {}, {}", words[1], words.back());
}

/// What takes most of a row's time.
inline std::string LayoutResults::bound(const LayoutRow& r) const {
  if (r.predicted() == 0) return "-";
  const double rest = seconds(r) - r.predicted();
  return rest > r.overlapped() ? "overhead" : r.comm > r.math ? "comm" : "math";
}

/// The 99th percentile of the samples; with fewer than 100 the slowest.
inline double percentile_99(const Case& c) {
  std::vector<double> v = c.seconds;
  std::sort(v.begin(), v.end());
  return v[(v.size() * 99 + 99) / 100 - 1];
}

/// How well times were predicted. The fastest by prediction is the one with the least predicted time, then the least memory; of several
/// such the slowest.
struct Prediction {
  double correlation = 0;   ///< Spearman's rank correlation: 1 if the order is the measured one
  double median_error = 0;  ///< of the predicted seconds, relative to the measured ones
  std::size_t first = 0;    ///< the row that is predicted to be the fastest
  std::size_t alike = 0;    ///< rows with the same prediction and memory, itself included
  double regret = 0;        ///< its excess over the fastest time, relative to that
};

/// Ranks from 1; equal values share the mean of theirs.
inline std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t k) { return values[k]; });
  std::vector<double> out(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && values[order[end]] == values[order[begin]]) end++;
    for (std::size_t k = begin; k < end; k++) out[order[k]] = static_cast<double>(begin + end + 1) / 2;
  }
  return out;
}
/// Spearman's rank correlation. 0 if one of both is constant.
inline double rank_correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const std::vector<double> a = ranks(x), b = ranks(y);
  const double mean = static_cast<double>(x.size() + 1) / 2;
  double both = 0, left = 0, right = 0;
  for (std::size_t k = 0; k < a.size(); k++) {
    both += (a[k] - mean) * (b[k] - mean);
    left += (a[k] - mean) * (a[k] - mean);
    right += (b[k] - mean) * (b[k] - mean);
  }
  return left == 0 || right == 0 ? 0 : both / std::sqrt(left * right);
}
/// For rows sorted by time; none if nothing was measured or nothing predicted.
inline std::optional<Prediction> prediction(const LayoutResults& x) {
  if (!x.measured() || x.rows.front().predicted() == 0) return {};
  std::vector<double> predicted, seconds, errors;
  std::pair<double, double> least{HUGE_VAL, 0};
  Prediction p;
  for (std::size_t k = 0; k < x.rows.size(); k++) {
    const LayoutRow& r = x.rows[k];
    predicted.push_back(r.predicted());
    seconds.push_back(x.seconds(r));
    errors.push_back(std::abs(predicted.back() - seconds.back()) / seconds.back());
    const std::pair cost(r.predicted(), r.memory);
    if (cost > least) continue;
    p.alike = cost == least ? p.alike + 1 : 1;
    p.first = k;
    least = cost;
  }
  p.correlation = rank_correlation(predicted, seconds);
  p.median_error = median(errors);
  p.regret = seconds[p.first] / seconds.front() - 1;
  return p;
}

/// The C that the library picks for one layout of A and B.
struct Choice {
  std::size_t picked = 0, best = 0;  ///< rows; best: the fastest with this A and B
  std::size_t measured = 0;          ///< rows with this A and B
  double ratio = 1;                  ///< of the times, picked / best
  bool tie = false;                  ///< the difference is within the spreads
};
/// The choices for which other C's were measured too, worst first. The rows are sorted by time.
inline std::vector<Choice> choices(const LayoutResults& x) {
  std::vector<Choice> out;
  for (std::size_t p = 0; p < x.rows.size(); p++) {
    if (!x.rows[p].picked) continue;
    Choice choice{.picked = p, .best = x.rows.size()};
    for (std::size_t k = 0; k < x.rows.size(); k++) {
      const ProductLayout& other = x.rows[k].layout;
      if (other.a != x.rows[p].layout.a || other.b != x.rows[p].layout.b || other.v != x.rows[p].layout.v)
        continue;
      choice.best = std::min(choice.best, k);
      choice.measured++;
    }
    if (choice.measured < 2) continue;
    const LayoutRow &own = x.rows[p], &best = x.rows[choice.best];
    choice.ratio = x.seconds(own) / x.seconds(best);
    choice.tie =
        x.seconds(own) - x.seconds(best) <= x.spread(own) * x.seconds(own) + x.spread(best) * x.seconds(best);
    out.push_back(choice);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Choice& a, const Choice& b) { return a.ratio > b.ratio; });
  return out;
}

}  // namespace bench
