// Index maps: how a value is read from the points of a loop's domain.
#pragma once
#include <algorithm>
#include <optional>
#include <vector>

#include "base/small_vector.h"
#include "graph/flat.h"

namespace shardarray {

/// The index along one dimension of a value: `offset` plus, for each term, `step` * (index along domain dimension `dim`). Terms ascend by
/// dimension. A dimension that a reshape splits has one term per part.
struct IndexSum {
  struct Term {
    int dim = 0;
    std::int64_t step = 1;
    friend bool operator==(const Term&, const Term&) = default;
  };
  SmallVector<Term, 2> terms;
  std::int64_t offset = 0;

  void add(Term t) {
    auto at = std::find_if(terms.begin(), terms.end(), [&](const Term& x) { return x.dim >= t.dim; });
    if (at != terms.end() && at->dim == t.dim) {
      at->step += t.step;
      return;
    }
    const auto place = at - terms.begin();
    terms.push_back(t);
    std::rotate(terms.begin() + place, terms.end() - 1, terms.end());
  }
  /// The index along domain dimension `dim` itself.
  static IndexSum along(int dim) {
    IndexSum s;
    s.terms.push_back({dim, 1});
    return s;
  }
  /// The domain dimension, if this is just the index along it.
  std::optional<int> dimension() const {
    if (terms.size() != 1 || terms[0].step != 1 || offset != 0) return std::nullopt;
    return terms[0].dim;
  }
  friend bool operator==(const IndexSum& a, const IndexSum& b) {
    return a.offset == b.offset && std::equal(a.terms.begin(), a.terms.end(), b.terms.begin(), b.terms.end());
  }
};

struct IndexMap {
  std::vector<IndexSum> dims;  ///< per dimension of the value
  friend bool operator==(const IndexMap&, const IndexMap&) = default;
};

inline IndexMap identity_map(std::size_t rank) {
  IndexMap m;
  for (std::size_t k = 0; k < rank; k++) m.dims.push_back(IndexSum::along(static_cast<int>(k)));
  return m;
}

/// The map that an op declares.
inline IndexMap index_map(const std::vector<MapDim>& dims) {
  IndexMap m;
  for (const MapDim& d : dims) {
    IndexSum s;
    if (d.dim >= 0) s.terms.push_back({d.dim, d.step});
    s.offset = d.offset;
    m.dims.push_back(std::move(s));
  }
  return m;
}

/// `outer`: how the domain reads a value; `inner`: how the value reads an operand. Returns how the domain reads the operand.
inline IndexMap compose(const IndexMap& outer, const IndexMap& inner) {
  IndexMap m;
  for (const IndexSum& d : inner.dims) {
    IndexSum s;
    s.offset = d.offset;
    for (const IndexSum::Term& t : d.terms) {
      const IndexSum& o = outer.dims[static_cast<std::size_t>(t.dim)];
      s.offset += t.step * o.offset;
      for (const IndexSum::Term& u : o.terms) s.add({u.dim, u.step * t.step});
    }
    m.dims.push_back(std::move(s));
  }
  return m;
}

/// How a reduce reads its operand if its result is read at the domain's `outer` dimensions: reduced dimensions are the domain's inner ones.
/// The result's dimensions are 0, 1, ..., the inner ones `outer`, `outer` + 1, ...: right only if the result is read by the identity map.
IndexMap reduce_map(const FlatNode& n, std::size_t outer);

/// How a reshape's result reads its operand; none if dimensions are merged.
std::optional<IndexMap> split_map(const Shape& in, const Shape& out);

}  // namespace shardarray
