// What optimizers share: initial states, counts, scales, clipping. Formulas and order of operations are optax's.
#include "shardarray/optim.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/host_memory.h"
#include "base/sizes.h"
#include "lib/optim_leaves.h"
#include "shardarray/detail/maps.h"
#include "shardarray/placement.h"

namespace shardarray::optim::detail {

// `value`, sharded like the parameter, in its own memory: recorded constants of one shape would become one array with several owners,
// which cannot be donated.
static Array filled_beside(const Array& a, double value) {
  if (core::tracing()) return full_like(a, value);
  auto host_values = [&](const Shape& shape) {
    std::vector<std::byte> bytes = host_bytes("optim", bytes_of(shape, a.dtype()));
    const std::uint64_t bits = primitive::bits_of(a.dtype(), value);
    const std::size_t item = itemsize(a.dtype());
    for (std::size_t at = 0; bits != 0 && at < bytes.size(); at += item)
      std::memcpy(bytes.data() + at, &bits, std::min(item, sizeof bits));  // the real part of a complex128
    return core::make_array(bytes.data(), a.dtype(), shape, Where::here());
  };
  if (!a.committed()) return host_values(a.shape());
  auto piece = [&](const ShardIndex& index) {
    Shape shape = a.shape();
    for (std::size_t d = 0; d < shape.size(); d++)
      if (!index[d].whole) shape[d] = index[d].stop - index[d].start;
    return host_values(shape);
  };
  return core::from_callback(a.shape(), a.sharding(), piece, Where::here());
}

Slots filled_for(Slots parameters, double value) {
  for (Array& a : parameters) a = is_inexact_array(a) ? filled_beside(a, value) : Array();
  return parameters;
}
Slots zeros_for(Slots parameters) { return filled_for(std::move(parameters), 0); }

Array zero_count(Where w) { return zeros({}, int32, w); }
Array next_count(const Array& count) {
  const Array last = primitive::constant(DType::int32, std::numeric_limits<std::int32_t>::max(), false);
  return where(count < last, count + 1, last);
}

Array minus_rate(double rate) {
  return primitive::constant(DType::float64, primitive::bits_of(DType::float64, -rate), true);
}
Array minus_rate(const Array& rate) { return -rate; }
void scale_leaves(LeafStep& s, const Array& factor) {
  for_leaves(s, [&](Array& g, std::size_t) { g = scaled(g, factor); });
}

void keep_dtypes(std::vector<Slots>& next, const std::vector<Slots>& before) {
  for (std::size_t k = 0; k < next.size(); k++)
    for (std::size_t leaf = 0; leaf < next[k].size(); leaf++)
      if (const Array& old = before[k][leaf]; old.has_value() && next[k][leaf].has_value())
        next[k][leaf] = primitive::cast(next[k][leaf], old.dtype());
}

void check_steps(std::int64_t steps, const char* function) {
  if (steps < 1)
    throw ShapeError(fmt::format("{}: {} steps. Their number is at least 1. Correct it.", function, steps));
}

// ---------------------------------------------------------------- traces, means, decay
void TraceRule::step(LeafStep& s) const {
  for_leaves(s, [&](Array& g, std::size_t k) {
    const Array& before = s.state[0][k];
    const Array next = g + number(before, decay) * before;
    g = nesterov ? g + number(next, decay) * next : next;
    s.state[0][k] = next;
  });
}

void EmaRule::step(LeafStep& s) const {
  const Array by = debias ? correction(decay, s.next, count_type(s)) : Array();
  for_leaves(s, [&](Array& g, std::size_t k) {
    const Array mean = moment(g, s.state[0][k], decay);
    g = debias ? corrected(mean, by) : mean;
    s.state[0][k] = mean;
  });
}

void ApplyEveryRule::step(LeafStep& s) const {
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();  // counts saturate there
  const Array steps =
      primitive::constant(DType::int32, primitive::bits_of(DType::int32, std::min(k, most)), false);
  const Array at = s.count % steps, begins = at == 0, ends = at == steps - 1;
  for_leaves(s, [&](Array& g, std::size_t leaf) {
    Array& sum = s.state[0][leaf];
    sum = where(begins, g, sum + g);
    g = where(ends, sum, zeros_like(sum));
  });
  s.next = s.next % steps;
}

void decay_leaves(LeafStep& s, double rate) {
  if (rate == 0) return;
  for_leaves(s, [&](Array& g, std::size_t k) { g = g + number(s.params[k], rate) * s.params[k]; });
}
void decay_leaves(LeafStep& s, const Array& rate) {
  for_leaves(s, [&](Array& g, std::size_t k) { g = g + scaled(s.params[k], rate); });
}

// ---------------------------------------------------------------- norms
Array norm_of(const Slots& leaves) {
  Array sum_of_squares;
  for (const Array& x : leaves) {
    if (!x.has_value()) continue;
    const Array squares = sum(squared(x));
    sum_of_squares = sum_of_squares.has_value() ? sum_of_squares + squares : squares;
  }
  return sum_of_squares.has_value() ? sqrt(sum_of_squares) : zeros({});
}
// sqrt, with gradient 0 at 0.
static Array root_of(const Array& square) {
  const Array zero = square == 0;
  return where(zero, number(square, 0), sqrt(where(zero, number(square, 1), square)));
}
static Array norm_of_leaf(const Array& x) { return root_of(sum(squared(x))); }
static Array root_mean_square(const Array& x) { return root_of(mean(squared(x))); }
// The larger of the norm and `least`.
static Array at_least(const Array& norm, double least) {
  const Array bound = number(norm, least);
  return where(norm <= bound, bound, norm);
}

static Array stateless(Stateless kind, double value, const Array& g, const Array& norm) {
  switch (kind) {
    case Stateless::clip: return shardarray::clip(g, number(g, -value), number(g, value));
    case Stateless::global_norm:
      return where(norm < number(norm, value), g, g / norm.astype(number_type(g)) * number(g, value));
    case Stateless::block_rms: {
      const Array rms = root_mean_square(g);
      return g / maximum(number(rms, 1), rms / number(rms, value));
    }
    case Stateless::sign: return sign(g);
    default: break;
  }
  Shape axes;
  for (int d = 1; d < g.ndim(); d++) axes.push_back(d);
  return axes.empty() ? g : g - mean(g, {.axis = axes, .keepdims = true});
}
void stateless_step(Stateless kind, double value, LeafStep& s) {
  const Array norm = kind == Stateless::global_norm ? norm_of(s.updates) : Array();
  for_leaves(s, [&](Array& g, std::size_t k) {
    if (kind == Stateless::param_norm) g = g * at_least(norm_of_leaf(s.params[k]), value);
    else if (kind == Stateless::param_rms) g = g * at_least(root_mean_square(s.params[k]), value);
    else g = stateless(kind, value, g, norm);
  });
}

void TrustRule::step(LeafStep& s) const {
  for_leaves(s, [&](Array& g, std::size_t k) {
    const Array of_param = at_least(norm_of_leaf(s.params[k]), options.min_norm);
    const Array of_update = at_least(norm_of_leaf(g), options.min_norm);
    const Array ratio =
        number(of_param, options.trust_coefficient) * of_param / (of_update + number(of_update, options.eps));
    g = g * where((of_param == 0) | (of_update == 0), number(of_param, 1), ratio);
  });
}

}  // namespace shardarray::optim::detail
