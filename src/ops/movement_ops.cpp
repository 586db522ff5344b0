// broadcast, reshape, transpose: the same elements under other indices.
#include <fmt/core.h>

#include <numeric>

#include "ops/rules.h"
#include "ops/table.h"

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

// Sums what was repeated.
static Arrays broadcast_transpose(const TransposeArgs& t) {
  const Attrs& a = t.node.attrs();
  const Shape& from = t.in[0].shape();
  Shape repeated;
  for (std::size_t d = 0; d < a.shape.size(); d++) {
    const auto it = std::find(a.dims.begin(), a.dims.end(), from_last(d, a.shape.size()));
    if (it == a.dims.end() || from[static_cast<std::size_t>(it - a.dims.begin())] != a.shape[d])
      repeated.push_back(static_cast<std::int64_t>(d));
  }
  return {prim::reshape(prim::reduce(Reducer::sum, t.cotangents[0], repeated), from)};
}

static Batched broadcast_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  const Shape shape = prepend(b.axis->size, a.shape);
  return mapped({prim::broadcast(b.in[0], shape, prepend(-static_cast<std::int64_t>(shape.size()), a.dims))});
}

constinit const Op op_broadcast{.name = "broadcast",
                                .form = Form::map,
                                .rule = broadcast_rule,
                                .type = broadcast_type,
                                .linearity = joint,
                                .transpose = broadcast_transpose,
                                .batch = broadcast_batch,
                                .map = broadcast_map};

// ---------------------------------------------------------------- reshape
namespace {

// Walks both shapes from the major end. While the products of what was passed agree, common divisors become shared
// factors; where they share nothing, both sides are whole until the products meet again.
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
    std::size_t next;   // the dimension after the current one
    std::int64_t rest;  // of the current dimension
  };

  // To a dimension that has something left; false at the end.
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
  // What the other side lacks: every tile of it needs the whole.
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

constinit const Op op_reshape{
    .name = "reshape",
    .form = Form::view,
    .rule = [](const Call& c) { return ReshapeWalk(c.in[0].shape, c.attrs->shape).run(); },
    .type = reshape_type,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) { return Arrays{prim::reshape(t.cotangents[0], t.in[0].shape())}; },
    .batch =
        [](const BatchArgs& b) {
          return mapped({prim::reshape(b.in[0], prepend(b.axis->size, b.node.attrs().shape))});
        }};

// ---------------------------------------------------------------- transpose
// The operand dimension of every result dimension.
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

constinit const Op op_transpose{
    .name = "transpose",
    .form = Form::map,
    .rule = transpose_rule,
    .type = transpose_type,
    .linearity = joint,
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{prim::transpose(t.cotangents[0], inverse(permutation(t.node.attrs())))};
        },
    .batch =
        [](const BatchArgs& b) {
          Shape p = permutation(b.node.attrs());
          for (std::int64_t& d : p) d++;
          return mapped({prim::transpose(b.in[0], prepend(0, p))});
        },
    .map =
        [](const Call& c) {
          std::vector<MapDim> m;
          for (std::int64_t d : inverse(permutation(*c.attrs))) m.push_back({static_cast<int>(d), 1, 0});
          return m;
        }};

static constexpr const Op* movement_table[] = {&op_broadcast, &op_reshape, &op_transpose};
constinit const std::span<const Op* const> movement_ops = movement_table;

}  // namespace shardarray
