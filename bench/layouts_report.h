// What matmul_layouts has measured, as a table, JSON and CSV.
#pragma once
#include <array>
#include <cmath>
#include <optional>

#include "bench.h"
#include "layouts.h"
#include "machine.h"

namespace bench {

constexpr std::size_t kTableWidth = 112;

struct LayoutOptions {
  std::string platform = "cpu", mesh = "x=8", dtype = "f32", json_file, csv_file;
  std::int64_t m = 1024, k = 1024, n = 1024;
  std::vector<std::string> layouts = {"all"};
  int top = 0, rounds = 9;
  double sample = 0.01;           // seconds
  std::int64_t peak_size = 8192;  // of the product that a GPU's peak is taken from
  bool share = false;
  bool cuda() const { return platform == "cuda"; }
};

struct LayoutRow {
  ProductLayout layout;
  std::string name, collectives, short_collectives;
  double flops = 0, bytes = 0;  // of the busiest device
  double moved = 0;             // by all devices
  Strategy least;               // the fewest bytes with no more flops
  std::vector<Strategy> known;
  std::size_t timed = 0, shared = 0;  // cases; shared: only with --share-replicas
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
  void close();
  const Case& timed(const LayoutRow& r) const { return cases[r.timed]; }
  double best(std::size_t index) const {
    return *std::min_element(cases[index].seconds.begin(), cases[index].seconds.end());
  }
};

/// Tells results.
class Report {
 public:
  explicit Report(const LayoutResults& x) : x_(x) {}
  void print() const {
    print_machine();
    print_table();
    print_notes();
  }
  void write_json() const;
  void write_csv() const;

 private:
  double seconds(const LayoutRow& r) const { return x_.timed(r).time(); }
  double gflops(const LayoutRow& r) const { return x_.product.flops() / seconds(r) / 1e9; }
  double peak_share(const LayoutRow& r) const { return x_.product.flops() / seconds(r) / x_.rates.flops; }
  double predicted(const LayoutRow& r) const {
    return predicted_seconds(x_.rates, r.flops * x_.product.devices(), r.moved);
  }
  std::string bound(const LayoutRow& r) const;
  void print_machine() const;
  void print_table() const;
  void print_notes() const;
  template <class Better, class Ratio>
  void print_losing(const char* title, const Better& better, const Ratio& ratio) const;
  nlohmann::json json_row(const LayoutRow& r) const;

  const LayoutResults& x_;
};

inline void LayoutResults::close() {
  for (const std::size_t p : peaks) {
    const double flops = cases[p].options.flops / best(p);
    if (flops > rates.flops) rates.flops = flops, peak_name = cases[p].name;
  }
  rates.bytes = copied / best(copies);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const LayoutRow& a, const LayoutRow& b) { return timed(a).time() < timed(b).time(); });
}

inline std::ofstream open_for_writing(const std::string& path) {
  std::ofstream file(path);
  if (!file) throw std::runtime_error(fmt::format("{} cannot be written.", path));
  return file;
}

// `all_gather` -> `ag`.
inline std::string initials(const std::string& kind) {
  const std::size_t second = kind.find('_');
  return second == kind.npos ? kind.substr(0, 2) : std::string{kind[0], kind[kind.rfind('_') + 1]};
}

inline std::string Report::bound(const LayoutRow& r) const {
  if (x_.rates.flops == 0) return "-";
  const double math = r.flops * x_.product.devices() / x_.rates.flops, comm = r.moved / x_.rates.bytes,
               rest = seconds(r) - math - comm;
  return rest > std::max(math, comm) ? "overhead" : comm > math ? "comm" : "math";
}

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

