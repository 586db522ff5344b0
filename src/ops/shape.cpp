// broadcast_to, reshape, transpose and functions composed of them: the same elements under other indices.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/trace_state.h"
#include "ops/api.h"
#include "ops/rules.h"
#include "shardarray/ops.h"

namespace shardarray {

using namespace rules;

// ---------------------------------------------------------------- broadcast
static Types broadcast_type(const Call& c) {
  const Shape &from = c.in[0].shape, &to = c.attrs->shape, &dims = c.attrs->dims;
  bool fits = dims.size() == from.size();
  for (std::size_t j = 0; fits && j < dims.size(); j++) {
    fits =
        dims[j] < 0 && dims[j] >= -static_cast<std::int64_t>(to.size()) && (j == 0 || dims[j] > dims[j - 1]);
    fits = fits && (from[j] == 1 || from[j] == to[from_first(dims[j], to.size())]);
  }
  if (!fits)
    throw InternalError(
        fmt::format("broadcast: {} to {} by dimensions {}. Sizes must be equal or 1, dimensions increasing.",
                    to_string(c.in[0]), to_string(to), to_string(dims)));
  return {{to, c.in[0].dtype, c.in[0].weak}};
}

static Rule broadcast_rule(const Call& c) {
  const Shape &from = c.in[0].shape, &to = c.attrs->shape;
  Rule r;
  std::vector<DimFactors> in, out;
  for (std::int64_t size : to) out.push_back(add_factor(r, size));
  for (std::size_t j = 0; j < from.size(); j++) {
    const std::size_t d = from_first(c.attrs->dims[j], to.size());
    in.push_back(from[j] == to[d] ? out[d]
                                  : add_factor(r, 1, Role::whole));  // every tile of the result needs it
  }
  r.operands = {in};
  r.results = {out};
  return r;
}

static std::vector<MapDim> broadcast_map(const Call& c) {
  std::vector<MapDim> m;
  const std::size_t rank = c.attrs->shape.size();
  for (std::size_t j = 0; j < c.in[0].shape.size(); j++)
    m.push_back({c.in[0].shape[j] == 1 ? -1 : static_cast<int>(from_first(c.attrs->dims[j], rank)), 1, 0});
  return m;
}

// Sums over what was repeated.
static Arrays broadcast_transpose(const TransposeArgs& t) {
  const Attrs& a = t.node.attrs();
  const Shape& from = t.in[0].shape();
  Shape repeated;
  for (std::size_t d = 0; d < a.shape.size(); d++) {
    const auto it = std::find(a.dims.begin(), a.dims.end(), from_last(d, a.shape.size()));
    if (it == a.dims.end() || from[static_cast<std::size_t>(it - a.dims.begin())] != a.shape[d])
      repeated.push_back(static_cast<std::int64_t>(d));
  }
  return {primitive::reshape(primitive::reduce(Reducer::sum, t.cotangents[0], repeated), from)};
}

static Batched broadcast_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  const Shape shape = prepend(b.axis->size, a.shape);
  return mapped(
      {primitive::broadcast(b.in[0], shape, prepend(-static_cast<std::int64_t>(shape.size()), a.dims))});
}

// attrs.shape: of the result; dims[j]: the result dimension of operand dimension j, increasing.
SHARDARRAY_OP op_broadcast{.name = "broadcast",
                           .form = Form::map,
                           .rule = broadcast_rule,
                           .type = broadcast_type,
                           .linearity = joint,
                           .transpose = broadcast_transpose,
                           .batch = broadcast_batch,
                           .map = broadcast_map};

Array broadcast_to_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "broadcast_to");
  const Shape shapes[] = {type_of(x, "broadcast_to").shape, shape};
  if (!(api::common_shape("broadcast_to", shapes) == shape))
    throw ShapeError(
        fmt::format("{}: {} does not fit into {}. Aligned at the last dimension, sizes must be equal, or 1 "
                    "in the operand. Give a larger shape.",
                    current_function("broadcast_to"), to_string(x.shape()), to_string(shape)));
  return primitive::broadcast_to(x, shape);
}

