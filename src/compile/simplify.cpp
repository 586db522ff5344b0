// Clean-up of the global graph. It keeps the bits of results, except for large sums, which are split depending on their shape and the
// number of devices.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/at.h"
#include "base/hash.h"
#include "compile/assignment.h"
#include "compile/passes.h"
#include "graph/iteration.h"
#include "ops/record.h"
#include "runtime/half_floats.h"

namespace shardarray {

namespace {

class Simplifier {
 public:
  Simplifier(int devices, const Target& target) : devices_(devices), target_(target), split_(target.split) {}
  FlatGraph run(const FlatGraph& g) {
    std::vector<int> args;
    for (int v : g.inputs) {
      const FlatNode& n = g.nodes[at(g.producer, v)];
      args.push_back(out_.add(n.op, n.attrs, {}, n.out_types, n.where, n.modes));
    }
    out_.inputs = args;
    out_.outputs = replay(g, args);
    return drop_dead();
  }

 private:
  // Appends the nodes of g with `args` as its inputs; returns the values of its outputs.
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
    modes_ = n.modes;
    if (n.op->trait == Trait::alias || n.op->trait == Trait::beside) return {in[0]};
    if (n.op->trait == Trait::behind && is_free(out_, at(out_.producer, in[0]))) return {in[0]};
    if (n.op->form == Form::call) return replay(flatten(*n.attrs->graphs[0]), in);
    if (n.op->form == Form::view && n.in_types[0].shape == n.out_types[0].shape) return in;
    if (is_half(n.out_types[0].dtype) &&
        (n.op->form == Form::gemm || n.op->form == Form::reduce || n.op->trait == Trait::sums))
      return {n.op->form == Form::gemm && target_.half_products ? add_half_dot(n, std::move(in))
                                                                : add_in_float32(n, std::move(in))};
    if (n.op->form == Form::gemm) return {add_dot(n, std::move(in))};
    if (n.op->form == Form::reduce) return {add_reduce(n, in[0])};
    if (n.op->trait == Trait::real_part || n.op->trait == Trait::imag_part) return {part_of(n, in[0])};
    if (n.op->trait == Trait::pair)
      if (const int whole = taken_apart(in[0], in[1]); whole >= 0) return {whole};
    if (n.op->trait == Trait::transpose) return {transposed(in[0], n.attrs->dims, n.where)};
    return outputs(unique(n.op, n.attrs, std::move(in), n.out_types, n.where), n.out_types.size());
  }

  // Sums of 16-bit floats: rounded once, at the end.
  int add_in_float32(FlatNode n, std::vector<int> in) {
    const DType half = n.out_types[0].dtype;
    for (std::size_t k = 0; k < in.size(); k++) {
      if (n.in_types[k].dtype != half) continue;
      n.in_types[k].dtype = DType::float32;
      in[k] = cast(in[k], DType::float32, n.where);
    }
    n.out_types[0].dtype = DType::float32;
    return cast(add(n, std::move(in))[0], half, n.where);
  }
  int add_half_dot(FlatNode n, std::vector<int> in) {
    const DType half = n.out_types[0].dtype;
    n.out_types[0].dtype = DType::float32;
    return cast(add_dot(n, std::move(in)), half, n.where);
  }
  int cast(int v, DType to, detail::RecordedLine w) {
    Attrs attrs;
    attrs.dtype = to;
    Type t = at(out_.types, v);
    t.dtype = to;
    return unique(&op_cast, std::make_shared<const Attrs>(std::move(attrs)), {v}, {t}, w);
  }

  // A part of a pair is one of its operands; of a transpose, the transposed part, which products read without a copy.
  int part_of(const FlatNode& n, int v) {
    const FlatNode from = at(out_.nodes, at(out_.producer, v));
    if (from.op->trait == Trait::pair) return from.in[n.op->trait == Trait::real_part ? 0 : 1];
    if (from.op->trait == Trait::transpose)
      return transposed(part_of(n, from.in[0]), from.attrs->dims, n.where);
    Type t = n.out_types[0];
    t.shape = at(out_.types, v).shape;
    return unique(n.op, n.attrs, {v}, {t}, n.where);
  }
  // The value of which these are the real and imaginary parts, or -1.
  int taken_apart(int re, int im) const {
    const FlatNode &a = at(out_.nodes, at(out_.producer, re)), &b = at(out_.nodes, at(out_.producer, im));
    const bool parts = a.op->trait == Trait::real_part && b.op->trait == Trait::imag_part;
    return parts && a.in == b.in ? a.in[0] : -1;
  }

