// Exchange steps: transfers between layouts, and ops that are assembled from boxes.
#include <algorithm>

#include "compile/halo.h"
#include "compile/memory.h"

namespace shardarray {

namespace {

std::int64_t dot(const Shape& a, const Shape& b) {
  std::int64_t s = 0;
  for (std::size_t k = 0; k < a.size(); k++) s += a[k] * b[k];
  return s;
}

Shape minus(const Shape& a, const Shape& b) {
  Shape r = a;
  for (std::size_t k = 0; k < r.size(); k++) r[k] -= b[k];
  return r;
}

struct Mover {
  Addresses& at;
  std::int64_t item;
  int dst;  // part value
  int p;    // position that receives
  Exchange::Item& to;

  // One source of a piece: element `first` (global coordinates) of v as position q holds it.
  Exchange::Source source(int v, int q, const Shape& first) const {
    const Box tile = at.stored_tile(v, q);
    Exchange::Source s;
    s.ref = at.ref(v, q);
    s.tile_bytes = at.memory(v).bytes[at.instance(v, q)];
    s.first = static_cast<std::uint64_t>(dot(minus(first, tile.lo), row_major(tile.size)) * item);
    s.ref.offset += s.first;
    s.device = at.same_instance(v, p, q) ? p : at.memory(v).device[at.instance(v, q)];
    return s;
  }

