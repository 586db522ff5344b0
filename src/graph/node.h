// Node: one recorded operation, immutable except for its values. An Array is (node, output index).
//
// One allocation: the header, the outputs, the operands. Destruction and all walks over nodes are iterative.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/key.h"
#include "base/reducer.h"
#include "graph/value.h"
#include "runtime/modes.h"
#include "shardarray/array.h"

namespace shardarray {

struct Op;
struct Graph;
struct HostCall;

/// What an array is, without its values.
struct Type {
  Shape shape;
  DType dtype = DType::float32;
  bool weak = false;
  friend bool operator==(const Type&, const Type&) = default;
};
/// `f32[16,8]`.
std::string to_string(const Type& t);

struct Region;
using ArrayCref = std::reference_wrapper<const Array>;

/// A named axis of an enclosing map. Names are resolved when a collective is recorded; from then on this object identifies the axis.
struct Axis {
  std::string name;
  std::int64_t size = 0;
  std::shared_ptr<Region> region =
      nullptr;  ///< for axes whose positions are devices (pmap, shard_map); null for vmap
  std::shared_ptr<const Axis> outer =
      nullptr;  ///< the next enclosing device axis; null if this is the outermost one
  std::uint64_t id = unique_id();
};

/// The attributes of an op: a few generic lists; each op's definition says what it stores in which. Dimensions count from the last one
/// (-1), so that adding a leading dimension changes nothing.
struct Attrs {
  Shape dims, lo, hi, step;  ///< lists of dimensions or sizes
  Shape shape;
  DType dtype = DType::bool_;
  Reducer reducer = Reducer::none;
  std::uint64_t bits = 0;  ///< value of a constant
  std::string letters;     ///< einsum letters of dot_general
  /// For a sum or product: its reduced dimensions must not be sharded, and its order is fixed.
  bool uncut = false;
  std::shared_ptr<const Sharding> sharding;       ///< of a sharding constraint
  std::vector<std::shared_ptr<const Axis>> axes;  ///< of a collective, innermost map last
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::shared_ptr<const HostCall> host;  ///< of an effect
  friend bool operator==(const Attrs& a, const Attrs& b);
  std::size_t hash() const;
};
using AttrsRef = std::shared_ptr<const Attrs>;

/// The unevaluated work below a node.
struct Pending {
  std::uint32_t depth = 0;      ///< longest path to evaluated nodes, in operations
  std::uint32_t nodes = 0;      ///< upper bound: shared nodes count once per use
  std::uint32_t kilobytes = 0;  ///< of evaluated operands, an upper bound
  bool exceeds(const Pending& limit) const {
    return depth >= limit.depth || nodes >= limit.nodes || kilobytes >= limit.kilobytes;
  }
};
/// A node that exceeds this is computed when it is recorded, outside of traces and gradients.
inline constexpr Pending pending_limit{128, 1 << 14, 256 << 10};

class Node {
 public:
  struct Output {
    Type type;
    std::shared_ptr<Value> value;  ///< set when evaluated
    std::uint32_t kilobytes = 0;   ///< upper bound
  };
  /// Records an op; the result has one reference. A is const Array or const ArrayCref.
  template <class A = const Array>
  static Node* make(const Op* op, std::span<A> inputs, std::span<const Type> outputs, AttrsRef attrs,
                    Where where);

  const Op* op;
  detail::RecordedLine where;
  const Modes* modes;      ///< of its source line
  std::uint64_t seq;       ///< a node can depend only on nodes with smaller numbers
  std::uint64_t trace;     ///< the trace it was recorded in; 0: none
  std::uint64_t gradient;  ///< the outermost gradient open on its thread; 0: none
  std::uint64_t variable;  ///< name of the outermost gradient with a variable below this node; 0: none
  AttrsRef attrs_;

  const Attrs& attrs() const;
  std::span<const Array> in() const { return {const_cast<Node*>(this)->operands(), operand_count_}; }
  std::span<Output> out() { return {outputs(), output_count_}; }
  std::span<const Output> out() const { return {const_cast<Node*>(this)->outputs(), output_count_}; }
  const Type& type(std::size_t i = 0) const { return out()[i].type; }
  /// Set with release order once all outputs have values.
  bool evaluated() const { return state_.load(std::memory_order_acquire) == 1; }
  void set_evaluated() {
    set_pending({});
    state_.store(1, std::memory_order_release);
  }
  /// The function that the buffers were donated to; null while they are alive.
  const char* donor() const { return donor_.load(std::memory_order_acquire); }
  void set_donor(const char* d) { donor_.store(d, std::memory_order_release); }
  /// Replaces operand k.
  void set_operand(std::size_t k, const Array& a);
  /// Releases the operands of an evaluated node into `dead`, for the caller to drop without holding a lock.
  void release_operands(std::vector<Array>& dead);
  /// What was pending when it was recorded, itself included; zero once it is evaluated.
  Pending pending() const {
    return {depth_.load(std::memory_order_relaxed), below_.load(std::memory_order_relaxed),
            held_.load(std::memory_order_relaxed)};
  }
  void set_pending(const Pending& p) {
    depth_.store(p.depth, std::memory_order_relaxed);
    below_.store(p.nodes, std::memory_order_relaxed);
    held_.store(p.kilobytes, std::memory_order_relaxed);
  }

  void retain() { counts_.fetch_add(1, std::memory_order_relaxed); }
  std::uint32_t refs() const { return static_cast<std::uint32_t>(counts_.load(std::memory_order_acquire)); }
  /// How many of these references are operands of nodes that may still read it.
  std::uint32_t readers() const { return static_cast<std::uint32_t>(counts_.load() >> 32); }
  /// Drops a reference; `handle`: the one that held it, if any.
  static void drop(Node* n, const Array* handle = nullptr);

 private:
  Node() = default;
  Output* outputs() { return reinterpret_cast<Output*>(this + 1); }
  std::span<Array> own() { return {operands(), operand_count_}; }
  void take_operand(Array* to, const Array& a);  // counts the reference as a reader
  Array* operands() { return reinterpret_cast<Array*>(outputs() + output_count_); }
  void destroy();

  static constexpr std::uint64_t reader = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> counts_{1};  // references; in the upper half: those that are operands
  std::uint32_t operand_count_ = 0, output_count_ = 0, bytes_ = 0;
  std::atomic<std::uint8_t> state_{0};
  std::atomic<std::uint32_t> depth_{0}, below_{0}, held_{0};
  std::atomic<const char*> donor_{nullptr};
  Node* link_ = nullptr;
};

/// The type of an array; throws Error if it is absent (naming `what`).
const Type& type_of(const Array& a, const char* what = "array");
/// Another handle to the same output.
inline Array handle(Node* n, std::uint32_t index = 0) {
  n->retain();
  return Array(n, index);
}
/// Handles to the outputs of a newly recorded node; takes over its one reference.
std::vector<Array> outputs_of(Node* n);

/// Guards what evaluation changes in nodes: values, operands. Held while a graph is read, not while anything is compiled or run.
std::mutex& graph_mutex();

/// Computes a node's values. In execute/.
void compute(Node* n);
/// Called by the recording thread with a node that exceeds the limit: computes it if necessary. In execute/.
void relieve(Node* n);
/// Called when a donated node dies, with its last handle (null if that is not the last reference). In execute/.
void given_away_ends(const Node* n, const Array* handle);

}  // namespace shardarray
