// Plans in tests: what a call moves and needs, as lines, as a file that it is compared with, as JSON.
#pragma once
#include <string>

#include "shardarray/explain.h"

namespace shardarray {

namespace core {
/// `all_reduce{x} 56 B f32[8] for sum`, a line for each transfer.
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

/// `transfers(f, args...)`: what the call f(args...) moves, in the order of the program, a line for each transfer with its kind, its axes,
/// the bytes that the busiest device receives, the value's type and the operation that needs it:
/// `all_reduce{x} 56 B f32[8] for broadcast`. "" where nothing moves. Stays the same however the program's lines are moved about:
/// `CHECK(sa::transfers(step, model, x) == "all_reduce{x} 1168 B f32[292] for sub")`. Throws as explain().
inline constexpr detail::PlacedFunction<detail::transfers_fn> transfers{};

/// What is different in a plan: lines that only `before` has, with `- `, and that only `after` has, with `+ `, in their order; transfers
/// with the program's line. Compared are the peak of memory, flops, transfers (as `transfers` has them) and what becomes of donated
/// arrays; "" where all are the same.
[[nodiscard]] SHARDARRAY_API std::string plan_diff(const Explanation& before, const Explanation& after);

/// Holds a plan fast: `plan_lock("step.plan", explain(step, model, x))` in a test. The file has the plan as lines, those that plan_diff
/// compares; it is written where SHARDARRAY_PLAN_LOCK is `update`, by the first of several processes, and belongs into the
/// repository. Throws PlanError with the difference where the plan is another one or there is no file, IoError for a file that
/// cannot be read or is no plan, Error for another value of the variable.
SHARDARRAY_API void plan_lock(const std::string& path, const Explanation& plan, Where w = Where::here());

/// Throws PlanError, with paths and reasons, unless the memory of all donated arrays becomes a result's:
/// `require_reuse(explain(step, donated(model), x))` in a test.
SHARDARRAY_API void require_reuse(const Explanation& plan, Where w = Where::here());

/// Throws OutOfMemory where a device would need more than so many bytes, before anything runs: with the largest pieces, and what would
/// save most of them, most first: to shard what several devices hold, to recompute (checkpoint) or to take smaller parts of a batch, to
/// donate. Throws Error for a number below 1.
SHARDARRAY_API void require_memory(const Explanation& plan, std::int64_t bytes_per_device,
                                   Where w = Where::here());

/// The plan as JSON: the numbers of an Explanation by their names, such as `flops`, `peak_bytes_per_device` and
/// `received_bytes_per_device`, `results`, and `transfers`, `largest` and `donations`, lists of objects with the members of TransferInfo,
/// BufferInfo and DonationInfo; shapes are lists, dtypes names such as `float32`.
[[nodiscard]] SHARDARRAY_API std::string plan_json(const Explanation& plan);

}  // namespace shardarray
