// The erased core under the transforms: what jit, grad and vmap compile down to. The templates in jit.h, grad.h and vmap.h
// flatten trees into spans of arrays and call these. Not meant for users.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/detail/path.h"
#include "shardarray/export.h"

namespace shardarray {

struct Axis;

/// Which arguments jit may take over, besides those that are moved in.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wshadow"  // g++ 12 takes the scoped `none` for one that hides shardarray::none
enum class Donate : std::uint8_t { none, all, all_except_first };
#pragma GCC diagnostic pop

namespace core {

using Arrays = std::vector<Array>;

// ---------------------------------------------------------------- derivatives
/// An open gradient: the given arrays under new names. What this thread computes from `variables()` until linearize() or
/// the end of the object's life can be derived. Once it is linearized it is a value: nothing is open any more, and it may be
/// used and destroyed on any thread.
class SHARDARRAY_API Differentiation {
 public:
  /// Absent entries stay absent.
  explicit Differentiation(std::span<const Array> primals);
  ~Differentiation();
  Differentiation(const Differentiation&) = delete;
  Differentiation& operator=(const Differentiation&) = delete;
  const Arrays& variables() const;
  /// Keeps the linear map from the variables' tangents to those of `outputs`. Once, on the thread that opened it.
  void linearize(std::span<const Array> outputs) const;
  /// The cotangents of the variables for those of the linearized outputs (absent: zero). Absent where a variable is absent.
  Arrays pull(std::span<const Array> cotangents) const;
  /// The tangents of `outputs` for those of the variables (absent: zero).
  Arrays push(std::span<const Array> outputs, std::span<const Array> tangents) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
/// linearize and pull of a scalar loss with cotangent 1. Throws ShapeError unless `loss` is a scalar, DTypeError unless it is floating.
SHARDARRAY_API Arrays gradient(const Differentiation& d, const Array& loss, const char* function);

// ---------------------------------------------------------------- vmap
/// Runs a function on arguments without their mapped dimension. `f` is called once, on placeholders.
struct VmapArg {
  Array array;
  std::optional<std::int64_t> axis;  ///< none: not mapped
  std::string path;                  ///< `0.layers[1].weight`, for messages
};
struct VmapResult {
  Arrays out;  ///< with the mapped dimension first where `mapped`
  std::vector<bool> mapped;
  std::int64_t size = 0;
  std::shared_ptr<const Axis> axis = nullptr;  ///< of pmap
};
SHARDARRAY_API VmapResult vmap(const std::function<Arrays(std::span<const Array>)>& f,
                               std::span<const VmapArg> args, const std::string& axis_name,
                               std::optional<std::int64_t> axis_size, const char* function, Where w);
/// Moves an output's mapped dimension to `axis`; broadcasts an unmapped one; none demands an unmapped one.
SHARDARRAY_API Array place_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis,
                                const std::string& axis_name, const char* function);

// ---------------------------------------------------------------- pmap, shard_map
/// As vmap, with row k of every mapped value on device k. `devices`: which; empty: the first ones. Inside another pmap: those
/// that its position has. Throws DeviceError when there are too few.
SHARDARRAY_API VmapResult pmap(const std::function<Arrays(std::span<const Array>)>& f,
                               std::span<const VmapArg> args, const std::string& axis_name,
                               std::optional<std::int64_t> axis_size, const std::vector<Device>& devices,
                               Where w);
/// place_axis of a pmap's output; none takes the first device's value.
SHARDARRAY_API Array place_device_axis(const VmapResult& r, std::size_t k, std::optional<std::int64_t> axis);

struct ShardMapArg {
  Array array;
  PartitionSpec spec;
  std::string path;
};
/// Runs `f` on the local pieces of the arguments; specs may name axes in `manual` only. `out_spec(k)` is asked after the trace.
SHARDARRAY_API Arrays shard_map(const std::function<Arrays(std::span<const Array>)>& f,
                                std::span<const ShardMapArg> args, const Mesh& mesh,
                                const std::vector<std::string>& manual,
                                const std::function<PartitionSpec(std::size_t)>& out_spec, Where w);

// ---------------------------------------------------------------- jit
struct JitCache;
/// One call's flattened arguments.
struct SHARDARRAY_API JitCall {
  std::vector<std::uint64_t> key;  ///< leaf types with placements, donation mask, statics
  Arrays leaves;                   ///< absent ones left out
  Arrays results;                  ///< filled by jit_launch
  std::vector<Array*> moved;       ///< per leaf: the handle to empty after the launch; null: not moved
  std::vector<bool> dies;          ///< per leaf: donated by option: the buffer dies for every handle
  /// `a` is present. Throws DonationError when it was given away.
  void leaf(const Array& a, Array* moved_handle, bool option_donated, const Path& path);
  void word(std::uint64_t w) { key.push_back(w); }
  void text(std::string_view s);
  /// Empties everything, keeps the storage.
  void clear();
  const char* function = "jit";
  std::vector<std::string> paths;                            ///< of the leaves; filled on a trace only
  std::vector<std::pair<std::string, std::string>> statics;  ///< paths and values; filled on a trace only
};
/// A JitCall whose storage comes from the thread's last call and goes to its next one.
class SHARDARRAY_API ReusedCall {
 public:
  /// `function` outlives the object.
  explicit ReusedCall(const char* function);
  ~ReusedCall();
  ReusedCall(const ReusedCall&) = delete;
  ReusedCall& operator=(const ReusedCall&) = delete;
  JitCall& operator*() const { return *call_; }

