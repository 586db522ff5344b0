// A group of fused steps -> kernel IR. Expressions are emitted backwards from the results. A value is identified by (local value, index
// map): if read in two ways it is computed twice, and the builder merges what is equal.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/at.h"
#include "base/complex_parts.h"
#include "base/float_mode.h"
#include "compile/index_map.h"
#include "compile/passes.h"
#include "compile/step_kind.h"
#include "ops/record.h"
#include "runtime/half_floats.h"

namespace shardarray {

IndexMap reduce_map(const FlatNode& n, std::size_t outer) {
  const std::size_t rank = n.in_types[0].shape.size();
  std::set<std::int64_t> reduced;
  for (std::int64_t d : n.attrs->dims) reduced.insert(d + static_cast<std::int64_t>(rank));
  IndexMap m;
  int kept = 0, inner = static_cast<int>(outer);
  for (std::size_t j = 0; j < rank; j++)
    m.dims.push_back(IndexSum::along(reduced.contains(static_cast<std::int64_t>(j)) ? inner++ : kept++));
  return m;
}

std::optional<IndexMap> split_map(const Shape& in, const Shape& out) {
  IndexMap m;
  std::size_t next = 0;
  for (const std::int64_t size : in) {
    const std::size_t first = next;
    for (std::int64_t left = size; left != 1;) {  // of `size`, for the result's next dimensions
      if (next == out.size()) return std::nullopt;
      const std::int64_t part = out[next++];
      if (part == 0 ? left != 0 : left % part != 0) return std::nullopt;
      left = part == 0 ? 1 : left / part;
    }
    IndexSum sum;
    std::int64_t step = 1;
    for (std::size_t d = next; d-- > first; step *= out[d])
      if (out[d] != 1) sum.add({static_cast<int>(d), step});
    m.dims.push_back(std::move(sum));
  }
  for (; next < out.size(); next++)
    if (out[next] != 1) return std::nullopt;
  return m;
}

IndexMap operand_map(const LocalStep& s, const FlatGraph& g, std::size_t k) {
  const FlatNode& n = g.nodes[static_cast<std::size_t>(s.node)];
  if (n.op->form == Form::map) return index_map(n.op->map(n.call()));
  if (n.op->form == Form::view) return split_map(n.in_types[0].shape, n.out_types[0].shape).value();
  return identity_map(n.in_types[k].shape.size());  // row numbers of a take: [b.., n..] of [b.., n.., d..]
}

namespace {

class Emitter {
 public:
  Emitter(const Group& group, const Partition& p, const FlatGraph& g)
      : group_(group),
        p_(p),
        g_(g),
        members_(group.steps.begin(), group.steps.end()),
        outer_(p.values[static_cast<std::size_t>(group.domain)].type.shape.size()),
        builder_(static_cast<int>(outer_), inner_rank(group, p, g)),
        moves_whole_(group.reduce < 0 && std::ranges::all_of(group.steps, [&](int s) { return moves(s); })) {}

  GroupKernel run() {
    for (const std::vector<int>& level : reduce_levels()) {
      begin(true);
      for (int s : level) {
        const FlatNode& n = node(s);
        IndexMap map = reduce_map(n, outer_);
        const int v = emit(step(s).in[0], map);
        reduced_[step(s).out[0]] = builder_.reduce(n.attrs->reducer, v);
        if (is_inexact(n.out_types[0].dtype)) result_.reductions++;
      }
    }
    // Values at all points of the rows are written before those of the rows.
    const auto rank = [&](int root) { return p_.values[static_cast<std::size_t>(root)].type.shape.size(); };
    const auto write = [&](int root, const IndexMap& map) {
      std::vector<int> parts;
      parts.reserve(static_cast<std::size_t>(parts_of(root)));
      for (int part = 0; part < parts_of(root); part++) parts.push_back(emit(root, map, part));
      for (int part = 0; part < parts_of(root); part++) {
        int v = parts[static_cast<std::size_t>(part)];
        if (const DType t = dtype(root); is_half(t)) v = narrow(builder_, v, t);
        builder_.store(argument(root, map, true, -1, part), v);
      }
    };
    const auto full = [&](int root) { return rank(root) != outer_; };
    if (std::any_of(group_.roots.begin(), group_.roots.end(), full)) {
      begin(true);
      const IndexMap points = reduce_map(node(group_.reduce), outer_);
      for (int root : group_.roots)
        if (full(root)) write(root, points);
    }
    if (!std::all_of(group_.roots.begin(), group_.roots.end(), full)) {
      begin(false);
      for (int root : group_.roots)
        if (!full(root)) write(root, identity_map(outer_));
    }
    result_.kernel = builder_.finish();
    return std::move(result_);
  }

