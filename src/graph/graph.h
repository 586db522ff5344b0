// Graph: a recorded function, closed (captures are inputs). What transforms take and give.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/node.h"

namespace shardarray {

struct Graph {
  std::vector<Array> in;            ///< placeholders, one per input
  std::vector<Array> out;           ///< absent entries are allowed
  std::vector<Array> effects = {};  ///< results of nodes that act on the host, in program order
};

/// A placeholder of a type; `w` is for messages.
Array placeholder(const Type& t, Where w = {});

/// The nodes reachable from `roots`, operands before users; `enter` says which to visit. Iterative. `expected`: about how many.
template <class Enter>
std::vector<Node*> topological(std::span<const Array> roots, Enter enter, std::size_t expected = 0);

}  // namespace shardarray

#include "graph/topological.h"