// ---------------------------------------------------------------- reshape
namespace {

// Walks both shapes from the major end. While the products of the passed sizes agree, common divisors become shared factors; where there
// are none, both sides must not be sharded until the products agree again.
class ReshapeWalk {
 public:
  ReshapeWalk(const Shape& in, const Shape& out) : in_{in, {}, 0, 1}, out_{out, {}, 0, 1} {
    in_.factors.resize(in.size());
    out_.factors.resize(out.size());
  }

  Rule run() {
    const bool is_empty = num_elements(in_.shape) == 0;
    while (!is_empty) {
      const bool more_in = advance(in_), more_out = advance(out_);
      if (!more_in || !more_out) break;
      const std::int64_t g = std::gcd(in_.rest, out_.rest);
      if (g > 1) {
        const int f = add_factor(rule_, g)[0];
        take(in_, f, g);
        take(out_, f, g);
      } else {
        until_products_meet();
      }
    }
    finish(in_);
    finish(out_);
    rule_.operands = {in_.factors};
    rule_.results = {out_.factors};
    return std::move(rule_);
  }

 private:
  struct Side {
    const Shape& shape;
    std::vector<DimFactors> factors;
    std::size_t next;   // index of the dimension after the current one
    std::int64_t rest;  // of the current dimension
  };

  // Advances to a dimension with something left; false at the end.
  static bool advance(Side& s) {
    while (s.rest == 1 && s.next < s.shape.size()) s.rest = s.shape[s.next++];
    return s.rest > 1;
  }
  static void take(Side& s, int factor, std::int64_t size) {
    s.factors[s.next - 1].push_back(factor);
    s.rest /= size;
  }
  std::int64_t take_whole(Side& s) {
    const std::int64_t size = s.rest;
    take(s, add_factor(rule_, size, Role::whole)[0], size);
    return size;
  }
  void until_products_meet() {
    std::int64_t in = take_whole(in_), out = take_whole(out_);
    while (in != out) {
      Side& behind = in < out ? in_ : out_;
      advance(behind);
      (in < out ? in : out) *= take_whole(behind);
    }
  }
  // Dimensions that the other side lacks: every tile of that needs them whole.
  void finish(Side& s) {
    for (std::size_t d = 0; d < s.shape.size(); d++)
      if (s.factors[d].empty()) s.factors[d] = add_factor(rule_, s.shape[d], Role::whole);
  }

  Rule rule_;
  Side in_, out_;
};

}  // namespace

static Types reshape_type(const Call& c) {
  if (num_elements(c.in[0].shape) != num_elements(c.attrs->shape))
    throw InternalError(fmt::format("reshape: {} to {}. The number of elements must stay.",
                                    to_string(c.in[0]), to_string(c.attrs->shape)));
  return {{c.attrs->shape, c.in[0].dtype, c.in[0].weak}};
}

// attrs.shape.
SHARDARRAY_OP op_reshape{
    .name = "reshape",
    .form = Form::view,
    .rule = [](const Call& c) { return ReshapeWalk(c.in[0].shape, c.attrs->shape).run(); },
    .type = reshape_type,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) { return Arrays{primitive::reshape(t.cotangents[0], t.in[0].shape())}; },
    .batch =
        [](const BatchArgs& b) {
          return mapped({primitive::reshape(b.in[0], prepend(b.axis->size, b.node.attrs().shape))});
        }};

