// this_machine(): rates of the local devices, measured while all of them work.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/backend.h"
#include "runtime/machine.h"
#include "runtime/modes.h"
#include "runtime/platforms.h"
#include "shardarray/shardarray.h"

namespace shardarray {
namespace {

using Measured = std::function<Array()>;

/// The best time of each call, measured in turns: other programs may run, clocks may change, kernels may not be compiled yet.
template <std::size_t N> std::array<double, N> seconds_of(const std::array<Measured, N>& calls) {
  constexpr int kRounds = 7, kWarmup = 2;
  constexpr double kLeast = 0.05;  // seconds of all rounds
  std::array<double, N> best;
  best.fill(std::numeric_limits<double>::infinity());
  double all = 0;
  for (int round = -kWarmup; round < kRounds || all < kLeast; round++)
    for (std::size_t k = 0; k < N; k++) {
      const double seconds = time_it(calls[k], {.runs = 1, .warmup = 0}).best();
      if (round < 0) continue;
      best[k] = std::min(best[k], seconds);
      all += seconds;
    }
  return best;
}
double seconds_of(const Measured& call) { return seconds_of(std::array{call})[0]; }

const Modes& default_modes() {
  const Modes& before = set_modes(Modes{});
  return set_modes(before);
}

class Measuring {
 public:
  explicit Measuring(std::vector<Device> devices)
      : devices_(std::move(devices)),
        count_(static_cast<std::int64_t>(devices_.size())),
        mesh_(DeviceGrid{{count_}, devices_}, {"x"}) {}

  Machine run() const {
    Machine m{.name = fmt::format("here-{}-{}", devices_[0].platform, count_),
              .kind = devices_[0].kind,
              .device_count = static_cast<int>(count_),
              .memory = memory(),
              .memory_bandwidth = bandwidth(),
              .step_latency = step(),
              .flops = {},
              .links = {},
              .source = "measured, all devices at work"};
    Square square;
    std::tie(square, m.product_padding) = square_and_padding();
    m.flops[name(float32)] = flops(square, m.product_padding);
    for (const DType t : {float64, bfloat16, float16})
      m.flops[name(t)] = flops(square_of(t), m.product_padding);
    if (devices_[0].platform == "cuda") {
      const tf32 mode(true);
      m.flops["tf32"] = flops(square_of(float32), m.product_padding);
    }
    if (count_ > 1) m.links.push_back(link());
    return m;
  }

 private:
  Array ones_on(const Shape& shape, const P& cut, DType t = float32) const {
    return device_put(ones(shape, t), NamedSharding(mesh_, cut)).block_until_ready();
  }

  double memory() const {
    const auto known = static_cast<double>(backend(devices_[0].platform).target().device_memory);
    if (known > 0) return known;
    const auto sharing = std::ranges::count_if(devices_, [&](const Device& d) {
      return d.memory == devices_[0].memory && d.process_index == devices_[0].process_index;
    });
    return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)) /
           static_cast<double>(sharing);
  }

  /// A product of m x k by k x n on each device.
  Measured product(std::int64_t m, std::int64_t n, std::int64_t k, DType t = float32) const {
    const auto f = jit([](const Array& a, const Array& b) { return matmul(a, b); });
    const Array a = ones_on({count_, m, k}, P("x"), t) * 0.5, b = ones_on({count_, k, n}, P("x"), t) * 0.25;
    block_until_ready(std::pair(a, b));
    return [=] { return f(a, b); };
  }
  /// Products of square matrices, large enough to take a few milliseconds.
  struct Square {
    std::int64_t side;
    double seconds;
  };
  std::int64_t side_of_square(DType t) const {
    constexpr double kLong = 3e-3;
    constexpr std::int64_t kMost = 8192;
    for (std::int64_t side = 128;; side *= 2)
      if (side == kMost || time_it(product(side, side, side, t), {.runs = 3, .warmup = 2}).best() >= kLong)
        return side;
  }
  Square square_of(DType t) const {
    const std::int64_t side = side_of_square(t);
    return {side, seconds_of(product(side, side, side, t))};
  }
  /// A square, and the padding x of m, n and k, in sides: if one of them is an eighth of the others and takes the part t of the square's
  /// time, (1/8 + x) / (1 + x) = t.
  std::pair<Square, std::array<double, 3>> square_and_padding() const {
    const std::int64_t side = side_of_square(float32), few = side / 8;
    const auto [all, few_m, few_n, few_k] =
        seconds_of(std::array{product(side, side, side), product(few, side, side), product(side, few, side),
                              product(side, side, few)});
    const auto padding = [&, square = all](double seconds) {
      const double t = std::clamp(seconds / square, 0.125, 0.5);
      return static_cast<double>(side) * (t - 0.125) / (1 - t);
    };
    return {Square{side, all}, {padding(few_m), padding(few_n), padding(few_k)}};
  }
  static double flops(const Square& square, const std::array<double, 3>& padding) {
    double operations = 2;
    for (const double more : padding) operations *= static_cast<double>(square.side) + more;
    return operations / square.seconds;
  }

