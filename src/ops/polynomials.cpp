// Polynomials, composed of pads, products and least squares.
#include "shardarray/polynomials.h"

#include <fmt/core.h>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "shardarray/linalg.h"

namespace shardarray {

static void need_coefficients(const char* function, const Array& p) {
  if (type_of(p, function).shape.size() != 1)
    throw ShapeError(
        fmt::format("{}: the operand is {}. A polynomial is a vector of coefficients, the highest power "
                    "first. Use vmap for several.",
                    function, to_string(type_of(p))));
}
static Array floating_coefficients(const char* function, const Array& p) {
  need_coefficients(function, p);
  return api::cast(p, api::to_inexact(api::weak_type_of(p, function)));
}
// Both padded to the length of the longer one.
static std::pair<Array, Array> of_one_length(const char* function, const Array& a, const Array& b) {
  need_coefficients(function, a);
  need_coefficients(function, b);
  const WeakType t = api::promoted(function, {&a, &b});
  const std::int64_t n = std::max(a.size(), b.size());
  const auto padded = [&](const Array& p) { return primitive::pad(api::cast(p, t), {n - p.size()}, {0}); };
  return {padded(a), padded(b)};
}
Array polyadd_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "polyadd");
  const auto [x, y] = of_one_length("polyadd", a, b);
  return add(x, y);
}
Array polysub_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "polysub");
  const auto [x, y] = of_one_length("polysub", a, b);
  return subtract(x, y);
}
Array polymul_fn::operator()(const Array& a, const Array& b, Where w) const {
  const Site site(w, "polymul");
  need_coefficients("polymul", a);
  need_coefficients("polymul", b);
  const auto filled = [](const Array& p) {
    return p.size() > 0 ? p : zeros_of({{1}, p.dtype(), type_of(p).weak});
  };
  return convolve(filled(a), filled(b));
}

// k (k - 1) .. (k - m + 1) for the powers k of n coefficients followed by m more, with factors 0 replaced by 1.
static Array falling_factors(DType t, std::int64_t n, std::int64_t m, std::int64_t lowest) {
  const DType wide = api::computed(t);
  const Array position = primitive::cast(primitive::iota({n}, 0, api::position_type({n + m + lowest})), wide);
  const Array exponent =
      primitive::sub(primitive::like(position, static_cast<double>(n - 1 + lowest)), position);
  Array r = primitive::like(position, 1);
  for (std::int64_t j = 0; j < m; j++)
    r = primitive::mul(
        r,
        primitive::binary(op_max, primitive::sub(exponent, primitive::like(exponent, static_cast<double>(j))),
                          primitive::like(exponent, 1)));
  return primitive::cast(r, t);
}
static void need_order(const char* function, std::int64_t m) {
  if (m < 0)
    throw ShapeError(fmt::format("{}: {} times. The number is not negative. Use {} for the other way.",
                                 function, m,
                                 function == std::string_view("polyder") ? "polyint" : "polyder"));
}
Array polyder_fn::operator()(const Array& p, std::int64_t m, Where w) const {
  const Site site(w, "polyder");
  const Array c = floating_coefficients("polyder", p);
  need_order("polyder", m);
  const std::int64_t n = std::max<std::int64_t>(c.size() - m, 0);
  const Array kept = primitive::slice_dim(c, 0, 0, n);
  return n == 0 || m == 0 ? kept : primitive::mul(kept, falling_factors(c.dtype(), n, m, m));
}
Array polyint_fn::operator()(const Array& p, std::int64_t m, const Array& k, Where w) const {
  const Site site(w, "polyint");
  need_coefficients("polyint", p);
  need_order("polyint", m);
  const WeakType t = api::to_inexact(api::promoted("polyint", {&p, &k}));
  const Shape& shape = type_of(k, "polyint").shape;
  if (!shape.empty() && !(shape == Shape{1}) && !(shape == Shape{m}))
    throw ShapeError(
        fmt::format("polyint: constants {} of {}. They are a number, or one for each. Give as many.",
                    to_string(type_of(k)), count_text(m, "integral")));
  if (m == 0) return api::cast(p, t);
  const Array both[] = {api::cast(p, t), primitive::broadcast_to(api::cast(k, t), {m})};
  const Array c = primitive::concatenate(both, 0);
  return primitive::div(c, falling_factors(t.dtype, c.size(), m, 0));
}
Array poly_fn::operator()(const Array& roots, Where w) const {
  const Site site(w, "poly");
  const Array r = floating_coefficients("poly", roots);
  Array p = primitive::full({1}, r.dtype(), 1);
  for (std::int64_t k = 0; k < r.size(); k++)  // p x - root p
    p = primitive::sub(primitive::pad(p, {0}, {1}),
                       primitive::pad(primitive::mul(p, primitive::element(r, k, p.shape())), {1}, {0}));
  return p;
}

