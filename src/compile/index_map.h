// Index maps: how a value is read from the points of a loop's domain.
#pragma once
#include <vector>

#include "graph/flat.h"

namespace shardarray {

/// Per dimension of the value: `offset + step * (index along domain dimension `dim`)`.
struct IndexMap {
  std::vector<MapDim> dims;
  friend bool operator==(const IndexMap& a, const IndexMap& b) {
    if (a.dims.size() != b.dims.size()) return false;
    for (std::size_t k = 0; k < a.dims.size(); k++)
      if (a.dims[k].dim != b.dims[k].dim || a.dims[k].step != b.dims[k].step ||
          a.dims[k].offset != b.dims[k].offset)
        return false;
    return true;
  }
};

inline IndexMap identity_map(std::size_t rank) {
  IndexMap m;
  for (std::size_t k = 0; k < rank; k++) m.dims.push_back({static_cast<int>(k), 1, 0});
  return m;
}

/// `outer` reads a value from the domain, `inner` reads an operand from that value: how the operand is read from the domain.
inline IndexMap compose(const IndexMap& outer, const IndexMap& inner) {
  IndexMap m;
  for (const MapDim& d : inner.dims) {
    if (d.dim < 0) {
      m.dims.push_back(d);
    } else {
      const MapDim& o = outer.dims[static_cast<std::size_t>(d.dim)];
      m.dims.push_back({o.dim, o.step * d.step, d.offset + d.step * o.offset});
    }
  }
  return m;
}
inline IndexMap compose(const IndexMap& outer, const std::vector<MapDim>& inner) {
  return compose(outer, IndexMap{inner});
}

/// How a reduce reads its operand when its result is read at the domain's `outer` dimensions: reduced dimensions are the
/// domain's inner ones. The result's own dimensions count 0 .. and the inner ones `outer` ..; so it is not composed further
/// for reduced dimensions: outer identity is required.
IndexMap reduce_map(const FlatNode& n, std::size_t outer);

}  // namespace shardarray
