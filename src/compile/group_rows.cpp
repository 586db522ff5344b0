#include "compile/group_rows.h"

#include "base/at.h"
#include "compile/index_map.h"
#include "compile/step_kind.h"

namespace shardarray {

bool are_rows(const RowsOfGroup& r, const Target::Fusion& limits) {
  const LocalValue &in = r.in, &full = r.points, &rows = r.rows;
  if (!(in.type.shape == full.type.shape) || in.layout != full.layout ||
      rows.layout->order() != full.layout->order())
    return false;
  const std::size_t outer = rows.type.shape.size();
  if (r.read.dims.size() != outer) return false;
  for (std::size_t j = 0; j < r.map.dims.size(); j++) {
    const auto k = static_cast<std::size_t>(r.map.dims[j].terms[0].dim);
    if (k >= outer) {
      if (full.layout->tiles(static_cast<int>(j)) != 1) return false;
      continue;
    }
    if (r.read.dims[k].dimension() != static_cast<int>(j)) return false;
    if (full.layout->dims()[j] != rows.layout->dims()[k]) return false;
  }
  std::int64_t tiles = 1;
  for (int k = 0; k < rows.layout->rank(); k++) tiles *= rows.layout->tiles(k);
  return num_elements(rows.type.shape) / tiles >= limits.enough_rows ||
         num_elements(full.type.shape) / tiles <= limits.few_points;
}

IndexMap with_inner(IndexMap m, const FlatNode* n) {
  if (!n || n->op->form != Form::reduce) return m;
  const int outer = static_cast<int>(m.dims.size());
  for (std::size_t k = 0; k < n->attrs->dims.size(); k++)
    m.dims.push_back(IndexSum::along(outer + static_cast<int>(k)));
  return m;
}

IndexMap in_group_map(const LocalStep& s, std::size_t k, const Partition& p, const FlatGraph& g,
                      std::size_t outer) {
  const FlatNode* n = node_of(s, g);
  if (!n) return identity_map(at(p.values, s.in[0]).type.shape.size());  // a slice or a copy
  return n->op->form == Form::reduce ? reduce_map(*n, outer) : operand_map(s, g, k);
}

}  // namespace shardarray
