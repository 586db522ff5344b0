// explain: what a call would move, reuse and need, before it runs. The plan shown is the one that runs.
#pragma once
#include <iosfwd>

#include "shardarray/jit.h"

namespace shardarray {

class Explanation;
struct Machine;
struct Program;
namespace core {
/// Compiles the call for the placements of its arguments; runs and donates nothing. `brief`: without the lines for values.
SHARDARRAY_API Explanation explain_call(const JitEntry& entry, const JitCall& call, bool brief = false);
}  // namespace core

/// One transfer between devices.
struct SHARDARRAY_API TransferInfo {
  std::string kind;    ///< all_reduce, reduce_scatter, all_gather, all_to_all, permute or exchange
  std::string axes;    ///< mesh axes that it runs over
  std::string reason;  ///< why it is needed
  std::string op;      ///< the operation that needs it
  std::string source;  ///< `file:line` in the user's program
  std::int64_t bytes_per_device = 0;  ///< received by the busiest device, counting memories as separate
  /// Received by each device, in the order of Explanation::devices(); empty: all receive bytes_per_device.
  std::vector<std::int64_t> received = {};
  /// Distance from the minimum: bytes that the busiest device receives in all transfers of this value from where it was to where it is
  /// needed, divided by what it must receive for that in any case. 1: proved minimal; 0: the minimum is unknown. Whether the value could
  /// be needed elsewhere is another question: see runner_up.
  double gap = 0;
  std::int64_t moved_bytes = 0;  ///< physically copied
  Shape shape;                   ///< of the global value
  DType dtype = DType::float32;  ///< of the value
  double seconds = 0;            ///< of all its runs, on a described machine or by Explanation::on; else 0
  std::string
      runner_up;  ///< bytes of the operation's next best strategy: `112 B by operand 0 as [{}, {x}]`; empty: there is no other
  /// The number of values combined in it: small sums over the same axes. Bytes are those of all; op, source, shape and reason the first
  /// one's.
  std::int64_t values = 1;
};
/// One donated array.
struct SHARDARRAY_API DonationInfo {
  std::string path;     ///< `0.layers[1].weight`
  bool reused = false;  ///< a result takes over its memory
  std::string reason;   ///< why not; empty if reused
};

/// One of the largest blocks of memory that the busiest device holds when its temporary values peak.
struct SHARDARRAY_API BufferInfo {
  enum class Kind : std::uint8_t { argument, result, temporary };
  Kind kind = Kind::temporary;
  std::string what;  ///< `argument 0.layers[1].weight`, `result 2`, or the operation of a temporary value
  std::string
      type;  ///< of the value, with its sharding: `f32[512@x,256]`; empty for what a loop or a branch needs meanwhile
  std::string source;  ///< `file:line` in the user's program; empty for arguments
  std::int64_t bytes_per_device = 0;
  int copies = 1;  ///< devices that hold the same shard of the value
};

/// The result of explain(). Prints as text.
class SHARDARRAY_API Explanation {
 public:
  /// Used by explain().
  Explanation(std::vector<TransferInfo> transfers, std::vector<DonationInfo> donations,
              std::string values = "", std::vector<BufferInfo> largest = {},
              std::vector<std::string> results = {})
      : transfers_(std::move(transfers)),
        donations_(std::move(donations)),
        values_(std::move(values)),
        largest_(std::move(largest)),
        results_(std::move(results)) {}
  /// Transfers in program order; donated arrays of the call in the order of the leaves.
  [[nodiscard]] const std::vector<TransferInfo>& transfers() const& { return transfers_; }
  [[nodiscard]] const std::vector<DonationInfo>& donations() const& { return donations_; }
  /// The ten largest blocks at peak memory, largest first; a result that takes over a donated argument counts as that argument.
  [[nodiscard]] const std::vector<BufferInfo>& largest() const& { return largest_; }
  /// The results' types and shardings in the order of the leaves, as spelled by type_string(): `f32[8@x,4]`. Part of an axis prints as
  /// `x:(1)2`, which no spec can express.
  [[nodiscard]] const std::vector<std::string>& results() const& { return results_; }
  /// By value, so that `for (auto& t : explain(f, x).transfers())` outlives the Explanation.
  [[nodiscard]] std::vector<TransferInfo> transfers() && { return std::move(transfers_); }
  [[nodiscard]] std::vector<DonationInfo> donations() && { return std::move(donations_); }
  [[nodiscard]] std::vector<BufferInfo> largest() && { return std::move(largest_); }
  [[nodiscard]] std::vector<std::string> results() && { return std::move(results_); }
  /// Bytes received over the whole program by the device that receives most, counting memories as separate.
  [[nodiscard]] std::int64_t received_bytes_per_device() const;
  /// Totals, then lines for values, transfers, donations and the largest blocks of memory. A value's line has its number, type, sharding,
  /// `U` with the axes of partial sums, the operation or kind of transfer with its operands, what is moved for it and the next best
  /// strategy, source line. `x:(4)2` is, as in Shardy, the factor 2 of axis x below a factor 4: for x = 8 it distinguishes the two of
  /// each pair of neighbours. Also printed by <<.
  [[nodiscard]] std::string to_string() const;
  /// The same without values, for long programs: equal transfers share one line, preceded by `6 x`; only donations in vain are listed.
  [[nodiscard]] std::string summary() const;

