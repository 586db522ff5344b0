// What jit and explain share of a traced call.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "shardarray/core.h"
#include "transform/eval.h"

namespace shardarray::core {

struct JitEntry {
  std::shared_ptr<const Graph> graph;  ///< inputs: the leaves, then the captured arrays
  FlatGraph flat;
  Arrays captured;
  std::shared_ptr<void> prototype;
  std::string function;
  std::vector<std::string> paths;
  /// For the placements seen so far; bounded. Guarded by the graph lock.
  mutable std::vector<std::pair<std::vector<const void*>, std::shared_ptr<const LoadedProgram>>> programs;
};

/// The values of the leaves, then of the captured arrays, computed if need be.
std::vector<ValueRef> call_values(const JitEntry& e, const JitCall& call);
/// Per value: may its buffers be overwritten.
std::vector<bool> donation_mask(const JitEntry& e, const JitCall& call);
std::shared_ptr<const LoadedProgram> program_for(const JitEntry& e, std::span<const ValueRef> values, const std::vector<bool>& donated,
                                                 const char* function);
/// With who owns what.
std::vector<LaunchLeaf> launch_leaves(const JitCall& call, std::span<const ValueRef> values);

}  // namespace shardarray::core