  static std::vector<int> outputs(int first, std::size_t count) {
    std::vector<int> v(count);
    for (std::size_t k = 0; k < count; k++) v[k] = first + static_cast<int>(k);
    return v;
  }

  // The value of an equal node that exists already, or of a new one.
  int unique(const Op* op, const AttrsRef& attrs, std::vector<int> in, const std::vector<Type>& out,
             detail::RecordedLine where) {
    if (!op->effect) {
      std::uint64_t h = hash_mix(reinterpret_cast<std::uintptr_t>(op), attrs ? attrs->hash() : 0);
      for (int v : in) h = hash_mix(h, static_cast<std::uint64_t>(v));
      auto [first, last] = seen_.equal_range(h);
      for (auto it = first; it != last; ++it) {
        const FlatNode& n = at(out_.nodes, it->second);
        const bool same_attrs = n.attrs == attrs || (n.attrs && attrs && *n.attrs == *attrs);
        if (n.op == op && n.in == in && same_attrs && n.out_types == out && n.modes == modes_)
          return n.first_out;
      }
      seen_.emplace(h, static_cast<int>(out_.nodes.size()));
    }
    return out_.add(op, attrs, std::move(in), out, where, modes_);
  }

  // Very many elements to few: in two steps, the first with a part for every worker.
  int add_reduce(const FlatNode& n, int v) {
    const Shape &shape = n.in_types[0].shape, &dims = n.attrs->dims;
    const std::int64_t out = num_elements(n.out_types[0].shape);
    const bool large = !n.modes->reproducible && out > 0 && out < split_.most_results &&
                       num_elements(shape) / out >= split_.min_points;
    const auto as_it_is = [&] { return unique(n.op, n.attrs, {v}, n.out_types, n.where); };
    if (!large) return as_it_is();
    constexpr std::int64_t long_row = 64;
    const auto rank = static_cast<std::int64_t>(shape.size());
    const auto size_of = [&](std::int64_t d) { return shape[static_cast<std::size_t>(d + rank)]; };
    const std::int64_t first = *std::min_element(dims.begin(), dims.end());
    if (dims.size() > 1 && size_of(first) >= split_.most_results &&
        num_elements(shape) / out / size_of(first) >= long_row) {
      Shape others;
      for (std::int64_t d : dims)
        if (d != first) others.push_back(d);
      // Of the dimensions after it only those that are kept are left.
      const auto behind = static_cast<std::int64_t>(
          std::count_if(others.begin(), others.end(), [&](auto d) { return d > first; }));
      return reduced(n, reduced(n, v, others), {first + behind});
    }
    const std::int64_t longest =
        *std::max_element(dims.begin(), dims.end(), [&](auto a, auto b) { return size_of(a) < size_of(b); });
    std::int64_t parts =
        std::min({split_.parts, split_.rows / out, num_elements(shape) / out / split_.part_points});
    while (parts > 1 && (size_of(longest) % parts != 0 || parts % devices_ != 0)) parts--;
    if (parts <= 1) return as_it_is();
    Shape split, inside;
    for (std::int64_t d = -rank; d < 0; d++) {
      if (d == longest) split.push_back(parts);
      split.push_back(d == longest ? size_of(d) / parts : size_of(d));
    }
    std::int64_t behind = 0;  // reduced dimensions after the parts
    for (std::int64_t d : dims) {
      inside.push_back(d < longest ? d - 1 : d);
      behind += d >= longest;
    }
    const int pieces = reshaped(v, split, n.where);
    return reduced(n, reduced(n, pieces, inside), {longest - 1 + behind});
  }

  // v reduced over dims, as n does it.
  int reduced(const FlatNode& n, int v, const Shape& dims) {
    Attrs attrs = *n.attrs;
    attrs.dims = dims;
    const Type from = at(out_.types, v);
    const auto rank = static_cast<std::int64_t>(from.shape.size());
    Type t = n.out_types[0];
    t.shape.clear();
    for (std::int64_t d = -rank; d < 0; d++)
      if (std::find(dims.begin(), dims.end(), d) == dims.end())
        t.shape.push_back(from.shape[static_cast<std::size_t>(d + rank)]);
    return unique(n.op, std::make_shared<const Attrs>(std::move(attrs)), {v}, {t}, n.where);
  }

