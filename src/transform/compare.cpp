#include "shardarray/compare.h"

#include "shardarray/ops.h"

namespace shardarray {

bool allclose(const Array& a, const Array& b, const CloseOptions& o, Where w) {
  const Site site(w);
  Array close = (a == b) | (abs(a - b) <= o.atol + o.rtol * abs(b));
  if (o.equal_nan) close = close | ((a != a) & (b != b));
  return all(close).item<bool>();
}

bool array_equal(const Array& a, const Array& b, Where w) {
  const Site site(w);
  return a.shape() == b.shape() && all(a == b).item<bool>();
}

}  // namespace shardarray
