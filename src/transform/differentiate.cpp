// The erased core of grad, jvp, vjp and linearize.
#include <fmt/core.h>

#include <optional>

#include "graph/custom_rule.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "shardarray/detail/differentiation.h"
#include "transform/trace.h"

namespace shardarray::core {

struct Differentiation::State {
  Arrays variables;
  std::uint64_t oldest;
  std::optional<OpenGradient> open;
  Arrays seeds;                              // inputs: tangents of the variables that have some
  LinearMap map;                             // from seeds to the tangents of the outputs
  std::vector<std::optional<Type>> results;  // types of the linearized outputs; nullopt: absent

  // Nodes evaluated meanwhile release their operands once the outermost gradient has ended.
  void close() {
    if (!open) return;
    const std::uint64_t name = open->outermost();
    open.reset();
    const Arrays kept = take_kept(name);
    Arrays dead;  // destroyed after the lock is released
    const std::lock_guard lock(graph_mutex());
    for (const Array& a : kept) a.node()->release_operands(dead);
  }

  // Recorded here since the gradient opened; nobody releases their operands while it is open.
  bool is_mine(const Node* n) const { return n->gradient == open->outermost() && n->seq >= oldest; }

  // Tangents of `outputs`, given those of the variables.
  Arrays forward(std::span<const Array> outputs, std::span<const Array> tangents) const {
    ArrayMap<Array> d;
    for (std::size_t k = 0; k < variables.size(); k++)
      if (variables[k].has_value() && tangents[k].has_value()) d[key(variables[k])] = tangents[k];
    auto tangent = [&](const Array& a) {
      auto it = d.find(key(a));
      return it == d.end() ? Array() : it->second;
    };
    for (Node* n : topological(outputs, [&](Node* x) { return is_mine(x); })) {
      if (d.contains({n, 0})) continue;
      Arrays dx, out;
      for (const Array& a : n->in()) dx.push_back(tangent(a));
      for (std::uint32_t k = 0; k < n->out().size(); k++) out.push_back(handle(n, k));
      const Arrays dy = push_forward(n, n->in(), out, dx);
      for (std::uint32_t k = 0; k < dy.size(); k++)
        if (dy[k].has_value()) d[{n, k}] = dy[k];
    }
    Arrays result;
    for (const Array& o : outputs) result.push_back(tangent(o));
    return result;
  }
};

Differentiation::Differentiation(std::span<const Array> primals, const char* function)
    : state_(std::make_unique<State>()) {
  const Site site({}, function);
  state_->oldest = next_sequence();
  state_->open.emplace(state_->oldest);
  for (const Array& a : primals)  // a distinct variable per argument, even if the same array is passed twice
    state_->variables.push_back(a.has_value() ? record(op_identity, {a}) : Array());
  for (const Array& v : state_->variables)
    if (v.has_value() && is_inexact(v.dtype())) v.node()->variable = state_->open->outermost();
}
Differentiation::~Differentiation() { state_->close(); }

const Arrays& Differentiation::variables() const { return state_->variables; }

void Differentiation::linearize(std::span<const Array> outputs) const {
  State& s = *state_;
  Arrays given;
  for (const Array& v : s.variables) {
    given.push_back(v.has_value() && is_inexact(v.dtype()) ? placeholder(type_of(v)) : Array());
    if (given.back().has_value()) s.seeds.push_back(given.back());
  }
  for (const Array& o : outputs)
    s.results.push_back(o.has_value() ? std::optional<Type>(type_of(o)) : std::nullopt);
  s.map = linear_map(s.forward(outputs, given), s.seeds);
  s.close();
}

Arrays Differentiation::pull(std::span<const Array> cotangents) const {
  const Arrays pulled = pull_back(state_->map, cotangents);
  Arrays result;
  std::size_t at = 0;
  for (const Array& v : state_->variables) {
    if (!v.has_value() || !is_inexact(v.dtype())) {
      result.push_back(Array());
      continue;
    }
    const Array& g = pulled[at++];
    const Type& t = type_of(v);
    result.push_back(!g.has_value() ? zeros_of(t) : t.weak ? primitive::cast(g, t.dtype, true) : g);
  }
  return result;
}

Arrays Differentiation::push(std::span<const Array> outputs, std::span<const Array> tangents) const {
  Arrays r = state_->forward(outputs, tangents);
  refuse_reverse_only(
      topological(std::span<const Array>(r), [&](Node* n) { return n->seq >= state_->oldest; }));
  for (std::size_t k = 0; k < r.size(); k++)
    if (!r[k].has_value() && outputs[k].has_value()) r[k] = zeros_of(type_of(outputs[k]));
  return r;
}

Arrays Differentiation::apply(std::span<const Array> tangents) const {
  const RecordingWalk walk;
  const LinearMap& map = state_->map;
  refuse_reverse_only(map.nodes);
  ArrayMap<Array> env;
  std::size_t seed = 0;
  for (std::size_t k = 0; k < tangents.size(); k++) {
    const Array& v = state_->variables[k];
    if (!v.has_value() || !is_inexact(v.dtype())) continue;
    env[key(map.variables[seed++])] = tangents[k].has_value() ? tangents[k] : zeros_of(type_of(v));
  }
  for (Node* n : map.nodes) {
    Arrays in;
    for (const Array& a : n->in()) {
      const auto found = env.find(key(a));
      in.push_back(found == env.end() ? a : found->second);
    }
    const detail::RecordedSite site(n->where);
    const ScopedModes modes(n->modes);
    const Arrays out = record_again(*n, in);
    for (std::uint32_t k = 0; k < out.size(); k++) env[{n, k}] = out[k];
  }
  Arrays result;
  for (std::size_t k = 0; k < state_->results.size(); k++) {
    const auto found = map.outputs[k].has_value() ? env.find(key(map.outputs[k])) : env.end();
    if (!state_->results[k]) result.push_back(Array());
    else if (found != env.end()) result.push_back(found->second);
    else result.push_back(map.outputs[k].has_value() ? map.outputs[k] : zeros_of(*state_->results[k]));
  }
  return result;
}

Arrays gradient(const Differentiation& d, const Array& loss, const char* function) {
  const Type& t = type_of(loss, function);
  if (!t.shape.empty())
    throw ShapeError(
        fmt::format("{}: Gradient only defined for scalar-output functions. Output had shape: {}. Reduce it "
                    "with sum or mean.",
                    function, to_string(t.shape)));
  if (!is_inexact(t.dtype))
    throw DTypeError(
        fmt::format("{}: the function must return a floating scalar, but it returned {}. Cast with astype.",
                    function, to_string(t)));
  if (is_complex(t.dtype))
    throw DTypeError(fmt::format(
        "{}: the function returned {}. A gradient is one of a real number. Take the real part, or "
        "abs(x), or use vjp for complex results.",
        function, to_string(t)));
  const Array one = one_of(t);
  d.linearize({&loss, 1});
  return d.pull({&one, 1});
}

}  // namespace shardarray::core
