// The frame of all benches: measures named cases, prints a table, writes JSON with Google Benchmark's field names (its
// compare.py reads the files).
//
//   int main(int argc, char** argv) {
//     bench::Suite suite;
//     suite.add("copy by hand", [&] { copy(a, b, n); }, {.bytes = 8.0 * n});
//     suite.add("copy", [&] { ... }, {.bytes = 8.0 * n, .against = "copy by hand"});
//     return suite.main(argc, argv);
//   }
//
// A sample is as many calls as take at least 10 ms, after one untimed call. Cases are sampled in rounds of shuffled order,
// so that heat and clock drift rank none of them; the table shows the median and the median absolute deviation.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace bench {

/// Makes the compiler believe that `value` is read.
template <class T> void keep(const T& value) { asm volatile("" : : "g"(&value) : "memory"); }

struct CaseOptions {
  double bytes = 0;          ///< read and written by one call
  double flops = 0;          ///< of one call
  std::string against = {};  ///< the case whose time is divided by this one's: 2.0 is twice as fast
};

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  const std::size_t n = v.size();
  return n == 0 ? 0 : (v[(n - 1) / 2] + v[n / 2]) / 2;
}

class Suite {
 public:
  /// A case: `call` must wait for its own result.
  void add(std::string name, std::function<void()> call, CaseOptions options = {}) {
    cases_.push_back({std::move(name), std::move(call), std::move(options), 1, {}, {}});
  }
  /// Options of the bench itself may be added before `main`.
  CLI::App& app() { return app_; }

  int main(int argc, char** argv) {
    std::string json_file, filter;
    bool quick = false;
    app_.add_option("--json", json_file, "Write the results to this file");
    app_.add_option("--filter", filter, "Only cases whose names contain this text");
    app_.add_flag("--quick", quick, "Few short samples: to see that it runs");
    CLI11_PARSE(app_, argc, argv);
    std::erase_if(cases_, [&](const Case& c) { return c.name.find(filter) == std::string::npos; });
    measure(quick ? 3 : 15, quick ? 1e-4 : 1e-2);
    print();
    if (!json_file.empty()) std::ofstream(json_file) << json(argv[0]).dump(2) << "\n";
    return 0;
  }

 private:
  struct Case {
    std::string name;
    std::function<void()> call;
    CaseOptions options;
    int calls;                         // in one sample
    std::vector<double> seconds, cpu;  // per call, one entry a sample; cpu: over all threads
    double time() const { return median(seconds); }
    /// Median absolute deviation, as a part of the median.
    double spread() const {
      std::vector<double> d;
      for (const double s : seconds) d.push_back(std::abs(s - time()));
      return median(d) / time();
    }
  };
  struct Sample {
    double seconds, cpu;
  };

  static Sample sample(const Case& c) {
    const std::clock_t cpu = std::clock();
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < c.calls; k++) c.call();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    return {passed.count(), double(std::clock() - cpu) / CLOCKS_PER_SEC};
  }

  void measure(int rounds, double seconds_per_sample) {
    std::vector<Case*> order;
    for (Case& c : cases_) {
      c.call();
      while (sample(c).seconds < seconds_per_sample && c.calls < 1 << 28) c.calls *= 2;
      order.push_back(&c);
    }
    std::mt19937 random(1);
    for (int r = 0; r < rounds; r++) {
      std::shuffle(order.begin(), order.end(), random);
      for (Case* c : order) {
        c->call();
        const Sample s = sample(*c);
        c->seconds.push_back(s.seconds / c->calls);
        c->cpu.push_back(s.cpu / c->calls);
      }
    }
  }

  /// How many times faster than the case it is compared with; 0 without one.
  double ratio(const Case& c) const {
    for (const Case& other : cases_)
      if (!c.options.against.empty() && other.name == c.options.against) return other.time() / c.time();
    return 0;
  }

  static std::string time_text(double seconds) {
    if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
    if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
    return seconds < 1 ? fmt::format("{:.2f} ms", seconds * 1e3) : fmt::format("{:.2f} s", seconds);
  }
  static std::string number_or_dash(double x, const char* format) {
    return x > 0 ? fmt::format(fmt::runtime(format), x) : "-";
  }

  void print() const {
    std::size_t width = 4;
    for (const Case& c : cases_) width = std::max(width, c.name.size());
    fmt::print("{:<{}}  {:>10}  {:>5}  {:>8}  {:>8}  {}\n", "case", width, "time", "+-%", "GB/s", "GFLOP/s",
               "ratio");
    for (const Case& c : cases_) {
      const std::string against =
          ratio(c) > 0 ? fmt::format("{:.2f} x {}", ratio(c), c.options.against) : "-";
      fmt::print("{:<{}}  {:>10}  {:>5.1f}  {:>8}  {:>8}  {}\n", c.name, width, time_text(c.time()),
                 100 * c.spread(), number_or_dash(c.options.bytes / c.time() / 1e9, "{:.2f}"),
                 number_or_dash(c.options.flops / c.time() / 1e9, "{:.2f}"), against);
    }
  }

  static std::string cpu_model() {
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown";
  }

  nlohmann::json json(const char* executable) const {
    const std::time_t now = std::time(nullptr);
    char date[32];
    std::strftime(date, sizeof date, "%FT%TZ", std::gmtime(&now));
    nlohmann::json out;
    out["context"] = {{"date", date},
                      {"executable", executable},
                      {"num_cpus", std::thread::hardware_concurrency()},
                      {"cpu_model", cpu_model()},
                      {"compiler", __VERSION__}};
    for (const char* variable : {"SHARDARRAY_THREADS", "SHARDARRAY_CPU_DEVICES", "SHARDARRAY_SHARE_REPLICAS"})
      if (const char* value = std::getenv(variable)) out["context"][variable] = value;
    out["benchmarks"] = nlohmann::json::array();
    for (const Case& c : cases_) {
      nlohmann::json row = {
          {"name", c.name},
          {"run_name", c.name},
          {"run_type", "iteration"},
          {"iterations", std::int64_t{c.calls} * static_cast<std::int64_t>(c.seconds.size())},
          {"real_time", c.time() * 1e9},
          {"cpu_time", median(c.cpu) * 1e9},
          {"time_unit", "ns"},
          {"spread", c.spread()}};
      if (c.options.bytes > 0) row["bytes_per_second"] = c.options.bytes / c.time();
      if (c.options.flops > 0) row["flops_per_second"] = c.options.flops / c.time();
      if (ratio(c) > 0) row["ratio"] = ratio(c), row["against"] = c.options.against;
      out["benchmarks"].push_back(row);
    }
    return out;
  }

  CLI::App app_;
  std::vector<Case> cases_;
};

}  // namespace bench
