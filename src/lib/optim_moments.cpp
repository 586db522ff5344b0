// The arithmetic of adaptive optimizers, leaf by leaf; formulas and order of operations are optax's.
#include "shardarray/optim/moments.h"

#include <algorithm>
#include <numeric>

#include "lib/optim_leaves.h"

namespace shardarray::optim::detail {

static Array plus(const Array& x, double v) { return v == 0 ? x : x + number(x, v); }
// sqrt(square + eps_root) + eps.
static Array root(const Array& square, double eps_root, double eps) {
  return sqrt(plus(square, eps_root)) + number(square, eps);
}

// Bias correction of the first moment: for this update, with Nesterov momentum also for the next one.
struct FirstMoment {
  FirstMoment(double b, bool ahead, const Array& t, DType type)
      : b1(b),
        nesterov(ahead),
        now(correction(b, t, type)),
        next(ahead ? correction(b, next_count(t), type) : Array()) {}
  Array hat(const Array& mu, const Array& g) const {
    if (!nesterov) return corrected(mu, now);
    return number(mu, b1) * corrected(mu, next) + number(g, 1 - b1) * corrected(g, now);
  }
  double b1;
  bool nesterov;
  Array now, next;
};

void AdamRule::step(LeafStep& s) const {
  const FirstMoment first(o.b1, o.nesterov, s.next, count_type(s));
  const Array by = correction(o.b2, s.next, count_type(s));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.b1);
    nu = moment(squared(g), nu, o.b2);
    g = first.hat(mu, g) / root(corrected(nu, by), o.eps_root, o.eps);
  });
}

void AmsgradRule::step(LeafStep& s) const {
  const Array by_mu = correction(o.b1, s.next, count_type(s)),
              by_nu = correction(o.b2, s.next, count_type(s));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k], &largest = s.state[2][k];
    mu = moment(g, mu, o.b1);
    nu = moment(squared(g), nu, o.b2);
    largest = maximum(largest, o.bias_correction_nu ? corrected(nu, by_nu) : nu);
    g = (o.bias_correction_mu ? corrected(mu, by_mu) : mu) / root(largest, o.eps_root, o.eps);
  });
}

void AdamaxRule::step(LeafStep& s) const {
  const Array by = correction(o.b1, s.next, count_type(s));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.b1);
    nu = maximum(abs(g) + number(g, o.eps), number(nu, o.b2) * nu);
    g = corrected(mu, by) / nu;
  });
}

void RadamRule::step(LeafStep& s) const {
  const FirstMoment first(o.b1, o.nesterov, s.next, count_type(s));
  const Array by = correction(o.b2, s.next, count_type(s));
  const double limit = 2 / (1 - o.b2) - 1;
  const auto one = [type = count_type(s)](double v) { return scalar_of(type, v); };
  const Array t = s.next.astype(count_type(s));
  const Array length = one(limit) - one(2) * t * power(one(o.b2), t) / by;
  const Array ratio = (length - 4) * (length - 2) * one(limit) / (one((limit - 4) * (limit - 2)) * length);
  const Array known = length >= one(o.threshold);
  const Array factor = sqrt(where(known, ratio, one(1)));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.b1);
    nu = moment(squared(g), nu, o.b2);
    const Array mean = first.hat(mu, g);
    g = where(known, scaled(mean, factor) / root(corrected(nu, by), o.eps_root, o.eps), mean);
  });
}

void BeliefRule::step(LeafStep& s) const {
  const FirstMoment first(o.b1, o.nesterov, s.next, count_type(s));
  const Array by = correction(o.b2, s.next, count_type(s));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.b1);
    const Array error = g - mu;
    nu = plus(moment(squared(error), nu, o.b2), o.eps_root);
    g = first.hat(mu, g) / root(corrected(nu, by), 0, o.eps);
  });
}

void YogiRule::step(LeafStep& s) const {
  const Array by_mu = correction(o.b1, s.next, count_type(s)),
              by_nu = correction(o.b2, s.next, count_type(s));
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.b1);
    const Array squares = squared(g);
    const Array surplus = nu - squares;
    nu = nu - number(surplus, 1 - o.b2) * sign(surplus) * squares;
    g = corrected(mu, by_mu) / root(corrected(nu, by_nu), o.eps_root, o.eps);
  });
}

Slots NovogradRule::first(const Slots& parameters, std::size_t k) const {
  Slots r = parameters;
  if (k == 1)
    for (Array& a : r)
      if (is_inexact_array(a)) a = sum(zeros_like(a));
  return zeros_for(std::move(r));
}
void NovogradRule::step(LeafStep& s) const {
  const Array begins = s.next == 1;
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    const Array squares = sum(squared(g));
    nu = where(begins, squares, moment(squares, nu, o.b2));
    const Array direction = g / root(nu, o.eps_root, o.eps);
    const Array& p = s.params[k];
    mu =
        number(mu, o.b1) * mu + (o.weight_decay == 0 ? direction : direction + number(p, o.weight_decay) * p);
    g = mu;
  });
}

