// The type-erased core of jit: one call's arguments, its trace, its launch.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "shardarray/detail/path.h"
#include "shardarray/jit_options.h"

namespace shardarray::core {

using Arrays = std::vector<Array>;

struct JitCache;
/// One call's flattened arguments.
struct SHARDARRAY_API JitCall {
  std::vector<std::uint64_t> key;  ///< modes, leaf types, donations, statics
  Arrays leaves;                   ///< absent ones left out
  Arrays results;                  ///< filled by jit_launch
  std::vector<Array*> moved;       ///< per leaf: the handle to empty after the launch; null: not moved
  std::vector<bool> dies;          ///< per leaf: donated by option: the buffer dies for every handle
  /// `a` is present. Throws DonationError if it was donated.
  void leaf(const Array& a, Array* moved_handle, bool option_donated, const Path& path);
  void word(std::uint64_t w) { key.push_back(w); }
  void text(std::string_view s);
  /// Empties everything, keeps the capacity.
  void clear();
  const char* function = "jit";
  Where where;                                               ///< of the call
  std::vector<std::string> paths;                            ///< of the leaves; filled on a trace only
  std::vector<std::pair<std::string, std::string>> statics;  ///< paths and values; filled on a trace only
};
/// A JitCall whose storage a thread reuses from call to call.
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
SHARDARRAY_API std::shared_ptr<JitCache> make_jit_cache();
SHARDARRAY_API std::shared_ptr<JitCache> make_jit_cache(JitOptions&& options);
/// For pmap: arguments on other devices are moved.
SHARDARRAY_API std::shared_ptr<JitCache> make_pmap_cache(const std::vector<int>& static_args,
                                                         const std::vector<int>& donate_args);
SHARDARRAY_API const JitOptions& jit_options(const JitCache& c);
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
/// Null: this call was not traced yet, or has to be traced again (`check`, or inside a map).
SHARDARRAY_API std::shared_ptr<const JitEntry> jit_find(JitCache& c, const JitCall& call);
/// Ends the trace: collects the graph below `outputs` (absent ones allowed), and stores `prototype` (the returned tree) with it.
SHARDARRAY_API std::shared_ptr<const JitEntry> jit_finish(JitCache& c, const JitCall& call, JitTrace& trace,
                                                          std::span<const Array> outputs,
                                                          std::shared_ptr<void> prototype);
SHARDARRAY_API const std::shared_ptr<void>& jit_prototype(const JitEntry& e);
/// Compiles at the first launch for these placements, runs, empties moved handles. Under an open trace or gradient: records
/// a call instead. Returns one result per output of the trace, stored in the call; the caller moves them out.
SHARDARRAY_API std::span<Array> jit_launch(const JitEntry& e, JitCall& call);

}  // namespace shardarray::core
