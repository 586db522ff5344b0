// Exchange steps: transfers between layouts, ops assembled from boxes, carries of scans.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "compile/addresses.h"
#include "compile/halo.h"
#include "layout/axes.h"
#include "layout/box_moves.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/step_ranges.h"

namespace shardarray {

namespace {

// From `origin` to `to`, in elements.
std::int64_t elements_between(const Shape& to, const Shape& origin, const Shape& strides) {
  std::int64_t s = 0;
  for (std::size_t k = 0; k < to.size(); k++) s += (to[k] - origin[k]) * strides[k];
  return s;
}

// Positions that agree on some sub-axes form a group.
struct Groups {
  std::vector<int> of_position, place;  // position -> its group, its index there
  std::vector<std::vector<int>> positions;
};

Groups agreeing(const Addresses& at, const Layout* l, const AxisList& fixed) {
  const int n = l->order()->size();
  Groups g;
  std::unordered_map<std::int64_t, int> known;
  for (int p = 0; p < n; p++) {
    const std::int64_t key = coordinate(fixed, at.local(l, p), n);
    const auto [it, fresh] = known.emplace(key, static_cast<int>(g.positions.size()));
    if (fresh) g.positions.emplace_back();
    std::vector<int>& members = g.positions[static_cast<std::size_t>(it->second)];
    g.of_position.push_back(it->second);
    g.place.push_back(static_cast<int>(members.size()));
    members.push_back(p);
  }
  return g;
}

// The sub-axes of n devices outside of `used`.
AxisList other_axes(AxisList used, int n) {
  std::sort(used.begin(), used.end());
  AxisList others;
  std::int32_t end = 1;
  used.push_back({n, 1});
  for (SubAxis a : used) {
    if (a.pre > end) others.push_back({end, a.pre / end});
    end = end_of(a);
  }
  return others;
}

// Positions that agree on these hold the summands of one tile: they may differ in sharded dimensions and along reduced axes.
AxisList summand_axes(const Layout& from, const Layout& to) {
  AxisList used = without_axes(from.unreduced(), to.unreduced()).value();
  for (const AxisList& d : from.dims()) used.insert(used.end(), d.begin(), d.end());
  AxisList fixed = other_axes(std::move(used), from.order()->size());
  fixed.insert(fixed.begin(), to.unreduced().begin(), to.unreduced().end());
  return fixed;
}

// A value that is read: what every position holds of it. Made once for all receivers.
class ReadValue {
 public:
  ReadValue(Addresses& at, int v)
      : at_(at), v_(v), item_(static_cast<std::int64_t>(itemsize(at.value(v).type.dtype))) {
    const Memory& memory = at.memory(v);
    for (int p = 0; p < at.order()->size(); p++) {
      const Box& tile = at.stored_tile(v, p);
      const std::size_t i = at.instance(v, p);
      held_.push_back({memory.refs[i], memory.bytes[i], memory.device[i], i, tile.lo, row_major(tile.size)});
    }
  }

  const Layout& layout() const { return *at_.value(v_).layout; }
  const Shape& strides(int q) const { return held(q).strides; }
  Groups groups(const AxisList& fixed) const { return agreeing(at_, at_.value(v_).layout, fixed); }
  std::vector<Box> tiles(const std::vector<int>& positions) const {
    std::vector<Box> boxes;
    boxes.reserve(positions.size());
    for (int q : positions) boxes.push_back(at_.tile(v_, q));
    return boxes;
  }

  // Element `first` (global coordinates) as position q holds it, for position p.
  Exchange::Source source(int p, int q, const Shape& first) const {
    const Held& h = held(q);
    Exchange::Source s;
    s.ref = h.ref;
    s.tile_bytes = h.bytes;
    s.first = static_cast<std::uint64_t>(elements_between(first, h.lo, h.strides) * item_);
    s.ref.offset += s.first;
    s.device = held(p).instance == h.instance ? p : h.device;
    return s;
  }

 private:
  struct Held {
    Ref ref;
    std::uint64_t bytes;
    int device;
    std::size_t instance;
    Shape lo, strides;
  };
  const Held& held(int p) const { return held_[static_cast<std::size_t>(p)]; }

  Addresses& at_;
  int v_;
  std::int64_t item_;
  std::vector<Held> held_;
};

// One item of an exchange, to which pieces are added.
struct Receiver {
  Receiver(const Box& t, Exchange::Item& i, std::int64_t size)
      : tile(t), strides(row_major(t.size)), item(i), itemsize(size) {}

