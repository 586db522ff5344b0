// The erased core of grad, vjp, jvp, linearize and Jacobians.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray::core {

using Arrays = std::vector<Array>;

/// An open gradient: the given arrays under new names. What this thread computes from `variables()` until linearize() or
/// the end of the object's life can be derived. Once it is linearized it is a value: nothing is open any more, and it may be
/// used and destroyed on any thread.
class SHARDARRAY_API Differentiation {
 public:
  /// Absent entries stay absent. Errors name `function`.
  Differentiation(std::span<const Array> primals, const char* function);
  ~Differentiation();
  Differentiation(const Differentiation&) = delete;
  Differentiation& operator=(const Differentiation&) = delete;
  const Arrays& variables() const;
  /// Keeps the linear map from the variables' tangents to those of `outputs`. Once, on the thread that opened it.
  void linearize(std::span<const Array> outputs) const;
  /// The cotangents of the variables for those of the linearized outputs (absent: zero). Absent where a variable is absent.
  Arrays pull(std::span<const Array> cotangents) const;
  /// The tangents of `outputs` for those of the variables (absent: zero).
  Arrays push(std::span<const Array> outputs, std::span<const Array> tangents) const;
  /// The same of the linearized outputs, by the linear map alone.
  Arrays apply(std::span<const Array> tangents) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};
/// linearize and pull of a scalar loss with cotangent 1. Throws ShapeError unless `loss` is a scalar, DTypeError unless it is floating.
SHARDARRAY_API Arrays gradient(const Differentiation& d, const Array& loss, const char* function);
/// How jacobian() goes: by the map from tangents, a column for each element of a variable; by that from cotangents, a row for each element
/// of an output; the same, of rows that are derived again by tangents.
enum class JacobianBy : std::uint8_t { columns, rows, rows_of_hessian };
/// Linearizes. For every output, one after the other, the derivatives by all variables, of shape (output's, variable's). Absent where
/// either is absent. Throws DTypeError for an output that is not floating, and where complex numbers meet real ones so that rows or
/// columns are half of the derivative.
SHARDARRAY_API Arrays jacobian(const Differentiation& d, std::span<const Array> outputs, JacobianBy by,
                               const char* function, Where w);

}  // namespace shardarray::core
