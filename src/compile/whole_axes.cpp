#include "compile/whole_axes.h"

#include "layout/axes.h"

namespace shardarray {

const Layout* on_whole_axes(const Layout* l, const Shape& shape, const CompileInput& in,
                            SpelledLayouts& spelled) {
  if (in.is_run || !l->unreduced().empty() || !spelled.is_in_parts(l)) return l;
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
  return spelled.is_in_parts(named) ? l : named;
}

}  // namespace shardarray
