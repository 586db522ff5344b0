// Distributions: compositions of ops on random bits, with the formulas (and so the numbers) of jax.random.
#include "shardarray/random.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/complex_parts.h"
#include "base/count_text.h"
#include "graph/trace_state.h"
#include "lib/random_bits.h"
#include "lib/random_floats.h"
#include "ops/api.h"
#include "ops/complex.h"
#include "shardarray/ops.h"
#include "shardarray/ordering.h"

namespace shardarray::random {

void need_floating(DType t, const char* function) {
  if (!is_floating(t))
    throw DTypeError(
        fmt::format("{}: dtype {}. It draws floating numbers. Choose float16, bfloat16, float32 or float64.",
                    function, name(t)));
}

namespace {

struct FloatFormat {
  DType drawn;             // bits drawn for one number
  int width, mantissa;     // their number, and that of the highest ones, which are used
  std::uint64_t smallest;  // the smallest normal number
};
FloatFormat format_of(DType t) {
  switch (t) {
    case DType::float16: return {DType::uint16, 16, 10, 0x0400};
    case DType::bfloat16: return {DType::uint8, 8, 7, 0x0080};
    case DType::float32: return {DType::uint32, 32, 23, 0x00800000};
    default: return {DType::uint64, 64, 52, 0x0010000000000000};
  }
}

}  // namespace

DType drawn_bits(DType t) { return format_of(t).drawn; }
Array smallest_normal(DType t) { return primitive::constant(t, format_of(t).smallest, false); }
Array scalar(DType t, double v) { return primitive::constant(t, primitive::bits_of(t, v), false); }

Array unit_of_bits(const Array& drawn, DType t) {
  const FloatFormat f = format_of(t);
  const Array k = primitive::binary(op_shr, drawn, primitive::like(drawn, f.width - f.mantissa));
  const DType with_sign = t == DType::float64 ? DType::int64 : DType::int32;  // converts faster
  const Array number = primitive::cast(primitive::cast(k, with_sign), t);
  return primitive::mul(number, primitive::like(number, std::ldexp(1.0, -f.mantissa)));
}

// 16-bit numbers are also rounded after the product, as in JAX.
Array between(const Array& unit, const Array& lo, const Array& hi) {
  const Shape& shape = type_of(unit).shape;
  const Array low = primitive::broadcast_to(lo, shape),
              width = primitive::broadcast_to(primitive::sub(hi, lo), shape);
  const bool half = itemsize(type_of(unit).dtype) == 2;
  return primitive::binary(
      op_max, low,
      half ? primitive::add(primitive::mul(unit, width), low) : record(op_fma, {unit, width, low}));
}

Array unit_uniform(const Array& key, const Shape& shape, DType t) {
  return unit_of_bits(bits(key, shape, drawn_bits(t)), t);
}
Array uniform_between(const Array& key, const Shape& shape, DType t, double lo, double hi) {
  return between(unit_uniform(key, shape, t), scalar(t, lo), scalar(t, hi));
}

static Array sqrt2_times_erf_inv(const Array& u) {
  return primitive::mul(primitive::like(u, std::numbers::sqrt2), primitive::unary(op_erf_inv, u));
}
Array normal_of_unit(const Array& unit) {
  const DType t = type_of(unit).dtype;
  const Array above_minus_one =
      primitive::constant(t, primitive::bits_of(t, -1.0) - 1, false);  // the next number after -1
  return sqrt2_times_erf_inv(between(unit, above_minus_one, scalar(t, 1)));
}

namespace {

// The size of [minval, maxval) in a dtype of `bits` bits, modulo 2^bits; 0 means all numbers.
std::uint64_t clip_range(std::int64_t& lo, std::int64_t& hi, DType t) {
  const auto bits = static_cast<int>(itemsize(t)) * 8;
  const bool is_signed = is_signed_integer(t);
  // int64 bounds cannot exceed uint64.
  const std::int64_t largest = is_signed    ? std::numeric_limits<std::int64_t>::max() >> (64 - bits)
                               : bits == 64 ? std::numeric_limits<std::int64_t>::max()
                                            : (std::int64_t{1} << bits) - 1;
  const std::int64_t smallest = is_signed ? -largest - 1 : 0;
  const bool beyond = hi > largest;
  lo = std::clamp(lo, smallest, largest);
  hi = std::clamp(hi, smallest, largest);
  if (hi <= lo) return 1;
  return static_cast<std::uint64_t>(hi) - static_cast<std::uint64_t>(lo) + (beyond ? 1 : 0);
}

// x in random order along `dim`: sorted by random words, in enough rounds to make up for equal words.
Array shuffle(Array key, Array x, std::size_t dim) {
  const auto n = static_cast<double>(std::max<std::int64_t>(1, num_elements(x.shape())));
  const int rounds =
      static_cast<int>(std::ceil(3 * std::log(n) / std::log(std::numeric_limits<std::uint32_t>::max())));
  for (int round = 0; round < rounds; round++) {
    const auto [next, sub] = split<2>(key);
    const Array operands[] = {bits(sub, x.shape()), x};
    x = primitive::sort(operands, dim)[1];
    key = next;
  }
  return x;
}

}  // namespace

Array uniform(const detail::Key& key, const Shape& shape, DType dtype, double minval, double maxval,
              Where w) {
  const Site site(w, "random::uniform");
  check_key(key, "random::uniform");
  need_floating(dtype, "random::uniform");
  if (minval == 0 && maxval == 1) return unit_uniform(key, shape, dtype);
  return uniform_between(key, shape, dtype, minval, maxval);
}

Array normal(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::normal");
  check_key(key, "random::normal");
  if (is_complex(dtype)) {
    const DType part = part_type(dtype);
    const auto [re, im] = split<2>(key);
    const Array root = scalar(part, std::numbers::sqrt2);
    const auto half = [&](const Array& k) {
      const Array x = normal_of_unit(unit_uniform(k, shape, part));
      return primitive::div(x, primitive::broadcast_to(root, shape));
    };
    return primitive::pair(half(re), half(im));
  }
  need_floating(dtype, "random::normal");
  return normal_of_unit(unit_uniform(key, shape, dtype));
}

Array randint(const detail::Key& key, const Shape& shape, std::int64_t minval, std::int64_t maxval,
              DType dtype, Where w) {
  const Site site(w, "random::randint");
  check_key(key, "random::randint");
  if (!is_integer(dtype))
    throw DTypeError(
        fmt::format("random::randint: dtype {}. It draws integers. Choose an integer dtype.", name(dtype)));
  const std::uint64_t span = clip_range(minval, maxval, dtype);
  const DType drawn = itemsize(dtype) == 8 ? DType::uint64 : DType::uint32;
  const auto [high_key, low_key] = split<2>(key);
  const Array high = bits(high_key, shape, drawn), low = bits(low_key, shape, drawn);
  // high * 2^bits + low, modulo span: two draws make the modulo bias negligible.
  Array offset = low;
  if (span != 0) {
    const std::uint64_t root =
        (drawn == DType::uint64 ? std::uint64_t{1} << 32 : std::uint64_t{1} << 16) % span;
    std::uint64_t factor = root * root;
    if (drawn == DType::uint32) factor = static_cast<std::uint32_t>(factor);
    auto constant = [&](std::uint64_t v) {
      return primitive::broadcast_to(primitive::constant(drawn, v, false), shape);
    };
    auto remainder = [&](const Array& x) { return primitive::binary(op_rem, x, constant(span)); };
    offset =
        remainder(primitive::add(primitive::mul(remainder(high), constant(factor % span)), remainder(low)));
  }
  const Array start =
      primitive::broadcast_to(primitive::constant(dtype, primitive::bits_of(dtype, minval), false), shape);
  return primitive::add(start, primitive::cast(offset, dtype));
}

static Array bernoulli_of(const Array& key, const Array& p, const Shape& shape) {
  check_key(key, "random::bernoulli");
  const DType t = type_of(p, "random::bernoulli").dtype;
  need_floating(t, "random::bernoulli");
  return less(unit_uniform(key, shape, t), shardarray::broadcast_to(p, shape));
}
Array bernoulli(const detail::Key& key, const Array& p, Where w) {
  const Site site(w, "random::bernoulli");
  return bernoulli_of(key, p, type_of(p, "random::bernoulli").shape);
}
Array bernoulli(const detail::Key& key, const Array& p, const Shape& shape, Where w) {
  const Site site(w, "random::bernoulli");
  return bernoulli_of(key, p, shape);
}

Array permutation(const detail::Key& key, std::int64_t n, Where w) {
  const Site site(w, "random::permutation");
  check_key(key, "random::permutation");
  if (n < 0)
    throw ShapeError(
        fmt::format("random::permutation: of {} numbers. There are at least 0. Correct the number.", n));
  return shuffle(key, primitive::iota({n}, 0, DType::int32), 0);
}

Array permutation(const detail::Key& key, const Array& x, const PermutationOptions& o, Where w) {
  const Site site(w, "random::permutation");
  check_key(key, "random::permutation");
  const Shape shape = type_of(x, "random::permutation").shape;
  const std::size_t dim = api::axis_of("random::permutation", o.axis, shape);
  if (o.independent || shape.size() == 1) return shuffle(key, x, dim);
  return take(x, permutation(key, shape[dim]), static_cast<std::int64_t>(dim));
}

// Draws of 0..count-1 with probabilities p.
static Array weighted_choice(const Array& key, std::int64_t count, const Shape& shape,
                             const ChoiceOptions& o) {
  const Type& t = type_of(o.p, "random::choice");
  need_floating(t.dtype, "random::choice");
  if (t.shape != Shape{count})
    throw ShapeError(
        fmt::format("random::choice: p is {} for {}. There is one probability for each of them. Correct p.",
                    to_string(t), count_text(count, "element")));
  if (!o.replace) {  // the largest of log(p) + gumbel
    const Array score = gumbel(key, {count}, t.dtype) + shardarray::log(o.p);
    return primitive::reshape(primitive::slice_dim(argsort(-score), 0, 0, num_elements(shape)), shape);
  }
  const Array below = cumsum(o.p);
  return searchsorted(below, below[count - 1] * (1 - unit_uniform(key, shape, t.dtype)));
}

static Array positions(const Array& key, std::int64_t count, const Shape& shape, const ChoiceOptions& o) {
  check_key(key, "random::choice");
  check_type({shape, DType::int32}, "random::choice");
  const std::int64_t draws = num_elements(shape);
  if (draws > 0 && (count <= 0 || (!o.replace && draws > count)))
    throw ShapeError(
        fmt::format("random::choice: {} from {}. Without replacement there are at most as many draws as "
                    "elements, and at least one element. Draw fewer, or with replacement.",
                    count_text(draws, "draw"), count_text(count, "element")));
  if (o.p.has_value()) return weighted_choice(key, count, shape, o);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (count > most)
    throw DTypeError(
        fmt::format("random::choice: numbers below {} do not fit into int32, of which draws are. Choose from "
                    "at most {}.",
                    count, most));
  if (o.replace) return randint(key, shape, 0, count);
  return primitive::reshape(primitive::slice_dim(permutation(key, count), 0, 0, draws), shape);
}

Array choice(const detail::Key& key, std::int64_t n, const Shape& shape, const ChoiceOptions& o, Where w) {
  const Site site(w, "random::choice");
  return positions(key, n, shape, o);
}

Array choice(const detail::Key& key, const Array& x, const Shape& shape, const ChoiceOptions& o, Where w) {
  const Site site(w, "random::choice");
  const Shape& of = type_of(x, "random::choice").shape;
  const std::size_t dim = api::axis_of("random::choice", o.axis, of);
  return take(x, positions(key, of[dim], shape, o), static_cast<std::int64_t>(dim));
}

// The argmax of logits + gumbel. `prefix`: dimensions before those of logits.
static Array categorical_of(const Array& key, const Array& logits, std::size_t dim, const Shape& prefix) {
  const Type& t = type_of(logits, "random::categorical");
  need_floating(t.dtype, "random::categorical");
  Shape shape = prefix;
  for (std::int64_t n : t.shape) shape.push_back(n);
  return argmax(gumbel(key, shape, t.dtype) + logits, static_cast<std::int64_t>(prefix.size() + dim));
}

Array categorical(const detail::Key& key, const Array& logits, std::int64_t axis, Where w) {
  const Site site(w, "random::categorical");
  return categorical_of(
      key, logits, api::axis_of("random::categorical", axis, type_of(logits, "random::categorical").shape),
      {});
}

Array categorical(const detail::Key& key, const Array& logits, std::int64_t axis, const Shape& shape,
                  Where w) {
  const Site site(w, "random::categorical");
  Shape batch = type_of(logits, "random::categorical").shape;
  const std::size_t dim = api::axis_of("random::categorical", axis, batch);
  batch.erase(dim);
  if (shape.size() < batch.size() || !std::equal(batch.begin(), batch.end(), shape.end() - batch.size()))
    throw ShapeError(
        fmt::format("random::categorical: shape {} for logits {}. The shape ends in that of the logits "
                    "without the axis, {}. Add leading dimensions only.",
                    to_string(shape), to_string(type_of(logits)), to_string(batch)));
  return categorical_of(key, logits, dim, Shape(shape.begin(), shape.end() - batch.size()));
}

// In float32 XLA's rational approximation: far from 0 the last bit of a bound moves many draws.
static double erf_as_xla(double x) { return std::erf(x); }
static float erf_as_xla(float x) {
  constexpr float above[] = {0.00022905065861350646f, 0.0034082910107109506f, 0.050955695062380861f,
                             0.18520832239976145f, 1.128379143519084f};
  constexpr float below[] = {-1.1791602954361697e-7f,
                             0.000023547966471313185f,
                             0.0010179625278914885f,
                             0.014070470171167667f,
                             0.11098505178285362f,
                             0.49746925110067538f,
                             1.0f};
  x = std::clamp(x, -3.8325069f, 3.8325069f);
  auto polynomial = [square = x * x](std::span<const float> coefficients) {
    float r = 0;
    for (float c : coefficients) r = std::fma(r, square, c);
    return r;
  };
  return x * polynomial(above) / polynomial(below);
}

// Bounds and their error functions are rounded as JAX does; then the result is kept inside the open interval.
template <class T> static Array truncated_normal_of(const Array& key, T lower, T upper, const Shape& shape) {
  constexpr DType t = dtype_of<T>();
  const auto sqrt2 = static_cast<T>(std::numbers::sqrt2);
  auto erf_of = [&](T x) { return scalar(t, static_cast<double>(erf_as_xla(x / sqrt2))); };
  const Array x = sqrt2_times_erf_inv(between(unit_uniform(key, shape, t), erf_of(lower), erf_of(upper)));
  constexpr T inf = std::numeric_limits<T>::infinity();
  const Array lowest = primitive::like(x, static_cast<double>(std::nextafter(lower, inf)));
  const Array highest = primitive::like(x, static_cast<double>(std::nextafter(upper, -inf)));
  return primitive::binary(op_min, primitive::binary(op_max, x, lowest), highest);
}

Array truncated_normal(const detail::Key& key, double lower, double upper, const Shape& shape, DType dtype,
                       Where w) {
  const Site site(w, "random::truncated_normal");
  check_key(key, "random::truncated_normal");
  if (dtype == DType::float64) return truncated_normal_of(key, lower, upper, shape);
  if (dtype == DType::float32)
    return truncated_normal_of(key, static_cast<float>(lower), static_cast<float>(upper), shape);
  throw DTypeError(fmt::format(
      "random::truncated_normal: dtype {}. It draws float32 or float64. Cast the result with astype.",
      name(dtype)));
}

Array exponential(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::exponential");
  check_key(key, "random::exponential");
  need_floating(dtype, "random::exponential");
  return primitive::neg(primitive::unary(op_log1p, primitive::neg(unit_uniform(key, shape, dtype))));
}

Array gumbel(const detail::Key& key, const Shape& shape, DType dtype, Where w) {
  const Site site(w, "random::gumbel");
  check_key(key, "random::gumbel");
  need_floating(dtype, "random::gumbel");
  // log(0) would be -inf
  const Array u = between(unit_uniform(key, shape, dtype), smallest_normal(dtype), scalar(dtype, 1));
  return primitive::neg(primitive::unary(op_log, primitive::neg(primitive::unary(op_log, u))));
}

}  // namespace shardarray::random
