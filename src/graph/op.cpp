#include "graph/op.h"

#include <fmt/core.h>

#include "graph/trace_state.h"

// The ends of the section, from the linker.
extern "C" [[gnu::visibility(
    "hidden")]] const shardarray::Op __start_shardarray_ops[];  // NOLINT(bugprone-reserved-identifier)
extern "C" [[gnu::visibility(
    "hidden")]] const shardarray::Op __stop_shardarray_ops[];  // NOLINT(bugprone-reserved-identifier)

namespace shardarray {

std::span<const Op> all_ops() { return {__start_shardarray_ops, __stop_shardarray_ops}; }

static Types infer(const Op& op, std::span<const Type> in, const Attrs& attrs) {
  const Call call{&op, in, {}, &attrs};
  if (op.type) return op.type(call);
  Types same;
  same.push_back(in[0]);
  return same;
}

void refuse_donated(const std::string& function, const Array& a, const char* donor) {
  const Node& n = *a.node();
  // What was moved in has no value any more; what an option gave away has one without memory.
  const bool by_option = n.out()[a.index()].value != nullptr;
  throw DonationError(fmt::format(
      "{}: Array has been deleted with shape={}: it was donated to {}. {} to keep it, or use the result.",
      function, to_string(n.type(a.index())), donor,
      by_option ? "Leave it out of the options donate and donate_args" : "Pass it without std::move"));
}

// The node, with one count.
template <class A> static Node* make_unguarded(const Op& op, std::span<A> in, AttrsRef attrs, Where w) {
  static const Attrs& none_given = *new Attrs;
  SmallVector<Type, 4> types;
  for (const Array& a : in) {
    types.push_back(type_of(a, op.name));
    if (const char* const donor = a.node()->donor()) refuse_donated(op.name, a, donor);
  }
  const Types out = infer(op, types, attrs ? *attrs : none_given);
  Node* n = Node::make(&op, in, out, std::move(attrs), w);
  if (op.effect && !trace_state().effects.empty()) trace_state().effects.back().push_back(handle(n));
  if (n->pending().exceeds(pending_limit)) {
    const Array kept = handle(n);  // relieve() may throw
    Node::drop(n);
    relieve(n);
    return n->retain(), n;
  }
  return n;
}
template <class A> static Node* make(const Op& op, std::span<A> in, AttrsRef attrs, Where w) {
  return detail::with_memory(op.name, 0, [&] { return make_unguarded(op, in, std::move(attrs), w); });
}

Arrays record_all(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w) {
  return outputs_of(make(op, in, std::move(attrs), w));
}
Array record_one(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w) {
  return Array(make(op, in, std::move(attrs), w), 0);
}
Array record_refs(const Op& op, std::initializer_list<ArrayCref> in, Where w) {
  return Array(make(op, std::span(in.begin(), in.size()), nullptr, w), 0);
}

Array record(const Op& op, std::span<const Array> in, Attrs attrs, Where w) {
  return record_one(op, in, std::allocate_shared<Attrs>(BlockAllocator<Attrs>(), std::move(attrs)), w);
}
Array record(const Op& op, std::initializer_list<Array> in, Attrs attrs, Where w) {
  return record(op, std::span<const Array>(in.begin(), in.size()), std::move(attrs), w);
}

Arrays record_again(const Node& n, std::span<const Array> in) {
  return record_all(*n.op, in, n.attrs_, n.where);
}

Linear linearity(const Call& c, int operand) {
  return c.op->linearity ? c.op->linearity(c, operand) : Linear::no;
}

static Linear always_joint(const Call&, int) { return Linear::joint; }
static Types constant_type(const Call& c) { return {{{}, c.attrs->dtype, c.attrs->dims.size() == 1}}; }
static void constant_scalar(ScalarArgs& s) {
  s.out[0] = s.b.constant_bits(s.call.attrs->dtype, s.call.attrs->bits);
}

constinit const Op op_input{.name = "input", .form = Form::leaf, .rule = pointwise_rule};
constinit const Op op_constant{.name = "constant",
                               .form = Form::scalar,
                               .rule = pointwise_rule,
                               .type = constant_type,
                               .scalar = constant_scalar,
                               .trait = Trait::literal};
constinit const Op op_identity{.name = "identity",
                               .form = Form::scalar,
                               .rule = pointwise_rule,
                               .linearity = always_joint,
                               .transpose = [](const TransposeArgs& t) { return Arrays{t.cotangents[0]}; },
                               .scalar = [](ScalarArgs& s) { s.out[0] = s.in[0]; },
                               .trait = Trait::alias};

}  // namespace shardarray
