#include "ops/matrices.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/complex.h"
#include "shardarray/linalg.h"

namespace shardarray {

namespace rules {

Rule matrices_rule(const Call& c, const std::string& letters) {
  Rule r;
  const Types out = c.op->type != nullptr ? c.op->type(c) : Types{c.in[0]};
  std::map<char, DimFactors> factors;
  std::vector<DimFactors> batch;
  for (const std::int64_t size : matrices::batch_of(c.in[0].shape, letters.find_first_of(",-")))
    batch.push_back(add_factor(r, size));
  const auto dims = [&](const std::string& term, const Shape& shape) {
    std::vector<DimFactors> d = batch;
    for (const char letter : term) {
      DimFactors& f = factors[letter];
      const bool is_whole = std::islower(static_cast<unsigned char>(letter)) != 0;
      if (f.empty()) f = add_factor(r, shape[d.size()], is_whole ? Role::whole : Role::pass);
      d.push_back(f);
    }
    return d;
  };
  const Letters terms = split_letters(letters);
  for (std::size_t k = 0; k < c.in.size(); k++) r.operands.push_back(dims(terms.in[k], c.in[k].shape));
  std::size_t first = 0;
  for (const Type& t : out) {
    const std::size_t last = std::min(terms.out.find(',', first), terms.out.size());
    r.results.push_back(dims(terms.out.substr(first, last - first), t.shape));
    first = last + 1;
  }
  return r;
}

void need_matrices(const Call& c, std::initializer_list<std::size_t> ranks) {
  const std::size_t* rank = ranks.begin();
  for (const Type& t : c.in) {
    if (t.shape.size() < *rank ||
        !(matrices::batch_of(t.shape, *rank) == matrices::batch_of(c.in[0].shape, *ranks.begin())))
      throw InternalError(
          fmt::format("{}: operands {} and {}. They must have one batch of matrices or vectors.", c.op->name,
                      to_string(c.in[0]), to_string(t)));
    rank++;
  }
}

}  // namespace rules

namespace matrices {

Shape batch_of(const Shape& shape, std::size_t rank) { return part_of(shape, 0, shape.size() - rank); }
Array turned(const Array& x) {
  Shape perm = rules::dims_of_rank(x.shape().size());
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return primitive::transpose(x, perm);
}
Array columns(const Array& x, std::int64_t lo, std::int64_t hi) {
  return primitive::slice_dim(x, x.shape().size() - 1, lo, hi);
}
Array rows(const Array& x, std::int64_t lo, std::int64_t hi) {
  return primitive::slice_dim(x, x.shape().size() - 2, lo, hi);
}
Array adjoint(const Array& x) { return turned(primitive::conj(x)); }
Array diagonal_of(const Array& x) { return shardarray::diagonal(x, 0, -2, -1); }
Array identity_like(const Array& x) {
  return primitive::broadcast_to(eye(size_from_last(x, 2), size_from_last(x, 1), 0, x.dtype()), x.shape());
}
Array extended(const Array& x, std::int64_t rows, std::int64_t columns) {
  Shape none = Shape::filled(x.shape().size(), 0), added = none;
  added[added.size() - 2] = rows - size_from_last(x, 2);
  added[added.size() - 1] = columns - size_from_last(x, 1);
  return primitive::pad(x, none, added);
}
Array symmetrized(const Array& x) {
  return primitive::mul(primitive::add(x, adjoint(x)), primitive::like(x, 0.5));
}

Array operand(const char* function, const Array& a, WeakType& result) {
  const Type& t = type_of(a, function);
  if (t.shape.size() < 2)
    throw ShapeError(fmt::format("{}: the operand is {}. Matrices are the last two dimensions. Use reshape.",
                                 current_function(function), to_string(t)));
  result = api::to_inexact(api::weak_type_of(a, function));
  result.weak = false;
  return api::cast(a, api::computed(result));
}
Array square_operand(const char* function, const Array& a, WeakType& result) {
  Array x = operand(function, a, result);
  need_square(function, a);
  return x;
}
WeakType real_type(WeakType result) { return {part_type(result.dtype), result.weak}; }
void need_square(const char* function, const Array& a) {
  if (size_from_last(a, 1) != size_from_last(a, 2))
    throw ShapeError(fmt::format(
        "{}: the operand is {}. It takes square matrices, which are the last two dimensions. Check them.",
        current_function(function), to_string(type_of(a))));
}

}  // namespace matrices
}  // namespace shardarray
