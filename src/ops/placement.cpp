// Ops that determine placement: constraint, beside, like.
#include "layout/spelling.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

// A constraint may move its operand to other devices, where everything computed from it stays, so the cotangent has to come back: tangents
// pass through `beside`, which does nothing to them but brings cotangents back. A constraint to a partial sum has a combined cotangent:
// every summand contributes alike.
// attrs.sharding; lo = {number of leading dimensions that it ignores}; hi: unconstrained dimensions.
SHARDARRAY_OP op_constraint{
    .name = "constraint",
    .form = Form::constraint,
    .rule = pointwise_rule,
    .linearity = joint,
    .jvp =
        [](const JvpArgs& v) {
          return Arrays{record(op_constraint, {primitive::beside(v.tangents[0], v.in[0])}, v.node.attrs())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          Attrs a = t.node.attrs();
          if (is_partial(*a.sharding)) a.sharding = std::make_shared<const Sharding>(added_up(*a.sharding));
          return Arrays{record(op_constraint, {t.cotangents[0]}, std::move(a))};
        },
    .batch =
        [](const BatchArgs& b) {
          Attrs a = b.node.attrs();
          a.lo = {a.lo.empty() ? 1 : a.lo[0] + 1};
          if (b.axis->region)
            a.hi.push_back(from_last(0, b.in[0].shape().size()));  // rows stay on their devices
          return mapped({record(op_constraint, b.in, std::move(a))});
        }};

// Operand 0 on the devices of operand 1, of which nothing else matters. It is its own transpose: a cotangent goes where the tangents come
// from, which is where operand 1 is. Within one program all values are on the same devices, so it disappears.
SHARDARRAY_OP op_beside = elementwise(
    {.name = "beside",
     .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
     .jvp =
         [](const JvpArgs& v) {
           const Array& t = v.tangents[0];
           return Arrays{t.has_value() ? record(op_beside, {primitive::beside(t, v.in[0]), v.in[1]})
                                       : Array()};
         },
     .transpose =
         [](const TransposeArgs& t) {
           return Arrays{record(op_beside, {t.cotangents[0], t.in[1]}), Array()};
         },
     .batch =
         [](const BatchArgs& b) {
           return Batched{{record(op_beside, b.in)}, {b.mapped[0]}};
         },
     .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
     .trait = Trait::beside});

// Operand 0, placed like operand 1, whose values are not read. Under a map only the values remain: rows have no placement of their own.
SHARDARRAY_OP op_like = elementwise(
    {.name = "like",
     .linearity = [](const Call&, int operand) { return operand == 0 ? Linear::each : Linear::no; },
     .jvp =
         [](const JvpArgs& v) {
           return Arrays{v.tangents[0].has_value() ? primitive::placed_like(v.tangents[0], v.in[1])
                                                   : Array()};
         },
     .transpose =
         [](const TransposeArgs& t) {
           return Arrays{t.cotangents[0], Array()};
         },
     .batch =
         [](const BatchArgs& b) {
           return Batched{{b.in[0]}, {b.mapped[0]}};
         },
     .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
     .trait = Trait::like});

}  // namespace shardarray
