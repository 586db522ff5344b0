// Running reductions along a dimension: cumsum, cumprod, cummax, cummin.
#include <fmt/core.h>

#include "ops/complex.h"
#include "ops/function.h"
#include "ops/rules.h"
#include "runtime/modes.h"

namespace shardarray {

using namespace rules;

static std::size_t scan_dim(const Attrs& a, std::size_t rank) { return from_first(a.dims[0], rank); }

// If the order of a float sum is fixed, the dimension must not be sharded.
static Rule scan_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  Factor& along = r.factors[scan_dim(*c.attrs, c.in[0].shape.size())];
  const bool rounds = c.attrs->reducer == Reducer::sum || c.attrs->reducer == Reducer::prod;
  along.role = c.attrs->uncut && rounds ? Role::whole : Role::scan;
  along.reducer = c.attrs->reducer;
  return r;
}

static Types scan_type(const Call& c) {
  const Reducer r = c.attrs->reducer;
  const bool has_order = r == Reducer::sum || r == Reducer::prod || r == Reducer::max || r == Reducer::min;
  if (!has_order || c.in[0].dtype == DType::bool_)
    throw InternalError(fmt::format("scan: {} of {}. It takes sum, prod, max or min of numbers.", name(r),
                                    to_string(c.in[0])));
  return {c.in[0]};
}

static Array scan(Reducer r, const Array& x, std::size_t dim, bool reverse) {
  Attrs a;
  a.reducer = r;
  a.dims = {from_last(dim, x.shape().size())};
  a.step = {reverse ? -1 : 1};
  return record(op_scan, {x}, std::move(a));
}

// A value with its tangent, combined by the reducer. JAX's convention: equal extrema share the tangent, NaN has none.
struct Dual {
  Array value, tangent;
};
static Dual combined(Reducer r, const Dual& a, const Dual& b) {
  if (r == Reducer::prod)
    return {primitive::mul(a.value, b.value),
            primitive::add(primitive::mul(a.tangent, b.value), primitive::mul(a.value, b.tangent))};
  const Array value = primitive::binary(r == Reducer::max ? op_max : op_min, a.value, b.value);
  const Array is_first = primitive::binary(op_eq, a.value, value),
              is_second = primitive::binary(op_eq, b.value, value), zero = primitive::like(value, 0),
              shared = primitive::mul(primitive::add(a.tangent, b.tangent), primitive::like(value, 0.5));
  return {value, primitive::select(is_first, primitive::select(is_second, shared, a.tangent),
                                   primitive::select(is_second, b.tangent, zero))};
}

// A scan in the order of JAX's associative_scan, on which the shares of equal extrema depend: neighbours are combined, the half as long
// result is scanned, and every other element is combined once more.
static Dual scanned(Reducer r, const Dual& x, std::size_t dim) {
  const Shape& shape = x.value.shape();
  const std::int64_t n = shape[dim], pairs = n / 2, firsts = n - pairs;
  if (n < 2) return x;
  const Shape none = Shape::filled(shape.size(), 0);
  Shape missing = none, paired = shape;
  missing[dim] = 2 * firsts - n;
  paired[dim] = firsts;
  paired.insert(dim + 1, 2);
  const auto each = [](auto f, auto... of) { return Dual{f(of.value...), f(of.tangent...)}; };
  const auto part = [&](const Dual& d, std::int64_t lo, std::int64_t hi) {
    return each([&](const Array& y) { return primitive::slice_dim(y, dim, lo, hi); }, d);
  };
  const auto every_other = [&](std::int64_t k) {
    return each(
        [&](const Array& y) {
          const Array both = primitive::reshape(primitive::pad(y, none, missing), paired);
          Shape to = shape;
          to[dim] = firsts;
          return primitive::reshape(primitive::slice_dim(both, dim + 1, k, k + 1), to);
        },
        x);
  };
  const Dual first = every_other(0), second = part(every_other(1), 0, pairs);
  const Dual odd = scanned(r, combined(r, part(first, 0, pairs), second), dim);
  const Dual even = combined(r, part(odd, 0, firsts - 1), part(first, 1, firsts));
  return each(
      [&](const Array& start, const Array& evens, const Array& odds) {
        Shape one = paired;
        one[dim + 1] = 1;
        const Array whole[] = {start, evens};
        const Array columns[] = {primitive::reshape(primitive::concatenate(whole, dim), one),
                                 primitive::reshape(primitive::pad(odds, none, missing), one)};
        Shape all = shape;
        all[dim] = 2 * firsts;
        return primitive::slice_dim(primitive::reshape(primitive::concatenate(columns, dim + 1), all), dim, 0,
                                    n);
      },
      part(first, 0, 1), even, odd);
}

