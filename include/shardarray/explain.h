// explain: what a call would move, reuse and need, before it runs. The plan shown is the plan that runs.
#pragma once
#include <iosfwd>

#include "shardarray/jit.h"

namespace shardarray {

/// One transfer between devices.
struct SHARDARRAY_API TransferInfo {
  std::string kind;    ///< all_reduce, reduce_scatter, all_gather, all_to_all, permute or exchange
  std::string axes;    ///< mesh axes it runs over
  std::string reason;  ///< why it is there
  std::string op;      ///< the operation that needs it
  std::string source;  ///< `file:line` of the user's program
  std::int64_t bytes_per_device = 0;  ///< what the busiest device receives if memories were separate
  std::int64_t moved_bytes = 0;       ///< what is physically copied
  Shape shape;                        ///< of the global value
  DType dtype = DType::float32;       ///< of the value
  double seconds = 0;                 ///< on a described machine (machine.h), of all its runs; else 0
};
/// One donated array.
struct SHARDARRAY_API DonationInfo {
  std::string path;     ///< `0.layers[1].weight`
  bool reused = false;  ///< its memory becomes a result's
  std::string reason;   ///< why not; empty when reused
};

/// What explain() found. Prints as text.
class SHARDARRAY_API Explanation {
 public:
  /// What explain() makes.
  Explanation(std::vector<TransferInfo> transfers, std::vector<DonationInfo> donations,
              std::string values = "")
      : transfers_(std::move(transfers)), donations_(std::move(donations)), values_(std::move(values)) {}
  /// In the order of the program; of the call's donated arrays, in the order of the leaves.
  [[nodiscard]] const std::vector<TransferInfo>& transfers() const& { return transfers_; }
  [[nodiscard]] const std::vector<DonationInfo>& donations() const& { return donations_; }
  /// By value: `for (auto& t : explain(f, x).transfers())` outlives the Explanation.
  [[nodiscard]] std::vector<TransferInfo> transfers() && { return std::move(transfers_); }
  [[nodiscard]] std::vector<DonationInfo> donations() && { return std::move(donations_); }
  /// Sums, then lines for the values (type, sharding, operation, source line), transfers and donations. Streams so too.
  [[nodiscard]] std::string to_string() const;

  std::int64_t peak_bytes_per_device = 0;  ///< of the busiest device, arguments included
  std::int64_t flops = 0;             ///< of the busiest device; a multiplication and an addition are two
  std::int64_t steps_per_device = 0;  ///< loops, products, library calls and exchanges
  /// On a described machine (machine.h): seconds of the busiest device's steps, products and convolutions as long as their arithmetic or
  /// their memory takes, others as their memory takes; and seconds of all transfers: collectives level by level through the links, whatever
  /// else moves over the slowest links between its devices. Of branches the longest counts, and all their transfers; of a while loop one
  /// run. A run takes at least the longer of the two sums, if all transfers hide behind steps, and at most both
  /// together, but for what starting a step costs. Else 0.
  double compute_seconds = 0, transfer_seconds = 0;
  std::string machine;                 ///< its name; empty: the devices are here
  std::int64_t memory_per_device = 0;  ///< bytes that a device of it has

 private:
  std::vector<TransferInfo> transfers_;
  std::vector<DonationInfo> donations_;
  std::string values_;  ///< one line per value: type, sharding, op, source
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Explanation& e);

namespace core {
/// Compiles the call for the placements of its arguments; runs nothing, takes nothing.
SHARDARRAY_API Explanation explain_call(const JitEntry& entry, const JitCall& call);
/// The graph of the call as text, after simplification.
[[nodiscard]] SHARDARRAY_API std::string print_call(const JitEntry& entry, const JitCall& call);
}  // namespace core

namespace detail {

template <class> inline constexpr bool is_jitted = false;
template <class F> inline constexpr bool is_jitted<Jitted<F>> = true;

/// then(program, call) for f(args...), traced and not run.
template <class F, class Then, class... A>
auto with_lowered(Where w, const F& f, const Then& then, A&&... args) {
  if constexpr (!is_jitted<F>) return with_lowered(w, jit(f), then, std::forward<A>(args)...);
  else {
    core::ReusedCall call(f.options().name.c_str());
    const auto entry = f.lower(*call, w, std::forward<A>(args)...);
    return then(*entry, *call);
  }
}
template <class F> struct FunctionOf { using type = F; };
template <class F> struct FunctionOf<Jitted<F>> { using type = F; };
template <class F, class... A>
using CallCheck =
    Judged<TreeVerdict<argument_t<A>>..., FunctionVerdict<typename FunctionOf<F>::type, argument_t<A>...>>;

/// What explain() and print_graph() do.
struct explain_fn {
  template <class F, class... A> static auto call(Where w, const F& f, A&&... args) {
    if constexpr (CallCheck<F, A...>::ok())
      return with_lowered(w, f, core::explain_call, std::forward<A>(args)...);
  }
};
struct print_graph_fn {
  template <class F, class... A> static auto call(Where w, const F& f, A&&... args) {
    if constexpr (CallCheck<F, A...>::ok())
      return with_lowered(w, f, core::print_call, std::forward<A>(args)...);
  }
};

}  // namespace detail

/// An array of this shape and dtype that would lie so, without values or memory, for explain(), print_graph() and transfers(): of models
/// that no memory here would hold, and of machines that are elsewhere (machine.h). device_put() and filter_shard() of such arrays give such
/// arrays; one without a sharding counts as a whole on each device. Reading or computing with it throws TraceError. Throws ShapeError for a
/// size that no array has, ShardingError or DeviceError for a sharding that does not fit. Source: jax.ShapeDtypeStruct.
[[nodiscard]] SHARDARRAY_API Array shape_dtype_struct(const Shape& shape, DType dtype,
                                                      const Sharding& sharding, Where w = Where::here());

/// `explain(f, args...)`: an Explanation of the call f(args...), f a function or what jit or pmap gave. Give the arguments exactly as to the
/// call, moves and donated() included; nothing runs, nothing is taken. Arrays without values (shape_dtype_struct) will do. Throws what
/// compiling the call throws.
inline constexpr detail::PlacedFunction<detail::explain_fn> explain{};
/// `print_graph(f, args...)`: the recorded graph of the call f(args...), simplified, as a std::string. As explain().
inline constexpr detail::PlacedFunction<detail::print_graph_fn> print_graph{};

}  // namespace shardarray
