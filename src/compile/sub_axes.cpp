#include <algorithm>
#include <set>

#include "compile/passes.h"

namespace shardarray {

static bool fits_chain(const std::set<int>& cuts, int cut) {
  for (int c : cuts)
    if (c % cut != 0 && cut % c != 0) return false;
  return true;
}

SubAxes SubAxes::of(const DeviceOrder* order, std::span<const Layout* const> layouts) {
  std::set<int> cuts{1, order->size()};
  for (const Layout* l : layouts) {
    if (!l || l->order() != order) continue;
    std::vector<AxisList> lists = l->dims();
    lists.push_back(l->unreduced());
    for (const AxisList& list : lists)
      for (SubAxis a : list)
        for (int cut : {a.pre, a.pre * a.size})
          if (fits_chain(cuts, cut)) cuts.insert(cut);
  }
  SubAxes sub_axes;
  sub_axes.order = order;
  int pre = 1;
  for (int cut : cuts) {
    for (int rest = cut / pre, p = 2; rest > 1; p++)
      for (; rest % p == 0; rest /= p) {
        sub_axes.axes.push_back({pre, p});
        pre *= p;
      }
  }
  return sub_axes;
}

void SubAxes::append(SubAxis a, SubAxisList& to) const {
  for (std::size_t k = 0; k < axes.size(); k++)
    if (axes[k].pre >= a.pre && axes[k].pre < a.pre * a.size) to.push_back(static_cast<int>(k));
}

bool SubAxes::can_express(const Layout& l) const {
  if (l.order() != order) return false;
  auto is_cut = [&](int c) {
    return c == order->size() || std::any_of(axes.begin(), axes.end(), [&](SubAxis a) { return a.pre == c; });
  };
  auto fits = [&](const AxisList& list) {
    return std::all_of(list.begin(), list.end(),
                       [&](SubAxis a) { return is_cut(a.pre) && is_cut(a.pre * a.size); });
  };
  return fits(l.unreduced()) && std::all_of(l.dims().begin(), l.dims().end(), fits);
}

AxisList SubAxes::axis_list(const SubAxisList& numbers) const {
  AxisList list;
  for (int k : numbers) list.push_back(axes[static_cast<std::size_t>(k)]);
  return list;
}

SubAxisDims to_sub_axes(const SubAxes& sub_axes, const Layout& l) {
  SubAxisDims dims(static_cast<std::size_t>(l.rank()));
  for (std::size_t d = 0; d < dims.size(); d++)
    for (SubAxis a : l.dims()[d]) sub_axes.append(a, dims[d]);
  return dims;
}

const Layout* to_layout(const SubAxes& sub_axes, const SubAxisDims& dims, const SubAxisList& unreduced,
                        Reducer r) {
  std::vector<AxisList> lists;
  for (const auto& d : dims) lists.push_back(sub_axes.axis_list(d));
  return Layout::of(sub_axes.order, std::move(lists), sub_axes.axis_list(unreduced),
                    unreduced.empty() ? Reducer::none : r);
}

const Layout* SubAxes::nearest(const Layout& l) const {
  SubAxisDims dims(static_cast<std::size_t>(l.rank()));
  std::size_t next = 0;
  for (int d = 0; d < l.rank(); d++) {
    std::int64_t rest = l.tiles(d);
    while (rest > 1 && next < axes.size() && rest % axes[next].size == 0) {
      rest /= axes[next].size;
      dims[static_cast<std::size_t>(d)].push_back(static_cast<int>(next++));
    }
    if (rest > 1) break;
  }
  return to_layout(*this, dims);
}

std::vector<SubAxisList> sharing_axes(const SubAxes& sub_axes, const std::vector<SubAxisDims>& values) {
  SubAxisList every;
  for (int a = 0; a < std::ssize(sub_axes.axes); a++) every.push_back(a);
  constexpr std::size_t most = 4;
  std::vector<SubAxisList> kinds = {every};
  for (const SubAxisDims& dims : values)
    for (const SubAxisList& list : dims)
      if (!list.empty() && kinds.size() < most && std::ranges::find(kinds, list) == kinds.end())
        kinds.push_back(list);
  return kinds;
}

SubAxisDims without(SubAxisDims dims, const SubAxisList& axes) {
  for (SubAxisList& d : dims) d.erase_if([&](int a) { return axes.contains(a); });
  return dims;
}

}  // namespace shardarray
