// Shifts of one value: what a loop reads beside its points. By itself each would be assembled in memory of its own; slices of one padded
// value are read in place.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>

#include "base/at.h"
#include "compile/passes.h"
#include "layout/layout.h"
#include "ops/record.h"

namespace shardarray {

namespace {

enum class Beyond : std::uint8_t { nothing, number, again };

// A value whose element i is that of `root` at i + offset; beyond the ends of `root` it is a number, or wraps around.
struct Shift {
  int root = -1;
  Shape offset;
  Beyond beyond = Beyond::nothing;
  std::uint64_t bits = 0;
};

// Whether a loop reads its operands at its points.
bool reads_in_loop(const FlatNode& n) {
  return is_elementwise(n.op->form) || n.op->form == Form::reduce ||
         (n.op->form == Form::map && !n.op->boxes);
}

class Shifts {
 public:
  explicit Shifts(const FlatGraph& g) : g_(g) {}

  std::optional<FlatGraph> run() {
    const auto puts_together = [](const FlatNode& n) { return n.op->form == Form::boxes; };
    if (std::count_if(g_.nodes.begin(), g_.nodes.end(), puts_together) == 0) return std::nullopt;
    for (int v = 0; v < static_cast<int>(g_.types.size()); v++) shifts_.push_back(shift_of(v));
    find_groups();
    std::erase_if(groups_, [&](const auto& group) { return !stores_less(group.second); });
    for (auto& [key, group] : groups_)
      for (int v : group.ends) replaced_[v] = &group;
    if (replaced_.empty() && padded_.empty()) return std::nullopt;
    rebuild();
    return std::move(out_);
  }

 private:
  struct Key {
    int root;
    Beyond beyond;
    std::uint64_t bits;
    auto operator<=>(const Key&) const = default;
  };
  struct Group {
    Key key;
    std::vector<int> ends;  // values that loops read
    Shape lo, hi;           // the margin
    int made = -1;          // the padded root, in the new graph
  };

  const FlatNode& producer(int v) const { return at(g_.nodes, at(g_.producer, v)); }
  const Shape& shape(int v) const { return at(g_.types, v).shape; }

  // The bits of a value that is one number everywhere.
  std::optional<std::uint64_t> number(int v) const {
    const FlatNode* n = &producer(v);
    if (n->op->form == Form::map && n->in_types[0].shape.empty()) n = &producer(n->in[0]);
    if (n->op->trait != Trait::literal) return std::nullopt;
    return n->attrs->bits;
  }

  Shift shift_of(int v) {
    Shift itself{v, Shape::filled(shape(v).size(), 0)};
    const FlatNode& n = producer(v);
    if (!n.op->boxes || n.op->trait == Trait::row_list || num_elements(shape(v)) == 0) return itself;
    const std::vector<BoxSource> sources = n.op->boxes(n.call(), whole_box(shape(v)));
    std::optional<std::uint64_t> bits;
    const BoxSource* only = nullptr;
    std::int64_t covered = 0, numbers = 0;
    for (const BoxSource& s : sources) {
      if (std::any_of(s.step.begin(), s.step.end(), [](auto step) { return step != 1; })) return itself;
      covered += s.out.elements();
      const std::optional<std::uint64_t> x = number(at(n.in, s.operand));
      if (!x) {
        if (only) return again_or(v, n, sources, itself);
        only = &s;
        continue;
      }
      if (bits && *bits != *x) return itself;
      bits = x;
      numbers++;
    }
    if (!only) return itself;
    if (covered < num_elements(shape(v))) {
      const std::uint64_t fill = n.attrs->bits;
      if (bits && *bits != fill) return itself;
      bits = fill;
    }
    const bool is_all = only->out.size == shape(at(n.in, only->operand));
    if (numbers > 0 && is_all) padded_.push_back(v);
    Shift s = at(shifts_, at(n.in, only->operand));
    if (s.beyond == Beyond::again || (s.beyond == Beyond::number && bits && s.bits != *bits))
      s = {at(n.in, only->operand), itself.offset};
    if (bits) s.bits = *bits;
    const Box inner = only->out;
    Box seen = inner;  // where elements of the root are
    for (std::size_t d = 0; d < inner.lo.size(); d++) {
      s.offset[d] += only->in_lo[d] - inner.lo[d];
      const std::int64_t size = shape(s.root)[d];
      const std::int64_t begin = std::max(seen.lo[d], -s.offset[d]),
                         end = std::min(seen.lo[d] + seen.size[d], size - s.offset[d]);
      if (end <= begin) return itself;
      // the fill must begin where the root ends
      if ((begin > 0 && begin != -s.offset[d]) || (end < shape(v)[d] && end != size - s.offset[d]))
        return itself;
      seen.lo[d] = begin;
      seen.size[d] = end - begin;
    }
    s.beyond = seen == whole_box(shape(v)) ? Beyond::nothing : Beyond::number;
    return s;
  }