 private:
  std::unique_ptr<JitCall> call_;
};
/// A traced and compiled call.
struct JitEntry;
struct SHARDARRAY_API JitOptions {
  Donate donate = Donate::none;
  std::string name = "jit";      ///< in messages
  std::size_t max_entries = 64;  ///< of the cache; the least recently used goes first
  bool check = false;  ///< retrace on every hit and compare: finds captured values that changed (TraceError)
  std::vector<int> static_args =
      {};  ///< positions whose values are part of the key (they must hold no arrays)
  std::optional<Sharding> in_shardings = std::nullopt,
                          out_shardings = std::nullopt;  ///< one for every array leaf
  std::vector<int> donate_args = {};  ///< positions that are given away, besides what `donate` says
  bool relocate = false;              ///< arguments on other devices than the function's come over (pmap)
};
SHARDARRAY_API std::shared_ptr<JitCache> make_jit_cache(JitOptions options);
SHARDARRAY_API std::size_t jit_cache_size(const JitCache& c);
SHARDARRAY_API int jit_traces(const JitCache& c);
/// The open trace of a call: the function runs on `placeholders()`, one per leaf.
class SHARDARRAY_API JitTrace {
 public:
  JitTrace(const JitCall& call, const JitOptions& options);
  ~JitTrace();
  JitTrace(const JitTrace&) = delete;
  JitTrace& operator=(const JitTrace&) = delete;
  const Arrays& placeholders() const;

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};
/// Null: this call was not seen yet, or `check` wants it traced again.
SHARDARRAY_API std::shared_ptr<const JitEntry> jit_find(JitCache& c, const JitCall& call);
/// Ends the trace: collects the graph below `outputs` (absent ones allowed), keeps `prototype` (the returned tree) with it.
SHARDARRAY_API std::shared_ptr<const JitEntry> jit_finish(JitCache& c, const JitCall& call, JitTrace& trace,
                                                          std::span<const Array> outputs,
                                                          std::shared_ptr<void> prototype);
SHARDARRAY_API const std::shared_ptr<void>& jit_prototype(const JitEntry& e);
/// Compiles at the first launch for these placements, runs, empties moved handles. Under an open trace or gradient: records
/// a call instead. Outputs: one per output of the trace; they stand in the call, to be taken out.
SHARDARRAY_API std::span<Array> jit_launch(const JitEntry& e, JitCall& call);
/// True inside jit, vmap, pmap or control flow on this thread.
SHARDARRAY_API bool tracing();

}  // namespace core
}  // namespace shardarray