 private:
  using Key = std::pair<int, std::vector<std::int64_t>>;  // a part of a value, and how it is read

  static int inner_rank(const Group& group, const Partition& p, const FlatGraph& g) {
    if (group.reduce < 0) return 0;
    const int n = p.steps[static_cast<std::size_t>(group.reduce)].node;
    return static_cast<int>(g.nodes[static_cast<std::size_t>(n)].attrs->dims.size());
  }
  const LocalStep& step(int s) const { return p_.steps[static_cast<std::size_t>(s)]; }
  const FlatNode& node(int s) const { return g_.nodes[static_cast<std::size_t>(step(s).node)]; }
  bool is_reduce(int s) const { return step(s).node >= 0 && node(s).op->form == Form::reduce; }

  void begin(bool inner) {
    builder_.begin_stage(inner);
    memo_.clear();
    inner_ = inner;
  }

  // The instructions since `first`, counted as one operation: 0 if they only select, compare or convert, 2 for a multiply-add.
  double operations_behind(std::size_t first) const {
    const std::vector<Instr>& code = builder_.code();
    double n = 0;
    for (std::size_t k = first; k < code.size(); k++)
      if (const Instr& i = code[k]; is_floating(i.type) && i.code >= Code::neg && i.code != Code::select)
        n = n == 0 && i.code == Code::fma ? 2 : 1;
    return n;
  }

  // Reduces by their dependencies on each other; one pass over the inner dimensions per level.
  std::vector<std::vector<int>> reduce_levels() const {
    std::map<int, int> level;  // step -> 1 + highest level below it
    std::vector<std::vector<int>> levels;
    for (int s : group_.steps) {
      int l = 0;
      for (int v : step(s).in)
        if (members_.contains(producer(v))) l = std::max(l, level[producer(v)]);
      if (is_reduce(s)) {
        if (static_cast<int>(levels.size()) <= l) levels.resize(static_cast<std::size_t>(l) + 1);
        levels[static_cast<std::size_t>(l)].push_back(s);
        l++;
      }
      level[s] = l;
    }
    return levels;
  }

  static Key key(int v, const IndexMap& m, int part) {
    std::vector<std::int64_t> words{part};
    for (const IndexSum& d : m.dims) {
      words.insert(words.end(), {static_cast<std::int64_t>(d.terms.size()), d.offset});
      for (const IndexSum::Term& t : d.terms) words.insert(words.end(), {t.dim, t.step});
    }
    return {v, std::move(words)};
  }

  // Whether step s needs no single part of a complex number.
  bool moves(int s) const {
    if (step(s).node < 0) return true;  // slice, copy
    const FlatNode& n = node(s);
    const Form form = n.op->form;
    const bool takes_apart = n.op->trait == Trait::real_part || n.op->trait == Trait::imag_part;
    return !takes_apart && (!is_complex(n.out_types[0].dtype) || form == Form::map || form == Form::view ||
                            form == Form::take);
  }
  // Whether v's elements are moved as opaque 8-byte words.
  bool is_moved(int v) const {
    return moves_whole_ && p_.values[static_cast<std::size_t>(v)].type.dtype == DType::complex64;
  }
  int parts_of(int v) const {
    return is_complex(p_.values[static_cast<std::size_t>(v)].type.dtype) && !is_moved(v) ? 2 : 1;
  }

