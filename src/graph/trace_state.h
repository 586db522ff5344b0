// Which traces and gradients are open on this thread. Trace ids only grow: a node belongs to an open trace T or to one
// opened inside it exactly when its id is >= T's.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "graph/node.h"

namespace shardarray {

struct TraceState {
  std::vector<std::uint32_t> open;                ///< innermost last
  std::vector<std::vector<Array>> effects;        ///< of each open trace, in program order
  std::vector<std::shared_ptr<const Axis>> axes;  ///< named axes in scope, innermost last
  std::vector<std::uint64_t> gradients;           ///< first sequence number of every open gradient
  Where site;
  bool partitionable_random = true;  ///< see random::partitionable; traces of one mode do not serve the other
  std::uint32_t current() const { return open.empty() ? 0 : open.back(); }
  bool is_open(std::uint32_t id) const;
};
TraceState& trace_state();

/// Opens a trace while it lives.
class OpenTrace {
 public:
  OpenTrace();
  ~OpenTrace();
  OpenTrace(const OpenTrace&) = delete;
  OpenTrace& operator=(const OpenTrace&) = delete;
  std::uint32_t id() const { return id_; }

 private:
  std::uint32_t id_;
};

/// The sequence number that the next node will at least have.
std::uint64_t next_sequence();

/// The axis object that `name` means here. Throws TraceError listing those in scope.
std::shared_ptr<const Axis> find_axis(const std::string& name, const char* function);

}  // namespace shardarray
