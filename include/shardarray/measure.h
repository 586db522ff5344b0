// Compares the time that a call takes with the prediction of its plan.
#pragma once
#include <iosfwd>
#include <string>

#include "shardarray/explain.h"
#include "shardarray/machine.h"
#include "shardarray/timing.h"

namespace shardarray {

/// The result of measure().
struct SHARDARRAY_API Measurement {
  Explanation plan;  ///< with times predicted for this_machine()
  Timing time;       ///< of 15 calls, each waited for
  /// Measured over predicted time: the median of the calls divided by the total time of the plan's steps and transfers without overlap. 1
  /// if both are equal.
  [[nodiscard]] double ratio() const;
  /// `1.24 ms (best 1.2 ms of 15), predicted 0.9 ms to 1.3 ms on here-cpu-8: 0.7 ms of steps, 0.6 ms of transfers, 96 KiB received per
  /// device`.
  [[nodiscard]] std::string to_string() const;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Measurement& m);

namespace detail {
/// f as jit returns it.
template <class F> auto as_jitted(const F& f) {
  if constexpr (is_jitted<F>) return f;
  else return jit(f);
}
/// The same without donation: it is called repeatedly with the caller's arguments.
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

/// `measure(f, args...)`: measures how long the call f(args...) takes, and predicts it from the numbers of the devices it runs on, which
/// are measured at first use (this_machine(), about a second). f is a function or the result of jit; nothing is donated. Throws what
/// explain(), the call and this_machine() throw.
///
///     std::cout << sa::measure(step, model, x, y) << "\n";
inline constexpr detail::PlacedFunction<detail::measure_fn> measure{};

}  // namespace shardarray