// The shape with its -1 replaced.
static Shape resolved(const Shape& wanted, const Shape& from) {
  Shape shape = wanted;
  std::int64_t known = 1, *open = nullptr;
  for (std::int64_t& size : shape) {
    if (size < -1 || (size == -1 && open))
      throw ShapeError(fmt::format("reshape: sizes {}. They are not negative; one may be -1. Give the sizes.",
                                   to_string(wanted)));
    if (size == -1) open = &size;
    else known = mul_sizes(known, size);
  }
  const std::int64_t n = num_elements(from);
  if (open && known > 0 && n % known == 0) *open = n / known;
  if ((open && *open == -1) || (!open && known != n))
    throw ShapeError(
        fmt::format("reshape: cannot reshape {} ({}) into {}. The number of elements must stay. {}.",
                    to_string(from), count_text(n, "element"), to_string(wanted),
                    open ? fmt::format("Give sizes beside -1 whose product divides {}", n)
                         : "Use -1 for a size that follows from the others"));
  return shape;
}
Array reshape_fn::operator()(const Array& x, const Shape& shape, Where w) const {
  const Site site(w, "reshape");
  return primitive::reshape(x, resolved(shape, type_of(x, "reshape").shape));
}
Array expand_dims_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "expand_dims");
  const Shape& shape = type_of(x, "expand_dims").shape;
  Shape result = Shape::filled(shape.size() + axes.axes.size(), 0);
  const auto rank = static_cast<std::int64_t>(result.size());
  for (const std::int64_t a : axes.axes)
    if (a < -rank || a >= rank)
      throw ShapeError(fmt::format(
          "expand_dims: axis {} is out of bounds for {} and its result of rank {}. Axes count in the "
          "result, from 0, or from -1 at the end. Give one that it has.",
          a, to_string(shape), rank));
  for (std::int64_t a : api::axes_of("expand_dims", axes.axes, result))
    result[static_cast<std::size_t>(a)] = 1;
  const std::int64_t* next = shape.begin();
  for (std::int64_t& size : result)
    if (size == 0) size = *next++;
  return primitive::reshape(x, result);
}
Array squeeze_fn::operator()(const Array& x, const AxisSet& axes, Where w) const {
  const Site site(w, "squeeze");
  const Shape& shape = type_of(x, "squeeze").shape;
  const Shape chosen = api::axes_of("squeeze", axes.axes, shape);
  Shape result;
  for (std::size_t d = 0; d < shape.size(); d++) {
    const bool named = std::find(chosen.begin(), chosen.end(), static_cast<std::int64_t>(d)) != chosen.end();
    if (named && shape[d] != 1)
      throw ShapeError(
          fmt::format("squeeze: dimension {} of {} has size {}. Only dimensions of size 1 can go. Use "
                      "reshape or an index.",
                      d, to_string(shape), shape[d]));
    if (!named && (!axes.all || shape[d] != 1)) result.push_back(shape[d]);
  }
  return primitive::reshape(x, result);
}

// ---------------------------------------------------------------- transpose
// The operand dimension of each result dimension.
static Shape permutation(const Attrs& a) {
  Shape p;
  for (std::int64_t d : a.dims) p.push_back(d + static_cast<std::int64_t>(a.dims.size()));
  return p;
}

static Types transpose_type(const Call& c) {
  const Shape p = permutation(*c.attrs);
  if (p.size() != c.in[0].shape.size())
    throw InternalError(
        fmt::format("transpose: {} by {}. One entry per dimension.", to_string(c.in[0]), to_string(p)));
  Type t = c.in[0];
  for (std::size_t k = 0; k < p.size(); k++) t.shape[k] = c.in[0].shape[static_cast<std::size_t>(p[k])];
  return {t};
}

static Rule transpose_rule(const Call& c) {
  Rule r;
  std::vector<DimFactors> in, out;
  for (std::int64_t size : c.in[0].shape) in.push_back(add_factor(r, size));
  for (std::int64_t d : permutation(*c.attrs)) out.push_back(in[static_cast<std::size_t>(d)]);
  r.operands = {in};
  r.results = {out};
  return r;
}

// attrs.dims[k]: the operand dimension that becomes result dimension k.
SHARDARRAY_OP op_transpose{
    .name = "transpose",
    .form = Form::map,
    .rule = transpose_rule,
    .type = transpose_type,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{primitive::transpose(t.cotangents[0], inverse(permutation(t.node.attrs())))};
        },
    .batch =
        [](const BatchArgs& b) {
          Shape p = permutation(b.node.attrs());
          for (std::int64_t& d : p) d++;
          return mapped({primitive::transpose(b.in[0], prepend(0, p))});
        },
    .map =
        [](const Call& c) {
          std::vector<MapDim> m;
          for (std::int64_t d : inverse(permutation(*c.attrs))) m.push_back({static_cast<int>(d), 1, 0});
          return m;
        },
    .trait = Trait::transpose};