Array vander_fn::operator()(const Array& x, std::optional<std::int64_t> n, bool increasing, Where w) const {
  const Site site(w, "vander");
  if (type_of(x, "vander").shape.size() != 1)
    throw ShapeError(
        fmt::format("vander: the operand is {}. Its rows are the powers of the elements of a "
                    "vector. Use vmap for several.",
                    to_string(type_of(x))));
  if (x.dtype() == DType::bool_) api::refuse_dtype("vander", x, "It takes numbers");
  const std::int64_t columns = n.value_or(x.size());
  if (columns < 0)
    throw ShapeError(
        fmt::format("vander: {} columns. The number is not negative. Leave it out for a square.", columns));
  const Array up = primitive::cast(primitive::iota({columns}, 0, api::position_type({columns})), x.dtype());
  return power(expand_dims(x, -1), increasing ? up : primitive::reverse(up, {-1}));
}
Array polyfit_fn::operator()(const Array& x, const Array& y, std::int64_t degree, const PolyfitOptions& o,
                             Where line) const {
  const Site site(line, "polyfit");
  const Array weights = o.w.has_value() ? o.w : Array(1.0);
  const WeakType t = api::to_inexact(api::promoted("polyfit", {&x, &y, &weights}));
  const Shape &places = x.shape(), &values = y.shape();
  if (places.size() != 1 || places[0] == 0 || values.empty() || values.size() > 2 || values[0] != places[0])
    throw ShapeError(
        fmt::format("polyfit: places {} and values {}. Places are a vector with elements, and every place "
                    "has a value or a row of them. Correct the shapes.",
                    to_string(type_of(x)), to_string(type_of(y))));
  if (degree < 0)
    throw ShapeError(fmt::format("polyfit: degree {}. It is not negative. Use 0 for a constant.", degree));
  if (o.w.has_value() && !(o.w.shape() == places))
    throw ShapeError(fmt::format("polyfit: weights {} of {}. Every place has one. Give as many.",
                                 to_string(type_of(o.w)), count_text(places[0], "place")));
  const Array column = primitive::reshape(api::cast(weights, t), {weights.size(), 1});
  Array powers = vander(api::cast(x, t), add_sizes(degree, 1)), right = api::cast(y, t);
  if (o.w.has_value()) {
    powers = powers * column;
    right = values.size() == 2 ? right * column : right * api::cast(weights, t);
  }
  // normalizes columns: otherwise small ones would be lost beside the largest power
  const Array length = sqrt(sum(square(powers), 0));
  const double eps = t.dtype == DType::float64    ? 0x1p-52
                     : t.dtype == DType::float32  ? 0x1p-23
                     : t.dtype == DType::bfloat16 ? 0x1p-7
                                                  : 0x1p-10;
  const Array c =
      linalg::lstsq(powers / length, right, {.rcond = o.rcond.value_or(eps * static_cast<double>(places[0]))})
          .x;
  return values.size() == 2 ? c / expand_dims(length, -1) : c / length;
}

}  // namespace shardarray
