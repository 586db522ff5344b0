// Which traces and gradients are open on this thread. Trace ids only grow: a node belongs to an open trace T or to one opened inside it
// exactly if its id is >= T's.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace shardarray {

struct TraceState {
  std::vector<std::uint64_t> open;                ///< innermost last
  std::vector<std::vector<Array>> effects;        ///< per open trace, in program order
  std::vector<std::shared_ptr<const Axis>> axes;  ///< named axes in scope, innermost last
  std::vector<std::uint64_t> gradients;  ///< first sequence number of each open gradient, innermost last
  /// Set in traces that are differentiated only by a rule of their own: how many gradients were open when they began.
  std::optional<std::size_t> value_alone;
  int walks =
      0;  ///< running replays and transposes: they hold everything they record, so computing part of it early frees nothing
  Where cut;  ///< the line where a chain of pending nodes was last computed early
  std::uint64_t current() const { return open.empty() ? 0 : open.back(); }
  bool is_open(std::uint64_t id) const;
};
TraceState& trace_state();

/// RAII: opens a trace.
class OpenTrace {
 public:
  OpenTrace();
  ~OpenTrace();
  OpenTrace(const OpenTrace&) = delete;
  OpenTrace& operator=(const OpenTrace&) = delete;
  std::uint64_t id() const { return id_; }

 private:
  std::uint64_t id_;
};

/// RAII: an open gradient of this thread. Nodes recorded meanwhile keep their operands when they are evaluated.
class OpenGradient {
 public:
  /// `oldest`: lower bound of the sequence numbers of its nodes.
  explicit OpenGradient(std::uint64_t oldest);
  ~OpenGradient();
  OpenGradient(const OpenGradient&) = delete;
  OpenGradient& operator=(const OpenGradient&) = delete;
  /// The name of this thread's outermost gradient, which its nodes carry.
  std::uint64_t outermost() const { return outermost_; }

 private:
  std::uint64_t outermost_;
};
/// Whether another thread has an open gradient.
bool others_differentiate();
/// The name of another open gradient with a variable below the node; 0: none.
std::uint64_t foreign_gradient(const Node& n);
/// Whether derivatives may be needed of what this thread now computes from the node.
bool is_differentiated(const Node& n);
/// The gradient of what this thread records from the node; `gradient` is what it would be otherwise. Throws TraceError, in the name of
/// `function`, if one of two gradients would lose it.
std::uint64_t joined_gradient(std::uint64_t gradient, const Node& n, const char* function);
/// Keeps an evaluated node for the outermost gradient of this name, if that is open (on any thread); the node releases its operands when
/// the gradient ends. False: it is not open.
bool keep_for_gradient(std::uint64_t name, Node* n);
/// The nodes that were kept for a finished gradient.
std::vector<Array> take_kept(std::uint64_t name);

/// RAII: this thread records values whose derivatives come from elsewhere (true), or values that are differentiated again (false).
class ValueAlone {
 public:
  explicit ValueAlone(bool on);
  ~ValueAlone();
  ValueAlone(const ValueAlone&) = delete;
  ValueAlone& operator=(const ValueAlone&) = delete;

 private:
  std::optional<std::size_t> before_;
};

/// RAII: a walk over a graph that records; see TraceState::walks.
class RecordingWalk {
 public:
  RecordingWalk();
  ~RecordingWalk();
  RecordingWalk(const RecordingWalk&) = delete;
  RecordingWalk& operator=(const RecordingWalk&) = delete;
};

/// A lower bound of the next node's sequence number.
std::uint64_t next_sequence();

/// Throws ShapeError if no array can have type t (check_size), in the name of the running function, or of `otherwise` if unknown. Returns
/// the bytes, as check_size does.
std::int64_t check_type(const Type& t, const char* otherwise);
/// The running public function, or `otherwise`.
const char* current_function(const char* otherwise);

/// The axis that `name` refers to here. Throws TraceError listing those in scope.
std::shared_ptr<const Axis> find_axis(const std::string& name, const char* function);

}  // namespace shardarray
