// The derivative of gamma draws by the shape parameter.
#pragma once
#include "shardarray/array.h"

namespace shardarray::random {

/// d log(x) / da of x, the p-quantile of gamma(a), with p held fixed: the derivative of a draw's logarithm. `a` is floating, `log_x` of its
/// shape. Computed in float64. Source: M. Figurnov, S. Mohamed, A. Mnih, Implicit Reparameterization Gradients (2018);
/// series and continued fraction of the incomplete gamma function, and their derivatives: R. Moore, Algorithm AS 187 (1982).
Array gamma_log_slope(const Array& a, const Array& log_x);

}  // namespace shardarray::random