  // A product becomes [batch, m, k] x [batch, k, n] -> [batch, m, n]. Each operand may have its last two groups in either order; letters
  // keep one order within a group. What does not fit is transposed first.
  int add_dot(const FlatNode& n, std::vector<int> in) {
    const Letters l = split_letters(n.attrs->letters);
    const auto [batch, m, cols, k] = dot_letters(l);
    if (is_long_sum(n, l, batch, k)) return dot_as_sum(n, l, std::move(in), batch, k);
    const std::string a = fit(l.in[0], batch, m, k, in[0], n.where);
    const std::string b = fit(l.in[1], batch, cols, k, in[1], n.where);
    std::string c = l.out;
    if (c != batch + m + cols && c != batch + cols + m) c = batch + m + cols;
    Attrs attrs;
    attrs.letters = a + "," + b + "->" + c;
    attrs.uncut = n.attrs->uncut;
    Type t = n.out_types[0];
    t.shape.clear();
    for (char letter : c) t.shape.push_back(n.out_types[0].shape[l.out.find(letter)]);
    const int v = unique(n.op, std::make_shared<const Attrs>(std::move(attrs)), std::move(in), {t}, n.where);
    return c == l.out ? v : permute(v, c, l.out, n.where);
  }

  // Whether a product has one row and one column for each of few results: it is then a sum of very many products, which is split among the
  // workers and rounds less than one long chain.
  bool is_long_sum(const FlatNode& n, const Letters& l, const std::string& batch,
                   const std::string& k) const {
    const auto size = [&](const std::string& letters) {
      std::int64_t product = 1;
      for (char c : letters) product *= n.in_types[0].shape[l.in[0].find(c)];
      return product;
    };
    const std::int64_t results = num_elements(n.out_types[0].shape);
    return is_floating(n.out_types[0].dtype) && !n.modes->reproducible && results == size(batch) &&
           results < split_.most_results && size(k) >= split_.min_points;
  }
  int dot_as_sum(FlatNode n, const Letters& l, std::vector<int> in, const std::string& batch,
                 const std::string& k) {
    Type product = n.out_types[0], result = product;
    product.shape.clear();
    for (char c : batch + k) product.shape.push_back(n.in_types[0].shape[l.in[0].find(c)]);
    result.shape = {};
    for (std::size_t d = 0; d < batch.size(); d++) result.shape.push_back(product.shape[d]);
    for (std::size_t j = 0; j < 2; j++) {
      std::string ones;  // letters of size 1
      for (char c : l.in[j])
        if ((batch + k).find(c) == std::string::npos) ones += c;
      in[j] = reshaped(permute(in[j], l.in[j], ones + batch + k, n.where), product.shape, n.where);
    }
    const Shape whole = n.out_types[0].shape;
    const int products = unique(&op_mul, nullptr, std::move(in), {product}, n.where);
    Attrs attrs;
    attrs.reducer = Reducer::sum;
    for (auto d = -std::ssize(k); d < 0; d++) attrs.dims.push_back(d);
    n.op = &op_reduce;
    n.attrs = std::make_shared<const Attrs>(std::move(attrs));
    n.in_types = {product};
    n.out_types = {result};
    return reshaped(add_reduce(n, products), whole, n.where);
  }
  int reshaped(int v, const Shape& to, detail::RecordedLine w) {
    Type t = at(out_.types, v);
    if (t.shape == to) return v;
    Attrs attrs;
    attrs.shape = t.shape = to;
    return unique(&op_reshape, std::make_shared<const Attrs>(std::move(attrs)), {v}, {t}, w);
  }

  // The letters of an operand that fits, perhaps after removing a transpose that made v.
  std::string fit(const std::string& have, const std::string& batch, const std::string& free,
                  const std::string& k, int& v, detail::RecordedLine w) {
    const auto fits = [&](const std::string& s) { return s == batch + free + k || s == batch + k + free; };
    if (const FlatNode& n = at(out_.nodes, at(out_.producer, v)); n.op->trait == Trait::transpose) {
      std::string before(have.size(), ' ');
      for (std::size_t d = 0; d < have.size(); d++)
        at(before, static_cast<int>(n.attrs->dims[d]) + static_cast<int>(have.size())) = have[d];
      if (fits(before)) {
        v = n.in[0];
        return before;
      }
    }
    if (fits(have)) return have;
    v = permute(v, have, batch + free + k, w);
    return batch + free + k;
  }

  int permute(int v, const std::string& from, const std::string& to, detail::RecordedLine w) {
    Shape dims;
    for (char c : to) dims.push_back(static_cast<std::int64_t>(from.find(c)) - std::ssize(from));
    return transposed(v, std::move(dims), w);
  }

