// Covariances and correlations, composed of sums and a product.
#include <fmt/core.h>

#include <limits>

#include "base/count_text.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "shardarray/complex.h"
#include "shardarray/rearrange.h"
#include "shardarray/statistics.h"

namespace shardarray {

// [variables, observations]
static Array variables_of(const char* function, const Array& x, bool rowvar, WeakType t) {
  const Shape& shape = type_of(x, function).shape;
  if (shape.size() > 2)
    throw ShapeError(fmt::format(
        "{}: the operand is {}. It is a matrix, or a vector of one variable. Reshape it, or use vmap.",
        function, to_string(type_of(x))));
  const Array rows = atleast_2d(api::cast(x, t));
  return rowvar || shape.size() < 2 ? rows : primitive::transpose(rows, {1, 0});
}
// One weight per observation; the sign is ignored.
static Array weights_of(const char* function, const char* which, const Array& weights, std::int64_t n) {
  if (!(type_of(weights, function).shape == Shape{n}))
    throw ShapeError(fmt::format("{}: {} {} of {}. Every one has a weight. Give a vector that is as long.",
                                 function, which, to_string(type_of(weights)), count_text(n, "observation")));
  return abs(weights);
}
static Array covariances(const char* function, const Array& x, const Array* y, const CovOptions& o) {
  const WeakType t = api::to_inexact(y != nullptr ? api::promoted(function, {&x, y})
                                                  : api::weak_type_of(x, function)),
                 wide = api::computed(t);
  Array v = variables_of(function, x, o.rowvar, t);
  if (y != nullptr) {
    const Array more = variables_of(function, *y, o.rowvar, t);
    if (more.shape()[1] != v.shape()[1])
      throw ShapeError(fmt::format("{}: {} and {}. Both arrays have as many. See CovOptions::rowvar.",
                                   function, count_text(v.shape()[1], "observation"), more.shape()[1]));
    const Array both[] = {v, more};
    v = primitive::concatenate(both, 0);
  }
  v = primitive::cast(v, wide.dtype);
  const std::int64_t n = v.shape()[1], ddof = o.ddof.value_or(1);
  Array weights, divisor = primitive::full({}, wide.dtype, static_cast<double>(n - ddof));
  if (o.fweights.has_value()) {
    if (!is_integer(o.fweights.dtype()))
      api::refuse_dtype(function, o.fweights, "How often an observation was made is an integer");
    weights = weights_of(function, "fweights", o.fweights, n).astype(wide.dtype);
  }
  if (o.aweights.has_value()) {
    const Array own = weights_of(function, "aweights", o.aweights, n).astype(wide.dtype);
    weights = weights.has_value() ? weights * own : own;
    divisor = sum(weights) - static_cast<double>(ddof) * sum(weights * own) / sum(weights);
  } else if (weights.has_value()) divisor = sum(weights) - static_cast<double>(ddof);
  const Array mean_of = weights.has_value() ? sum(v * weights, {.axis = 1, .keepdims = true}) / sum(weights)
                                            : mean(v, {.axis = 1, .keepdims = true});
  const Array distance = v - mean_of;
  const Array weighted = weights.has_value() ? distance * weights : distance;
  const Array products = primitive::dot("in,jn->ij", distance, conjugate(weighted));
  const Array nothing = primitive::like(products, std::numeric_limits<double>::quiet_NaN());
  const Array r = primitive::cast(n == 0 ? nothing : products / divisor, t.dtype);
  return r.size() == 1 ? primitive::reshape(r, {}) : r;
}
static Array correlations(const char* function, const Array& x, const Array* y, const CovOptions& o) {
  const Array c = covariances(function, x, y, o);
  if (c.shape().empty()) return c / c;  // NaN for a constant
  const Array deviation = sqrt(real(diag(c)));
  const Array r = c / expand_dims(deviation, 1) / deviation;
  if (!is_complex(r.dtype())) return clip(r, -1.0, 1.0);
  return primitive::pair(clip(real(r), -1.0, 1.0), clip(imag(r), -1.0, 1.0));
}

template <>
SHARDARRAY_API Array CovarianceFunction<"cov">::of(const Array& x, const Array* y, const CovOptions& o,
                                                   Where w) const {
  const Site site(w, "cov");
  return covariances("cov", x, y, o);
}
template <>
SHARDARRAY_API Array CovarianceFunction<"corrcoef">::of(const Array& x, const Array* y, const CovOptions& o,
                                                        Where w) const {
  const Site site(w, "corrcoef");
  return correlations("corrcoef", x, y, o);
}

}  // namespace shardarray