  Exchange::Piece piece(const Box& out, const Shape& src_strides) const {
    const Box tile = at.tile(dst, p);
    Exchange::Piece x;
    x.extents = out.size;
    x.src_strides = src_strides;
    x.dst_strides = row_major(tile.size);
    x.dst = to.dst;
    x.dst.offset += static_cast<std::uint64_t>(dot(minus(out.lo, tile.lo), x.dst_strides) * item);
    return x;
  }
};

// The positions that agree with p on every sub-axis for which `free` is false; free[c] for c in [pre, pre * size).
std::vector<int> agreeing(const std::vector<bool>& free, int p) {
  const int n = static_cast<int>(free.size());
  std::vector<SubAxis> fixed;
  for (int begin = 1, end; begin < n; begin = end) {
    for (end = begin; end < n && free[end] == free[begin];) end++;
    if (!free[begin]) fixed.push_back({begin, end / begin});
  }
  std::vector<int> positions;
  for (int q = 0; q < n; q++)
    if (std::all_of(fixed.begin(), fixed.end(),
                    [&](SubAxis a) { return coordinate(a, p, n) == coordinate(a, q, n); }))
      positions.push_back(q);
  return positions;
}

void mark(std::vector<bool>& free, const AxisList& list, bool as) {
  for (SubAxis a : list) std::fill_n(free.begin() + a.pre, a.pre * (a.size - 1), as);
}

// The positions that hold the summands of position p: they may differ from p in the dimensions and along what is reduced.
std::vector<int> summand_positions(const Layout& from, const Layout& to, int p) {
  std::vector<bool> free(static_cast<std::size_t>(from.order()->size()), false);
  for (const AxisList& d : from.dims()) mark(free, d, true);
  mark(free, from.unreduced(), true);
  mark(free, to.unreduced(), false);
  return agreeing(free, p);
}

// The same for data that only moves: partial sums come from where the same summand is.
std::vector<int> owner_positions(const Layout& from, int p) {
  std::vector<bool> free(static_cast<std::size_t>(from.order()->size()), true);
  mark(free, from.unreduced(), false);
  return agreeing(free, p);
}

void reduce_pieces(const Mover& m, int v, const Addresses& at) {
  const Layout& from = *at.value(v).layout;
  const Box target = at.tile(m.dst, m.p);
  std::vector<std::pair<Box, std::vector<int>>> parts;
  for (int q : summand_positions(from, *at.value(m.dst).layout, m.p)) {
    const Box tile = at.tile(v, q);
    auto same = std::find_if(parts.begin(), parts.end(), [&](const auto& x) { return x.first == tile; });
    if (same == parts.end()) parts.push_back({tile, {q}});
    else same->second.push_back(q);
  }
  for (const auto& [tile, positions] : parts) {
    const Box box = intersect(tile, target);
    if (box.empty()) continue;
    Exchange::Piece x = m.piece(box, row_major(at.stored_tile(v, positions[0]).size));
    for (int q : positions) x.sources.push_back(m.source(v, q, box.lo));
    m.to.pieces.push_back(std::move(x));
  }
}

// Who sends which box to whom, among the positions of `group`: sources[k] lies at group[k], targets[k] is needed there.
std::vector<BoxMove> moves_within(const std::vector<int>& group, const std::vector<Box>& sources,
                                  const std::vector<Box>& targets) {
  std::vector<BoxMove> moves = box_moves(sources, targets);
  for (BoxMove& b : moves) {
    b.from = group[b.from];
    b.to = group[b.to];
  }
  return moves;
}

// Who sends which box to whom, among those that hold one summand.
std::vector<BoxMove> moves_between(int v, int dst, const Addresses& at) {
  const int n = at.order()->size();
  std::vector<BoxMove> all;
  std::vector<bool> done(static_cast<std::size_t>(n), false);
  for (int p = 0; p < n; p++) {
    if (done[p]) continue;
    const std::vector<int> group = owner_positions(*at.value(v).layout, p);
    std::vector<Box> sources, targets;
    for (int q : group) {
      done[q] = true;
      sources.push_back(at.tile(v, q));
      targets.push_back(at.tile(dst, q));
    }
    const std::vector<BoxMove> moves = moves_within(group, sources, targets);
    all.insert(all.end(), moves.begin(), moves.end());
  }
  return all;
}

void move_pieces(const Mover& m, int v, const std::vector<BoxMove>& moves, const Addresses& at) {
  for (const BoxMove& b : moves) {
    if (b.to != m.p) continue;
    Exchange::Piece x = m.piece(b.box, row_major(at.stored_tile(v, b.from).size));
    x.sources.push_back(m.source(v, b.from, b.box.lo));
    m.to.pieces.push_back(std::move(x));
  }
}

// The part `s` of the output of an op made of boxes, from wherever the elements of the same summand are.
void box_pieces(const Mover& m, const BoxSource& s, int v, const Addresses& at) {
  const std::vector<int> group = owner_positions(*at.value(v).layout, m.p);
  const Box needed = source_box(s), nothing{needed.lo, Shape::filled(needed.lo.size(), 0)};
  std::vector<Box> sources, targets;
  for (int q : group) {
    sources.push_back(at.tile(v, q));
    targets.push_back(q == m.p ? needed : nothing);
  }
  for (const BoxMove& b : moves_within(group, sources, targets)) {
    if (b.to != m.p) continue;
    Box out = b.box;
    Shape first = b.box.lo, strides = row_major(at.stored_tile(v, b.from).size);
    for (std::size_t d = 0; d < first.size(); d++) {
      const std::int64_t step = s.step[d], size = b.box.size[d];
      if (step == 1) {
        out.lo[d] = s.out.lo[d] + b.box.lo[d] - s.in_lo[d];
      } else if (step == -1) {
        first[d] = b.box.lo[d] + size - 1;
        out.lo[d] = s.out.lo[d] + s.in_lo[d] - first[d];
      } else {  // a dimension that is read in steps is never cut
        out.lo[d] = s.out.lo[d];
        out.size[d] = s.out.size[d];
      }
      strides[d] *= step;
    }
    Exchange::Piece x = m.piece(out, strides);
    x.sources.push_back(m.source(v, b.from, first));
    m.to.pieces.push_back(std::move(x));
  }
}

}  // namespace

Exchange make_exchange(const PartStep& s, const FlatGraph& g, Addresses& at) {
  Exchange e;
  const int dst = s.out[0];
  const Type& type = at.value(dst).type;
  e.dtype = type.dtype;
  e.transfer = s.transfer;
  const FlatNode* n = s.node < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(s.node)];
  const bool reduces = !n && at.value(s.in[0]).layout->unreduced() != at.value(dst).layout->unreduced();
  const std::vector<BoxMove> moves = n || reduces ? std::vector<BoxMove>{} : moves_between(s.in[0], dst, at);
  if (reduces) e.reducer = at.value(s.in[0]).layout->reducer();
  if (n) e.fill_bits = n->attrs ? n->attrs->bits : 0;
  const Memory memory = at.memory(dst);
  for (std::size_t i = 0; i < memory.refs.size(); i++) {
    Exchange::Item item;
    item.device = memory.device[i];
    item.dst = memory.refs[i];
    item.dst_bytes = memory.bytes[i];
    const Mover m{at, static_cast<std::int64_t>(itemsize(type.dtype)), dst, item.device, item};
    if (n) {
      const Box tile = at.tile(dst, item.device);
      std::int64_t covered = 0;
      if (!tile.empty())
        for (const BoxSource& b : n->op->boxes(n->call(), tile)) {
          if (b.out.empty()) continue;
          covered += b.out.elements();
          box_pieces(m, b, s.in[static_cast<std::size_t>(b.operand)], at);
        }
      item.fill = covered < tile.elements();
    } else if (reduces) {
      reduce_pieces(m, s.in[0], at);
    } else {
      move_pieces(m, s.in[0], moves, at);
    }
    e.items.push_back(std::move(item));
  }
  return e;
}

}  // namespace shardarray
