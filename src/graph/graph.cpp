#include "graph/graph.h"

#include "graph/op.h"

namespace shardarray {

Array placeholder(const Type& t, Where w) { return Array(Node::make(&op_input, {}, {&t, 1}, nullptr, w), 0); }

}  // namespace shardarray
