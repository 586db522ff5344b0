// Which traces and gradients are open on this thread. Trace ids only grow: a node belongs to an open trace T or to one
// opened inside it exactly when its id is >= T's.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/node.h"

namespace shardarray {

struct TraceState {
  std::vector<std::uint64_t> open;                ///< innermost last
  std::vector<std::vector<Array>> effects;        ///< of each open trace, in program order
  std::vector<std::shared_ptr<const Axis>> axes;  ///< named axes in scope, innermost last
  std::vector<std::uint64_t> gradients;  ///< first sequence number of every open gradient, innermost last
  /// How many gradients were open when a trace began of which nobody asks for a derivative but by the rule that its function has.
  std::optional<std::size_t> value_alone;
  int walks =
      0;  ///< replays and transposes that run: they hold all they record, so computing some of it frees nothing
  Where cut;  ///< the line where a chain of pending nodes was computed last
  std::uint64_t current() const { return open.empty() ? 0 : open.back(); }
  bool is_open(std::uint64_t id) const;
};
TraceState& trace_state();

/// Opens a trace while it lives.
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

/// An open gradient of this thread while it lives: nodes that are recorded keep their operands when they are evaluated.
class OpenGradient {
 public:
  /// `oldest`: no node of it has a smaller sequence number.
  explicit OpenGradient(std::uint64_t oldest);
  ~OpenGradient();
  OpenGradient(const OpenGradient&) = delete;
  OpenGradient& operator=(const OpenGradient&) = delete;
  /// The name of the outermost one of the thread; its nodes bear it.
  std::uint64_t outermost() const { return outermost_; }

 private:
  std::uint64_t outermost_;
};
/// Whether another thread has an open gradient.
bool others_differentiate();
/// The name of the one of which a variable is below the node; 0: none that is open.
std::uint64_t foreign_gradient(const Node& n);
/// Whether a derivative may be asked for of what this thread makes of the node now.
bool is_differentiated(const Node& n);
/// The gradient of what this thread records of the node, `gradient` being what it is without that. Throws TraceError, in the name of
/// `function`, where it would be lost to one of two.
std::uint64_t joined_gradient(std::uint64_t gradient, const Node& n, const char* function);
/// Keeps a node that was evaluated for the outermost gradient of this name, if it is open (on any thread): it lets go of its
/// operands when that ends. False: it is not open.
bool keep_for_gradient(std::uint64_t name, Node* n);
/// The nodes that were kept for a gradient that has ended.
std::vector<Array> take_kept(std::uint64_t name);

/// While it lives, this thread records values of which derivatives are known otherwise (true), or may be asked for again (false).
class ValueAlone {
 public:
  explicit ValueAlone(bool on);
  ~ValueAlone();
  ValueAlone(const ValueAlone&) = delete;
  ValueAlone& operator=(const ValueAlone&) = delete;

 private:
  std::optional<std::size_t> before_;
};

/// A walk over a graph that records while it lives; see TraceState::walks.
class RecordingWalk {
 public:
  RecordingWalk();
  ~RecordingWalk();
  RecordingWalk(const RecordingWalk&) = delete;
  RecordingWalk& operator=(const RecordingWalk&) = delete;
};

/// The sequence number that the next node will at least have.
std::uint64_t next_sequence();

/// Throws ShapeError when t is the type of no array (check_size), in the name of the function that is running; where none
/// is known, of `otherwise`. Returns its bytes as check_size does.
std::int64_t check_type(const Type& t, const char* otherwise);
/// The function that is running, or `otherwise`.
const char* current_function(const char* otherwise);

/// The axis object that `name` means here. Throws TraceError listing those in scope.
std::shared_ptr<const Axis> find_axis(const std::string& name, const char* function);

}  // namespace shardarray
