// CustomRule: user-defined derivatives of a function (custom_jvp, custom_vjp), as graphs. They are traced where the call is recorded; for
// calls of the function inside its own derivative, when they are needed.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace shardarray {

/// The operands of the call are the arguments, the function's captures, and the derivative's captures.
struct CustomGraphs {
  /// custom_jvp: arguments, derivative's captures, tangents of floating arguments -> tangents of floating results.
  /// custom_vjp: arguments, derivative's captures -> residuals.
  Graph forward;
  /// custom_vjp: derivative's captures, residuals, cotangents of floating results -> cotangents of floating arguments.
  Graph backward;
};

struct CustomRule {
  const char* function = nullptr;
  bool is_vjp = false;
  std::size_t arguments = 0,
              captured = 0;  ///< numbers of operands: arguments; the derivative's captures (the last ones)
  std::shared_ptr<const CustomGraphs> made;
  /// Traces them for arguments of these types. Throws TraceError if the derivative captures arrays.
  std::function<CustomGraphs(std::span<const Type>)> make;
};

/// The called graph together with its derivative. Compiled code does not depend on the rule, so keys and equality ignore it.
struct CustomGraph : Graph {
  CustomGraph(Graph g, std::shared_ptr<const CustomRule> r) : Graph(std::move(g)), rule(std::move(r)) {}
  std::shared_ptr<const CustomRule> rule;
};

/// Throws Error if one of these nodes, or of those in their graphs, is a tangent that can only be transposed (custom_vjp). In ops/.
void refuse_reverse_only(std::span<Node* const> nodes);

}  // namespace shardarray