  Exchange::Piece piece(const Box& out, const Shape& src_strides) const {
    Exchange::Piece x;
    x.extents = out.size;
    x.src_strides = src_strides;
    x.dst_strides = strides;
    x.dst = item.dst;
    x.dst.offset += static_cast<std::uint64_t>(elements_between(out.lo, tile.lo, strides) * itemsize);
    return x;
  }

  Box tile;
  Shape strides;
  Exchange::Item& item;
  std::int64_t itemsize;
};

// Partial sums: a piece for each tile that overlaps the receiver's, from all holders of its summands.
class Reduction {
 public:
  Reduction(Addresses& at, int v, int dst)
      : from_(at, v), groups_(from_.groups(summand_axes(from_.layout(), *at.value(dst).layout))) {
    for (const std::vector<int>& g : groups_.positions) held_.emplace_back(from_.tiles(g));
  }

  void add_pieces(const Receiver& r) const {
    const int p = r.item.device, group = groups_.of_position[static_cast<std::size_t>(p)];
    const std::vector<int>& positions = groups_.positions[static_cast<std::size_t>(group)];
    const HeldBoxes& held = held_[static_cast<std::size_t>(group)];
    for (int b : held.meeting(r.tile)) {
      const Box box = intersect(held.boxes()[static_cast<std::size_t>(b)], r.tile);
      const std::vector<int>& owners = held.owners(b);
      const auto position = [&](int k) { return positions[static_cast<std::size_t>(k)]; };
      Exchange::Piece x = r.piece(box, from_.strides(position(owners[0])));
      x.sources.reserve(owners.size());
      for (int k : owners) x.sources.push_back(from_.source(p, position(k), box.lo));
      r.item.pieces.push_back(std::move(x));
    }
  }

 private:
  ReadValue from_;
  Groups groups_;
  std::vector<HeldBoxes> held_;
};

// Data that only moves. A partial sum comes from positions with the same summand.
class Movement {
 public:
  Movement(Addresses& at, int v) : from_(at, v), groups_(from_.groups(from_.layout().unreduced())) {
    const std::vector<int> shared = at.shared_memories();
    for (const std::vector<int>& g : groups_.positions) {
      std::vector<int> memory;
      if (!shared.empty())
        for (const int p : g) memory.push_back(shared[static_cast<std::size_t>(p)]);
      senders_.emplace_back(from_.tiles(g), std::move(memory));
    }
  }

  const ReadValue& from() const { return from_; }
  // The moves that fill `target` at position p; later ones take their load into account.
  const std::vector<BoxMove>& moves(int p, const Box& target) {
    const auto group = static_cast<std::size_t>(groups_.of_position[static_cast<std::size_t>(p)]);
    moves_.clear();
    senders_[group].fill(target, groups_.place[static_cast<std::size_t>(p)], moves_);
    for (BoxMove& m : moves_) {
      m.from = groups_.positions[group][static_cast<std::size_t>(m.from)];
      m.to = p;
    }
    return moves_;
  }
  // The same, regardless of earlier moves.
  const std::vector<BoxMove>& moves_alone(int p, const Box& target) {
    senders_[static_cast<std::size_t>(groups_.of_position[static_cast<std::size_t>(p)])].restart();
    return moves(p, target);
  }

