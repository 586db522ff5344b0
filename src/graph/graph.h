// Graph: a recorded function, closed (captures are inputs). Transforms map graphs to graphs.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/node.h"

namespace shardarray {

struct Graph {
  std::vector<Array> in;            ///< placeholders
  std::vector<Array> out;           ///< may contain absent arrays
  std::vector<Array> effects = {};  ///< results of nodes that act on the host, in program order
};

/// `w` is for messages.
Array placeholder(const Type& t, Where w = {});

/// The nodes reachable from `roots`, operands before users; `enter` says which to visit. Iterative. `expected`: their approximate number.
template <class Enter>
std::vector<Node*> topological(std::span<const Array> roots, Enter enter, std::size_t expected = 0);

}  // namespace shardarray

#include "graph/topological.h"