  // `part`: of a complex value.
  int emit(int v, IndexMap map, int part = 0) {
    while (const std::optional<IndexMap> reading = passed_through(v))
      map = compose(map, *reading), v = step(producer(v)).in[0];
    if (auto it = reduced_.find(v); it != reduced_.end()) return it->second;
    const Key k = key(v, map, part);
    if (auto it = memo_.find(k); it != memo_.end()) return it->second;
    const int id = computed(v) ? emit_step(producer(v), v, map, part) : load(v, map, part);
    memo_[k] = id;
    return id;
  }

  int producer(int v) const { return p_.values[static_cast<std::size_t>(v)].step; }
  bool computed(int v) const { return members_.contains(producer(v)) && !is_reduce(producer(v)); }

  // If v's elements are those of its step's operand: where they are there. A group may have very many such steps.
  std::optional<IndexMap> passed_through(int v) const {
    if (!computed(v)) return std::nullopt;
    const LocalStep& s = step(producer(v));
    if (s.node < 0)
      return identity_map(p_.values[static_cast<std::size_t>(v)].type.shape.size());  // slice, copy
    const Form form = node(producer(v)).op->form;
    if (form != Form::map && form != Form::view) return std::nullopt;
    return operand_map(s, g_, 0);
  }

  // Of one part.
  DType dtype(int v) const {
    return is_moved(v) ? DType::int64 : part_type(p_.values[static_cast<std::size_t>(v)].type.dtype);
  }
  int load(int v, const IndexMap& map, int part) {
    return loaded(v, builder_.load(argument(v, map, false, -1, part)));
  }
  int loaded(int v, int id) { return is_half(dtype(v)) ? widen(builder_, id, dtype(v)) : id; }

  int argument(int v, const IndexMap& map, bool output, int indirect, int part) {
    if (is_moved(v)) part = KernelAccess::whole;
    for (std::size_t k = 0; k < result_.args.size(); k++) {
      const KernelAccess& a = result_.args[k];
      if (a.value == v && a.map == map && a.output == output && a.indirect == indirect && a.part == part)
        return static_cast<int>(k);
    }
    result_.args.push_back({v, map, output, indirect, part});
    return builder_.arg({stored_type(dtype(v)), output, indirect >= 0});
  }

  int emit_step(int s, int v, const IndexMap& map, int part) {
    const FlatNode& n = node(s);
    if (n.op->form == Form::take) return emit_take(s, n, map, part);
    const std::vector<int>& in = step(s).in;
    switch (n.op->trait) {
      case Trait::real_part: return emit(in[0], map, 0);
      case Trait::imag_part: return emit(in[0], map, 1);
      case Trait::pair: return emit(in[static_cast<std::size_t>(part)], map);
      default: break;
    }
    if (parts_of(v) == 1 && !is_moved(v)) return emit_scalar(s, n, v, map);
    if (n.op->trait == Trait::literal)  // a real one
      return builder_.constant_bits(dtype(v), part == 0 ? n.attrs->bits : 0);
    return emit(in[0], map, part);  // operand 0 as it is: takes_complex()
  }

  int emit_scalar(int s, const FlatNode& n, int v, const IndexMap& map) {
    std::vector<int> in, out(n.out_types.size(), -1);
    for (int operand : step(s).in) in.push_back(emit(operand, map));
    const auto half = [](const Type& t) { return is_half(t.dtype); };
    const bool on_halves = std::any_of(n.in_types.begin(), n.in_types.end(), half) || half(n.out_types[0]);
    const double operations = on_halves ? apply_half(n, in, out, map) : apply(n.call(), in, out, map);
    const bool converts = n.op->trait == Trait::conversion || n.op->trait == Trait::bits;
    if (is_floating(n.out_types[0].dtype) && !converts)
      (inner_ ? result_.per_point : result_.per_row) += operations;
    for (std::size_t k = 0; k < out.size(); k++) memo_[key(step(s).out[k], map, 0)] = out[k];
    return memo_.at(key(v, map, 0));
  }

  // Returns the number of operations.
  double apply(const Call& call, std::span<const int> in, std::span<int> out, const IndexMap& map) {
    struct State {
      Emitter* self;
      const IndexMap* map;
    } state{this, &map};
    ScalarArgs args{builder_,
                    call,
                    in,
                    out,
                    [](ScalarArgs& a, int d) {
                      auto* st = static_cast<State*>(a.fusion);
                      return st->self->index(st->map->dims[static_cast<std::size_t>(d)]);
                    },
                    &state};
    const std::size_t before = builder_.code().size();
    call.op->scalar(args);
    return operations_behind(before);
  }