inline void Report::print_machine() const {
  const bool cuda = x_.o.cuda();
  fmt::print("C[{},{}] = A[{},{}] B[{},{}] {} on {} {} devices, mesh {}; {}{}\n", x_.o.m, x_.o.n, x_.o.m,
             x_.o.k, x_.o.k, x_.o.n, x_.o.dtype, x_.product.devices(), cuda ? "logical CUDA" : "virtual CPU",
             x_.o.mesh, x_.machine, x_.load >= 0 ? fmt::format(", load {:.1f} at start", x_.load) : "");
  if (x_.load >= x_.workers) fmt::print("other programs were running: these times are disturbed\n");
  if (x_.rates.flops > 0)
    fmt::print(
        "peak          {:8.1f} GFLOP/s  {}, best of this run\n", x_.rates.flops / 1e9,
        cuda ? x_.peak_name : fmt::format("multiply-adds in registers, {}, all workers", x_.peak_name));
  else
    fmt::print(
        "peak          not measured: there is no multiply-add loop for this CPU, so no share of peak\n");
  if (x_.blas) {
    const Case& c = x_.cases[*x_.blas];
    const double best = *std::min_element(c.seconds.begin(), c.seconds.end());
    fmt::print("{:<13} {:8.1f} GFLOP/s  this product on one device{}: median {}, best {}{}\n",
               cuda ? "one device" : "BLAS", x_.product.flops() / c.time() / 1e9, cuda ? "" : ", all workers",
               time_text(c.time()), time_text(best),
               x_.rates.flops > 0
                   ? fmt::format(" ({:.0f} % of peak)", 100 * x_.product.flops() / best / x_.rates.flops)
                   : "");
  }
  fmt::print("copies        {:8.1f} GB/s     {} by all devices, one matrix each, best of this run\n",
             x_.rates.bytes / 1e9, cuda ? "read, doubled and written" : "received");
  fmt::print("replicas      {}\n\n",
             x_.o.share ? "separate memories and work; column `shared`: one memory, computed once"
                        : "separate memories and work (sharing is off; --share-replicas shows what it wins)");
}

inline void Report::print_table() const {
  const std::size_t shown =
      x_.o.top > 0 ? std::min(x_.rows.size(), static_cast<std::size_t>(x_.o.top)) : x_.rows.size();
  std::array<std::size_t, 3> w{1, 1, 1};
  std::size_t longest = 11;
  auto cut_text = [&](const LayoutRow& r, std::size_t i) {
    return to_text(i == 0 ? r.layout.a : i == 1 ? r.layout.b : r.layout.c, x_.product.mesh);
  };
  for (std::size_t k = 0; k < shown; k++) {
    for (std::size_t i = 0; i < 3; i++) w[i] = std::max(w[i], cut_text(x_.rows[k], i).size());
    longest = std::max(longest, x_.rows[k].collectives.size());
  }
  const std::size_t others = 5 + w[0] + w[1] + w[2] + 3 + 63 + (x_.o.share ? 17 : 0);
  const std::size_t width = std::min(longest, kTableWidth > others + 11 ? kTableWidth - others : 11);
  auto line = [&](const auto&... c) {
    return fmt::format("{:>3}{:1} {:<{}} {:<{}} {:<{}} {:<{}} {:>9} {:>5} {:>8} {:>9} {:>4} {:>7} {:>5} {}",
                       c...);
  };
  fmt::print("{}{}\n",
             line("#", "", "A", w[0], "B", w[1], "C", w[2], "collectives", width, "bytes/dev", "least",
                  "FLOP/dev", "time", "+-%", "GFLOP/s", "peak", "bound"),
             x_.o.share ? "       shared   wins" : "");
  for (std::size_t k = 0; k < shown; k++) {
    const LayoutRow& r = x_.rows[k];
    std::string moves = r.collectives.size() <= width ? r.collectives : r.short_collectives;
    if (moves.size() > width) moves = moves.substr(0, width - 3) + "...";
    std::string text =
        line(k + 1, k == 0 ? "*" : "", cut_text(r, 0), w[0], cut_text(r, 1), w[1], cut_text(r, 2), w[2],
             moves.empty() ? "none" : moves, width, amount(r.bytes, "B"), times_least(r), amount(r.flops, ""),
             time_text(seconds(r)), fmt::format("{:.1f}", 100 * x_.timed(r).spread()),
             fmt::format("{:.1f}", gflops(r)),
             x_.rates.flops > 0 ? fmt::format("{:.0f}%", 100 * peak_share(r)) : "-", bound(r));
    if (x_.o.share)
      text += fmt::format("{:>{}} {:>5.2f}x", time_text(x_.cases[r.shared].time()), 18 - bound(r).size(),
                          ratio(x_.timed(r), x_.cases[r.shared]));
    fmt::print("{}\n", text);
  }
  if (shown < x_.rows.size()) fmt::print("... and {} slower ones\n", x_.rows.size() - shown);
}

