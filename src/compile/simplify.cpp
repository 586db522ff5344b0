// Bit-preserving clean-up of the global graph.
#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "compile/passes.h"
#include "ops/prims.h"

namespace shardarray {

namespace {

class Simplifier {
  template <class V> static auto at(V& v, int k) -> decltype(v[static_cast<std::size_t>(k)]) {
    return v[static_cast<std::size_t>(k)];
  }

 public:
  FlatGraph run(const FlatGraph& g) {
    std::vector<int> args;
    for (int v : g.inputs) {
      const FlatNode& n = g.nodes[at(g.producer, v)];
      args.push_back(out_.add(n.op, n.attrs, {}, n.out_types, n.where));
    }
    out_.inputs = args;
    out_.outputs = replay(g, args);
    return drop_dead();
  }

 private:
  // Appends the nodes of g with `args` for its inputs; the values of its outputs.
  std::vector<int> replay(const FlatGraph& g, const std::vector<int>& args) {
    std::vector<int> value(g.types.size(), -1);
    for (std::size_t k = 0; k < args.size(); k++) at(value, g.inputs[k]) = args[k];
    for (const FlatNode& n : g.nodes) {
      if (n.op->form == Form::leaf) continue;
      std::vector<int> in;
      for (int v : n.in) in.push_back(at(value, v));
      const std::vector<int> out = add(n, std::move(in));
      for (std::size_t k = 0; k < out.size(); k++) at(value, n.first_out + static_cast<int>(k)) = out[k];
    }
    std::vector<int> result;
    for (int v : g.outputs) result.push_back(at(value, v));
    return result;
  }

  std::vector<int> add(const FlatNode& n, std::vector<int> in) {
    if (n.op == &op_identity) return in;
    if (n.op->form == Form::call) return replay(flatten(*n.attrs->graphs[0]), in);
    if (n.op->form == Form::view && n.in_types[0].shape == n.out_types[0].shape) return in;
    if (n.op->form == Form::gemm) return {add_dot(n, std::move(in))};
    return outputs(unique(n.op, n.attrs, std::move(in), n.out_types, n.where), n.out_types.size());
  }

  static std::vector<int> outputs(int first, std::size_t count) {
    std::vector<int> v(count);
    for (std::size_t k = 0; k < count; k++) v[k] = first + static_cast<int>(k);
    return v;
  }

  // The value of an equal node that is already there, or of a new one.
  int unique(const Op* op, const AttrsRef& attrs, std::vector<int> in, const std::vector<Type>& out,
             Where where) {
    if (!op->effect) {
      std::uint64_t h = hash_mix(reinterpret_cast<std::uintptr_t>(op), attrs ? attrs->hash() : 0);
      for (int v : in) h = hash_mix(h, static_cast<std::uint64_t>(v));
      auto [first, last] = seen_.equal_range(h);
      for (auto it = first; it != last; ++it) {
        const FlatNode& n = at(out_.nodes, it->second);
        const bool same_attrs = n.attrs == attrs || (n.attrs && attrs && *n.attrs == *attrs);
        if (n.op == op && n.in == in && same_attrs && n.out_types == out) return n.first_out;
      }
      seen_.emplace(h, static_cast<int>(out_.nodes.size()));
    }
    return out_.add(op, attrs, std::move(in), out, where);
  }

  // A product becomes [batch, m, k] x [batch, k, n] -> [batch, m, n], where each operand may hold its last two groups in
  // either order and letters keep one order within a group; what does not fit is transposed first.
  int add_dot(const FlatNode& n, std::vector<int> in) {
    const Letters l = split_letters(n.attrs->letters);
    auto has = [](const std::string& s, char c) { return s.find(c) != std::string::npos; };
    std::string batch, m, k, cols;
    for (char c : l.out) (has(l.in[0], c) ? (has(l.in[1], c) ? batch : m) : cols) += c;
    for (char c : l.in[0])
      if (!has(l.out, c)) k += c;
    const std::string a = fit(l.in[0], batch, m, k, in[0], n.where);
    const std::string b = fit(l.in[1], batch, cols, k, in[1], n.where);
    std::string c = l.out;
    if (c != batch + m + cols && c != batch + cols + m) c = batch + m + cols;
    Attrs attrs;
    attrs.letters = a + "," + b + "->" + c;
    Type t = n.out_types[0];
    t.shape.clear();
    for (char letter : c) t.shape.push_back(n.out_types[0].shape[l.out.find(letter)]);
    const int v = unique(n.op, std::make_shared<const Attrs>(std::move(attrs)), std::move(in), {t}, n.where);
    return c == l.out ? v : permute(v, c, l.out, n.where);
  }

  std::string fit(const std::string& have, const std::string& batch, const std::string& free,
                  const std::string& k, int& v, Where w) {
    if (have == batch + free + k || have == batch + k + free) return have;
    v = permute(v, have, batch + free + k, w);
    return batch + free + k;
  }

  int permute(int v, const std::string& from, const std::string& to, Where w) {
    Attrs attrs;
    Type t = at(out_.types, v);
    const auto rank = static_cast<std::int64_t>(from.size());
    for (std::size_t d = 0; d < to.size(); d++) {
      const std::size_t source = from.find(to[d]);
      attrs.dims.push_back(static_cast<std::int64_t>(source) - rank);
      t.shape[d] = at(out_.types, v).shape[source];
    }
    return unique(&op_transpose, std::make_shared<const Attrs>(std::move(attrs)), {v}, {t}, w);
  }

  FlatGraph drop_dead() {
    std::vector<bool> live(out_.nodes.size(), false);
    for (int v : out_.outputs) at(live, at(out_.producer, v)) = true;
    for (int i = static_cast<int>(out_.nodes.size()) - 1; i >= 0; i--) {
      const FlatNode& n = at(out_.nodes, i);
      if (n.op->effect || n.op->form == Form::leaf) at(live, i) = true;
      if (at(live, i))
        for (int v : n.in) at(live, at(out_.producer, v)) = true;
    }
    FlatGraph g;
    std::vector<int> value(out_.types.size(), -1);
    for (std::size_t i = 0; i < out_.nodes.size(); i++) {
      if (!live[i]) continue;
      FlatNode& n = out_.nodes[i];
      std::vector<int> in;
      for (int v : n.in) in.push_back(at(value, v));
      const int first = g.add(n.op, n.attrs, std::move(in), n.out_types, n.where);
      for (std::size_t k = 0; k < n.out_types.size(); k++)
        at(value, n.first_out + static_cast<int>(k)) = first + static_cast<int>(k);
    }
    for (int v : out_.inputs) g.inputs.push_back(at(value, v));
    for (int v : out_.outputs) g.outputs.push_back(at(value, v));
    return g;
  }

  FlatGraph out_;
  std::unordered_multimap<std::uint64_t, int> seen_;
};

}  // namespace

FlatGraph simplify(const FlatGraph& g) { return Simplifier().run(g); }

}  // namespace shardarray
