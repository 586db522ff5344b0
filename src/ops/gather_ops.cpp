// take, scatter, sort: positions that depend on data.
#include <fmt/core.h>

#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

static std::size_t batch_rank(const Attrs& a) { return static_cast<std::size_t>(a.lo[0]); }
static std::size_t index_rank(const Attrs& a) { return static_cast<std::size_t>(a.hi[0]); }

[[noreturn]] static void misfit(const Call& c) {
  throw InternalError(fmt::format(
      "{}: operands {} and {} with {} batch and {} index dimensions. They must agree there, indices be "
      "integers.",
      c.op->name, to_string(c.in[0]), to_string(c.in[1]), batch_rank(*c.attrs), index_rank(*c.attrs)));
}

// Entries [from, to) of s.
static Shape part(const Shape& s, std::size_t from, std::size_t to) {
  return Shape(s.begin() + from, s.begin() + to);
}
static Shape joined(Shape a, const Shape& b) {
  for (std::int64_t v : b) a.push_back(v);
  return a;
}

// ---------------------------------------------------------------- take
static Types take_type(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  const Shape &table = c.in[0].shape, &index = c.in[1].shape;
  if (!is_integer(c.in[1].dtype) || table.size() <= b || index.size() != b + n ||
      !(part(table, 0, b) == part(index, 0, b)))
    misfit(c);
  return {{joined(index, part(table, b + 1, table.size())), c.in[0].dtype, c.in[0].weak}};
}

static Rule take_rule(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs);
  Rule r;
  std::vector<DimFactors> table, index;
  for (std::int64_t size : c.in[1].shape) index.push_back(add_factor(r, size));
  std::vector<DimFactors> out = index;
  for (std::size_t d = 0; d < c.in[0].shape.size(); d++) {
    const std::int64_t size = c.in[0].shape[d];
    table.push_back(d < b    ? index[d]
                    : d == b ? add_factor(r, size, Role::reduce,
                                          Reducer::any)  // a row outside a tile gives zero bits there
                             : add_factor(r, size));
    if (d > b) out.push_back(table.back());
  }
  r.operands = {table, index};
  r.results = {out};
  return r;
}

// Both mapped: one more batch dimension. Only the indices, without batch: they just have one more dimension.
static Batched take_batch(const BatchArgs& b) {
  const auto batch = b.node.attrs().lo[0], n = b.node.attrs().hi[0];
  if (!b.mapped[0] && batch == 0) return mapped({prim::take(b.in[0], b.in[1], 0, n + 1)});
  auto whole = [&](int k) {
    return b.mapped[static_cast<std::size_t>(k)]
               ? b.in[static_cast<std::size_t>(k)]
               : add_leading(b.in[static_cast<std::size_t>(k)], b.axis->size);
  };
  return mapped({prim::take(whole(0), whole(1), batch + 1, n)});
}

constinit const Op op_take{
    .name = "take",
    .form = Form::take,
    .rule = take_rule,
    .type = take_type,
    .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{v.tangents[0].has_value() ? record(op_take, {v.tangents[0], v.in[1]}, v.node.attrs())
                                                  : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Attrs& a = t.node.attrs();
          return Arrays{
              prim::scatter(t.in[1], t.cotangents[0], a.lo[0], a.hi[0], t.in[0].shape()[batch_rank(a)]),
              Array()};
        },
    .batch = take_batch};

// ---------------------------------------------------------------- scatter
static Types scatter_type(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  const Shape &index = c.in[0].shape, &updates = c.in[1].shape;
  if (!is_integer(c.in[0].dtype) || index.size() != b + n || updates.size() < b + n ||
      !(part(updates, 0, b + n) == index))
    misfit(c);
  return {{joined(joined(part(index, 0, b), c.attrs->shape), part(updates, b + n, updates.size())),
           c.in[1].dtype, c.in[1].weak}};
}

static Rule scatter_rule(const Call& c) {
  const std::size_t b = batch_rank(*c.attrs), n = index_rank(*c.attrs);
  Rule r;
  std::vector<DimFactors> updates, out;
  for (std::size_t d = 0; d < c.in[1].shape.size(); d++) {
    const bool summed = d >= b && d < b + n;
    const std::int64_t size = c.in[1].shape[d];
    updates.push_back(summed ? add_summed(r, c, size, Reducer::sum) : add_factor(r, size));
    if (d < b) out.push_back(updates.back());
  }
  out.push_back(add_factor(r, c.attrs->shape[0]));
  out.insert(out.end(), updates.begin() + static_cast<std::ptrdiff_t>(b + n), updates.end());
  r.operands = {{updates.begin(), updates.begin() + static_cast<std::ptrdiff_t>(b + n)}, updates};
  r.results = {out};
  return r;
}

static Batched scatter_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  auto whole = [&](int k) {
    return b.mapped[static_cast<std::size_t>(k)]
               ? b.in[static_cast<std::size_t>(k)]
               : add_leading(b.in[static_cast<std::size_t>(k)], b.axis->size);
  };
  return mapped({prim::scatter(whole(0), whole(1), a.lo[0] + 1, a.hi[0], a.shape[0])});
}

constinit const Op op_scatter{
    .name = "scatter",
    .form = Form::scatter,
    .rule = scatter_rule,
    .type = scatter_type,
    .linearity = [](const Call&, int operand) { return operand == 1 ? Linear::each : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{v.tangents[1].has_value()
                            ? record(op_scatter, {v.in[0], v.tangents[1]}, v.node.attrs())
                            : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{Array(),
                        prim::take(t.cotangents[0], t.in[0], t.node.attrs().lo[0], t.node.attrs().hi[0])};
        },
    .batch = scatter_batch};

// ---------------------------------------------------------------- sort
static Types sort_type(const Call& c) {
  for (const Type& t : c.in)
    if (!(t.shape == c.in[0].shape))
      throw InternalError(fmt::format("sort: operands {} and {}. They must have one shape.",
                                      to_string(c.in[0]), to_string(t)));
  return Types(c.in);
}

static Rule sort_rule(const Call& c) {
  Rule r = pointwise_rule(c);
  r.factors[from_first(c.attrs->dims[0], c.in[0].shape.size())].role = Role::whole;
  r.results.assign(c.in.size(), r.operands[0]);
  return r;
}

// The permutation comes from sorting the positions too.
static Arrays sort_jvp(const JvpArgs& v) {
  const Shape& shape = v.in[0].shape();
  const std::size_t dim = from_first(v.node.attrs().dims[0], shape.size());
  const Array with_positions[] = {v.in[0], prim::iota(shape, dim, DType::int32)};
  const Array order = prim::sort(with_positions, dim)[1];
  Arrays r;
  for (const Array& t : v.tangents) r.push_back(t.has_value() ? prim::take_along(t, order, dim) : Array());
  return r;
}

constinit const Op op_sort{
    .name = "sort", .form = Form::sort, .rule = sort_rule, .type = sort_type, .jvp = sort_jvp};

static constexpr const Op* gather_table[] = {&op_take, &op_scatter, &op_sort};
constinit const std::span<const Op* const> gather_ops = gather_table;

}  // namespace shardarray
