// Distributions by rejection: attempts in a loop, as in jax.random. An element takes its first accepted attempt, however many the others
// need.
#include <fmt/core.h>

#include <array>

#include "lib/distributions.h"
#include "lib/gamma_slope.h"
#include "lib/random_bits.h"
#include "lib/random_floats.h"
#include "ops/api.h"
#include "shardarray/control_flow.h"
#include "shardarray/custom_derivatives.h"
#include "shardarray/distributions.h"
#include "shardarray/ops.h"

namespace shardarray::random {

void need_counts(DType t, const char* function) {
  if (t == DType::bool_ || is_complex(t))
    throw DTypeError(fmt::format("{}: dtype {}. It draws whole numbers. Choose an integer or floating dtype.",
                                 function, name(t)));
}

// ---------------------------------------------------------------- keys of elements
static Arrays words_of_elements(const ElementKeys& keys, std::uint32_t high, std::uint32_t low) {
  const Shape& shape = type_of(keys.high).shape;
  const Array in[] = {keys.high, keys.low, primitive::full(shape, DType::uint32, high),
                      primitive::full(shape, DType::uint32, low)};
  return record_all(op_threefry, in, nullptr, {});
}

ElementKeys element_keys(const Array& key, const Shape& shape) {
  if (is_partitionable()) {
    const Arrays words = words_by_position(key, shape);
    return {words[0], words[1]};
  }
  const Array keys = split(key, shape);
  const std::size_t last = shape.size();
  return {primitive::reshape(primitive::slice_dim(keys, last, 0, 1), shape),
          primitive::reshape(primitive::slice_dim(keys, last, 1, 2), shape)};
}

ElementKeys split_key(const ElementKeys& keys, int n, int k) {
  if (is_partitionable()) {
    const Arrays words = words_of_elements(keys, 0, static_cast<std::uint32_t>(k));
    return {words[0], words[1]};
  }
  // The older order: word w of the 2 n words is output w / n of the pair of counters (w % n, w % n + n).
  auto word = [&](int w) {
    const auto counter = static_cast<std::uint32_t>(w % n);
    return words_of_elements(keys, counter,
                             counter + static_cast<std::uint32_t>(n))[static_cast<std::size_t>(w / n)];
  };
  return {word(2 * k), word(2 * k + 1)};
}

Array unit_uniform(const ElementKeys& keys, DType t) {
  const DType drawn = drawn_bits(t);
  const bool wide = drawn == DType::uint64;
  Array high, low;  // of 64 bits
  if (is_philox()) {
    const Shape& shape = type_of(keys.high).shape;
    const Array zero = primitive::full(shape, DType::uint32, 0);
    const Array in[] = {keys.low, keys.high, zero, zero, zero};
    const Arrays words = record_all(op_philox, in, nullptr, {});
    if (!wide) return unit_of_bits(primitive::cast(words[0], drawn), t);
    high = words[1];
    low = words[0];
  } else {
    const Arrays words = words_of_elements(keys, 0, wide && !is_partitionable() ? 1 : 0);
    if (!wide)
      return unit_of_bits(
          primitive::cast(is_partitionable() ? primitive::binary(op_xor, words[0], words[1]) : words[0],
                          drawn),
          t);
    high = words[0];
    low = words[1];
  }
  high = primitive::cast(high, DType::uint64);
  return unit_of_bits(primitive::binary(op_or, primitive::binary(op_shl, high, primitive::like(high, 32)),
                                        primitive::cast(low, DType::uint64)),
                      t);
}

// ---------------------------------------------------------------- gamma
namespace {

// The carry of the loop: keys, and what the attempts have found.
struct GammaSearch {
  ElementKeys key, normal_key, uniform_key;
  Array found, done;
};

ElementKeys choose(const Array& condition, const ElementKeys& a, const ElementKeys& b) {
  return {where(condition, a.high, b.high), where(condition, a.low, b.low)};
}

// Steps of the loop, each with one normal number: an attempt draws again until 1 + c x is positive. 0.056 of the steps end no search.
constexpr std::int64_t gamma_numbers = 16;

Array drawn_gamma(const Array& key, const Array& alpha, const Shape& shape, DType t, bool in_logs) {
  const Array boosted = alpha < 1, d = where(boosted, alpha + 1, alpha) - 1.0 / 3, c = (1.0 / 3) / sqrt(d);
  const ElementKeys keys = element_keys(key, shape), first = split_key(keys, 2, 0),
                    boost_key = split_key(keys, 2, 1);
  auto attempt = [](const ElementKeys& k) {
    return std::array{split_key(k, 3, 0), split_key(k, 3, 1), split_key(k, 3, 2)};
  };
  auto step = [&](const Array&, const GammaSearch& s) {
    const Array x = normal_of_unit(unit_uniform(split_key(s.normal_key, 2, 1), t)), v = 1 + x * c, x2 = x * x,
                v3 = v * v * v, u = unit_uniform(s.uniform_key, t);
    const Array again = v <= 0;
    const Array refused = (u >= 1 - 0.0331 * (x2 * x2)) & (log(u) >= x2 * 0.5 + d * (1 - v3 + log(v3)));
    const Array accepted = ~(again | refused);
    const auto next = attempt(s.key);
    return GammaSearch{choose(again, s.key, next[0]), choose(again, split_key(s.normal_key, 2, 0), next[1]),
                       choose(again, s.uniform_key, next[2]), where(accepted & ~s.done, v3, s.found),
                       s.done | accepted};
  };
  const auto begin = attempt(first);
  const GammaSearch last =
      fori_loop(0, gamma_numbers, step,
                GammaSearch{begin[0], begin[1], begin[2], primitive::like(alpha, 1).astype(t),
                            primitive::full(shape, DType::bool_, 0)});
  const Array u = unit_uniform(boost_key, t);
  if (!in_logs) return d * last.found * where(boosted, power(1 - u, 1 / alpha), 1);
  const Array log_u = log1p(-u);
  return log(d) + log(last.found) + where(~boosted | (log_u == 0), 0, log_u * (1 / alpha));
}

// Its derivative is that of the draw as a fixed quantile of its distribution; that derivative has none itself.
Array gamma_of(const char* function, const Array& key, const Array& a, const Shape& shape, DType t,
               bool in_logs) {
  check_key(key, function);
  need_floating(t, function);
  const Parameters p(function, shape, t, {&a});
  using Both = std::tuple<Array, Array>;  // key, alpha
  const auto draw = [=, shape = p.shape](const Array& k, const Array& alpha) {
    return drawn_gamma(k, alpha, shape, t, in_logs);
  };
  const auto with_slope = [=](const Both& x, const Both& tangents) {
    const Array alpha = primitive::underived(std::get<1>(x), "the derivative of random::gamma"),
                y = draw(std::get<0>(x), alpha);
    const Array slope =
        in_logs ? gamma_log_slope(alpha, y) : where(y == 0, 0, y * gamma_log_slope(alpha, log(y)));
    return std::pair(y, slope * std::get<1>(tangents));
  };
  return custom_jvp(draw, with_slope)(key, p.values[0]);
}

}  // namespace

Array gamma(const detail::Key& key, const Array& a, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::gamma");
  return gamma_of("random::gamma", key, a, shape, dtype, false);
}
Array loggamma(const detail::Key& key, const Array& a, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::loggamma");
  return gamma_of("random::loggamma", key, a, shape, dtype, true);
}

Array beta(const detail::Key& key, const Array& a, const Array& b, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::beta");
  check_key(key, "random::beta");
  need_floating(dtype, "random::beta");
  const Parameters p("random::beta", shape, dtype, {&a, &b});
  const auto [key_a, key_b] = split<2>(key);
  const Array log_a = loggamma(key_a, p.values[0], p.shape, dtype),
              log_b = loggamma(key_b, p.values[1], p.shape, dtype);
  const Array larger = maximum(log_a, log_b), of_a = exp(log_a - larger);
  return of_a / (of_a + exp(log_b - larger));
}

Array dirichlet(const detail::Key& key, const Array& alpha, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::dirichlet");
  const Type& t = type_of(alpha, "random::dirichlet");
  if (t.shape.empty())
    throw ShapeError(fmt::format(
        "random::dirichlet: alpha is {}. Its last dimension has the parts of a vector. Give it one.",
        to_string(t)));
  Shape vectors = shape;
  if (!shape.empty()) vectors.push_back(t.shape.back());
  return softmax(gamma_of("random::dirichlet", key, alpha, vectors, dtype, true));
}

Array chisquare(const detail::Key& key, const Array& df, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::chisquare");
  need_floating(dtype, "random::chisquare");
  return exp(gamma_of("random::chisquare", key, df.astype(dtype) / 2, shape, dtype, true)) * 2;
}

Array t(const detail::Key& key, const Array& df, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::t");
  check_key(key, "random::t");
  need_floating(dtype, "random::t");
  const Parameters p("random::t", shape, dtype, {&df});
  const auto [normal_key, gamma_key] = split<2>(key);
  const Array half = p.values[0] / 2;
  return normal(normal_key, p.shape, dtype) * sqrt(half / gamma(gamma_key, half, p.shape, dtype));
}

Array f(const detail::Key& key, const Array& dfnum, const Array& dfden, const Shape& shape, DType dtype,
        Where w) {
  const Site site(w, "random::f");
  check_key(key, "random::f");
  need_floating(dtype, "random::f");
  const Parameters p("random::f", shape, dtype, {&dfnum, &dfden});
  const auto [den_key, num_key] = split<2>(key);
  auto part = [&](const Array& k, const Array& df) { return chisquare(k, df, p.shape, dtype) / df; };
  return part(num_key, p.values[0]) / part(den_key, p.values[1]);
}

Array generalized_normal(const detail::Key& key, double p, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::generalized_normal");
  check_key(key, "random::generalized_normal");
  need_floating(dtype, "random::generalized_normal");
  const auto [gamma_key, sign_key] = split<2>(key);
  return rademacher(sign_key, shape, dtype) * power(gamma(gamma_key, 1 / p, shape, dtype), 1 / p);
}

Array ball(const detail::Key& key, std::int64_t d, double p, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::ball");
  check_key(key, "random::ball");
  need_floating(dtype, "random::ball");
  Shape points = shape;
  points.push_back(d);
  const auto [point_key, radius_key] = split<2>(key);
  const Array g = generalized_normal(point_key, p, points, dtype);
  const Array length = sum(power(abs(g), p), -1) + exponential(radius_key, shape, dtype);
  return g / expand_dims(power(length, 1 / p), -1);
}

// ---------------------------------------------------------------- counts
namespace {

struct Counted {
  Array key, count, sum;
};
struct Tried {
  Array key, count, done;
};

// A count with a mean below 10 exceeds 55 with a probability below 1e-23.
constexpr std::int64_t small_counts = 56;
// An attempt fails for 1 in 4 Poisson numbers (lam = 10), and for 2 in 7 binomial ones.
constexpr std::int64_t poisson_attempts = 34, binomial_attempts = 37;

// How many exponential draws have a sum below lam.
Array poisson_of_few(const Array& key, const Array& lam) {
  const Shape& shape = type_of(lam).shape;
  auto step = [&](const Array&, const Counted& c) {
    const auto [next, own] = split<2>(c.key);
    return Counted{next, where(c.sum > -lam, c.count + 1, c.count),
                   c.sum + log(unit_uniform(own, shape, DType::float32))};
  };
  const Array zero = primitive::full(shape, DType::float32, 0);
  return fori_loop(0, small_counts, step, Counted{key, zero, zero}).count - 1;
}

Array poisson_of_many(const Array& key, const Array& lam) {
  const Shape& shape = type_of(lam).shape;
  const Array log_lam = log(lam), b = 0.931 + 2.53 * sqrt(lam), a = -0.059 + 0.02483 * b,
              inv_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  auto step = [&](const Array&, const Tried& c) {
    const auto [next, u_key, v_key] = split<3>(c.key);
    const Array u = unit_uniform(u_key, shape, DType::float32) - 0.5,
                v = unit_uniform(v_key, shape, DType::float32), u_shifted = 0.5 - abs(u);
    const Array k = floor((2 * a / u_shifted + b) * u + lam + 0.43);
    const Array s = log(v * inv_alpha / (a / (u_shifted * u_shifted) + b)),
                t = -lam + k * log_lam - lgamma(k + 1);
    const Array rejected = (k < 0) | ((u_shifted < 0.013) & (v > u_shifted));
    const Array accepted = ((u_shifted >= 0.07) & (v <= v_r)) | (~rejected & (s <= t));
    return Tried{next, where(accepted & ~c.done, k, c.count), c.done | accepted};
  };
  return fori_loop(
             0, poisson_attempts, step,
             Tried{key, primitive::full(shape, DType::float32, -1), primitive::full(shape, DType::bool_, 0)})
      .count;
}

// How many geometric draws have a sum of at most `count`.
Array binomial_of_few(const Array& key, const Array& count, const Array& p) {
  const Shape& shape = type_of(p).shape;
  const DType t = type_of(p).dtype;
  const Array log_q = log1p(-p);
  auto step = [&](const Array&, const Counted& c) {
    const auto [own, next] = split<2>(c.key);
    return Counted{next, where(c.sum <= count, c.count + 1, c.count),
                   c.sum + ceil(log(unit_uniform(own, shape, t)) / log_q)};
  };
  const Array zero = primitive::full(shape, t, 0);
  return fori_loop(0, small_counts, step, Counted{key, zero, zero}).count - 1;
}

// log(k!) minus Stirling's formula; above 9 the value at 9, as in JAX: where that is used, four of them nearly cancel.
Array stirling_tail(const Array& k) {
  constexpr double small[] = {
      0.0810614667953272, 0.0413406959554092, 0.0276779256849983, 0.02079067210376509, 0.0166446911898211,
      0.0138761288230707, 0.0118967099458917, 0.0104112652619720, 0.00925546218271273, 0.00833056343336287};
  const Array next = clamp(0.0, k, 9.0) + 1, square = next * next;
  Array r = (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / next;
  for (std::size_t n = 0; n < std::size(small); n++)
    r = where(floor(k) == static_cast<double>(n), small[n], r);  // k >= 0
  return r;
}

Array binomial_of_many(const Array& key, const Array& count, const Array& p) {
  const Shape& shape = type_of(p).shape;
  const DType t = type_of(p).dtype;
  const Array deviation = sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation,
              a = -0.0873 + 0.0248 * b + 0.01 * p, c = count * p + 0.5, v_r = 0.92 - 4.2 / b, r = p / (1 - p),
              alpha = (2.83 + 5.1 / b) * deviation, m = floor((count + 1) * p);
  const Array of_mode = (m + 0.5) * log((m + 1) / (r * (count - m + 1)));
  const Array tail = stirling_tail(m) + stirling_tail(count - m);
  auto step = [&](const Array&, const Tried& s) {
    const auto [next, u_key, v_key] = split<3>(s.key);
    const Array u = unit_uniform(u_key, shape, t) - 0.5, v = unit_uniform(v_key, shape, t), us = 0.5 - abs(u);
    const Array k = floor((2 * a / us + b) * u + c);
    const Array bound = of_mode + (count + 1) * log((count - m + 1) / (count - k + 1)) +
                        (k + 0.5) * log(r * (count - k + 1) / (k + 1)) + tail - stirling_tail(k) -
                        stirling_tail(count - k);
    const Array outside = (k < 0) | (k > count);
    const Array accepted =
        ((us >= 0.07) & (v <= v_r)) | (~outside & (log(v * alpha / (a / (us * us) + b)) <= bound));
    return Tried{next, where(accepted & ~s.done, k, s.count), s.done | accepted};
  };
  return fori_loop(0, binomial_attempts, step,
                   Tried{key, primitive::full(shape, t, -1), primitive::full(shape, DType::bool_, 0)})
      .count;
}

}  // namespace

Array poisson(const detail::Key& key, const Array& lam, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::poisson");
  check_key(key, "random::poisson");
  need_counts(dtype, "random::poisson");
  const Parameters p("random::poisson", shape, DType::float32, {&lam});
  const Array mean = stop_gradient(p.values[0]), few = isnan(mean) | (mean < 10);
  const Array r =
      where(few, poisson_of_few(key, where(few, mean, 0)), poisson_of_many(key, where(few, 1e5, mean)));
  return where(mean == 0, 0, r).astype(dtype);
}

Array binomial(const detail::Key& key, const Array& n, const Array& p, const Shape& shape, DType dtype,
               Where w) {
  const Site site(w, "random::binomial");
  check_key(key, "random::binomial");
  need_floating(dtype, "random::binomial");
  const DType t = api::to_inexact(api::weak_type_of(p, "random::binomial")).dtype;
  const Parameters all("random::binomial", shape, t, {&n, &p});
  const Array trials = stop_gradient(all.values[0]), prob = stop_gradient(all.values[1]),
              less_often = prob < 0.5;
  Array q = where(less_often, prob, 1 - prob);
  const Array bad_q = isnan(q) | (q < 0), bad_n = isnan(trials) | (trials < 0), endless = isinf(trials);
  q = where(bad_q, 0.01, q);
  const Array few = bad_n | (trials * q <= 10), count = floor(trials);
  const Array r = where(few, binomial_of_few(key, where(few, count, 0), q),
                        binomial_of_many(key, where(few, 1e4, count), where(few, 0.5, q)));
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                   inf = std::numeric_limits<double>::infinity();
  const Array known = where(bad_q | bad_n, nan, where(endless, inf, r.astype(dtype)));
  return where(less_often | bad_n | isnan(prob) | endless, known, count.astype(dtype) - known);
}

Array multinomial(const detail::Key& key, const Array& n, const Array& p, DType dtype, Where w) {
  constexpr const char* function = "random::multinomial";
  const Site site(w, function);
  check_key(key, function);
  need_floating(dtype, function);
  const Type& of_p = type_of(p, function);
  if (of_p.shape.empty())
    throw ShapeError(fmt::format("{}: p is {}. Its last dimension has the probabilities. Give it one.",
                                 function, to_string(of_p)));
  const DType t = api::to_inexact(api::promoted(function, {&n, &p})).dtype;
  Shape batch = of_p.shape;
  const std::int64_t outcomes = batch.back();
  batch.pop_back();
  const Array trials = shardarray::broadcast_to(n.astype(t), batch), parts = moveaxis(p.astype(t), -1, 0);
  const Array rest = cumsum(parts, {.axis = 0, .reverse = true}), ratios = parts / where(rest == 0, 1, rest);
  // The remaining trials are split between an outcome and those after it.
  const auto counts = scan(
      [&](const Array& left, const std::pair<Array, Array>& x) {
        const Array count = binomial(x.second, left, clip(x.first, 0, 1), batch, t);
        return std::pair(left - count, count);
      },
      trials, std::pair(ratios, split(key, outcomes)));
  return moveaxis(counts.second, 0, -1).astype(dtype);
}

}  // namespace shardarray::random
