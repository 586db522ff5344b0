// Comparisons, bits, selection, casts, and elementwise ops without operands or derivative.
#include <fmt/core.h>

#include <limits>

#include "graph/trace_state.h"
#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

template <Code code> static constexpr Op comparison(const char* op_name) {
  return {.name = op_name,
          .form = Form::scalar,
          .rule = pointwise_rule,
          .type = bool_type,
          .jvp = no_tangent,
          .scalar = emit_binary<code>};
}
template <Code code> static constexpr Op bitwise(const char* op_name) {
  return {.name = op_name,
          .form = Form::scalar,
          .rule = pointwise_rule,
          .type = same_type,
          .jvp = no_tangent,
          .scalar = emit_binary<code>};
}
constinit const Op op_eq = comparison<Code::eq>("eq");
constinit const Op op_ne = comparison<Code::ne>("ne");
constinit const Op op_lt = comparison<Code::lt>("lt");
constinit const Op op_le = comparison<Code::le>("le");
constinit const Op op_gt = comparison<Code::gt>("gt");
constinit const Op op_ge = comparison<Code::ge>("ge");
constinit const Op op_and = bitwise<Code::and_>("and");
constinit const Op op_or = bitwise<Code::or_>("or");
constinit const Op op_xor = bitwise<Code::xor_>("xor");
constinit const Op op_shl = bitwise<Code::shl>("shl");
constinit const Op op_shr = bitwise<Code::shr>("shr");
constinit const Op op_not{.name = "not",
                          .form = Form::scalar,
                          .rule = pointwise_rule,
                          .jvp = no_tangent,
                          .scalar = emit_unary<Code::not_>};
constinit const Op op_is_finite{.name = "is_finite",
                                .form = Form::scalar,
                                .rule = pointwise_rule,
                                .type = bool_type,
                                .jvp = no_tangent,
                                .scalar = [](ScalarArgs& s) {
                                  const int limit = s.b.constant(s.b.type(s.in[0]),
                                                                 std::numeric_limits<double>::infinity());
                                  s.out[0] = s.b.binary(Code::lt, s.b.unary(Code::abs, s.in[0]), limit);
                                }};

static Types where_type(const Call& c) {
  if (c.in[0].dtype != DType::bool_ || !(c.in[0].shape == c.in[1].shape))
    throw InternalError(fmt::format("where: condition {} for values {}. It must be bool and of their shape.",
                                    to_string(c.in[0]), to_string(c.in[1])));
  return same_type({c.op, c.in.subspan(1), {}, c.attrs});
}
static Array or_zeros(const Array& t, const Array& x) { return t.has_value() ? t : zeros_of(type_of(x)); }
constinit const Op op_where{
    .name = "where",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = where_type,
    .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::no : Linear::joint; },
    .jvp =
        [](const JvpArgs& v) {
          const auto& t = v.tangents;
          if (!t[1].has_value() && !t[2].has_value()) return no_tangent(v);
          return Arrays{prim::select(v.in[0], or_zeros(t[1], v.in[1]), or_zeros(t[2], v.in[2]))};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Array &g = t.cotangents[0], zero = zeros_of(type_of(g));
          return Arrays{Array(), t.linear[1] ? prim::select(t.in[0], g, zero) : Array(),
                        t.linear[2] ? prim::select(t.in[0], zero, g) : Array()};
        },
    .scalar = [](ScalarArgs& s) { s.out[0] = s.b.select(s.in[0], s.in[1], s.in[2]); }};

constinit const Op op_cast{
    .name = "cast",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type =
        [](const Call& c) {
          return Types{{c.in[0].shape, c.attrs->dtype, !c.attrs->lo.empty()}};
        },
    .linearity = [](const Call& c,
                    int) { return c.in[0].dtype == c.attrs->dtype ? Linear::joint : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          const Type& t = type_of(v.out[0]);
          return Arrays{is_inexact(t.dtype) && v.tangents[0].has_value()
                            ? prim::cast(v.tangents[0], t.dtype, t.weak)
                            : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Type& x = type_of(t.in[0]);
          return Arrays{prim::cast(t.cotangents[0], x.dtype, x.weak)};
        },
    .scalar = [](ScalarArgs& s) { s.out[0] = s.b.cast(s.in[0], s.call.attrs->dtype); }};

constinit const Op op_bitcast{
    .name = "bitcast",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type =
        [](const Call& c) {
          if (itemsize(c.in[0].dtype) != itemsize(c.attrs->dtype))
            throw DTypeError(fmt::format(
                "bitcast: {} of {} bytes to {} of {} bytes. The widths must be equal. Use astype to convert "
                "values.",
                to_string(c.in[0]), itemsize(c.in[0].dtype), name(c.attrs->dtype), itemsize(c.attrs->dtype)));
          return Types{{c.in[0].shape, c.attrs->dtype, false}};
        },
    .jvp = no_tangent,
    .scalar = [](ScalarArgs& s) { s.out[0] = s.b.bitcast(s.in[0], s.call.attrs->dtype); }};

constinit const Op op_stop_gradient{.name = "stop_gradient",
                                    .form = Form::scalar,
                                    .rule = pointwise_rule,
                                    .jvp = no_tangent,
                                    .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; }};