  // Two or more parts of one operand: a rotation if they all fit one, else `otherwise`.
  Shift again_or(int v, const FlatNode& n, const std::vector<BoxSource>& sources,
                 const Shift& otherwise) const {
    const Shape& ring = shape(v);
    if (n.in.size() != 1 || !(shape(n.in[0]) == ring)) return otherwise;
    Shift s{n.in[0], Shape::filled(ring.size(), 0), Beyond::again};
    std::int64_t covered = 0;
    for (const BoxSource& b : sources) {
      covered += b.out.elements();
      for (std::size_t d = 0; d < ring.size(); d++) {
        if (b.step[d] != 1) return otherwise;
        std::int64_t by = (b.in_lo[d] - b.out.lo[d] + ring[d]) % ring[d];
        if (2 * by > ring[d]) by -= ring[d];
        if (&b != sources.data() && s.offset[d] != by) return otherwise;
        s.offset[d] = by;
      }
    }
    return covered == num_elements(ring) ? s : otherwise;
  }

  void find_groups() {
    std::vector<bool> in_loops(g_.types.size(), false), elsewhere(g_.types.size(), false);
    for (int v : g_.outputs) elsewhere[static_cast<std::size_t>(v)] = true;
    for (const FlatNode& n : g_.nodes)
      for (int v : n.in) (reads_in_loop(n) ? in_loops : elsewhere)[static_cast<std::size_t>(v)] = true;
    for (int v = 0; v < static_cast<int>(g_.types.size()); v++) {
      const Shift& s = at(shifts_, v);
      if (s.root == v || s.beyond == Beyond::nothing || !at(in_loops, v) || at(elsewhere, v)) continue;
      const Key key{s.root, s.beyond, s.bits};
      Group& group = groups_[key];
      group.key = key;
      if (group.ends.empty()) group.lo = group.hi = Shape::filled(s.offset.size(), 0);
      group.ends.push_back(v);
      for (std::size_t d = 0; d < s.offset.size(); d++) {
        group.lo[d] = std::max(group.lo[d], -s.offset[d]);
        group.hi[d] = std::max(group.hi[d], s.offset[d] + shape(v)[d] - shape(s.root)[d]);
      }
    }
  }

  // Compares what is assembled now for the values that loops read with the padded root.
  bool stores_less(const Group& group) const {
    std::vector<int> stored;
    for (int v : group.ends) {
      while (producer(v).op->form == Form::map) v = producer(v).in[0];
      if (std::find(stored.begin(), stored.end(), v) == stored.end()) stored.push_back(v);
    }
    std::int64_t now = 0, then = 1;
    for (int v : stored) now += num_elements(shape(v));
    for (std::size_t d = 0; d < group.lo.size(); d++)
      then *= shape(group.key.root)[d] + group.lo[d] + group.hi[d];
    return stored.size() > 1 && then < now;
  }