  // Dimension d of the result is dims[d] of v, counted from the end. Two transposes become one.
  int transposed(int v, Shape dims, detail::RecordedLine w) {
    const std::int64_t rank = std::ssize(dims);
    if (const FlatNode& n = at(out_.nodes, at(out_.producer, v)); n.op->trait == Trait::transpose) {
      for (std::int64_t& d : dims) d = n.attrs->dims[static_cast<std::size_t>(d + rank)];
      v = n.in[0];
    }
    Type t = at(out_.types, v);
    bool same = true;
    for (std::int64_t d = 0; d < rank; d++) {
      const std::int64_t source = dims[static_cast<std::size_t>(d)] + rank;
      t.shape[static_cast<std::size_t>(d)] = at(out_.types, v).shape[static_cast<std::size_t>(source)];
      same = same && source == d;
    }
    if (same) return v;
    Attrs attrs;
    attrs.dims = std::move(dims);
    return unique(&op_transpose, std::make_shared<const Attrs>(std::move(attrs)), {v}, {t}, w);
  }

  // Drops what no result needs, also inside iterations.
  FlatGraph drop_dead() {
    std::vector<bool> used(out_.types.size(), false), live(out_.nodes.size(), false);
    std::map<int, Trimmed> trims;
    const auto use = [&](const FlatNode& n, std::size_t operand) { at(used, n.in[operand]) = true; };
    for (int v : out_.outputs) at(used, v) = true;
    for (int i = static_cast<int>(out_.nodes.size()) - 1; i >= 0; i--) {
      const FlatNode& n = at(out_.nodes, i);
      const auto first = used.begin() + n.first_out, last = first + std::ssize(n.out_types);
      const bool is_read = std::find(first, last, true) != last;
      if (!is_read && !n.op->effect && n.op->form != Form::leaf) continue;
      at(live, i) = true;
      if (n.op->form == Form::iterate) {
        const std::vector<bool> of_node(first, last);
        const Trimmed& t = trims[i] = trimmed(Iteration::of(*n.attrs), of_node);
        for (const std::size_t k : t.operands) use(n, k);
        for (std::size_t k = 0; k < of_node.size(); k++)
          if (of_node[k] && t.forwarded[k] >= 0) use(n, static_cast<std::size_t>(t.forwarded[k]));
      } else {
        for (std::size_t k = 0; k < n.in.size(); k++) use(n, k);
      }
    }
    FlatGraph g;
    std::vector<int> value(out_.types.size(), -1);
    for (std::size_t i = 0; i < out_.nodes.size(); i++) {
      if (!live[i]) continue;
      const FlatNode& n = out_.nodes[i];
      const auto trim = trims.find(static_cast<int>(i));
      if (trim != trims.end()) {
        add_trimmed(n, trim->second, g, value);
        continue;
      }
      std::vector<int> in;
      for (int v : n.in) in.push_back(at(value, v));
      const int first = g.add(n.op, n.attrs, std::move(in), n.out_types, n.where, n.modes);
      for (std::size_t k = 0; k < n.out_types.size(); k++)
        at(value, n.first_out + static_cast<int>(k)) = first + static_cast<int>(k);
    }
    for (int v : out_.inputs) g.inputs.push_back(at(value, v));
    for (int v : out_.outputs) g.outputs.push_back(at(value, v));
    return g;
  }

  // `value`: of this graph -> of g.
  static void add_trimmed(const FlatNode& n, const Trimmed& t, FlatGraph& g, std::vector<int>& value) {
    std::vector<int> in;
    std::vector<Type> types;
    for (const std::size_t k : t.operands) in.push_back(at(value, n.in[k]));
    for (const std::size_t k : t.results) types.push_back(n.out_types[k]);
    for (std::size_t k = 0; k < t.forwarded.size(); k++)
      if (t.forwarded[k] >= 0)
        at(value, n.first_out + static_cast<int>(k)) =
            at(value, n.in[static_cast<std::size_t>(t.forwarded[k])]);
    if (t.results.empty()) return;
    const bool whole = t.operands.size() == n.in.size() && t.results.size() == n.out_types.size();
    const AttrsRef attrs = whole ? n.attrs : std::make_shared<const Attrs>(t.iteration.attrs());
    const int first = g.add(n.op, attrs, std::move(in), std::move(types), n.where, n.modes);
    for (std::size_t j = 0; j < t.results.size(); j++)
      at(value, n.first_out + static_cast<int>(t.results[j])) = first + static_cast<int>(j);
  }

  int devices_;
  const Target& target_;
  const Target::Split& split_;
  const Modes* modes_ = nullptr;  // of the node that is added
  FlatGraph out_;
  std::unordered_multimap<std::uint64_t, int> seen_;
};

}  // namespace

FlatGraph simplify(const FlatGraph& g, int devices, const Target& target) {
  return Simplifier(devices, target).run(g);
}

}  // namespace shardarray
