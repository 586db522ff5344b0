// The arithmetic of wrappers, leaf by leaf; formulas and order of operations are optax's.
#include "shardarray/optim/wrappers.h"

#include "execute/evaluate.h"
#include "lib/optim_leaves.h"
#include "ops/api.h"
#include "shardarray/detail/maps.h"

namespace shardarray::optim::detail {

Slots select(const Array& chosen, const Slots& a, const Slots& b) {
  Slots r = a;
  for (std::size_t k = 0; k < r.size(); k++) {
    if (!r[k].has_value()) continue;
    if (b.empty()) r[k] = where(chosen, r[k], zeros_like(r[k]));
    else if (b[k].has_value()) r[k] = where(chosen, primitive::cast(r[k], b[k].dtype()), b[k]);
  }
  return r;
}

Slots kept(bool chosen, const Slots& a, const Slots& b) {
  Slots r = a;
  for (std::size_t k = 0; k < r.size(); k++) {
    if (!r[k].has_value()) continue;
    if (b.empty() && !chosen) r[k] = zeros(r[k].shape(), r[k].dtype());
    if (!b.empty() && b[k].has_value()) r[k] = chosen ? primitive::cast(r[k], b[k].dtype()) : b[k];
  }
  return r;
}

Slots accumulators(const Slots& parameters) {
  Slots r = parameters;
  for (Array& a : r)
    if (is_inexact_array(a) && api::computed(a.dtype()) != a.dtype())
      a = zeros_like(a).astype(api::computed(a.dtype()));
  return zeros_for(std::move(r));
}

MiniStep mini_step(const Slots& grads, const Slots& sums, const Array& mini, const Array& gradient,
                   const Array& every_k, bool mean) {
  MiniStep r;
  r.emit = mini == every_k - 1;
  r.accumulated = r.grads = grads;
  for (std::size_t k = 0; k < grads.size(); k++) {
    if (!grads[k].has_value()) continue;
    const Array &old = sums[k], g = primitive::cast(grads[k], old.dtype());
    r.accumulated[k] = mean ? old + (g - old) / (mini + 1).astype(old.dtype()) : g + old;
    r.grads[k] = primitive::cast(r.accumulated[k], grads[k].dtype());
  }
  r.mini = (next_count(mini) % every_k).astype(int32);
  r.gradient = where(r.emit, next_count(gradient), gradient);
  return r;
}

Slots copies_of(Slots parameters) {
  std::vector<Array> copies;
  for (Array& a : parameters)
    if (a.has_value()) copies.push_back(a = primitive::behind(a, {}));  // never merged with an equal value
  if (!core::tracing()) evaluate(copies, "lookahead");
  return parameters;
}

LookaheadStep lookahead_step(const Slots& updates, const Slots& fast, const Slots& slow, const Array& steps,
                             std::int64_t period, double slow_step_size) {
  LookaheadStep r{updates, updates, steps == period - 1, (steps + 1) % period};
  for (std::size_t k = 0; k < updates.size(); k++) {
    const Array& u = updates[k];
    if (!u.has_value()) continue;
    const Array distance = fast[k] + u - slow[k], zero = zeros_like(distance);
    r.slow[k] = where(r.sync, number(distance, slow_step_size) * distance, zero);
    r.fast[k] = u - where(r.sync, number(distance, 1 - slow_step_size) * distance, zero);
  }
  return r;
}

}  // namespace shardarray::optim::detail
