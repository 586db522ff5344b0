// The table of bench/device.cpp: times of cases, compared with the device's own rates and with one device, and their aims.
#pragma once
#include <shardarray/shardarray.h>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bench.h"
#include "device_aims.h"
#include "document_step.h"

namespace bench {

inline double seconds_of(const std::function<void()>& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// The rate of a library or of the device alone, and its unit.
struct Ceiling {
  std::string of, unit;
  double scale = 1;  ///< of the unit
  double rate = 0;   ///< in that unit; 0: unknown
};

/// The work of one call.
struct Work {
  double amount = 0;  ///< bytes read and written, or operations
  Ceiling ceiling = {};
};

/// The times that a run wrote to a file.
inline std::map<std::string, double> saved_times(const std::string& file) {
  std::map<std::string, double> all;
  std::ifstream from(file);
  for (std::string line; std::getline(from, line);) {
    std::istringstream words(line);
    double seconds = 0;
    std::string name;
    words >> seconds >> std::ws;
    std::getline(words, name);
    all[name] = seconds;
  }
  return all;
}

class DeviceTable {
 public:
  explicit DeviceTable(std::string filter) : filter_(std::move(filter)) {}

  bool leaves_out(const std::string& name) const { return name.find(filter_) == std::string::npos; }

  /// Asynchronous calls, issued one after the other as in a program's loop and waited for at the end of a sample: the figure is the
  /// device's, unless the host needs longer to issue them.
  void add(const std::string& name, Work work, std::function<void()> ask, std::function<void()> wait) {
    if (leaves_out(name)) return;
    for (int k = 0; k < 3; k++) {
      ask();
      wait();
    }
    Case& c = cases_.emplace_back(Case{name, std::move(ask)});
    c.wait = std::move(wait);
    rows_.push_back(std::move(work));
  }
  /// The same for a call that returns its result.
  void add(const std::string& name, Work work, std::function<shardarray::Array()> ask) {
    const auto last = std::make_shared<shardarray::Array>();
    add(
        name, std::move(work),
        [last, ask = std::move(ask)] {
          *last = {};  // its memory may be donated by ask()
          *last = ask();
        },
        [last] { last->block_until_ready(); });
  }
  /// Three rows: steps one after the other, each waited for, and the host's part of that.
  void add_step(const std::string& name, std::int64_t batch) {
    if (leaves_out(name)) return;
    const auto step = std::make_shared<DocumentStep>(batch);
    const auto ask = [step] { step->ask(); };
    const auto wait = [step] { step->wait(); };
    add(name, {}, ask, wait);
    add(
        name + waited_for, {},
        [ask, wait] {
          ask();
          wait();
        },
        [] {});
    steps_.emplace_back(name + host_alone, step);
  }

  void measure(bool quick) {
    bench::measure(cases_, quick ? 3 : 15, quick ? 1e-4 : 2e-2);
    for (const auto& named : steps_) {
      const auto& step = named.second;
      Case asked{named.first, {}};
      for (int k = 0; k < (quick ? 3 : 200); k++) {
        asked.seconds.push_back(seconds_of([&] { step->ask(); }));
        step->wait();
      }
      cases_.push_back(asked);
      rows_.push_back({});
    }
  }

  /// `one_device`: the times of a run on one device.
  void print(const std::map<std::string, double>& one_device) const {
    fmt::print(
        "| case | time | +-% | rate | of the device's own | aim | |{}\n|---|---|---|---|---|---|---|{}\n",
        one_device.empty() ? "" : " of one device's time | aim | |",
        one_device.empty() ? "" : "---|---|---|");
    for (std::size_t k = 0; k < cases_.size(); k++) {
      const Case& c = cases_[k];
      const double time = c.time();
      fmt::print("| {} | {} | {:.1f} |{}", c.name, time_text(time), 100 * c.spread(),
                 cells(rows_[k], c.name, time));
      if (!one_device.empty()) fmt::print("{}", beside(one_device, c.name, time));
      fmt::print("\n");
    }
  }
  void save(const std::string& file) const {
    std::ofstream to(file);
    for (const Case& c : cases_) to << c.time() << " " << c.name << "\n";
  }

 private:
  /// The rate, its part of the ceiling, the aim, and whether it is met.
  static std::string cells(const Work& work, const std::string& name, double time) {
    if (const auto most = aim_of(time_aims, name))
      return " - | - |" + verdict("<= " + time_text(*most), time <= *most);
    if (work.amount == 0) return " - | - |" + no_verdict();
    const Ceiling& ceiling = work.ceiling;
    const double rate = work.amount / time / ceiling.scale, ratio = rate / ceiling.rate;
    const std::string text = fmt::format(" {:.4g} {} |", rate, ceiling.unit);
    if (ceiling.rate == 0) return text + " - |" + no_verdict();
    const auto least = aim_of(rate_aims, name);
    return text + fmt::format(" {:.2f} of {} |", ratio, ceiling.of) +
           (least ? at_least(*least, ratio) : no_verdict());
  }
  static std::string beside(const std::map<std::string, double>& one_device, const std::string& name,
                            double time) {
    const auto other = one_device.find(name);
    if (other == one_device.end()) return " - |" + no_verdict();
    const double ratio = time / other->second;
    return fmt::format(" {:.2f} |", ratio) + (name.ends_with(host_alone) || name.ends_with(waited_for)
                                                  ? no_verdict()
                                                  : at_most(aim_of_one_device, ratio));
  }

  // Every further device costs the host something.
  static constexpr const char *host_alone = ", host alone", *waited_for = ", waited for each time";

  std::string filter_;
  std::vector<Case> cases_;
  std::vector<Work> rows_;
  std::vector<std::pair<std::string, std::shared_ptr<DocumentStep>>> steps_;
};

}  // namespace bench
