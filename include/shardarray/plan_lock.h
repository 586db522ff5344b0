// Plans in tests: what a call moves and needs, as text, compared with a file, or as JSON.
#pragma once
#include <string>

#include "shardarray/explain.h"

namespace shardarray {

namespace core {
/// `all_reduce{x} 56 B f32[8] for sum`, one line per transfer.
[[nodiscard]] SHARDARRAY_API std::string transfer_lines(const Explanation& plan);
}  // namespace core

namespace detail {
struct transfers_fn {
  template <class F, class... A> static std::string call(Where w, const F& f, A&&... args) {
    if constexpr (CallCheck<F, A...>::ok())
      return core::transfer_lines(explain_fn::call(w, f, std::forward<A>(args)...));
    else return {};
  }
};
}  // namespace detail

/// `transfers(f, args...)`: the transfers of the call f(args...) in program order, one line each with kind, axes, bytes received by the
/// busiest device, the value's type and the operation that needs it: `all_reduce{x} 56 B f32[8] for broadcast`. "" if nothing moves.
/// Independent of source line numbers: `CHECK(sa::transfers(step, model, x) == "all_reduce{x} 1168 B f32[292] for sub")`. Throws as
/// explain().
inline constexpr detail::PlacedFunction<detail::transfers_fn> transfers{};

/// The difference of two plans: lines only in `before`, with `- `, and lines only in `after`, with `+ `, in order; transfers come with
/// their source line. Compares peak memory, flops, transfers (as in `transfers`) and the fate of donated arrays; "" if all are equal.
[[nodiscard]] SHARDARRAY_API std::string plan_diff(const Explanation& before, const Explanation& after);

/// Pins a plan in a test: `plan_lock("step.plan", explain(step, model, x))`. The file holds the lines that plan_diff compares and belongs
/// in the repository; it is written if SHARDARRAY_PLAN_LOCK is `update`, by the first of several processes. Throws PlanError, with the
/// difference, if the plan differs or the file does not exist, IoError for a file that cannot be read or holds no plan, Error for another
/// value of the variable.
SHARDARRAY_API void plan_lock(const std::string& path, const Explanation& plan, Where w = Where::here());

/// Throws PlanError, with paths and reasons, unless results reuse the memory of all donated arrays:
/// `require_reuse(explain(step, donated(model), x))` in a test.
SHARDARRAY_API void require_reuse(const Explanation& plan, Where w = Where::here());

/// Throws OutOfMemory if a device would need more than `bytes_per_device`, before anything runs; the message lists the largest blocks and
/// what would save most, best first: sharding what several devices hold, recomputation (checkpoint) or smaller batches, donation. Throws
/// Error for a number below 1.
SHARDARRAY_API void require_memory(const Explanation& plan, std::int64_t bytes_per_device,
                                   Where w = Where::here());

/// The plan as JSON: the numbers of an Explanation by name, such as `flops`, `peak_bytes_per_device` and `received_bytes_per_device`;
/// `results`; and `transfers`, `largest` and `donations` as lists of objects with the members of TransferInfo, BufferInfo and
/// DonationInfo. Shapes are lists, dtypes names such as `float32`.
[[nodiscard]] SHARDARRAY_API std::string plan_json(const Explanation& plan);

}  // namespace shardarray
