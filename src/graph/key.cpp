#include "graph/key.h"

#include <unordered_map>

#include "graph/host_call.h"
#include "layout/spelling.h"

namespace shardarray {

namespace {

// A word of flags says which lists follow: most ops have one or two.
void put_attrs(const Attrs& a, Words& words) {
  const std::size_t head = words.size();
  std::uint64_t bits = static_cast<std::uint64_t>(a.dtype) | static_cast<std::uint64_t>(a.reducer) << 8 |
                       static_cast<std::uint64_t>(a.uncut) << 16;
  words.push_back(0);
  int field = 17;
  const auto has = [&](bool there) {
    bits |= static_cast<std::uint64_t>(there) << field++;
    return there;
  };
  for (const Shape* s : {&a.dims, &a.lo, &a.hi, &a.step, &a.shape})
    if (has(!s->empty())) {
      std::uint64_t* w = more_words(1 + s->size(), words);
      *w++ = s->size();
      for (std::int64_t v : *s) *w++ = static_cast<std::uint64_t>(v);
    }
  if (has(a.bits != 0)) words.push_back(a.bits);
  if (has(!a.letters.empty())) put_text(a.letters, words);
  if (has(a.sharding != nullptr)) put_sharding(*a.sharding, words);
  if (has(a.host != nullptr)) words.push_back(a.host->id);
  if (has(!a.axes.empty())) {
    words.push_back(a.axes.size());
    for (const auto& axis : a.axes) words.push_back(axis->id);
  }
  if (has(!a.graphs.empty())) {
    words.push_back(a.graphs.size());
    for (const auto& g : a.graphs) {
      const Words inner = structure(*g);
      words.push_back(inner.size());
      words.insert(words.end(), inner.begin(), inner.end());
    }
  }
  words[head] = bits;
}

}  // namespace

void put_node(const Op* op, const Attrs* attrs, const Modes* modes, std::span<const int> in,
              std::size_t outputs, Words& words) {
  std::uint64_t* w = more_words(2 + in.size(), words);
  *w++ = reinterpret_cast<std::uintptr_t>(op);  // ops are never destroyed
  *w++ = (outputs | static_cast<std::uint64_t>(attrs != nullptr) << 24 |
          (modes ? static_cast<std::uint64_t>(modes->policy) << 25 |
                       static_cast<std::uint64_t>(modes->reproducible) << 27 |
                       static_cast<std::uint64_t>(modes->tf32) << 28 |
                       static_cast<std::uint64_t>(modes->flush_denormals) << 29
                 : 0) |
          in.size() << 32);
  for (int v : in) *w++ = static_cast<std::uint64_t>(v);
  if (attrs) put_attrs(*attrs, words);
}

void put_value_type(const Type& t, Words& words) {
  std::uint64_t* w = more_words(1 + t.shape.size(), words);
  *w++ = static_cast<std::uint64_t>(t.dtype) | t.shape.size() << 8;
  for (std::int64_t d : t.shape) *w++ = static_cast<std::uint64_t>(d);
}

void put_ends(std::span<const int> inputs, std::span<const int> outputs, Words& words) {
  std::uint64_t* w = more_words(1 + inputs.size() + outputs.size(), words);
  *w++ = inputs.size() << 32 | outputs.size();
  for (int v : inputs) *w++ = static_cast<std::uint64_t>(v);
  for (int v : outputs) *w++ = static_cast<std::uint64_t>(v);
}

void put_structure(const FlatGraph& g, Words& words) {
  for (const FlatNode& n : g.nodes) {
    put_node(n.op, n.attrs.get(), n.op->form == Form::leaf ? nullptr : n.modes, n.in, n.out_types.size(),
             words);
    for (const Type& t : n.out_types) put_value_type(t, words);
  }
  put_ends(g.inputs, g.outputs, words);
}

Words structure(const Graph& g) {
  Words words;
  std::unordered_map<const Node*, int> first;  // node -> its first value
  int values = 0;
  const auto put_outputs = [&](const Node& n) {
    first.emplace(&n, values);
    values += static_cast<int>(n.out().size());
    for (const auto& o : n.out()) {
      words.push_back(o.type.weak);
      put_value_type(o.type, words);
    }
  };
  const auto value = [&](const Array& a) {
    return a.has_value() ? first.at(a.node()) + static_cast<int>(a.index()) : -1;
  };
  std::vector<int> inputs, in, outputs;
  for (const Array& a : g.in) {
    put_outputs(*a.node());
    inputs.push_back(value(a));
  }
  std::vector<Array> roots = g.out;
  roots.insert(roots.end(), g.effects.begin(), g.effects.end());
  for (const Node* n :
       topological(std::span<const Array>(roots), [&](Node* x) { return !first.contains(x); })) {
    in.clear();
    for (const Array& a : n->in()) in.push_back(value(a));
    put_node(n->op, n->attrs_.get(), n->modes, in, n->out().size(), words);
    put_outputs(*n);
  }
  for (const Array& a : roots) outputs.push_back(value(a));
  put_ends(inputs, outputs, words);
  return words;
}

}  // namespace shardarray