void LionRule::step(LeafStep& s) const {
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array& mu = s.state[0][k];
    const Array direction = sign(moment(g, mu, b1));
    mu = moment(g, mu, b2);
    g = direction;
  });
}

// g / sqrt(squares + eps), or / (sqrt(squares) + eps).
static Array by_root(const Array& g, const Array& squares, const RmsOptions& o) {
  if (o.eps_in_sqrt) return rsqrt(squares + number(squares, o.eps)) * g;
  return number(squares, 1) / (sqrt(squares) + number(squares, o.eps)) * g;
}
void RmsRule::step(LeafStep& s) const {
  const Array by = o.bias_correction ? correction(o.decay, s.next, count_type(s)) : Array();
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array& nu = s.state[0][k];
    nu = moment(squared(g), nu, o.decay);
    g = by_root(g, o.bias_correction ? corrected(nu, by) : nu, o);
  });
}
void StdDevRule::step(LeafStep& s) const {
  const Array by = o.bias_correction ? correction(o.decay, s.next, count_type(s)) : Array();
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &mu = s.state[0][k], &nu = s.state[1][k];
    mu = moment(g, mu, o.decay);
    nu = moment(squared(g), nu, o.decay);
    const Array mean = o.bias_correction ? corrected(mu, by) : mu;
    g = by_root(g, (o.bias_correction ? corrected(nu, by) : nu) - squared(mean), o);
  });
}

void RssRule::step(LeafStep& s) const {
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array& total = s.state[0][k];
    total = squared(g) + total;
    g = where(total > 0, rsqrt(total + number(total, o.eps)), number(total, 0)) * g;
  });
}

void AdaDeltaRule::step(LeafStep& s) const {
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &of_grads = s.state[0][k], &of_updates = s.state[1][k];
    of_grads = moment(g * g, of_grads, rho);
    g = sqrt(of_updates + number(of_updates, eps)) / sqrt(of_grads + number(of_grads, eps)) * g;
    of_updates = moment(g * g, of_updates, rho);
  });
}

// The two longest dimensions of a shape that is factored, the longest one last.
static std::optional<std::pair<int, int>> factored_dims(const Shape& shape, const FactoredRmsOptions& o) {
  if (!o.factored || shape.size() < 2) return std::nullopt;
  std::vector<int> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return shape[static_cast<std::size_t>(a)] < shape[static_cast<std::size_t>(b)];
  });
  const int longest = order.back(), second = order[order.size() - 2];
  if (shape[static_cast<std::size_t>(second)] < o.min_dim_size_to_factor) return std::nullopt;
  return std::pair(second, longest);
}

Slots FactoredRule::first(const Slots& parameters, std::size_t k) const {
  Slots r = parameters;
  for (Array& a : r) {
    if (!is_inexact_array(a)) continue;
    const auto dims = factored_dims(a.shape(), o);
    if (k == 2 && !dims) continue;
    if (k < 2 && dims) a = mean(zeros_like(a), k == 0 ? dims->second : dims->first);
    else a = zeros({1}, a.dtype());
  }
  return zeros_for(std::move(r));
}
void FactoredRule::step(LeafStep& s) const {
  const auto one = [type = count_type(s)](double v) { return scalar_of(type, v); };
  const Array t = (s.count - o.step_offset + 1).astype(count_type(s));
  const Array fresh = power(t, one(-o.decay_rate)), decay = one(1) - fresh;
  auto mean_of = [&](const Array& old, const Array& x) {
    return scaled(old, decay) + scaled(x, one(1) - decay);
  };
  for_leaves(s, [&](Array& g, std::size_t k) {
    Array &row = s.state[0][k], &col = s.state[1][k], &v = s.state[2][k];
    const Array size = squared(g), squares = size + number(size, o.epsilon);
    const auto dims = factored_dims(g.shape(), o);
    if (!dims) {
      v = mean_of(v, squares);
      g = g * rsqrt(v);
      return;
    }
    const auto [second, longest] = *dims;
    row = mean_of(row, mean(squares, longest));
    col = mean_of(col, mean(squares, second));
    const int left = second > longest ? second - 1 : second;
    const Array of_rows = rsqrt(row / mean(row, {.axis = left, .keepdims = true}));
    g = g * expand_dims(of_rows, longest) * expand_dims(rsqrt(col), second);
  });
}

}  // namespace shardarray::optim::detail
