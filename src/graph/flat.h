// FlatGraph: a graph as the compiler sees it: nodes in topological order, values by number.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "graph/op.h"

namespace shardarray {

struct FlatNode {
  const Op* op = nullptr;
  AttrsRef attrs;
  std::vector<int> in;  ///< value numbers
  int first_out = 0;    ///< its outputs are values first_out, first_out + 1, ...
  std::vector<Type> in_types, out_types;
  detail::RecordedLine where;
  const Modes* modes = nullptr;  ///< of the line where it was recorded

  Call call() const {
    static const Attrs& none_given = *new Attrs;
    return {op, in_types, out_types, attrs ? attrs.get() : &none_given};
  }
};

/// The last nodes of a graph, with their values.
struct GraphTail {
  std::vector<FlatNode> nodes;
  std::vector<Type> types;
  std::vector<int> producer;
};

struct FlatGraph {
  std::vector<FlatNode> nodes;
  std::vector<Type> types;    ///< of every value
  std::vector<int> producer;  ///< value -> node
  std::vector<int> inputs;    ///< values of the leaves, in the order of the program's arguments
  std::vector<int> outputs;   ///< values

  /// Appends a node and its output values; returns the first of them.
  int add(const Op* op, AttrsRef attrs, std::vector<int> in, std::vector<Type> out,
          detail::RecordedLine where, const Modes* modes);
  /// Removes everything after the first node_count nodes and value_count values.
  GraphTail take_tail(std::size_t node_count, std::size_t value_count);
  /// Appends what take_tail removed.
  void append(GraphTail tail);
  /// One value per line: `%3 f32[8,4] = add %1 %2   file.cpp:12`.
  std::string to_string() const;
};

/// Throws InternalError naming the node if an operand is not yet defined, a type mismatches, or an output is missing.
void verify(const FlatGraph& g, const char* pass);

/// The nodes below g.out, with g.in as inputs. Absent outputs are left out. The operands of effects are appended to the outputs.
FlatGraph flatten(const Graph& g);

}  // namespace shardarray
