// Reductions.
#include <fmt/core.h>

#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

// The reduced dimensions, from the first, increasing.
static Shape reduced_dims(const Attrs& a, std::size_t rank) {
  Shape dims;
  for (std::int64_t d : a.dims) dims.push_back(static_cast<std::int64_t>(from_first(d, rank)));
  std::sort(dims.begin(), dims.end());
  return dims;
}
static bool contains(const Shape& dims, std::size_t d) {
  return std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
}

static Types reduce_type(const Call& c) {
  const Reducer r = c.attrs->reducer;
  const bool logical = r == Reducer::any || r == Reducer::all;
  if (r == Reducer::none || logical != (c.in[0].dtype == DType::bool_))
    throw InternalError(fmt::format("reduce: {} of {}. any and all take bool, the others numbers.", name(r),
                                    to_string(c.in[0])));
  const Shape dims = reduced_dims(*c.attrs, c.in[0].shape.size());
  Type t{{}, c.in[0].dtype, c.in[0].weak};
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++)
    if (!contains(dims, d)) t.shape.push_back(c.in[0].shape[d]);
  return {t};
}

static Rule reduce_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> in, out;
  const Shape dims = reduced_dims(*c.attrs, c.in[0].shape.size());
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const bool goes = contains(dims, d);
    in.push_back(goes ? add_summed(r, c, c.in[0].shape[d], c.attrs->reducer)
                      : add_factor(r, c.in[0].shape[d]));
    if (!goes) out.push_back(in.back());
  }
  r.operands = {in};
  r.results = {out};
  return r;
}

// JAX's derivative of max and min: all elements that attain it share it equally; NaN where none does (of a NaN).
static Array extremum_tangent(const JvpArgs& v, const Shape& dims) {
  const Array &x = v.in[0], &t = v.tangents[0];
  const Array hit =
      prim::cast(prim::binary(op_eq, x, prim::expand_reduced(v.out[0], x.shape(), dims)), x.dtype(), true);
  const Array count = prim::reduce(Reducer::sum, hit, dims);
  return prim::div(prim::reduce(Reducer::sum, prim::mul(t, hit), dims), count);
}

// Product rule on halves: (a, da)(b, db) = (ab, da b + a db) until one element is left. Right where elements are zero.
static Array product_tangent(const JvpArgs& v, const Shape& dims) {
  const Shape& shape = v.in[0].shape();
  Shape perm, merged;
  std::int64_t n = 1;
  for (std::size_t d = 0; d < shape.size(); d++) {
    if (contains(dims, d)) {
      n *= shape[d];
      continue;
    }
    perm.push_back(static_cast<std::int64_t>(d));
    merged.push_back(shape[d]);
  }
  for (std::int64_t d : dims) perm.push_back(d);
  if (n == 0) return {};
  const std::size_t last = merged.size();
  merged.push_back(n);
  auto arranged = [&](const Array& x) { return prim::reshape(prim::transpose(x, perm), merged); };
  Array x = arranged(v.in[0]), t = arranged(v.tangents[0]);
  while (n > 1) {
    const std::int64_t half = n / 2;
    auto part = [&](const Array& y, std::int64_t lo, std::int64_t hi) {
      return prim::slice_dim(y, last, lo, hi);
    };
    const Array a = part(x, 0, half), b = part(x, half, 2 * half);
    Arrays products{prim::mul(a, b)},
        tangents{prim::add(prim::mul(part(t, 0, half), b), prim::mul(part(t, half, 2 * half), a))};
    if (n % 2) {
      products.push_back(part(x, n - 1, n));
      tangents.push_back(part(t, n - 1, n));
    }
    x = prim::concatenate(products, last);
    t = prim::concatenate(tangents, last);
    n -= half;
  }
  return prim::reshape(t, v.out[0].shape());
}

static Arrays reduce_jvp(const JvpArgs& v) {
  const Attrs& a = v.node.attrs();
  const Shape dims = reduced_dims(a, v.in[0].shape().size());
  switch (a.reducer) {
    case Reducer::sum: return {record(op_reduce, {v.tangents[0]}, a)};
    case Reducer::max:
    case Reducer::min: return {extremum_tangent(v, dims)};
    case Reducer::prod: return {product_tangent(v, dims)};
    default: return no_tangent(v);
  }
}

constinit const Op op_reduce{
    .name = "reduce",
    .form = Form::reduce,
    .rule = reduce_rule,
    .type = reduce_type,
    .linearity = [](const Call& c,
                    int) { return c.attrs->reducer == Reducer::sum ? Linear::joint : Linear::no; },
    .jvp = reduce_jvp,
    .transpose =
        [](const TransposeArgs& t) {
          const Shape& shape = t.in[0].shape();
          return Arrays{
              prim::expand_reduced(t.cotangents[0], shape, reduced_dims(t.node.attrs(), shape.size()))};
        }};

static constexpr const Op* reduce_table[] = {&op_reduce};
constinit const std::span<const Op* const> reduce_ops = reduce_table;

}  // namespace shardarray
