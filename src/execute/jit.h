// What jit and explain share of a traced call.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/least_used.h"
#include "base/thread_memo.h"
#include "execute/effects.h"
#include "execute/evaluate.h"
#include "shardarray/detail/jit_call.h"
#include "shardarray/device.h"

namespace shardarray::core {

struct JitEntry {
  std::vector<std::uint64_t> key;      ///< of the calls that it serves
  std::shared_ptr<const Graph> graph;  ///< inputs: the leaves, then the captured arrays
  FlatGraph flat;
  Arrays captured;
  const Modes* modes = nullptr;  ///< of the calls
  LastUse used;                  ///< its clock counts the function's traces
  std::shared_ptr<void> prototype;
  const char* function = "jit";  ///< never freed: tombstones point at it
  std::vector<std::string> paths;
  std::vector<Type> output_types;  ///< of the outputs that are present
  std::vector<bool> output_present;
  std::vector<HostEffect> effects;    ///< run after the program; their operands are its last results
  Arrays tombstones;                  ///< per leaf: what a handle holds after it was moved into a call
  const DeviceOrder* home = nullptr;  ///< leaves on other devices move here first; null: they are an error
  /// A program for a placement of the leaves.
  struct Placed {
    std::vector<const void*> leaves;  ///< layout of a committed leaf, device order of a free one
    bool share_replicas;
    std::int64_t memory_budget;
    std::shared_ptr<const LoadedProgram> program;
    LastUse used;                                ///< its clock counts the trace's programs
    std::vector<OrderRef> orders = {};           ///< keeps the addresses in `leaves` unique
    mutable std::atomic<bool> inspected{false};  ///< its inspectors were called
  };
  TableId placements;
  mutable std::mutex mutex;
  mutable std::vector<std::shared_ptr<const Placed>>
      programs;                        ///< those seen so far; bounded; guarded by the mutex
  mutable std::uint64_t compiled = 0;  ///< how many, evicted ones included
};

/// The leaves' values (computed if necessary), then the captured arrays', with their owners.
void launch_leaves(const JitEntry& e, const JitCall& call, std::vector<LaunchLeaf>& leaves);
/// The same for explain(), which needs no values: leaves without a value have a placement only.
void placed_leaves(const JitEntry& e, const JitCall& call, std::vector<LaunchLeaf>& leaves);
/// The program for these placements.
std::shared_ptr<const JitEntry::Placed> placed_for(const JitEntry& e, std::span<const LaunchLeaf> leaves,
                                                   const char* function);

}  // namespace shardarray::core