  void rebuild() {
    std::vector<int> value(g_.types.size(), -1);
    for (const FlatNode& n : g_.nodes) {
      where_ = n.where;
      modes_ = n.modes;
      const auto group = replaced_.find(n.first_out);
      if (group != replaced_.end()) {
        Group& of = *group->second;
        if (of.made < 0) of.made = with_margin(of, at(value, of.key.root));
        Shape lo = at(shifts_, n.first_out).offset;
        for (std::size_t d = 0; d < lo.size(); d++) lo[d] += of.lo[d];
        at(value, n.first_out) = slice(of.made, lo, n.out_types[0]);
        continue;
      }
      if (std::binary_search(padded_.begin(), padded_.end(), n.first_out)) {
        at(value, n.first_out) = padded(n, value);
        continue;
      }
      std::vector<int> in;
      for (int v : n.in) in.push_back(at(value, v));
      const int first = out_.add(n.op, n.attrs, std::move(in), n.out_types, n.where, n.modes);
      for (int k = 0; k < static_cast<int>(n.out_types.size()); k++) at(value, n.first_out + k) = first + k;
    }
    for (int v : g_.inputs) out_.inputs.push_back(at(value, v));
    for (int v : g_.outputs) out_.outputs.push_back(at(value, v));
  }

  int slice(int v, const Shape& lo, const Type& t) {
    if (at(out_.types, v).shape == t.shape) return v;
    Attrs a;
    a.lo = a.hi = lo;
    for (std::size_t d = 0; d < lo.size(); d++) a.hi[d] += t.shape[d];
    a.step = Shape::filled(lo.size(), 1);
    return out_.add(&op_slice, std::make_shared<const Attrs>(std::move(a)), {v}, {t}, where_, modes_);
  }
  int pad(int v, const Shape& lo, const Shape& hi, std::uint64_t bits) {
    Type t = at(out_.types, v);
    Attrs a;
    a.lo = lo;
    a.hi = hi;
    a.bits = bits;
    for (std::size_t d = 0; d < lo.size(); d++) t.shape[d] += lo[d] + hi[d];
    return out_.add(&op_pad, std::make_shared<const Attrs>(std::move(a)), {v}, {t}, where_, modes_);
  }

  int with_margin(const Group& group, int root) {
    if (group.key.beyond == Beyond::number) return pad(root, group.lo, group.hi, group.key.bits);
    for (std::size_t d = 0; d < group.lo.size(); d++) {  // wraps both ends around
      const Type from = at(out_.types, root);
      std::vector<int> parts;
      const auto add = [&](std::int64_t first, std::int64_t count) {
        if (count == 0) return;
        Shape lo = Shape::filled(from.shape.size(), 0);
        Type t = from;
        lo[d] = first;
        t.shape[d] = count;
        parts.push_back(slice(root, lo, t));
      };
      const std::int64_t size = from.shape[d];
      add(size - group.lo[d], group.lo[d]);
      add(0, size);
      add(0, group.hi[d]);
      if (parts.size() == 1) continue;
      Type t = from;
      t.shape[d] += group.lo[d] + group.hi[d];
      Attrs a;
      a.dims = {static_cast<std::int64_t>(d) - static_cast<std::int64_t>(from.shape.size())};
      root = out_.add(&op_concatenate, std::make_shared<const Attrs>(std::move(a)), std::move(parts), {t},
                      where_, modes_);
    }
    return root;
  }

  // An assembly of one value and numbers, as a pad.
  int padded(const FlatNode& n, const std::vector<int>& value) {
    std::uint64_t bits = 0;
    int v = -1;
    Box inner;
    for (const BoxSource& s : n.op->boxes(n.call(), whole_box(n.out_types[0].shape)))
      if (const auto x = number(at(n.in, s.operand))) bits = *x;
      else v = at(n.in, s.operand), inner = s.out;
    Shape hi = n.out_types[0].shape;
    for (std::size_t d = 0; d < hi.size(); d++) hi[d] -= inner.lo[d] + inner.size[d];
    return pad(at(value, v), inner.lo, hi, bits);
  }

  const FlatGraph& g_;
  std::vector<Shift> shifts_;  // by value
  std::vector<int> padded_;    // ascending: values assembled from one value and numbers
  std::map<Key, Group> groups_;
  std::map<int, Group*> replaced_;  // by value
  FlatGraph out_;
  detail::RecordedLine where_;
  const Modes* modes_ = nullptr;
};

}  // namespace

std::optional<FlatGraph> gather_shifts(const FlatGraph& g) { return Shifts(g).run(); }

}  // namespace shardarray
