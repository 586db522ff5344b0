// CustomRule: derivatives that the author of a function gave it (custom_jvp, custom_vjp), as graphs. They are made where the call is
// recorded; for calls of the function inside of its own derivative, when they are asked for.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace shardarray {

/// Operands of the call are arguments, then what the function captured, then what the derivative did.
struct CustomGraphs {
  /// custom_jvp: arguments, captured by the derivative, tangents of floating arguments -> tangents of floating results.
  /// custom_vjp: arguments, captured by the derivative -> residuals.
  Graph forward;
  /// custom_vjp: captured by the derivative, residuals, cotangents of floating results -> those of floating arguments.
  Graph backward;
};

struct CustomRule {
  const char* function = nullptr;
  bool is_vjp = false;
  std::size_t arguments = 0,
              captured = 0;  ///< operands: arguments; captured by the derivative (the last ones)
  std::shared_ptr<const CustomGraphs> made;
  /// For arguments of these types. Throws TraceError where the derivative captures arrays.
  std::function<CustomGraphs(std::span<const Type>)> make;
};

/// The graph that such a call calls, with its derivative: nothing that is compiled depends on that, so keys and equality leave it out.
struct CustomGraph : Graph {
  CustomGraph(Graph g, std::shared_ptr<const CustomRule> r) : Graph(std::move(g)), rule(std::move(r)) {}
  std::shared_ptr<const CustomRule> rule;
};

/// Throws Error where one of these, or of those inside of them, is a tangent that only the way back is known of. In ops/.
void refuse_reverse_only(std::span<Node* const> nodes);

}  // namespace shardarray
