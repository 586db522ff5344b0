// Window functions, computed from positions.
#include "shardarray/window_functions.h"

#include <fmt/core.h>

#include <numbers>

#include "graph/trace_state.h"
#include "ops/api.h"

namespace shardarray {

// f(t) for t from 0 to 1, computed in float64.
template <class F> static Array window(const char* function, std::int64_t n, DType dtype, const F& f) {
  if (n < 0)
    throw ShapeError(
        fmt::format("{}: {} elements. The number is not negative. Give how many there are.", function, n));
  if (!is_floating(dtype))
    throw DTypeError(fmt::format("{}: dtype {}. Its values are fractions. Choose a floating dtype.", function,
                                 name(dtype)));
  if (n == 1) return api::created(primitive::full({1}, dtype, 1));
  const Array k = primitive::cast(primitive::iota({n}, 0, api::position_type({n})), DType::float64);
  return api::created(primitive::cast(f(k / static_cast<double>(n - 1)), dtype));
}
Array bartlett(std::int64_t n, DType dtype, Where w) {
  const Site site(w, "bartlett");
  return window("bartlett", n, dtype, [](const Array& t) { return 1.0 - abs(2.0 * t - 1.0); });
}
// a - b cos(2 pi t) + c cos(4 pi t)
static Array cosines(const Array& t, double a, double b, double c) {
  const Array first = a - b * cos(t * (2 * std::numbers::pi));
  return c == 0 ? first : first + c * cos(t * (4 * std::numbers::pi));
}
Array hanning(std::int64_t n, DType dtype, Where w) {
  const Site site(w, "hanning");
  return window("hanning", n, dtype, [](const Array& t) { return cosines(t, 0.5, 0.5, 0); });
}
Array hamming(std::int64_t n, DType dtype, Where w) {
  const Site site(w, "hamming");
  return window("hamming", n, dtype, [](const Array& t) { return cosines(t, 0.54, 0.46, 0); });
}
Array blackman(std::int64_t n, DType dtype, Where w) {
  const Site site(w, "blackman");
  return window("blackman", n, dtype, [](const Array& t) { return cosines(t, 0.42, 0.5, 0.08); });
}
Array kaiser(std::int64_t n, double beta, DType dtype, Where w) {
  const Site site(w, "kaiser");
  return window("kaiser", n, dtype, [&](const Array& t) {
    const Array at = 2.0 * t - 1.0;
    const Array most = primitive::full({}, DType::float64, beta);
    return i0(beta * sqrt(maximum(1.0 - at * at, 0.0))) / i0(most);
  });
}

}  // namespace shardarray
