#include "compile/assignment.h"

#include <algorithm>

#include "layout/factor.h"
#include "layout/spelling.h"
#include "ops/record.h"

namespace shardarray {

Assignment project(const SubAxisDims& dims, const std::vector<DimFactors>& factors, const Rule& rule,
                   const SubAxes& sub_axes) {
  Assignment a(rule.factors.size());
  for (std::size_t d = 0; d < dims.size(); d++) {
    if (factors[d].size() == 1) {
      a[static_cast<std::size_t>(factors[d][0])] = dims[d];
      continue;
    }
    std::size_t next = 0;
    for (int f : factors[d]) {
      std::int64_t rest = rule.factors[static_cast<std::size_t>(f)].size;
      while (next < dims[d].size() && rest % sub_axes.size(dims[d][next]) == 0) {
        rest /= sub_axes.size(dims[d][next]);
        a[static_cast<std::size_t>(f)].push_back(dims[d][next++]);
      }
      if (rest != 1) break;
    }
  }
  return a;
}

bool place(const Assignment& a, const std::vector<DimFactors>& factors, const Rule& rule, const Shape& shape,
           const SubAxes& sub_axes, SubAxisDims& dims) {
  dims.clear();
  for (std::size_t d = 0; d < factors.size(); d++) {
    if (factors[d].size() == 1) {
      dims.push_back(a[static_cast<std::size_t>(factors[d][0])]);
      continue;
    }
    dims.push_back({});
    SubAxisList& dim = dims.back();
    bool open = false;  // a major factor is not fully sharded
    for (int f : factors[d]) {
      std::int64_t rest = rule.factors[static_cast<std::size_t>(f)].size;
      for (int sub_axis : a[static_cast<std::size_t>(f)]) {
        if (open || rest % sub_axes.size(sub_axis) != 0) return false;
        rest /= sub_axes.size(sub_axis);
        dim.push_back(sub_axis);
      }
      open |= rest != 1;
    }
    if (shape[d] <= 1 && !dim.empty()) return false;
  }
  return true;
}

std::optional<std::size_t> cut_factor(const Rule& rule, const Assignment& a, Role role) {
  for (std::size_t f = 0; f < a.size(); f++)
    if (rule.factors[f].role == role && !a[f].empty()) return f;
  return std::nullopt;
}

bool is_free(const FlatGraph& g, int node) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(node)];
  const Form form = n.op->form;
  const bool calls = form == Form::iterate || form == Form::choose || form == Form::repeat;
  if (form == Form::leaf || calls || n.op->effect) return false;
  if (n.in.empty()) return true;
  if (n.op->trait == Trait::like) return is_free(g, g.producer[static_cast<std::size_t>(n.in[0])]);
  return n.op->form == Form::map && n.in_types[0].shape.empty();
}

const Layout* constraint_layout(const FlatNode& n, const DeviceOrder* order) {
  const auto rank = static_cast<int>(n.out_types[0].shape.size());
  const auto lead = n.attrs->lo.empty() ? 0 : static_cast<int>(n.attrs->lo[0]);
  const Layout* l = layout_of(*n.attrs->sharding, rank - lead);
  if (lead > 0) {
    std::vector<AxisList> dims(static_cast<std::size_t>(lead));
    dims.insert(dims.end(), l->dims().begin(), l->dims().end());
    l = Layout::of(l->order(), std::move(dims), l->unreduced(), l->reducer());
  }
  const Layout* in_this_order = in_order(l, order);
  return in_this_order ? in_this_order : l;
}

}  // namespace shardarray
