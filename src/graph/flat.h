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
  int first_out = 0;    ///< its outputs are the values first_out, first_out + 1, ...
  std::vector<Type> in_types, out_types;
  Where where;

  Call call() const {
    static const Attrs none_given{};
    return {op, in_types, out_types, attrs ? attrs.get() : &none_given};
  }
};

struct FlatGraph {
  std::vector<FlatNode> nodes;
  std::vector<Type> types;    ///< of every value
  std::vector<int> producer;  ///< value -> node
  std::vector<int> inputs;    ///< values of the leaves, in the order of the program's arguments
  std::vector<int> outputs;   ///< values

  /// Appends a node and its output values; returns the first of them.
  int add(const Op* op, AttrsRef attrs, std::vector<int> in, std::vector<Type> out, Where where);
  /// One value a line: `%3 f32[8,4] = add %1 %2   file.cpp:12`.
  std::string to_string() const;
};

/// Throws InternalError naming the node when an operand is not yet defined, a type does not agree, or an output is missing.
void verify(const FlatGraph& g, const char* pass);

/// The nodes below g.out, with g.in as inputs. Absent outputs are left out. The operands of effects are outputs, too: the last.
FlatGraph flatten(const Graph& g);

/// The words of a node and, after them, of each of its outputs' types.
void put_node(const Op* op, const Attrs* attrs, std::span<const int> in, std::size_t outputs,
              std::vector<std::uint64_t>& words);
void put_value_type(const Type& t, std::vector<std::uint64_t>& words);
/// The end of the words: which values enter and leave.
void put_ends(std::span<const int> inputs, std::span<const int> outputs, std::vector<std::uint64_t>& words);
/// Words that are equal exactly for equal graphs (source lines left out).
void put_structure(const FlatGraph& g, std::vector<std::uint64_t>& words);

}  // namespace shardarray