// Under a map only the values are left: rows have no placement of their own.
constinit const Op op_like{
    .name = "like",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{v.tangents[0].has_value() ? prim::placed_like(v.tangents[0], v.in[1]) : Array()};
        },
    .transpose =
        [](const TransposeArgs& t) {
          return Arrays{t.cotangents[0], Array()};
        },
    .batch =
        [](const BatchArgs& b) {
          return Batched{{b.in[0]}, {b.mapped[0]}};
        },
    .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; }};

static Types iota_type(const Call& c) {
  const Shape& shape = c.attrs->shape;
  const DType t = c.attrs->dtype;
  const std::int64_t n = shape[from_first(c.attrs->dims[0], shape.size())];
  if (n > 0 && !prim::is_value(t, n - 1, false))
    throw DTypeError(
        fmt::format("{}: the positions along a dimension of {} elements do not fit into {}. A position is a "
                    "value of its dtype. Use a wider dtype, or reshape so that the dimension is shorter.",
                    current_function(c.op->name), n, name(t)));
  return {{shape, t, false}};
}
constinit const Op op_iota{
    .name = "iota",
    .form = Form::scalar,
    .rule = pointwise_rule,
    .type = iota_type,
    .scalar = [](ScalarArgs& s) {
      const auto dim = static_cast<int>(from_first(s.call.attrs->dims[0], s.call.attrs->shape.size()));
      s.out[0] = s.b.cast(s.index(s, dim), s.call.attrs->dtype);
    }};

// Threefry-2x32, 20 rounds (Salmon et al. 2011): five groups of four rounds, each followed by a key injection.
static void emit_threefry(ScalarArgs& s) {
  KernelBuilder& b = s.b;
  auto word = [&](std::uint32_t v) { return b.constant_bits(DType::uint32, v); };
  auto add = [&](int x, int y) { return b.binary(Code::add, x, y); };
  auto xor_of = [&](int x, int y) { return b.binary(Code::xor_, x, y); };
  auto rotate = [&](int x, std::uint32_t n) {
    return b.binary(Code::or_, b.binary(Code::shl, x, word(n)), b.binary(Code::shr, x, word(32 - n)));
  };
  constexpr std::uint32_t rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const int key[3] = {s.in[0], s.in[1], xor_of(xor_of(s.in[0], s.in[1]), word(0x1BD11BDA))};
  int x = add(s.in[2], key[0]), y = add(s.in[3], key[1]);
  for (std::uint32_t group = 0; group < 5; group++) {
    for (std::uint32_t n : rotations[group % 2]) {
      x = add(x, y);
      y = xor_of(x, rotate(y, n));
    }
    x = add(x, key[(group + 1) % 3]);
    y = add(add(y, key[(group + 2) % 3]), word(group + 1));
  }
  s.out[0] = x;
  s.out[1] = y;
}
constinit const Op op_threefry{.name = "threefry",
                               .form = Form::scalar,
                               .rule = pointwise_rule,
                               .type =
                                   [](const Call& c) {
                                     const Type t = same_type(c)[0];
                                     return Types{t, t};
                                   },
                               .jvp = no_tangent,
                               .scalar = emit_threefry};

static constexpr const Op* logic_table[] = {&op_eq,
                                            &op_ne,
                                            &op_lt,
                                            &op_le,
                                            &op_gt,
                                            &op_ge,
                                            &op_and,
                                            &op_or,
                                            &op_xor,
                                            &op_shl,
                                            &op_shr,
                                            &op_not,
                                            &op_is_finite,
                                            &op_where,
                                            &op_cast,
                                            &op_bitcast,
                                            &op_stop_gradient,
                                            &op_like,
                                            &op_iota,
                                            &op_threefry};
constinit const std::span<const Op* const> logic_ops = logic_table;

}  // namespace shardarray
