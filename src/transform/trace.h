// Recording a function as a Graph, and replaying one. Every transform is a `replay` with its own rule.
#pragma once
#include <functional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/hash.h"
#include "graph/graph.h"
#include "graph/op.h"

namespace shardarray {

struct ArrayKey {
  Node* node = nullptr;
  std::uint32_t index = 0;
  friend bool operator==(const ArrayKey&, const ArrayKey&) = default;
};
inline ArrayKey key(const Array& a) { return {a.node(), a.index()}; }
struct ArrayKeyHash {
  std::size_t operator()(const ArrayKey& k) const {
    return hash_mix(reinterpret_cast<std::uintptr_t>(k.node), k.index);
  }
};
template <class T> using ArrayMap = std::unordered_map<ArrayKey, T, ArrayKeyHash>;

using GraphFn = std::function<Arrays(std::span<const Array>)>;

/// Closes the graph `in` -> `out` recorded in the open trace `id`: edges that leave the trace become additional inputs, and their arrays
/// are appended to `captured`. Throws TraceError for an array of a closed trace.
Graph close_graph(Arrays in, Arrays out, std::uint64_t id, Arrays& captured, const char* function);

/// Throws the TraceError for an array whose trace is closed.
[[noreturn]] void refuse_escaped(const Node* n, const char* function);

/// Runs `f` on placeholders of `types` in a new trace.
Graph traced(const GraphFn& f, std::span<const Type> types, Arrays& captured, const char* function);

using ReplayRule = std::function<Arrays(Node*, std::span<const Array>)>;
/// Walks the nodes of `g` with `args` as its inputs; `rule` returns what replaces a node's outputs. Literals stay. `effects`: repeat g's
/// effects; otherwise they are assumed to have happened.
Arrays replay(const Graph& g, std::span<const Array> args, const ReplayRule& rule, bool effects = false);
/// Records the nodes of `g` again with other inputs.
Arrays inline_graph(const Graph& g, std::span<const Array> args, bool effects = false);

/// derive, transpose and batch for graphs, for ops that hold graphs.
const Calculus& calculus();
/// Tangents of a node's outputs; `in` and `out` replace its operands and outputs.
Arrays push_forward(Node* n, std::span<const Array> in, std::span<const Array> out,
                    std::span<const Array> tangents);
/// Outputs that are linear in some placeholders, and the nodes between them, which are never evaluated.
struct LinearMap {
  Arrays variables, outputs;         ///< absent outputs are zero
  std::unordered_set<Node*> linear;  ///< these nodes and the variables
  std::vector<Node*> nodes;          ///< operands first; kept alive by the outputs
};
LinearMap linear_map(Arrays outputs, Arrays variables);
/// Cotangents of the variables, given those of the outputs. Absent where nothing flows.
Arrays pull_back(const LinearMap& map, std::span<const Array> cotangents);
/// Replays `g` with a leading dimension on the `mapped` inputs.
Arrays batch_graph(const Graph& g, std::span<const Array> args, std::vector<bool> mapped,
                   const std::shared_ptr<const Axis>& axis, std::vector<bool>& out_mapped);

}  // namespace shardarray