  /// Bytes per second that a loop reads and writes per device, over data that no cache holds.
  double bandwidth() const {
    constexpr std::int64_t kBytes = std::int64_t{1} << 27;  // of all devices of a memory
    std::set<int> memories;
    for (const Device& d : devices_) memories.insert(d.memory);
    const std::int64_t bytes = kBytes * std::ssize(memories);
    const Array x = ones_on({count_, bytes / 4 / count_}, P("x"));
    const auto loop = jit([](const Array& v) { return v + 1; });
    return 2.0 * static_cast<double>(bytes) / static_cast<double>(count_) /
           seconds_of([&] { return loop(x); });
  }

  /// Seconds per step of a chain of small products, each of which waits for the previous one.
  double step() const {
    constexpr int kSteps = 64;
    const Array x = ones_on({count_, 4, 4}, P("x"));
    const auto chain = jit([](const Array& v) {
      Array y = v;
      for (int k = 0; k < kSteps; k++) y = matmul(v, y);
      return y;
    });
    return seconds_of([&] { return chain(x); }) / kSteps;
  }

  /// All to all: each device receives a part from every other one.
  Link link() const {
    constexpr std::int64_t kBytes = std::int64_t{1} << 25;
    const auto seconds = [&](std::int64_t bytes) {
      const std::int64_t rows = count_, columns = std::max(count_, bytes / 4 / rows / count_ * count_);
      const Array x = ones_on({rows, columns}, P("x"));
      const auto turn =
          jit([](const Array& v) { return v; }, {.out_shardings = NamedSharding(mesh_, P(none, "x"))});
      return seconds_of([&] { return turn(x); });
    };
    const double latency = seconds(0), received = static_cast<double>(kBytes) / static_cast<double>(count_) *
                                                  static_cast<double>(count_ - 1) /
                                                  static_cast<double>(count_);
    return {"measured", static_cast<int>(count_), received / std::max(seconds(kBytes) - latency, 1e-9),
            latency};
  }

  std::vector<Device> devices_;
  std::int64_t count_;
  Mesh mesh_;
};

}  // namespace

Machine this_machine(const std::vector<Device>& asked, Where w) {
  const Site site(w, "this_machine");
  const std::vector<Device> all = asked.empty() ? devices() : asked;
  if (described_machine(all[0].platform) != nullptr)
    throw DeviceError(fmt::format(
        "this_machine: '{}' is a description, whose devices compute nothing. Name devices of cpu or cuda.",
        all[0].platform));
  for (const Device& d : all)
    if (d.process_index != all[0].process_index)
      throw DeviceError(
          "this_machine: the devices are those of several processes, whose clocks differ. Name those of one: "
          "this_machine(local_devices()).");
  static std::mutex& mutex = *new std::mutex;
  static auto& known = *new std::map<std::vector<int>, Machine>;
  std::vector<int> key{all[0].platform == "cuda"};
  for (const Device& d : all) key.push_back(d.id);
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(key);
  const ScopedModes plain(&default_modes());  // not the caller's modes, nor its memory budget
  const policy::budget none(0);
  if (fresh) try {
      at->second = Measuring(all).run();
    } catch (...) {
      known.erase(at);
      throw;
    }
  return at->second;
}

}  // namespace shardarray
