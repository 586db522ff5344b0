// Layouts over a range of sizes: the fastest for each, and where one overtakes another.
#pragma once
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "layouts_results.h"

namespace bench {

/// The options for each size. Throws std::invalid_argument if one of them is invalid.
inline std::vector<LayoutOptions> sizes_of(const LayoutOptions& o) {
  const Sweep sweep = parse_sweep(o.sweep);
  std::vector<LayoutOptions> all;
  for (const std::int64_t v : sweep.values) {
    LayoutOptions one = o;
    one.sweep.clear();
    (sweep.size == 'm' ? one.m : sweep.size == 'k' ? one.k : one.n) = v;
    check(one);
    all.push_back(std::move(one));
  }
  return all;
}

/// A pair of sizes between which another layout becomes the fastest.
struct Crossover {
  std::string before, after;        ///< layouts
  double size = 0;                  ///< where both take equally long, interpolated: log time over log size
  double earliest = 0, latest = 0;  ///< by the spreads of the four times, between the two sizes
};

class SweepTable {
 public:
  explicit SweepTable(char size) : size_(size) {}

  /// The rows are sorted by time.
  void add(const LayoutResults& x) {
    Size s{size_ == 'm'   ? x.o.m
           : size_ == 'k' ? x.o.k
                          : x.o.n,
           {},
           x.rows.front().name,
           x.rows.size() > 1 ? x.rows[1].name : ""};
    for (const LayoutRow& r : x.rows) s.times[r.name] = {x.seconds(r), x.spread(r), r.predicted()};
    if (const auto p = prediction(x)) s.regret = p->regret;
    sizes_.push_back(std::move(s));
  }

  /// The crossovers between neighbouring sizes whose fastest layouts differ by more than their spreads, at both sizes.
  std::vector<Crossover> crossovers() const {
    std::vector<Crossover> out;
    for (std::size_t k = 0; k + 1 < sizes_.size(); k++) {
      const Size &a = sizes_[k], &b = sizes_[k + 1];
      if (a.fastest == b.fastest || !a.times.contains(b.fastest) || !b.times.contains(a.fastest)) continue;
      const Gap first = gap(a, a.fastest, b.fastest), last = gap(b, a.fastest, b.fastest);
      if (first.log >= 0 || last.log <= 0 || -first.log <= first.spread || last.log <= last.spread) continue;
      const auto at = [&](double shift) {
        const double from = std::log(static_cast<double>(a.size)), to = std::log(static_cast<double>(b.size)),
                     part = (shift - first.log) / (last.log - first.log);
        return std::exp(std::clamp(from + part * (to - from), from, to));
      };
      const double spread = std::max(first.spread, last.spread);
      out.push_back({a.fastest, b.fastest, at(0), at(-spread), at(spread)});
    }
    return out;
  }

  std::string text() const {
    std::size_t width = 7;
    for (const Size& s : sizes_) width = std::max({width, s.fastest.size(), s.second.size()});
    std::string text = fmt::format("{:>8}  {:<{}}  {:>9} {:>5}  {:>9}  {:<{}}  {:>6}  {}\n", size_, "fastest",
                                   width, "time", "+-%", "t_hi", "next", width, "times", "t_hi's regret");
    for (const Size& s : sizes_) {
      const Time& best = s.times.at(s.fastest);
      text += fmt::format("{:>8}  {:<{}}  {:>9} {:>5.1f}  {:>9}", s.size, s.fastest, width,
                          time_text(best.seconds), 100 * best.spread,
                          best.predicted > 0 ? time_text(best.predicted) : "-");
      if (!s.second.empty()) {
        const Gap next = gap(s, s.second, s.fastest);
        text += fmt::format("  {:<{}}  {:>6.2f}  {}{}", s.second, width, std::exp(next.log),
                            s.regret ? fmt::format("{:.1f} %", 100 * *s.regret) : "-",
                            next.log > next.spread ? ""
                            : next.spread > 0      ? ", within their spreads"
                                                   : ", alike");
      }
      text += '\n';
    }
    const std::vector<Crossover> all = crossovers();
    text += all.empty() ? "no layout overtakes another by more than the spreads\n" : "";
    for (const Crossover& c : all)
      text += fmt::format("from about {} = {:.0f} on ({:.0f} to {:.0f}) {} is faster than {}\n", size_,
                          c.size, c.earliest, c.latest, c.after, c.before);
    return text;
  }

 private:
  struct Time {
    double seconds, spread, predicted;
  };
  struct Size {
    std::int64_t size;
    std::map<std::string, Time> times;  // by layout
    std::string fastest, second;
    std::optional<double> regret = {};  // of what is predicted to be the fastest
  };
  /// The logarithm of a ratio of times, and its uncertainty by the spreads.
  struct Gap {
    double log, spread;
  };
  static Gap gap(const Size& s, const std::string& x, const std::string& y) {
    const Time &a = s.times.at(x), &b = s.times.at(y);
    return {std::log(a.seconds / b.seconds), a.spread + b.spread};
  }

  char size_;
  std::vector<Size> sizes_;
};

}  // namespace bench
