// What a call takes, beside what its plan says that it should.
#pragma once
#include <iosfwd>
#include <string>

#include "shardarray/explain.h"
#include "shardarray/machine.h"
#include "shardarray/timing.h"

namespace shardarray {

/// What measure() gives.
struct SHARDARRAY_API Measurement {
  Explanation plan;  ///< with times by this_machine()
  Timing time;       ///< of 15 calls, each waited for
  /// Measured by predicted time: the median of the calls over the sum of all that the plan's steps and transfers take, one after
  /// the other. 1 where both are the same.
  [[nodiscard]] double ratio() const;
  /// `1.24 ms (best 1.2 ms of 15), predicted 0.9 ms to 1.3 ms on here-cpu-8: 0.7 ms of steps, 0.6 ms of transfers, 96 KiB received per
  /// device`.
  [[nodiscard]] std::string to_string() const;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Measurement& m);

namespace detail {
/// f as jit makes it.
template <class F> auto as_jitted(const F& f) {
  if constexpr (is_jitted<F>) return f;
  else return jit(f);
}
/// The same, with nothing given away: it is called again and again with the caller's arguments.
template <class J> auto keeping(const J& jitted) {
  JitOptions o = jitted.options();
  o.donate = Donate::none;
  o.donate_args.clear();
  return jit(jitted.function(), o);
}

struct measure_fn {
  template <class F, class... A> static Measurement call(Where w, const F& f, const A&... args) {
    const Site site(w, "measure");
    Measurement m{Explanation({}, {}), {}};
    if constexpr (CallCheck<F, A...>::ok()) {
      const auto step = keeping(as_jitted(f));
      m.plan = explain(step, args...);
      m.plan = m.plan.on(this_machine(m.plan.devices()));
      m.time = time_it([&] { return step(args...); }, {.runs = 15, .warmup = 3}, w);
    }
    return m;
  }
};
}  // namespace detail

/// `measure(f, args...)`: how long the call f(args...) takes, and how long its plan says by the numbers of the devices that it runs on, which
/// are measured at the first use (this_machine(), about a second). f is a function or what jit gave; nothing is donated. Throws what explain() and the
/// call throw, and what this_machine() throws.
///
///     std::cout << sa::measure(step, model, x, y) << "\n";
inline constexpr detail::PlacedFunction<detail::measure_fn> measure{};

}  // namespace shardarray