inline void Report::print_notes() const {
  double sum = 0, shared = 0;
  std::vector<double> first;
  for (const LayoutRow& r : x_.rows) {
    sum += seconds(r);
    shared += x_.o.share ? x_.cases[r.shared].time() : 0;
    first.push_back(x_.timed(r).first);
  }
  fmt::print(
      "\n{} layout{}, sum of medians {}{}; every piece of every result is exact\n"
      "first calls (plan, compile, run, check) take {} in the median\n\n",
      x_.rows.size(), x_.rows.size() == 1 ? "" : "s", time_text(sum),
      x_.o.share ? fmt::format(", shared {}", time_text(shared)) : "", time_text(median(first)));
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

inline nlohmann::json Report::json_row(const LayoutRow& r) const {
  nlohmann::json row = {
      {"name", r.name}, {"value", seconds(r)}, {"unit", "s"}, {"floor", nullptr}, {"ratio", nullptr}};
  if (x_.blas)
    row["floor"] = x_.cases[*x_.blas].time(), row["ratio"] = ratio(x_.timed(r), x_.cases[*x_.blas]);
  row.update({{"a", to_text(r.layout.a, x_.product.mesh)},
              {"b", to_text(r.layout.b, x_.product.mesh)},
              {"c", to_text(r.layout.c, x_.product.mesh)},
              {"collectives", r.collectives},
              {"bytes_per_device", r.bytes},
              {"least_bytes_per_device", r.least.bytes},
              {"least_strategy", r.least.where},
              {"moved_bytes", r.moved},
              {"flops_per_device", r.flops},
              {"spread", x_.timed(r).spread()},
              {"rounds", x_.o.rounds},
              {"calls_per_round", x_.timed(r).calls},
              {"first_call", x_.timed(r).first},
              {"gflops", gflops(r)},
              {"share_of_peak", nullptr},
              {"predicted", nullptr},
              {"bound", bound(r)}});
  if (x_.rates.flops > 0) row["share_of_peak"] = peak_share(r), row["predicted"] = predicted(r);
  if (x_.o.share) row["shared"] = x_.cases[r.shared].time();
  return row;
}

inline void Report::write_json() const {
  nlohmann::json out = nlohmann::json::array();
  auto add = [&](const char* name, double value, const char* unit) {
    out.push_back({{"name", name}, {"value", value}, {"unit", unit}, {"floor", nullptr}, {"ratio", nullptr}});
  };
  add("workers", x_.workers, "");
  out.back().update({{"platform", x_.o.platform},
                     {"machine", x_.machine},
                     {"compiler", __VERSION__},
                     {"load", x_.load},
                     {"mesh", x_.o.mesh},
                     {"m", x_.o.m},
                     {"k", x_.o.k},
                     {"n", x_.o.n},
                     {"dtype", x_.o.dtype},
                     {"replicas", "separate"}});
  if (x_.rates.flops > 0) add("peak", x_.rates.flops, "FLOP/s");
  if (x_.blas) add(x_.cases[*x_.blas].name.c_str(), x_.cases[*x_.blas].time(), "s");
  add("copies", x_.rates.bytes, "B/s");
  for (const LayoutRow& r : x_.rows) out.push_back(json_row(r));
  open_for_writing(x_.o.json_file) << out.dump(2) << "\n";
}

inline void Report::write_csv() const {
  const std::vector<std::string> columns = {"a",
                                            "b",
                                            "c",
                                            "collectives",
                                            "bytes_per_device",
                                            "least_bytes_per_device",
                                            "moved_bytes",
                                            "flops_per_device",
                                            "value",
                                            "spread",
                                            "gflops",
                                            "share_of_peak",
                                            "predicted",
                                            "bound"};
  std::ofstream file = open_for_writing(x_.o.csv_file);
  for (const std::string& c : columns)
    file << (&c == &columns[0] ? "" : ",") << (c == "value" ? "seconds" : c);
  file << (x_.o.share ? ",shared_seconds\n" : "\n");
  for (const LayoutRow& r : x_.rows) {
    const nlohmann::json row = json_row(r);
    for (const std::string& c : columns)
      file << (&c == &columns[0] ? "" : ",")
           << (row[c].is_string() ? "\"" + row[c].get<std::string>() + "\""
               : row[c].is_null() ? ""
                                  : row[c].dump());
    if (x_.o.share) file << "," << row["shared"];
    file << "\n";
  }
}

}  // namespace bench