 private:
  ReadValue from_;
  Groups groups_;
  std::vector<BoxSenders> senders_;  // by group
  std::vector<BoxMove> moves_;
};

void move_pieces(const Receiver& r, Movement& m) {
  const int p = r.item.device;
  for (const BoxMove& b : m.moves(p, r.tile)) {
    Exchange::Piece x = r.piece(b.box, m.from().strides(b.from));
    x.sources.push_back(m.from().source(p, b.from, b.box.lo));
    r.item.pieces.push_back(std::move(x));
  }
}

// The box `s` of an op's output, from any positions that hold its elements (of the same summand).
void box_pieces(const Receiver& r, const BoxSource& s, Movement& m) {
  const int p = r.item.device;
  for (const BoxMove& b : m.moves_alone(p, source_box(s))) {
    Box out = b.box;
    Shape first = b.box.lo, strides = m.from().strides(b.from);
    for (std::size_t d = 0; d < first.size(); d++) {
      const IndexRun run = run_within(s.in_lo[d], s.step[d], s.out.size[d], b.box.lo[d], b.box.size[d]);
      first[d] = s.in_lo[d] + s.step[d] * run.begin;
      out.lo[d] = s.out.lo[d] + run.begin;
      out.size[d] = run.count;
      strides[d] *= s.step[d];
    }
    if (out.empty()) continue;
    Exchange::Piece x = r.piece(out, strides);
    x.sources.push_back(m.from().source(p, b.from, first));
    r.item.pieces.push_back(std::move(x));
  }
}

// A scan's carry combines the totals of all non-empty tiles before its own, the farthest first.
class Carries {
 public:
  Carries(Addresses& at, const LocalStep& s, const FlatNode& n)
      : at_(at), totals_(at, s.in[0]), scanned_(s.in[1]), reverse_(n.attrs->step[0] < 0) {
    const Layout& l = totals_.layout();
    dim_ = static_cast<std::size_t>(n.attrs->dims[0] + std::ssize(n.in_types[0].shape));
    groups_ = totals_.groups(other_axes(l.unreduced(), l.order()->size()));
    for (std::vector<int>& g : groups_.positions)
      std::sort(g.begin(), g.end(),
                [&](int p, int q) { return reverse_ ? tile(q) < tile(p) : tile(p) < tile(q); });
  }

  void add_piece(const Receiver& r) const {
    const int p = r.item.device;
    std::vector<int> in_front;
    for (const int q :
         groups_.positions[static_cast<std::size_t>(groups_.of_position[static_cast<std::size_t>(p)])]) {
      if (q == p) break;
      if (at_.tile(scanned_, q).size[dim_] > 0) in_front.push_back(q);
    }
    r.item.fill = in_front.empty() || at_.tile(scanned_, p).size[dim_] == 0;
    if (r.item.fill) return;
    Exchange::Piece x = r.piece(r.tile, totals_.strides(p));
    for (const int q : in_front) x.sources.push_back(totals_.source(p, q, r.tile.lo));
    r.item.pieces.push_back(std::move(x));
  }

 private:
  std::int64_t tile(int p) const {
    const Layout* l = at_.value(scanned_).layout;
    return l->tile_index(static_cast<int>(dim_), at_.local(l, p));
  }

  Addresses& at_;
  ReadValue totals_;
  int scanned_;
  bool reverse_;
  std::size_t dim_ = 0;
  Groups groups_;
};

// What a device needs for its tile of an op assembled from boxes. `sources`: the operands that were read so far.
void assemble(const Receiver& r, const FlatNode& n, const LocalStep& s, std::map<int, Movement>& sources,
              Addresses& at) {
  std::int64_t covered = 0;
  if (!r.tile.empty())
    for (const BoxSource& b : n.op->boxes(n.call(), r.tile)) {
      if (b.out.empty()) continue;
      covered += b.out.elements();
      const int v = s.in[static_cast<std::size_t>(b.operand)];
      box_pieces(r, b, sources.try_emplace(v, at, v).first->second);
    }
  r.item.fill = covered < r.tile.elements();
}

// The same, for known boxes.
void assemble(const Receiver& r, int p, const Assembly& a, const LocalStep& s,
              std::map<int, Movement>& sources, Addresses& at) {
  for (const BoxSource& b : a.sources[static_cast<std::size_t>(p)]) {
    const int v = s.in[static_cast<std::size_t>(b.operand)];
    box_pieces(r, b, sources.try_emplace(v, at, v).first->second);
  }
  r.item.fill = a.fills[static_cast<std::size_t>(p)];
}

std::vector<Exchange::Item> empty_items(const Memory& memory) {
  std::vector<Exchange::Item> items(memory.refs.size());
  for (std::size_t i = 0; i < items.size(); i++) {
    items[i].device = memory.device[i];
    items[i].dst = memory.refs[i];
    items[i].dst_bytes = memory.bytes[i];
  }
  return items;
}

// Complex numbers are added as twice as many floats: along the last dimension if it is contiguous, else along an additional one.
void combine_parts(Exchange& e) {
  for (Exchange::Item& item : e.items)
    for (Exchange::Piece& x : item.pieces) {
      const bool rows = !x.extents.empty() && x.src_strides.back() == 1 && x.dst_strides.back() == 1;
      for (Shape* const strides : {&x.src_strides, &x.dst_strides})
        for (std::int64_t& s : *strides) s *= 2;
      if (!rows) x.extents.push_back(1), x.src_strides.push_back(1), x.dst_strides.push_back(1);
      x.extents.back() *= 2;
      x.src_strides.back() = x.dst_strides.back() = 1;
    }
  e.dtype = part_type(e.dtype);
}

bool lies_within(const Ref& r, const Ref& host, std::uint64_t bytes) {
  return r.base == host.base && host.offset <= r.offset && r.offset < host.offset + bytes;
}

// Receivers choose senders in order of position, whatever the order of the target's devices.
std::vector<Exchange::Item*> by_position(std::vector<Exchange::Item>& items) {
  std::vector<Exchange::Item*> sorted;
  sorted.reserve(items.size());
  for (Exchange::Item& item : items) sorted.push_back(&item);
  std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) { return a->device < b->device; });
  return sorted;
}

}  // namespace