Array transpose_fn::operator()(const Array& x, const Shape& perm, Where w) const {
  const Site site(w, "transpose");
  const Shape& shape = type_of(x, "transpose").shape;
  Shape p = dims_of_rank(shape.size());
  if (perm.empty()) {
    std::reverse(p.begin(), p.end());
  } else {
    if (perm.size() != shape.size())
      throw ShapeError(fmt::format(
          "transpose: permutation {} for shape {}. Every dimension must stand in it once. List all {}.",
          to_string(perm), to_string(shape), count_text(shape.size(), "axis")));
    api::axes_of("transpose", perm, shape);
    for (std::size_t k = 0; k < p.size(); k++)
      p[k] = static_cast<std::int64_t>(api::axis_of("transpose", perm[k], shape));
  }
  return primitive::transpose(x, p);
}
static Array swapped(const Array& x, std::size_t a, std::size_t b) {
  Shape p = dims_of_rank(x.shape().size());
  std::swap(p[a], p[b]);
  return primitive::transpose(x, p);
}
Array swapaxes_fn::operator()(const Array& x, std::int64_t a, std::int64_t b, Where w) const {
  const Site site(w, "swapaxes");
  const Shape& shape = type_of(x, "swapaxes").shape;
  return swapped(x, api::axis_of("swapaxes", a, shape), api::axis_of("swapaxes", b, shape));
}
Array rot90_fn::operator()(const Array& x, std::int64_t k, std::pair<std::int64_t, std::int64_t> axes,
                           Where w) const {
  const Site site(w, "rot90");
  const Shape& shape = type_of(x, "rot90").shape;
  const std::size_t a = api::axis_of("rot90", axes.first, shape),
                    b = api::axis_of("rot90", axes.second, shape);
  if (a == b)
    throw ShapeError(
        fmt::format("rot90: axes {} and {} of {}. A plane has two axes. Give two different ones.", axes.first,
                    axes.second, to_string(type_of(x))));
  const std::int64_t first = from_last(a, shape.size()), second = from_last(b, shape.size());
  switch ((k % 4 + 4) % 4) {
    case 1: return swapped(primitive::reverse(x, {second}), a, b);
    case 2: return primitive::reverse(x, {first, second});
    case 3: return primitive::reverse(swapped(x, a, b), {second});
    default: return x;
  }
}
Array moveaxis_fn::operator()(const Array& x, std::int64_t from, std::int64_t to, Where w) const {
  return (*this)(x, Shape{from}, Shape{to}, w);
}
Array moveaxis_fn::operator()(const Array& x, const Shape& from, const Shape& to, Where w) const {
  const Site site(w, "moveaxis");
  const Shape& shape = type_of(x, "moveaxis").shape;
  if (from.size() != to.size())
    throw ShapeError(
        fmt::format("moveaxis: from {} to {}. Every axis needs a destination. Give two lists of one length.",
                    to_string(from), to_string(to)));
  api::axes_of("moveaxis", from, shape);
  api::axes_of("moveaxis", to, shape);
  Shape p = Shape::filled(shape.size(), -1);
  std::vector<bool> moved(shape.size(), false);
  for (std::size_t k = 0; k < from.size(); k++) {
    const std::size_t source = api::axis_of("moveaxis", from[k], shape);
    p[api::axis_of("moveaxis", to[k], shape)] = static_cast<std::int64_t>(source);
    moved[source] = true;
  }
  std::size_t next = 0;
  for (std::int64_t& d : p) {
    if (d >= 0) continue;
    while (moved[next]) next++;
    d = static_cast<std::int64_t>(next++);
  }
  return primitive::transpose(x, p);
}

}  // namespace shardarray