  /// The devices that the program runs on, in its order.
  [[nodiscard]] std::vector<Device> devices() const;
  /// This plan with times predicted from a machine's numbers (machine.h): `explain(f, x).on(this_machine())`. The program's devices stand
  /// for the first ones of the machine; nothing is replanned. Throws DeviceError if the machine has too few devices or an invalid number.
  [[nodiscard]] Explanation on(const Machine& m, Where w = Where::here()) const;

  std::int64_t peak_bytes_per_device = 0;  ///< of the busiest device, including arguments
  /// Floating-point operations of the busiest device: a multiply-add counts two, an exponential or a maximum one; comparisons,
  /// conversions, integer operations and data movement none. Independent of what the backend makes of them.
  std::int64_t flops = 0;
  std::int64_t steps_per_device = 0;  ///< loops, matrix products, library calls and exchanges
  /// On a described machine, or by on(), else 0: seconds of the busiest device's steps, each including its launch cost; products and
  /// convolutions take the longer of arithmetic and memory traffic, other steps the latter. And seconds of all transfers: collectives go
  /// level by level through the links, other transfers over the slowest link between their devices. Of branches, the longest counts, with
  /// the transfers of all; of a while loop one iteration. A run takes between the larger of the two sums, if transfers are fully
  /// overlapped with steps, and their total.
  double compute_seconds = 0, transfer_seconds = 0;
  std::string machine;                 ///< its name; empty: its numbers are unknown
  std::int64_t memory_per_device = 0;  ///< bytes of memory of each of its devices

 private:
  friend Explanation core::explain_call(const core::JitEntry&, const core::JitCall&, bool);
  std::shared_ptr<const Program> program_;
  std::vector<TransferInfo> transfers_;
  std::vector<DonationInfo> donations_;
  std::string values_;  ///< one line per value
  std::vector<BufferInfo> largest_;
  std::vector<std::string> results_;
};
SHARDARRAY_API std::ostream& operator<<(std::ostream& os, const Explanation& e);

namespace core {
/// The simplified graph of the call as text.
[[nodiscard]] SHARDARRAY_API std::string print_call(const JitEntry& entry, const JitCall& call);
}  // namespace core

namespace detail {

template <class> inline constexpr bool is_jitted = false;
template <class F> inline constexpr bool is_jitted<Jitted<F>> = true;

/// Returns then(program, call) for f(args...), traced but not run.
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

/// The implementations of explain() and print_graph().
struct explain_fn {
  template <class F, class... A> static Explanation call(Where w, const F& f, A&&... args) {
    if constexpr (CallCheck<F, A...>::ok())
      return with_lowered(
          w, f, [](const core::JitEntry& e, const core::JitCall& c) { return core::explain_call(e, c); },
          std::forward<A>(args)...);
    else return Explanation({}, {});
  }
};
struct print_graph_fn {
  template <class F, class... A> static std::string call(Where w, const F& f, A&&... args) {
    if constexpr (CallCheck<F, A...>::ok())
      return with_lowered(w, f, core::print_call, std::forward<A>(args)...);
    else return {};
  }
};

}  // namespace detail

/// An array of this shape, dtype and sharding without values or memory, for explain(), print_graph() and transfers(): for models too
/// large for the memory here, and for machines that are elsewhere (machine.h). device_put() and filter_shard() of such arrays return such
/// arrays; one without a sharding counts as replicated on all devices. Reading it or computing with it throws TraceError. Throws
/// ShapeError for an impossible size, ShardingError or DeviceError for a sharding that does not fit. Source: jax.ShapeDtypeStruct.
[[nodiscard]] SHARDARRAY_API Array shape_dtype_struct(const Shape& shape, DType dtype,
                                                      const Sharding& sharding, Where w = Where::here());

/// `explain(f, args...)` returns an Explanation of the call f(args...); f is a function or the result of jit or pmap. Pass arguments
/// exactly as to the call, including moves and donated(); nothing runs, nothing is donated. Arrays without values (shape_dtype_struct)
/// are allowed. Throws what compiling the call throws.
inline constexpr detail::PlacedFunction<detail::explain_fn> explain{};
/// `print_graph(f, args...)`: the simplified graph recorded for the call f(args...), as a std::string. As explain().
inline constexpr detail::PlacedFunction<detail::print_graph_fn> print_graph{};

}  // namespace shardarray
