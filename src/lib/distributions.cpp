// Distributions that are a formula of random numbers; the formulas (and so the numbers) are those of jax.random.
#include "shardarray/distributions.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "graph/trace_state.h"
#include "lib/distributions.h"
#include "lib/random_bits.h"
#include "lib/random_floats.h"
#include "ops/api.h"
#include "shardarray/linalg.h"
#include "shardarray/ops.h"

namespace shardarray::random {

Parameters::Parameters(const char* function, const Shape& draw, DType t,
                       std::initializer_list<const Array*> given) {
  std::vector<Shape> shapes;
  for (const Array* p : given) {
    api::need_real(function, *p);
    shapes.push_back(type_of(*p, function).shape);
  }
  const Shape own = api::common_shape(function, shapes);
  shape = draw.empty() ? own : draw;
  shapes.push_back(shape);
  if (api::common_shape(function, shapes) != shape)
    throw ShapeError(
        fmt::format("{}: parameters of shape {} for a draw of shape {}. They are broadcast to the draw. "
                    "Correct the shape.",
                    function, to_string(own), to_string(shape)));
  check_type({shape, t}, function);
  for (const Array* p : given) values.push_back(primitive::broadcast_to(primitive::cast(*p, t), shape));
}

// 2^-digits: the distance from 1 to the number below it.
static double epsneg(DType t) {
  return std::ldexp(1.0, t == DType::float16    ? -11
                         : t == DType::bfloat16 ? -8
                         : t == DType::float32  ? -24
                                                : -53);
}

Array laplace(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::laplace");
  check_key(key, "random::laplace");
  need_floating(dtype, "random::laplace");
  const Array u = uniform_between(key, shape, dtype, -1 + epsneg(dtype), 1);
  return sign(u) * log1p(-abs(u));
}

Array logistic(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::logistic");
  check_key(key, "random::logistic");
  need_floating(dtype, "random::logistic");
  const Array u = between(unit_uniform(key, shape, dtype), smallest_normal(dtype), scalar(dtype, 1));
  return log(u) - log1p(-u);
}

Array cauchy(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::cauchy");
  check_key(key, "random::cauchy");
  need_floating(dtype, "random::cauchy");
  return tan(std::numbers::pi * (uniform_between(key, shape, dtype, 2 * epsneg(dtype), 1) - 0.5));
}

Array rademacher(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::rademacher");
  check_key(key, "random::rademacher");
  if (dtype == DType::bool_ || is_unsigned_integer(dtype) || is_complex(dtype))
    throw DTypeError(fmt::format(
        "random::rademacher: dtype {}. It draws -1 and 1. Choose a dtype with a sign.", name(dtype)));
  return 2 * bernoulli(key, 0.5, shape).astype(dtype) - 1;
}

Array maxwell(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::maxwell");
  Shape vectors = shape;
  vectors.push_back(3);
  return sqrt(sum(square(normal(key, vectors, dtype)), -1));
}

Array double_sided_maxwell(const detail::Key& key, const Array& loc, const Array& scale, const Shape& shape,
                           DType dtype, Where w) {
  constexpr const char* function = "random::double_sided_maxwell";
  const Site site(w, function);
  check_key(key, function);
  need_floating(dtype, function);
  const Parameters p(function, shape, dtype, {&loc, &scale});
  const auto [length_key, sign_key] = split<2>(key);
  return rademacher(sign_key, p.shape, dtype) * maxwell(length_key, p.shape, dtype) * p.values[1] +
         p.values[0];
}

Array weibull_min(const detail::Key& key, const Array& scale, const Array& concentration, const Shape& shape,
                  DType dtype, Where w) {
  constexpr const char* function = "random::weibull_min";
  const Site site(w, function);
  check_key(key, function);
  need_floating(dtype, function);
  const Parameters p(function, shape, dtype, {&scale, &concentration});
  return power(-log1p(-unit_uniform(key, p.shape, dtype)), 1.0 / p.values[1]) * p.values[0];
}

Array pareto(const detail::Key& key, const Array& b, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::pareto");
  check_key(key, "random::pareto");
  need_floating(dtype, "random::pareto");
  const Parameters p("random::pareto", shape, dtype, {&b});
  return exp(exponential(key, p.shape, dtype) / p.values[0]);
}

Array rayleigh(const detail::Key& key, const Array& scale, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::rayleigh");
  check_key(key, "random::rayleigh");
  need_floating(dtype, "random::rayleigh");
  const Parameters p("random::rayleigh", shape, dtype, {&scale});
  return p.values[0] * sqrt(log(unit_uniform(key, p.shape, dtype)) * -2.0);
}

Array wald(const detail::Key& key, const Array& mean, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::wald");
  check_key(key, "random::wald");
  need_floating(dtype, "random::wald");
  const Parameters p("random::wald", shape, dtype, {&mean});
  const Array m = p.values[0], m2 = square(m);
  const auto [normal_key, choice_key] = split<2>(key);
  const Array y = square(normal(normal_key, p.shape, dtype));
  const Array root = sqrt(4.0 * m * y + m2 * square(y));
  const Array x = m + m2 * y / 2.0 - m / 2.0 * root;
  return where(unit_uniform(choice_key, p.shape, dtype) <= m / (m + x), x, m2 / x);
}

Array triangular(const detail::Key& key, const Array& left, const Array& mode, const Array& right,
                 const Shape& shape, DType dtype, Where w) {
  constexpr const char* function = "random::triangular";
  const Site site(w, function);
  check_key(key, function);
  need_floating(dtype, function);
  const Parameters p(function, shape, dtype, {&left, &mode, &right});
  const Array &lo = p.values[0], &top = p.values[1], &hi = p.values[2];
  const Array u = unit_uniform(key, p.shape, dtype), width = hi - lo;
  return where(u < (top - lo) / width, lo + sqrt(u * width * (top - lo)),
               hi - sqrt((1.0 - u) * width * (hi - top)));
}

Array lognormal(const detail::Key& key, const Array& sigma, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::lognormal");
  check_key(key, "random::lognormal");
  need_floating(dtype, "random::lognormal");
  const Parameters p("random::lognormal", shape, dtype, {&sigma});
  return exp(normal(key, p.shape, dtype) * p.values[0]);
}

Array geometric(const detail::Key& key, const Array& p, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::geometric");
  check_key(key, "random::geometric");
  need_counts(dtype, "random::geometric");
  const DType t = api::to_inexact(api::weak_type_of(p, "random::geometric")).dtype;
  const Parameters all("random::geometric", shape, t, {&p});
  const Array u = unit_uniform(key, all.shape, t);
  const Array g = floor(log(where(u == 0, 1, u)) / log1p(-all.values[0])) + 1;
  return g.astype(dtype);
}

// ---------------------------------------------------------------- of matrices
Array multivariate_normal(const detail::Key& key, const Array& mean, const Array& cov,
                          const std::optional<Shape>& shape, std::optional<DType> dtype, CovarianceRoot root,
                          Where w) {
  constexpr const char* function = "random::multivariate_normal";
  const Site site(w, function);
  check_key(key, function);
  const WeakType t = api::to_inexact(api::promoted(function, {&mean, &cov}));
  need_floating(dtype.value_or(t.dtype), function);
  const Shape &of_mean = mean.shape(), &of_cov = cov.shape();
  const std::size_t last = of_mean.size(), square = of_cov.size();
  if (last < 1 || square < 2 || of_cov[square - 1] != of_mean[last - 1] ||
      of_cov[square - 2] != of_mean[last - 1])
    throw ShapeError(fmt::format(
        "{}: mean {} and covariances {}. A mean of n numbers goes with a matrix n x n. Correct the sizes.",
        function, to_string(type_of(mean)), to_string(type_of(cov))));
  const Shape batches[] = {Shape(of_mean.begin(), of_mean.end() - 1),
                           Shape(of_cov.begin(), of_cov.end() - 2)};
  Shape draw = api::common_shape(function, batches);
  if (shape) {
    const Shape all[] = {draw, *shape};
    if (api::common_shape(function, all) != *shape)
      throw ShapeError(
          fmt::format("{}: parameters of shape {} for a draw of shape {}. They are broadcast to the draw. "
                      "Correct the shape.",
                      function, to_string(draw), to_string(*shape)));
    draw = *shape;
  }
  draw.push_back(of_mean[last - 1]);
  const Array matrices = api::cast(cov, t);
  const auto scaled = [](const Array& vectors, const Array& values) {
    return vectors * expand_dims(sqrt(values), -2);
  };
  Array factor;
  if (root == CovarianceRoot::cholesky) factor = linalg::cholesky(matrices);
  else if (root == CovarianceRoot::eigh) {
    const auto [values, vectors] = linalg::eigh(matrices);
    factor = scaled(vectors, values);
  } else {
    const auto [u, s, vh] = linalg::svd(matrices);
    factor = scaled(u, s);
  }
  return api::cast(mean, t) + matvec(factor, normal(key, draw, dtype.value_or(t.dtype)));
}
Array orthogonal(const detail::Key& key, std::int64_t n, const Shape& shape, DType dtype,
                 std::optional<std::int64_t> m, Where w) {
  constexpr const char* function = "random::orthogonal";
  const Site site(w, function);
  const std::int64_t columns = m.value_or(n);
  if (n < 0 || columns < 0)
    throw ShapeError(
        fmt::format("{}: matrices of {} x {}. Sizes are not negative. Correct them.", function, n, columns));
  Shape draw = shape;
  draw.push_back(std::max(n, columns));
  draw.push_back(std::min(n, columns));
  const auto [q, r] = linalg::qr(normal(key, draw, dtype));
  const Array x = q * expand_dims(sign(linalg::diagonal(r, 0, -2, -1)), -2);
  return n < columns ? matrix_transpose(x) : x;
}

}  // namespace shardarray::random
