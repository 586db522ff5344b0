// dot: the product of two operands, summed over the letters that the result lacks.
#include <fmt/core.h>

#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

using namespace rules;

static Types dot_type(const Call& c) {
  const Rule r = einsum_rule(c, c.attrs->letters);
  if (c.in[0].dtype != c.in[1].dtype || c.in[0].dtype == DType::bool_)
    throw InternalError(fmt::format("dot: operands {} and {}. They must be numbers of one dtype.",
                                    to_string(c.in[0]), to_string(c.in[1])));
  const Letters l = split_letters(c.attrs->letters);
  for (char letter : l.in[0] + l.in[1]) {
    auto has = [&](const std::string& s) { return s.find(letter) != std::string::npos; };
    if (has(l.in[0]) + has(l.in[1]) + has(l.out) < 2)
      throw InternalError(fmt::format("dot: letter '{}' of \"{}\" stands in one term. Sum it before.", letter,
                                      c.attrs->letters));
  }
  Type t{{}, c.in[0].dtype, c.in[0].weak && c.in[1].weak};
  for (const DimFactors& d : r.results[0]) t.shape.push_back(r.factors[static_cast<std::size_t>(d[0])].size);
  return {t};
}

static Batched dot_batch(const BatchArgs& b) {
  const std::string& letters = b.node.attrs().letters;
  const Letters l = split_letters(letters);
  char fresh = 'a';
  while (letters.find(fresh) != std::string::npos) fresh++;
  auto term = [&](int k) {
    return (b.mapped[static_cast<std::size_t>(k)] ? std::string(1, fresh) : "") +
           l.in[static_cast<std::size_t>(k)];
  };
  return mapped({prim::dot(term(0) + "," + term(1) + "->" + fresh + l.out, b.in[0], b.in[1])});
}

constinit const Op op_dot{
    .name = "dot",
    .form = Form::gemm,
    .rule = [](const Call& c) { return einsum_rule(c, c.attrs->letters); },
    .type = dot_type,
    .linearity = each_integer,
    .jvp =
        [](const JvpArgs& v) {
          const std::string& l = v.node.attrs().letters;
          const auto& t = v.tangents;
          return Arrays{add_or(t[0].has_value() ? prim::dot(l, t[0], v.in[1]) : Array(),
                               t[1].has_value() ? prim::dot(l, v.in[0], t[1]) : Array())};
        },
    .transpose =
        [](const TransposeArgs& t) {
          const Letters l = split_letters(t.node.attrs().letters);
          const Array& g = t.cotangents[0];
          return Arrays{
              t.linear[0] ? prim::dot(l.out + "," + l.in[1] + "->" + l.in[0], g, t.in[1]) : Array(),
              t.linear[1] ? prim::dot(l.in[0] + "," + l.out + "->" + l.in[1], t.in[0], g) : Array()};
        },
    .batch = dot_batch};

static constexpr const Op* dot_table[] = {&op_dot};
constinit const std::span<const Op* const> dot_ops = dot_table;

}  // namespace shardarray