// A device already has what lies in its own tile, and needs every element once from each holder of a summand.
std::pair<Exchange, std::int64_t> outline_exchange(const LocalStep& s, Addresses& at) {
  const int src = s.in[0], dst = s.out[0];
  const Layout &from = *at.value(src).layout, &to = *at.value(dst).layout;
  Exchange e;
  e.dtype = at.value(dst).type.dtype;
  e.transfer = s.transfer;
  e.items = empty_items(at.memory(dst));
  std::int64_t summands = 1, elements = 0, to_fill = 0;
  if (from.unreduced() != to.unreduced()) {
    e.reducer = from.reducer();
    for (const SubAxis a : reduced_axes(from, to)) summands *= a.size;
  }
  for (const Exchange::Item& item : e.items) {
    const Box& tile = at.tile(dst, item.device);
    elements = add_sizes(elements, mul_sizes(summands, tile.elements()) -
                                       intersect(tile, at.tile(src, item.device)).elements());
    to_fill = add_sizes(to_fill, tile.elements());
  }
  const Memory &source = at.memory(src), &target = at.memory(dst);
  for (std::size_t i = 0; i < source.refs.size(); i++) {
    const int p = source.device[i];
    const std::size_t host = at.instance(dst, p);
    if (!lies_within(source.refs[i], target.refs[host], target.bytes[host])) continue;
    const std::int64_t there = at.tile(src, p).elements();
    to_fill -= there;
    if (at.instance(src, target.device[host]) != i) elements -= there;
  }
  if (to_fill == 0) e.items.clear();
  return {std::move(e), mul_sizes(elements, static_cast<std::int64_t>(itemsize(e.dtype)))};
}

Exchange make_exchange(const LocalStep& s, const FlatGraph& g, Addresses& at) {
  Exchange e;
  const int dst = s.out[0];
  const Type& type = at.value(dst).type;
  e.dtype = type.dtype;
  e.transfer = s.transfer;
  e.items = empty_items(at.memory(dst));
  const auto each = [&](auto add) {
    for (Exchange::Item* item : by_position(e.items))
      add(Receiver(at.tile(dst, item->device), *item, static_cast<std::int64_t>(itemsize(type.dtype))));
  };
  const FlatNode* node = s.node < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(s.node)];
  if (s.assembly) {
    e.fill_bits = s.assembly->bits;
    std::map<int, Movement> sources;
    const Layout* const layout = at.value(dst).layout;
    each([&](const Receiver& r) {
      assemble(r, at.local(layout, r.item.device), *s.assembly, s, sources, at);
    });
  } else if (node && !node->op->boxes) {
    e.reducer = node->attrs->reducer;
    e.fill_bits = identity_bits(e.reducer, type.dtype);
    const Carries carries(at, s, *node);
    each([&](const Receiver& r) { carries.add_piece(r); });
  } else if (node) {
    const FlatNode& n = *node;
    e.fill_bits = n.attrs ? n.attrs->bits : 0;
    std::map<int, Movement> sources;
    each([&](const Receiver& r) { assemble(r, n, s, sources, at); });
  } else if (const Layout& from = *at.value(s.in[0]).layout;
             from.unreduced() != at.value(dst).layout->unreduced()) {
    e.reducer = from.reducer();
    const Reduction reduction(at, s.in[0], dst);
    each([&](const Receiver& r) { reduction.add_pieces(r); });
  } else {
    Movement movement(at, s.in[0]);
    each([&](const Receiver& r) { move_pieces(r, movement); });
  }
  if (e.reducer != Reducer::none && is_complex(e.dtype)) combine_parts(e);
  return e;
}

}  // namespace shardarray
