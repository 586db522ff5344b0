// explain: what a call would move, reuse and need, before it runs. The plan shown is the plan that runs.
#pragma once
#include <iosfwd>

#include "shardarray/jit.h"

namespace shardarray {

class Explanation;
struct Machine;
struct Program;
namespace core {
/// Compiles the call for the placements of its arguments; runs nothing, takes nothing. `brief`: without the lines of values.
SHARDARRAY_API Explanation explain_call(const JitEntry& entry, const JitCall& call, bool brief = false);
}  // namespace core

/// One transfer between devices.
struct SHARDARRAY_API TransferInfo {
  std::string kind;    ///< all_reduce, reduce_scatter, all_gather, all_to_all, permute or exchange
  std::string axes;    ///< mesh axes it runs over
  std::string reason;  ///< why it is there
  std::string op;      ///< the operation that needs it
  std::string source;  ///< `file:line` of the user's program
  std::int64_t bytes_per_device = 0;  ///< what the busiest device receives if memories were separate
  /// What each device receives, in the order of Explanation::devices(); empty: all as much as bytes_per_device.
  std::vector<std::int64_t> received = {};
  /// How far from the least: bytes of all transfers that bring this value from where it was to where it is needed, by what the busiest
  /// device has to receive for that in any way. 1: proved to be the least; 0: nobody knows the least. Whether the value could be needed
  /// elsewhere is another question: runner_up.
  double gap = 0;
  std::int64_t moved_bytes = 0;  ///< what is physically copied
  Shape shape;                   ///< of the global value
  DType dtype = DType::float32;  ///< of the value
  double seconds = 0;            ///< on a described machine, or by Explanation::on, of all its runs; else 0
  std::string
      runner_up;  ///< what the operation would have moved the next best way: `112 B by operand 0 as [{}, {x}]`; empty: no other
  /// That go together: small sums over the same axes. The bytes are those of all; op, source, shape and reason are the first one's.
  std::int64_t values = 1;
};
/// One donated array.
struct SHARDARRAY_API DonationInfo {
  std::string path;     ///< `0.layers[1].weight`
  bool reused = false;  ///< its memory becomes a result's
  std::string reason;   ///< why not; empty when reused
};

/// One of the largest pieces of memory that the busiest device has when its temporary values take most.
struct SHARDARRAY_API BufferInfo {
  enum class Kind : std::uint8_t { argument, result, temporary };
  Kind kind = Kind::temporary;
  std::string what;  ///< `argument 0.layers[1].weight`, `result 2`, or the operation of a temporary value
  std::string
      type;  ///< of the value, with its sharding: `f32[512@x,256]`; empty for what a loop or a branch needs meanwhile
  std::string source;  ///< `file:line` of the user's program; empty for arguments
  std::int64_t bytes_per_device = 0;
  int copies = 1;  ///< devices that hold the same piece of the value
};

/// What explain() found. Prints as text.
class SHARDARRAY_API Explanation {
 public:
  /// What explain() makes.
  Explanation(std::vector<TransferInfo> transfers, std::vector<DonationInfo> donations,
              std::string values = "", std::vector<BufferInfo> largest = {},
              std::vector<std::string> results = {})
      : transfers_(std::move(transfers)),
        donations_(std::move(donations)),
        values_(std::move(values)),
        largest_(std::move(largest)),
        results_(std::move(results)) {}
  /// In the order of the program; of the call's donated arrays, in the order of the leaves.
  [[nodiscard]] const std::vector<TransferInfo>& transfers() const& { return transfers_; }
  [[nodiscard]] const std::vector<DonationInfo>& donations() const& { return donations_; }
  /// The ten largest of what makes the peak of memory, the largest first; a result that takes over a donated argument counts as that.
  [[nodiscard]] const std::vector<BufferInfo>& largest() const& { return largest_; }
  /// The results' types with their shardings, in the order of the leaves, as type_string() spells them: `f32[8@x,4]`; a part of an axis
  /// as `x:(1)2`, which has no spelling as a spec.
  [[nodiscard]] const std::vector<std::string>& results() const& { return results_; }
  /// By value: `for (auto& t : explain(f, x).transfers())` outlives the Explanation.
  [[nodiscard]] std::vector<TransferInfo> transfers() && { return std::move(transfers_); }
  [[nodiscard]] std::vector<DonationInfo> donations() && { return std::move(donations_); }
  [[nodiscard]] std::vector<BufferInfo> largest() && { return std::move(largest_); }
  [[nodiscard]] std::vector<std::string> results() && { return std::move(results_); }
  /// What the device receives that receives most over the whole program, if memories were separate.
  [[nodiscard]] std::int64_t received_bytes_per_device() const;
  /// Sums, then lines for the values, transfers, donations and the largest pieces of memory. Of a value: its number, type, sharding, `U`
  /// with the axes of partial sums, the operation or kind of transfer with the values that it takes, what moves something for it and the
  /// next best way, source line. `x:(4)2` is, as in Shardy, the factor 2 of axis x below a factor 4: with x = 8 it
  /// tells the two of each pair of neighbours apart. Streams so too.
  [[nodiscard]] std::string to_string() const;
  /// The same without the values, for programs of many lines: transfers that are alike are one line, `6 x` in front; of donations those in
  /// vain have lines.
  [[nodiscard]] std::string summary() const;

  /// That the program runs on, in its order.
  [[nodiscard]] std::vector<Device> devices() const;
  /// This plan with times by a machine's numbers (machine.h): `explain(f, x).on(this_machine())`. The program's devices count as the
  /// first ones of the machine. It is not planned anew. Throws DeviceError where the machine has fewer devices, or a number makes no sense.
  [[nodiscard]] Explanation on(const Machine& m, Where w = Where::here()) const;

  std::int64_t peak_bytes_per_device = 0;  ///< of the busiest device, arguments included
  /// Operations on floating numbers, of the busiest device: a multiplication and an addition are two, an exponential or a maximum is one,
  /// comparisons, conversions, integers and what only moves are none. The same whatever the backend makes of them.
  std::int64_t flops = 0;
  std::int64_t steps_per_device = 0;  ///< loops, products, library calls and exchanges
  /// On a described machine, or by on(): seconds of the busiest device's steps, each with what it costs to begin, products and
  /// convolutions as long as their arithmetic or their memory takes, others as their memory takes; and seconds of all transfers:
  /// collectives level by level through the links, whatever else moves over the slowest links between its devices. Of branches the
  /// longest counts, and all their transfers; of a while loop one run. A run takes at least the longer of the two sums, if all transfers
  /// hide behind steps, and at most both together. Else 0.
  double compute_seconds = 0, transfer_seconds = 0;
  std::string machine;                 ///< its name; empty: nobody knows its numbers
  std::int64_t memory_per_device = 0;  ///< bytes that a device of it has

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
