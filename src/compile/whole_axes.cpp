#include "compile/whole_axes.h"

#include <algorithm>

#include "layout/axes.h"

namespace shardarray {

const Layout* on_whole_axes(const Layout* l, const Shape& shape, const CompileInput& in) {
  if (in.is_run || in.mesh == nullptr || !l->unreduced().empty()) return l;
  if (std::ranges::find(in.inputs, l) != in.inputs.end() || sharding_code(*l, in.mesh).in_parts.empty())
    return l;
  std::vector<AxisList> dims = l->dims();
  for (std::size_t d = 0; d < dims.size(); d++) {
    AxisList elsewhere;
    for (std::size_t other = 0; other < dims.size(); other++)
      if (other != d) elsewhere = cover(elsewhere, dims[other]);
    for (const Layout* given : in.inputs) {
      if (given->order() != l->order()) continue;
      for (const AxisList& whole : given->dims()) {
        const CommonPrefix both = common_prefix(dims[d], whole);
        const bool cuts_on = !dims[d].empty() && both.rest_a.empty() && !both.rest_b.empty();
        if (cuts_on && shape[d] % product(whole) == 0 && shared_axes(whole, elsewhere).empty())
          dims[d] = whole;
      }
    }
  }
  const Layout* const named = Layout::of(l->order(), std::move(dims));
  return sharding_code(*named, in.mesh).in_parts.empty() ? named : l;
}

}  // namespace shardarray
