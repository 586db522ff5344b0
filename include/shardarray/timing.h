// Timing computations including their values, not only their recording.
#pragma once
#include <chrono>
#include <iosfwd>
#include <string>
#include <type_traits>
#include <vector>

#include "shardarray/filter_shard.h"

namespace shardarray {

/// A clock that starts on construction, or by restart().
///
///     sa::Timer timer;
///     const sa::Array y = f(x);
///     std::cout << timer.seconds(y) << "\n";   // y is computed and waited for
class Timer {
 public:
  void restart() { start_ = std::chrono::steady_clock::now(); }
  /// Until now, whatever devices are doing.
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  /// Until all arrays of `tree` are computed. Throws as block_until_ready().
  template <class T> [[nodiscard]] double seconds(const T& tree, Where w = Where::here()) const {
    block_until_ready(tree, w);
    return seconds();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Options of time_it().
struct TimeOptions {
  int runs = 10;   ///< timed runs
  int warmup = 1;  ///< untimed runs before them: the first compiles
};
/// The result of time_it(), in seconds.
struct SHARDARRAY_API Timing {
  std::vector<double> runs;  ///< in order
  [[nodiscard]] double best() const;
  [[nodiscard]] double median() const;  ///< for an even number, the mean of the middle two
};
/// `1.24 ms (best 1.2 ms of 10)`; `no runs` for none.
[[nodiscard]] SHARDARRAY_API std::string to_string(const Timing& t);
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Timing& t);

namespace detail {
SHARDARRAY_API void check_time_options(const TimeOptions& o);
}  // namespace detail
/// Runs f() repeatedly, waiting each time for what it returns (a tree, or nothing): `time_it([&] { return step(x); })`. Arrays that f
/// records but does not return are timed without their computation. Throws Error for less than one run or a negative number of warm-ups,
/// and what f throws.
template <class F>
[[nodiscard]] Timing time_it(const F& f, const TimeOptions& o = {}, Where w = Where::here()) {
  const Site site(w, "time_it");
  detail::check_time_options(o);
  Timing t;
  for (int k = -o.warmup; k < o.runs; k++) {
    const Timer timer;
    if constexpr (std::is_void_v<std::invoke_result_t<const F&>>) f();
    else block_until_ready(f(), w);
    if (k >= 0) t.runs.push_back(timer.seconds());
  }
  return t;
}

}  // namespace shardarray
