// The type-erased core of grad, vjp, jvp, linearize and Jacobians.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray::core {

using Arrays = std::vector<Array>;

/// An open differentiation. `variables()` are the given arrays under new names: what this thread computes from them until
/// linearize(), or until the object dies, can be differentiated. Once linearized it is a plain value: nothing is open any more,
/// and it may be used and destroyed on any thread.
class SHARDARRAY_API Differentiation {
 public:
  /// Absent entries stay absent. Errors name `function`.
  Differentiation(std::span<const Array> primals, const char* function);
  ~Differentiation();
  Differentiation(const Differentiation&) = delete;
  Differentiation& operator=(const Differentiation&) = delete;
  const Arrays& variables() const;
  /// Stores the linear map from the variables' tangents to those of `outputs`. Call it once, on the thread that opened it.
  void linearize(std::span<const Array> outputs) const;
  /// The cotangents of the variables for those of the linearized outputs (absent: zero). Absent where a variable is absent.
  Arrays pull(std::span<const Array> cotangents) const;
  /// The tangents of `outputs` for those of the variables (absent: zero).
  Arrays push(std::span<const Array> outputs, std::span<const Array> tangents) const;
  /// The same for the linearized outputs, by the linear map alone.
  Arrays apply(std::span<const Array> tangents) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
/// linearize and pull of a scalar loss with cotangent 1. Throws ShapeError unless `loss` is a scalar, DTypeError unless it is floating.
SHARDARRAY_API Arrays gradient(const Differentiation& d, const Array& loss, const char* function);
/// How jacobian() works: it pushes tangents, a column per element of a variable; it pulls cotangents, a row per element of an output; the
/// same, for rows that are then differentiated forward.
enum class JacobianBy : std::uint8_t { columns, rows, rows_of_hessian };
/// Linearizes. For each output in turn, the derivatives by all variables, of shape (output's, variable's). Absent where either is absent.
/// Throws DTypeError for an output that is not floating, and for a mix of real and complex numbers where rows or columns are only half
/// of the derivative.
SHARDARRAY_API Arrays jacobian(const Differentiation& d, std::span<const Array> outputs, JacobianBy by,
                               const char* function, Where w);

}  // namespace shardarray::core
