#include "compile/sub_axis_layouts.h"

namespace shardarray {

const Layout* SubAxisLayouts::of(const SubAxisDims& dims, const SubAxisList& summed, Reducer reducer) {
  key_.assign(1, static_cast<char>(summed.empty() ? Reducer::none : reducer));
  const auto add = [&](const SubAxisList& list) {
    for (const int sub_axis : list) key_.push_back(static_cast<char>(sub_axis + 1));
    key_.push_back('\0');
  };
  for (const SubAxisList& dim : dims) add(dim);
  add(summed);
  const auto [it, fresh] = made_.try_emplace(key_);
  if (fresh) it->second = to_layout(sub_axes_, dims, summed, reducer);
  return it->second;
}

bool SubAxisLayouts::can_express(const Layout* l) {
  const auto [it, fresh] = expressible_.try_emplace(l);
  if (fresh) it->second = sub_axes_.can_express(*l);
  return it->second;
}

}  // namespace shardarray
