#include "transform/trace.h"

#include <fmt/core.h>

#include "graph/host_call.h"
#include "graph/trace_state.h"

namespace shardarray {

// Recorded in trace `id` or inside it, and not evaluated; literals belong to all traces.
static bool belongs(const Node* n, std::uint64_t id) {
  return is_literal(*n) || (n->trace >= id && !n->evaluated());
}

void refuse_escaped(const Node* n, const char* function) {
  if (n->op->trait == Trait::without_value)
    throw TraceError(fmt::format(
        "{}: {} has no values: eval_shape or shape_dtype_struct made it. Such an array has a "
        "shape and a dtype, for the arguments of eval_shape and explain. Give an array with values.",
        function, to_string(n->type())));
  const std::string place = n->where.line ? fmt::format(" ({}:{})", n->where.file, n->where.line) : "";
  throw TraceError(
      fmt::format("{}: an array {} escaped from the trace it was recorded in{}. Values of a traced "
                  "function leave it only by being returned.",
                  function, to_string(n->type()), place));
}
static void check_escaped(const Node* n, const char* function) {
  const bool is_there = n->op->trait != Trait::without_value;
  if (is_there && (n->trace == 0 || n->evaluated() || trace_state().is_open(n->trace))) return;
  refuse_escaped(n, function);
}

Graph close_graph(Arrays in, Arrays out, std::uint64_t id, Arrays& captured, const char* function) {
  Graph g{std::move(in), std::move(out), trace_state().effects.back()};
  ArrayMap<Array> lifted;
  for (const Array& a : g.in) lifted.emplace(key(a), a);
  // The inner array that replaces `a`, or null to keep it.
  auto lift = [&](const Array& a) -> const Array* {
    if (!a.has_value() || belongs(a.node(), id)) {
      if (a.has_value() && a.node()->op->form == Form::leaf && !lifted.contains(key(a)))
        check_escaped(a.node(), function);
      return nullptr;
    }
    auto [it, fresh] = lifted.try_emplace(key(a));
    if (fresh) {
      check_escaped(a.node(), function);
      it->second = placeholder(type_of(a), a.node()->where);
      g.in.push_back(it->second);
      captured.push_back(a);
    }
    return &it->second;
  };
  for (Array& a : g.out)
    if (const Array* inside = lift(a)) a = Array(*inside);
  std::vector<Array> roots = g.out;
  roots.insert(roots.end(), g.effects.begin(), g.effects.end());
  const auto mine = [&](Node* n) { return belongs(n, id) && !is_literal(*n); };
  for (Node* n : topological(std::span<const Array>(roots), mine))
    for (std::size_t k = 0; k < n->in().size(); k++)  // safe: nodes of this trace have no other owner
      if (const Array* inside = lift(n->in()[k])) n->set_operand(k, *inside);
  return g;
}

Graph traced(const GraphFn& f, std::span<const Type> types, Arrays& captured, const char* function) {
  OpenTrace open;
  Arrays in;
  for (const Type& t : types) in.push_back(placeholder(t));
  Arrays out = [&] {
    const detail::UserSite users;
    return f(in);
  }();
  return close_graph(std::move(in), std::move(out), open.id(), captured, function);
}

Arrays replay(const Graph& g, std::span<const Array> args, const ReplayRule& rule, bool effects) {
  const RecordingWalk walk;
  ArrayMap<Array> env;
  for (std::size_t k = 0; k < g.in.size(); k++) env[key(g.in[k])] = args[k];
  std::vector<Array> roots = g.out;
  if (effects) roots.insert(roots.end(), g.effects.begin(), g.effects.end());
  for (Node* n : topological(std::span<const Array>(roots), [](Node*) { return true; })) {
    if (env.contains({n, 0})) continue;
    if (is_literal(*n)) {
      env[{n, 0}] = handle(n);
      continue;
    }
    Arrays in;
    for (const Array& a : n->in()) in.push_back(env.at(key(a)));
    const ScopedModes modes(n->modes);
    const detail::RecordedSite site(n->where);
    Arrays out = rule(n, in);
    if (n->op->effect && trace_state().open.empty()) run_effect(*out[0].node());
    for (std::size_t k = 0; k < out.size(); k++) env[{n, static_cast<std::uint32_t>(k)}] = std::move(out[k]);
  }
  Arrays result;
  for (const Array& a : g.out) result.push_back(a.has_value() ? env.at(key(a)) : Array());
  return result;
}

Arrays inline_graph(const Graph& g, std::span<const Array> args, bool effects) {
  return replay(
      g, args, [](Node* n, std::span<const Array> in) { return record_again(*n, in); }, effects);
}

}  // namespace shardarray
