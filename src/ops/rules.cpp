#include "ops/rules.h"

#include <fmt/core.h>

#include <cmath>
#include <numeric>

namespace shardarray::rules {

Types same_type(const Call& c) {
  Types r;
  r.push_back(c.in[0]);
  Type& t = r[0];
  for (const Type& o : c.in.subspan(1)) {
    if (!(o.shape == t.shape) || o.dtype != t.dtype)
      throw InternalError(fmt::format(
          "{}: operands {} and {}. Elementwise operands have one type: promote and broadcast them first.",
          c.op->name, to_string(t), to_string(o)));
    t.weak = t.weak && o.weak;
  }
  return r;
}

Types bool_type(const Call& c) { return {{same_type(c)[0].shape, DType::bool_, false}}; }

LocalCall library_call(const LowerArgs& l, const char* name, std::vector<std::int64_t> params) {
  LocalCall c{.name = name, .in_shapes = {}, .out_shapes = {}, .params = std::move(params)};
  for (const Box& b : l.in) c.in_shapes.push_back(b.size);
  for (const Box& b : l.out) c.out_shapes.push_back(b.size);
  return c;
}

Arrays no_tangent(const JvpArgs& v) { return Arrays(v.out.size()); }

Shape dims_of_rank(std::size_t n) {
  Shape p = Shape::filled(n, 0);
  std::iota(p.begin(), p.end(), 0);
  return p;
}
Shape inverse(const Shape& p) {
  Shape q = p;
  for (std::size_t k = 0; k < p.size(); k++) q[static_cast<std::size_t>(p[k])] = static_cast<std::int64_t>(k);
  return q;
}
Shape prepend(std::int64_t v, const Shape& s) {
  Shape r = s;
  r.insert(0, v);
  return r;
}

Array with_rows(const BatchArgs& b, std::size_t k) {
  return b.mapped[k] ? b.in[k] : add_leading(b.in[k], b.axis->size);
}
Array with_placed_rows(const Array& x, bool mapped, const std::shared_ptr<const Axis>& axis) {
  return mapped ? x : place_rows(add_leading(x, axis->size), axis);
}
Batched mapped(Arrays out) {
  const std::size_t count = out.size();
  return {std::move(out), std::vector<bool>(count, true)};
}

DimFactors add_factor(Rule& r, std::int64_t size, Role role, Reducer reducer) {
  r.factors.push_back({size, role, reducer});
  return {static_cast<int>(r.factors.size()) - 1};
}
std::vector<DimFactors> own_factors(Rule& r, const Type& t, Role role) {
  std::vector<DimFactors> dims;
  for (const std::int64_t size : t.shape) dims.push_back(add_factor(r, size, role));
  return dims;
}
Rule whole_rule(const Call& c, const Types& results) {
  Rule r;
  for (const Type& t : c.in) r.operands.push_back(own_factors(r, t, Role::whole));
  for (const Type& t : results) r.results.push_back(own_factors(r, t, Role::whole));
  return r;
}
DimFactors add_summed(Rule& r, const Call& c, std::int64_t size, Reducer reducer) {
  return c.attrs->uncut ? add_factor(r, size, Role::whole) : add_factor(r, size, Role::reduce, reducer);
}

bool is_power_of_two(const Call& c, int k, int& exponent) {
  if (c.literals.empty()) return false;
  const double half = std::frexp(c.literals[static_cast<std::size_t>(k)], &exponent);
  exponent--;
  return std::abs(half) == 0.5;
}

}  // namespace shardarray::rules
