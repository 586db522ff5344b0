// Recording a function as a Graph, and replaying one. Every transform is `replay` with another rule.
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

/// Closes the graph of `in` -> `out` that was recorded in the open trace `id`: edges that leave the trace become extra
/// inputs, their arrays are appended to `captured`. Throws TraceError for an array of a trace that is closed.
Graph close_graph(Arrays in, Arrays out, std::uint64_t id, Arrays& captured, const char* function);

/// Throws the TraceError for an array whose trace is closed.
[[noreturn]] void refuse_escaped(const Node* n, const char* function);

/// Runs `f` on placeholders of `types` in a trace of its own.
Graph traced(const GraphFn& f, std::span<const Type> types, Arrays& captured, const char* function);

using ReplayRule = std::function<Arrays(Node*, std::span<const Array>)>;
/// Walks the nodes of `g` with `args` for its inputs; `rule` gives the outputs that stand for a node's. Constants stay.
/// `effects`: those of g happen here, too; otherwise the replay is a second look at something that happened.
Arrays replay(const Graph& g, std::span<const Array> args, const ReplayRule& rule, bool effects = false);
/// Records the nodes of `g` again on other inputs.
Arrays inline_graph(const Graph& g, std::span<const Array> args, bool effects = false);

/// derive, transpose and batch of graphs, for ops that hold some.
const Calculus& calculus();
/// Tangents of a node's outputs; `in` and `out` are what stands for its operands and outputs.
Arrays push_forward(Node* n, std::span<const Array> in, std::span<const Array> out,
                    std::span<const Array> tangents);
/// Outputs that are linear in some placeholders, and the nodes between: none of them is ever evaluated.
struct LinearMap {
  Arrays variables, outputs;         ///< absent outputs are zero
  std::unordered_set<Node*> linear;  ///< the nodes and the variables
  std::vector<Node*> nodes;          ///< operands first; the outputs keep them alive
};
LinearMap linear_map(Arrays outputs, Arrays variables);
/// Cotangents of the variables for those of the outputs. Absent where nothing flows.
Arrays pull_back(const LinearMap& map, std::span<const Array> cotangents);
/// Replays `g` with a leading dimension on inputs that are `mapped`.
Arrays batch_graph(const Graph& g, std::span<const Array> args, std::vector<bool> mapped,
                   const std::shared_ptr<const Axis>& axis, std::vector<bool>& out_mapped);

}  // namespace shardarray
