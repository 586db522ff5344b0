#include "graph/op.h"

#include <fmt/core.h>

#include <algorithm>

#include "graph/trace_state.h"

// The bounds of the section, defined by the linker.
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

const char* called_in(const Array& a) {
  const Node& n = *a.node();
  return n.where.function ? n.where.function : n.op->name;
}

void refuse_donated(const std::string& function, const Array& a, const char* donor) {
  const Node& n = *a.node();
  // An array donated by move has no value any more; one donated by an option has a value without memory.
  const bool by_option = n.out()[a.index()].value != nullptr;
  throw DonationError(fmt::format(
      "{}: Array has been deleted with shape={}: it was donated to {}. {} to keep it, or use the result.",
      function, to_string(n.type(a.index())), donor,
      by_option ? "Leave it out of the options donate and donate_args" : "Pass it without std::move"));
}

// Returns the node with one reference.
template <class A> static Node* make_unguarded(const Op& op, std::span<A> in, AttrsRef attrs, Where w) {
  static const Attrs& none_given = *new Attrs;
  SmallVector<Type, 4> types;
  for (const Array& a : in) {
    types.push_back(type_of(a, op.name));
    if (const char* const donor = a.node()->donor()) refuse_donated(current_function(op.name), a, donor);
  }
  const Types out = infer(op, types, attrs ? *attrs : none_given);
  Node* n = Node::make(&op, in, out, std::move(attrs), w);
  if (op.effect && !trace_state().effects.empty()) trace_state().effects.back().push_back(handle(n));
  if (n->pending().exceeds(pending_limit)) {
    const Array kept = handle(n);  // because relieve() may throw
    Node::drop(n);
    relieve(n);
    return n->retain(), n;
  }
  return n;
}
template <class A> static Node* make(const Op& op, std::span<A> in, AttrsRef attrs, Where w) {
  return detail::with_memory(op.name, 0, [&] { return make_unguarded(op, in, std::move(attrs), w); });
}

// ---------------------------------------------------------------- complex operands
bool takes_complex(const Op& op) {
  if (op.whole_complex) return true;
  switch (op.form) {
    case Form::reduce:
    case Form::gemm:
    case Form::library: return false;
    case Form::scalar:
      switch (op.trait) {
        case Trait::literal:
        case Trait::alias:
        case Trait::beside:
        case Trait::like:
        case Trait::asked:
        case Trait::behind: return true;
        default: return false;
      }
    default: return true;
  }
}

template <class A> static bool needs_parts(const Op& op, std::span<A> in) {
  const auto complex = [](const Array& a) {
    return a.has_value() && is_complex(a.node()->type(a.index()).dtype);
  };
  return std::any_of(in.begin(), in.end(), complex) && (op.on_parts || !takes_complex(op));
}
static Arrays on_parts(const Op& op, std::span<const Array> in, const Attrs* attrs) {
  static const Attrs& none_given = *new Attrs;
  if (op.on_parts) return op.on_parts(in, attrs ? *attrs : none_given);
  for (const Array& a : in)
    if (const Type& t = type_of(a); is_complex(t.dtype))
      throw DTypeError(
          fmt::format("{}: an operand is {}. It is not defined for complex numbers. Give it real(x), imag(x) "
                      "or abs(x).",
                      current_function(op.name), to_string(t)));
  return {};
}

Arrays record_all(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w) {
  if (needs_parts(op, in)) return on_parts(op, in, attrs.get());
  return outputs_of(make(op, in, std::move(attrs), w));
}
Array record_one(const Op& op, std::span<const Array> in, AttrsRef attrs, Where w) {
  if (needs_parts(op, in)) return on_parts(op, in, attrs.get())[0];
  return Array(make(op, in, std::move(attrs), w), 0);
}
Array record_refs(const Op& op, std::initializer_list<ArrayCref> in, Where w) {
  const std::span operands(in.begin(), in.size());
  if (needs_parts(op, operands)) return on_parts(op, Arrays(in.begin(), in.end()), nullptr)[0];
  return Array(make(op, operands, nullptr, w), 0);
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
// A complex one is real.
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
