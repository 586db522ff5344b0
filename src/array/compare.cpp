#include "shardarray/compare.h"

#include "shardarray/ops.h"

namespace shardarray {

Array isclose_fn::operator()(const Array& a, const Array& b, const CloseOptions& o, Where w) const {
  const Site site(w, "isclose");
  // Differences of integers may wrap, and bools have none.
  const bool whole = !is_inexact(promote_types(a.dtype(), b.dtype()));
  const Array x = whole ? a.astype(float64) : a, y = whole ? b.astype(float64) : b;
  const Array close = (a == b) | ((abs(x - y) <= o.atol + o.rtol * abs(y)) & isfinite(y));
  return o.equal_nan ? close | ((a != a) & (b != b)) : close;
}
bool allclose(const Array& a, const Array& b, const CloseOptions& o, Where w) {
  const Site site(w, "allclose");
  return all(isclose(a, b, o)).item<bool>();
}

bool array_equal(const Array& a, const Array& b, Where w) {
  const Site site(w, "array_equal");
  return a.shape() == b.shape() && all(a == b).item<bool>();
}

}  // namespace shardarray
