// apply_along_axis as nested maps, piecewise as a chain of choices.
#include "shardarray/apply.h"

#include <fmt/core.h>

#include "base/count_text.h"
#include "graph/trace_state.h"
#include "ops/api.h"

namespace shardarray {

Array core::apply_along_axis(const std::function<Array(const Array&)>& f, std::int64_t axis, const Array& x,
                             Where w) {
  const Site site(w, "apply_along_axis");
  const auto dim =
      static_cast<std::int64_t>(api::axis_of("apply_along_axis", axis, type_of(x, "apply_along_axis").shape));
  const std::int64_t others = std::ssize(x.shape()) - 1;
  std::function<Array(const Array&)> mapped = f;
  for (std::int64_t k = 0; k < others; k++)
    mapped = [inner = std::move(mapped)](const Array& y) { return vmap(inner)(y); };
  const Array r = mapped(moveaxis(x, dim, others));
  Shape from, to;  // the dimensions of f's result, after the others
  for (std::int64_t k = others; k < std::ssize(r.shape()); k++) {
    from.push_back(k);
    to.push_back(dim + k - others);
  }
  return moveaxis(r, from, to);
}

Array core::piecewise(const Array& x, const std::vector<Array>& conditions, const std::vector<Array>& values,
                      Where w) {
  const Site site(w, "piecewise");
  if (values.size() != conditions.size() && values.size() != conditions.size() + 1)
    throw ShapeError(
        fmt::format("piecewise: {} for {}. There are as many, or one more for what is left. Give as many.",
                    count_text(values.size(), "function"), count_text(conditions.size(), "condition")));
  const Type& t = type_of(x, "piecewise");
  const WeakType kept{t.dtype, t.weak};
  Array r = values.size() > conditions.size() ? values.back().astype(kept.dtype) : zeros_like(x);
  for (std::size_t k = 0; k < conditions.size(); k++)
    r = where(conditions[k], values[k].astype(kept.dtype), r);
  return api::cast(broadcast_to(r, x.shape()), kept);
}

}  // namespace shardarray
