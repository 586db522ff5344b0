// The arithmetic of loss scales; as in jmp.
#include "shardarray/optim/loss_scale.h"

#include <fmt/core.h>

#include "lib/optim_leaves.h"
#include "ops/api.h"

namespace shardarray::optim {

namespace detail {

Array finite(const Slots& leaves) {
  Array r = true;
  for (const Array& x : leaves)
    if (x.has_value() && is_inexact(x.dtype())) r = logical_and(r, all(isfinite(x)));
  return r;
}
// In float32 at least: half of the scales have no inverse in 16 bits.
Slots unscaled(Slots leaves, const Array& scale) {
  const Array inverse = 1 / scale;
  for (Array& x : leaves)
    if (x.has_value() && is_inexact(x.dtype())) {
      const DType wide = api::computed(x.dtype());
      x = primitive::cast(primitive::cast(x, wide) * primitive::cast(inverse, wide), x.dtype());
    }
  return leaves;
}

}  // namespace detail

LossScale LossScale::init(const LossScaleOptions& o, Where w) {
  const Site site(w, "loss_scale");
  detail::check_steps(o.growth_interval, "loss_scale");
  for (const double v : {o.initial, o.growth_factor, o.backoff_factor, o.min_scale})
    if (!(v > 0))
      throw Error(
          fmt::format("loss_scale: {} among the options. Scales and factors are positive. Change it.", v));
  return {detail::single(o.initial), detail::zero_count(w), o};
}
Array LossScale::scaled(const Array& loss, Where w) const {
  const Site site(w, "loss_scale");
  return detail::scaled(loss, scale);
}
LossScale LossScale::adjust(const Array& finite, Where w) const {
  const Site site(w, "loss_scale");
  const Array grown = scale * detail::single(options.growth_factor), count = good_steps + 1;
  const Array grows = logical_and(finite, logical_and(count >= options.growth_interval, isfinite(grown)));
  const Array shrunk =
      maximum(scale * detail::single(options.backoff_factor), detail::single(options.min_scale));
  return {where(finite, where(grows, grown, scale), shrunk),
          where(finite, count % options.growth_interval, zeros_like(count)), options};
}

}  // namespace shardarray::optim
