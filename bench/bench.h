// The harness of all benches: measures named cases in one run, prints each figure beside its floor, writes JSON: a list of
// {"name", "value", "unit", "floor", "ratio"}, with "aim" if the ratio or the figure has one. Benches with a table of their own use
// `Case` and `measure`.
//
//   int main(int argc, char** argv) {
//     bench::Suite suite;
//     suite.add("copy by hand", [&] { copy(a, b, n); });
//     suite.add("copy", [&] { ... }, {.floor = "copy by hand"});
//     return suite.main(argc, argv);
//   }
//
// A sample is as many calls as take at least 10 ms, after one untimed call (none before a call of 0.1 s or more); asynchronous calls are
// waited for at its end. Cases are sampled in rounds of shuffled order, so that heat and clock drift favour none; the table shows
// medians and the median absolute deviation. `ratio` is time / the floor's time, round by round: 1 is the floor, 2 is twice as slow.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

namespace bench {

/// Makes the compiler believe that `value` is read.
template <class T> void keep(const T& value) { asm volatile("" : : "g"(&value) : "memory"); }

struct CaseOptions {
  std::string floor = {};  ///< the name of the case that is the limit or peer of this one
  double per_call = 1;     ///< operations in one call: the figure is time / per_call
  double flops = 0;        ///< of one call: adds GFLOP/s to the table
  double aim = 0;          ///< the largest ratio allowed; 0: no aim
};

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n == 0 ? 0 : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

/// A timed case; `measure` fills the figures.
struct Case {
  std::string name;
  std::function<void()> call;
  CaseOptions options = {};
  int calls = 1;                     ///< in one sample
  double first = 0;                  ///< seconds of the first call, which is in no sample
  bool warms_itself = false;         ///< a call takes so long that samples need no untimed one
  std::vector<double> seconds = {};  ///< per operation, one entry per round
  /// For an asynchronous call: returns when its results are ready.
  std::function<void()> wait = {};
  double time() const { return median(seconds); }
  /// The median absolute deviation, relative to the time.
  double spread() const {
    std::vector<double> d;
    for (const double s : seconds) d.push_back(std::abs(s - time()));
    return median(d) / time();
  }
};
/// n values between -1 and 1, the same for the same seed.
inline std::vector<float> random_floats(std::size_t n, unsigned seed = 1) {
  std::mt19937 bits(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> v(n);
  for (float& x : v) x = uniform(bits);
  return v;
}

/// Median over the rounds of this case's time / its floor's.
inline double ratio(const Case& c, const Case& floor) {
  std::vector<double> r;
  for (std::size_t k = 0; k < c.seconds.size(); k++) r.push_back(c.seconds[k] / floor.seconds[k]);
  return median(r);
}

inline double sample(const Case& c) {
  constexpr int most_ahead = 1000;  // calls: their memory stays in use until they are done
  const auto start = std::chrono::steady_clock::now();
  for (int k = 1; k <= c.calls; k++) {
    c.call();
    if (c.wait && (k == c.calls || k % most_ahead == 0)) c.wait();
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
/// Samples all cases in rounds of shuffled order.
inline void measure(std::vector<Case>& cases, int rounds, double seconds_per_sample) {
  constexpr double long_call = 0.1;  // seconds
  std::vector<Case*> order;
  for (Case& c : cases) {
    c.first = sample(c);
    double taken = sample(c);
    c.warms_itself = taken >= long_call;
    for (; taken < seconds_per_sample && c.calls < 1 << 28; taken = sample(c)) c.calls *= 2;
    c.seconds.resize(static_cast<std::size_t>(rounds));
    order.push_back(&c);
  }
  std::mt19937 random(1);
  for (int r = 0; r < rounds; r++) {
    std::shuffle(order.begin(), order.end(), random);
    for (Case* c : order) {
      if (!c->warms_itself) {
        c->call();
        if (c->wait) c->wait();
      }
      c->seconds[static_cast<std::size_t>(r)] = sample(*c) / c->calls / c->options.per_call;
    }
  }
}

inline std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
}

class Suite {
 public:
  /// A case: `call` must wait for its own result.
  void add(std::string name, std::function<void()> call, CaseOptions options = {}) {
    cases_.push_back({std::move(name), std::move(call), std::move(options)});
  }
  /// A figure that is counted, not timed: printed and written as it is.
  void add_count(std::string name, double value, std::string unit, double aim = 0) {
    counts_.push_back({std::move(name), value, std::move(unit), aim});
  }
  /// Options of the bench itself may be added before `main`.
  CLI::App& app() { return app_; }

  int main(int argc, char** argv) {
    std::string json_file, filter;
    bool quick = false;
    int rounds = 0;
    app_.add_option("--json", json_file, "Write the results to this file");
    app_.add_option("--filter", filter, "Only cases whose names contain this text");
    app_.add_flag("--quick", quick, "Few short samples: to see that it runs");
    app_.add_option("--rounds", rounds, "Samples of each case; default 15, with --quick 3")
        ->check(CLI::PositiveNumber);
    CLI11_PARSE(app_, argc, argv);
    std::erase_if(cases_, [&](const Case& c) { return c.name.find(filter) == std::string::npos; });
    measure(cases_, rounds ? rounds : quick ? 3 : 15, quick ? 1e-4 : 1e-2);
    print();
    if (!json_file.empty()) std::ofstream(json_file) << json().dump(2) << "\n";
    return 0;
  }

 private:
  struct Count {
    std::string name;
    double value;
    std::string unit;
    double aim;  ///< at most; 0: none
  };

  const Case* floor_of(const Case& c) const {
    for (const Case& other : cases_)
      if (!c.options.floor.empty() && other.name == c.options.floor) return &other;
    return nullptr;
  }

  static std::string aim_text(double value, double aim) {
    return aim > 0 ? fmt::format("<= {:g} {}", aim, value <= aim ? "met" : "MISSED") : "";
  }

  void print() const {
    std::size_t width = 4;
    for (const Case& c : cases_) width = std::max(width, c.name.size());
    for (const Count& c : counts_) width = std::max(width, c.name.size());
    fmt::print("{:<{}}  {:>10}  {:>5}  {:>8}  {:>10}  {:>6}  {:<13}  {}\n", "case", width, "time", "+-%",
               "GFLOP/s", "floor", "ratio", "aim", "floor is");
    for (const Case& c : cases_) {
      const Case* f = floor_of(c);
      fmt::print("{:<{}}  {:>10}  {:>5.1f}  {:>8}  {:>10}  {:>6}  {:<13}  {}\n", c.name, width,
                 time_text(c.time()), 100 * c.spread(),
                 c.options.flops > 0 ? fmt::format("{:.1f}", c.options.flops / c.time() / 1e9) : "-",
                 f ? time_text(f->time()) : "-", f ? fmt::format("{:.2f}", ratio(c, *f)) : "-",
                 f ? aim_text(ratio(c, *f), c.options.aim) : "", f ? f->name : "");
    }
    for (const Count& c : counts_)
      fmt::print("{:<{}}  {:>10g}  {:<33}  {}\n", c.name, width, c.value, c.unit, aim_text(c.value, c.aim));
  }

  nlohmann::json json() const {
    nlohmann::json out = nlohmann::json::array();
    for (const Case& c : cases_) {
      nlohmann::json row = {
          {"name", c.name}, {"value", c.time()}, {"unit", "s"}, {"floor", nullptr}, {"ratio", nullptr}};
      if (const Case* f = floor_of(c)) row["floor"] = f->time(), row["ratio"] = ratio(c, *f);
      if (c.options.aim > 0) row["aim"] = c.options.aim;
      out.push_back(row);
    }
    for (const Count& c : counts_) {
      nlohmann::json row = {
          {"name", c.name}, {"value", c.value}, {"unit", c.unit}, {"floor", nullptr}, {"ratio", nullptr}};
      if (c.aim > 0) row["aim"] = c.aim;
      out.push_back(row);
    }
    return out;
  }

  CLI::App app_;
  std::vector<Case> cases_;
  std::vector<Count> counts_;
};

}  // namespace bench
