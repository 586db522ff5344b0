// What matmul_layouts has measured, and how far the C's that the library picks are from the best.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "bench.h"
#include "layouts_options.h"
#include "strategies.h"

namespace bench {

struct LayoutRow {
  ProductLayout layout;
  bool picked = false;  ///< C is, or is as, the library's own choice
  std::string name, collectives, short_collectives;
  std::string c_spelling;       ///< of a C that is none of the cuts
  double flops = 0, bytes = 0;  ///< of the busiest device
  double moved = 0;             ///< by all devices
  Strategy least;               ///< the fewest bytes with no more flops
  std::vector<Strategy> known;
  std::size_t timed = 0, shared = 0;  ///< cases; shared: only with --share-replicas
  bool same_plan(const LayoutRow& o) const {
    return collectives == o.collectives && flops == o.flops && bytes == o.bytes && moved == o.moved;
  }
};

/// Everything that was measured.
struct LayoutResults {
  LayoutOptions o;
  Product product;
  std::vector<Case> cases;
  std::vector<LayoutRow> rows;
  std::string machine;              ///< what computes
  std::vector<std::size_t> peaks;   ///< cases of multiply-adds
  std::optional<std::size_t> blas;  ///< the case of the BLAS, on a GPU of one device
  std::size_t copies = 0;           ///< the case of copies
  double copied = 0;                ///< bytes in one call of it
  int workers = 1;
  double load = -1;  ///< before the run; negative: unknown
  Rates rates;       ///< best of the run
  std::string peak_name;

  /// The best rates of the run, and the rows by time.
  void close() {
    for (const std::size_t p : peaks) {
      const double flops = cases[p].options.flops / best(p);
      if (flops > rates.flops) rates.flops = flops, peak_name = cases[p].name;
    }
    rates.bytes = copied / best(copies);
    std::stable_sort(rows.begin(), rows.end(), [&](const LayoutRow& a, const LayoutRow& b) {
      return timed(a).time() < timed(b).time();
    });
  }
  const Case& timed(const LayoutRow& r) const { return cases[r.timed]; }
  double seconds(const LayoutRow& r) const { return timed(r).time(); }
  double gflops(const LayoutRow& r) const { return product.flops() / seconds(r) / 1e9; }
  double peak_share(const LayoutRow& r) const { return product.flops() / seconds(r) / rates.flops; }
  double predicted(const LayoutRow& r) const {
    return predicted_seconds(rates, r.flops * product.devices(), r.moved);
  }
  double best(std::size_t index) const {
    return *std::min_element(cases[index].seconds.begin(), cases[index].seconds.end());
  }
  std::string bound(const LayoutRow& r) const;
  /// Seconds that the best known strategy needs at least; 0: there is no peak.
  double floor(const LayoutRow& r) const {
    return rates.flops > 0 ? floor_seconds(r.known, rates, product.devices()) : 0;
  }
};

/// What takes most of a row's time.
inline std::string LayoutResults::bound(const LayoutRow& r) const {
  if (rates.flops == 0) return "-";
  const double math = r.flops * product.devices() / rates.flops, comm = r.moved / rates.bytes,
               rest = seconds(r) - math - comm;
  return rest > std::max(math, comm) ? "overhead" : comm > math ? "comm" : "math";
}

/// The C that the library picks for A and B laid out so.
struct Choice {
  std::size_t picked = 0, best = 0;  ///< rows; best: the fastest with this A and B
  std::size_t measured = 0;          ///< rows with this A and B
  double ratio = 1;                  ///< of the times, picked / best
  bool tie = false;                  ///< no further apart than both spread
};
/// Those of which other C's were measured too, worst first. The rows stand by time.
inline std::vector<Choice> choices(const LayoutResults& x) {
  std::vector<Choice> out;
  for (std::size_t p = 0; p < x.rows.size(); p++) {
    if (!x.rows[p].picked) continue;
    Choice choice{.picked = p, .best = x.rows.size()};
    for (std::size_t k = 0; k < x.rows.size(); k++) {
      const ProductLayout& other = x.rows[k].layout;
      if (other.a != x.rows[p].layout.a || other.b != x.rows[p].layout.b) continue;
      choice.best = std::min(choice.best, k);
      choice.measured++;
    }
    if (choice.measured < 2) continue;
    const Case &own = x.timed(x.rows[p]), &best = x.timed(x.rows[choice.best]);
    choice.ratio = own.time() / best.time();
    choice.tie = own.time() - best.time() <= own.spread() * own.time() + best.spread() * best.time();
    out.push_back(choice);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Choice& a, const Choice& b) { return a.ratio > b.ratio; });
  return out;
}

}  // namespace bench