static Arrays scan_jvp(const JvpArgs& v) {
  const Attrs& a = v.node.attrs();
  if (a.reducer == Reducer::sum) return {record(op_scan, {v.tangents[0]}, a)};
  Modes modes = *v.node.modes;  // its parts are shifted against each other, movement that no line asked for
  modes.policy = Policy::auto_;
  const ScopedModes restored(v.node.modes);
  set_modes(modes);
  const auto turned = [&](const Array& x) { return a.step[0] < 0 ? primitive::reverse(x, a.dims) : x; };
  const Dual x{turned(v.in[0]), turned(v.tangents[0])};
  return {turned(scanned(a.reducer, x, scan_dim(a, v.in[0].shape().size())).tangent)};
}

// For sums: each summand is in all results after it.
static Arrays scan_transpose(const TransposeArgs& t) {
  Attrs a = t.node.attrs();
  a.step[0] = -a.step[0];
  return {record(op_scan, {t.cotangents[0]}, std::move(a))};
}

static LocalCall scan_call(const LowerArgs& l) {
  const Attrs& a = *l.call.attrs;
  LocalCall c{.name = "scan",
              .in_shapes = {l.in[0].size},
              .out_shapes = {},
              .params = {a.dims[0] + std::ssize(l.call.in[0].shape), static_cast<std::int64_t>(a.reducer),
                         a.step[0]}};
  for (const Box& b : l.out) c.out_shapes.push_back(b.size);
  return c;
}

// attrs.reducer along attrs.dims[0]; attrs.step[0]: 1 forward, -1 backward.
SHARDARRAY_OP op_scan{.name = "prefix_scan",
                      .form = Form::library,
                      .rule = scan_rule,
                      .type = scan_type,
                      .linearity = joint_sum,
                      .jvp = scan_jvp,
                      .transpose = scan_transpose,
                      .lower = scan_call,
                      .trait = Trait::sums,
                      .on_parts = complex_ops::scan};

// bool counts as int32, as in JAX; others keep their dtype. 16-bit floats are scanned in float32; for a bool result, sum becomes max and
// product min.
template <Reducer reducer>
static Array running(const char* function, const Array& x, const CumulativeOptions& o) {
  Reducer r = reducer;
  const bool extremum = r == Reducer::max || r == Reducer::min;
  const WeakType given = api::weak_type_of(x, function);
  const DType t = o.dtype.value_or(given.dtype == DType::bool_ && !extremum ? DType::int32 : given.dtype);
  const DType scanned = t == DType::bool_ ? DType::uint8 : api::computed(t);
  if (t == DType::bool_ && !extremum) r = r == Reducer::sum ? Reducer::max : Reducer::min;
  const Array y = primitive::cast(primitive::cast(x, t), scanned);
  const Array flat = o.axis ? y : primitive::reshape(y, {y.size()});
  const std::size_t dim = api::axis_of(function, o.axis.value_or(0), flat.shape());
  return primitive::cast(scan(r, flat, dim, o.reverse), t, extremum && !o.dtype && given.weak);
}
template <> constexpr CumulativeBody cumulative_body<"cumsum"> = running<Reducer::sum>;
template SHARDARRAY_API Array CumulativeFunction<"cumsum">::operator()(const Array&, const CumulativeOptions&,
                                                                       Where) const;
template <> constexpr CumulativeBody cumulative_body<"cumprod"> = running<Reducer::prod>;
template SHARDARRAY_API Array CumulativeFunction<"cumprod">::operator()(const Array&,
                                                                        const CumulativeOptions&,
                                                                        Where) const;
template <> constexpr CumulativeBody cumulative_body<"cummax"> = running<Reducer::max>;
template SHARDARRAY_API Array CumulativeFunction<"cummax">::operator()(const Array&, const CumulativeOptions&,
                                                                       Where) const;
template <> constexpr CumulativeBody cumulative_body<"cummin"> = running<Reducer::min>;
template SHARDARRAY_API Array CumulativeFunction<"cummin">::operator()(const Array&, const CumulativeOptions&,
                                                                       Where) const;

}  // namespace shardarray
