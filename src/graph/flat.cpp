#include "graph/flat.h"

#include <fmt/core.h>

#include <unordered_map>

namespace shardarray {

int FlatGraph::add(const Op* op, AttrsRef attrs, std::vector<int> in, std::vector<Type> out,
                   detail::RecordedLine where, const Modes* modes) {
  FlatNode n{op, std::move(attrs), std::move(in), static_cast<int>(types.size()),
             {}, std::move(out),   where,         modes};
  for (int v : n.in) n.in_types.push_back(types[static_cast<std::size_t>(v)]);
  for (const Type& t : n.out_types) {
    types.push_back(t);
    producer.push_back(static_cast<int>(nodes.size()));
  }
  nodes.push_back(std::move(n));
  return nodes.back().first_out;
}

template <class T> static std::vector<T> take_behind(std::vector<T>& v, std::size_t count) {
  const auto first = v.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<T> taken(std::make_move_iterator(first), std::make_move_iterator(v.end()));
  v.erase(first, v.end());
  return taken;
}
GraphTail FlatGraph::take_tail(std::size_t node_count, std::size_t value_count) {
  return {take_behind(nodes, node_count), take_behind(types, value_count),
          take_behind(producer, value_count)};
}

void FlatGraph::append(GraphTail tail) {
  const auto append = [](auto& v, auto& more) {
    v.insert(v.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  append(nodes, tail.nodes);
  append(types, tail.types);
  append(producer, tail.producer);
}

std::string FlatGraph::to_string() const {
  std::string text;
  for (const FlatNode& n : nodes) {
    for (std::size_t k = 0; k < n.out_types.size(); k++)
      text += fmt::format("{}%{} {}", k ? ", " : "  ", n.first_out + static_cast<int>(k),
                          shardarray::to_string(n.out_types[k]));
    text += fmt::format(" = {}", n.op->name);
    for (int v : n.in) text += fmt::format(" %{}", v);
    if (n.attrs && !n.attrs->letters.empty()) text += fmt::format(" \"{}\"", n.attrs->letters);
    if (n.attrs && !n.attrs->dims.empty() && n.op->trait != Trait::literal)
      text += " dims=" + shardarray::to_string(n.attrs->dims);
    if (n.attrs && n.attrs->sharding) text += " " + n.attrs->sharding->to_string();
    if (n.where.line) text += fmt::format("   {}:{}", n.where.file, n.where.line);
    text += "\n";
  }
  text += "  return";
  for (int v : outputs) text += fmt::format(" %{}", v);
  return text + "\n";
}

void verify(const FlatGraph& g, const char* pass) {
  for (std::size_t i = 0; i < g.nodes.size(); i++) {
    const FlatNode& n = g.nodes[i];
    auto fail = [&](const char* what) {
      throw InternalError(fmt::format("{}: node {} ({}) {}\n{}", pass, i, n.op->name, what, g.to_string()));
    };
    if (n.in.size() != n.in_types.size()) fail("has operands without types");
    for (std::size_t k = 0; k < n.in.size(); k++) {
      if (n.in[k] < 0 || n.in[k] >= n.first_out) fail("uses a value that is not defined before it");
      if (!(g.types[static_cast<std::size_t>(n.in[k])].shape == n.in_types[k].shape))
        fail("has an operand of another shape");
    }
  }
  for (int v : g.outputs)
    if (v < 0 || v >= static_cast<int>(g.types.size()))
      throw InternalError(fmt::format("{}: an output is no value", pass));
}

FlatGraph flatten(const Graph& g) {
  FlatGraph flat;
  std::unordered_map<const Node*, int> first;
  for (const Array& a : g.in) {
    first[a.node()] = flat.add(&op_input, nullptr, {}, {type_of(a)}, a.node()->where, a.node()->modes);
    flat.inputs.push_back(first[a.node()]);
  }
  auto value = [&](const Array& a) { return first.at(a.node()) + static_cast<int>(a.index()); };
  std::vector<Array> roots = g.out;  // operands of effects become results
  for (const Array& e : g.effects) roots.insert(roots.end(), e.node()->in().begin(), e.node()->in().end());
  for (Node* n : topological(std::span<const Array>(roots), [&](Node* x) { return !first.contains(x); })) {
    std::vector<int> in;
    std::vector<Type> out;
    for (const Array& a : n->in()) in.push_back(value(a));
    for (const auto& o : n->out()) out.push_back(o.type);
    first[n] = flat.add(n->op, n->attrs_, std::move(in), std::move(out), n->where, n->modes);
  }
  for (const Array& a : roots)
    if (a.has_value()) flat.outputs.push_back(value(a));
  return flat;
}

}  // namespace shardarray