  // The op in float32, its results rounded; ops on bits and conversions act on the bits and count as no arithmetic.
  double apply_half(const FlatNode& n, std::span<const int> in, std::span<int> out, const IndexMap& map) {
    const DType to = n.out_types[0].dtype, from = n.in_types.empty() ? to : n.in_types[0].dtype;
    if (n.op->trait == Trait::literal) {
      out[0] = widen(builder_, builder_.constant_bits(DType::uint16, n.attrs->bits), to);
    } else if (n.op->trait == Trait::conversion && is_half(to)) {
      out[0] = round_to(builder_, in[0], to);
    } else if (n.op->trait == Trait::bits) {
      const int bits = is_half(from) ? narrow(builder_, in[0], from) : builder_.bitcast(in[0], DType::uint16);
      out[0] = is_half(to) ? widen(builder_, bits, to) : builder_.bitcast(bits, to);
    } else {
      std::vector<Type> in_types = n.in_types, out_types = n.out_types;
      for (std::vector<Type>* list : {&in_types, &out_types})
        for (Type& t : *list) t.dtype = computed_type(t.dtype);
      Attrs attrs = n.attrs ? *n.attrs : Attrs();
      attrs.dtype = computed_type(attrs.dtype);
      const double operations = apply({n.op, in_types, out_types, &attrs}, in, out, map);
      for (std::size_t k = 0; k < out.size(); k++)
        if (const DType t = n.out_types[k].dtype; is_half(t)) out[k] = round_to(builder_, out[k], t);
      return operations;
    }
    return 0;
  }

  // The global index along one dimension of a value.
  int index(const IndexSum& d) {
    const auto number = [&](std::int64_t x) {
      return builder_.constant_bits(DType::int64, static_cast<std::uint64_t>(x));
    };
    int sum = -1;
    for (const IndexSum::Term& t : d.terms) {
      int i = builder_.index(t.dim);
      if (t.step != 1) i = builder_.binary(Code::mul, i, number(t.step));
      sum = sum < 0 ? i : builder_.binary(Code::add, sum, i);
    }
    if (sum < 0) return number(d.offset);
    return d.offset == 0 ? sum : builder_.binary(Code::add, sum, number(d.offset));
  }

  int emit_take(int s, const FlatNode& n, const IndexMap& map, int part) {
    const auto batch = static_cast<std::size_t>(n.attrs->lo[0]),
               rows = static_cast<std::size_t>(n.attrs->hi[0]);
    int row = emit(step(s).in[1], compose(map, operand_map(step(s), g_, 1)));
    row = builder_.cast(row, DType::int64);
    IndexMap table;  // [b.., v, d..] of [b.., n.., d..]; v comes from the row
    for (std::size_t k = 0; k < batch; k++) table.dims.push_back(map.dims[k]);
    table.dims.push_back({});
    for (std::size_t k = batch + rows; k < map.dims.size(); k++) table.dims.push_back(map.dims[k]);
    const int read = step(s).in[0];
    return loaded(read, builder_.load_at(argument(read, table, false, static_cast<int>(batch), part), row));
  }

  const Group& group_;
  const Partition& p_;
  const FlatGraph& g_;
  std::set<int> members_;
  std::size_t outer_;
  KernelBuilder builder_;
  bool moves_whole_;
  bool inner_ = false;  // whether the stage is over the inner dimensions
  GroupKernel result_;
  std::map<Key, int> memo_;
  std::map<int, int> reduced_;
};

}  // namespace

GroupKernel make_kernel(const Group& group, const Partition& p, const FlatGraph& g, const Target& target) {
  const FlushDenormals mode(group.flush_denormals);  // for constant folding
  GroupKernel k = Emitter(group, p, g).run();
  const bool everywhere = group.reduce >= 0 && node_of(at(p.steps, group.reduce), g)->modes->reproducible;
  if (!everywhere) k.kernel.order = target.reductions;
  return k;
}

}  // namespace shardarray
