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
  int dst;          // part value
  int p;            // position that receives
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

// The positions that hold the summands of position p: they agree with p on every sub-axis that `from` does not use.
std::vector<int> summand_positions(const Layout& from, const Layout& to, int p) {
  const int n = from.order()->size();
  std::vector<bool> used(static_cast<std::size_t>(n) + 1, false);  // by pre, per prime step: mark ranges
  auto mark = [&](const AxisList& list) {
    for (SubAxis a : list)
      for (int c = a.pre; c < a.pre * a.size; c++) used[static_cast<std::size_t>(c)] = true;
  };
  for (const AxisList& d : from.dims()) mark(d);
  AxisList reduced;
  for (SubAxis a : from.unreduced())
    if (std::find(to.unreduced().begin(), to.unreduced().end(), a) == to.unreduced().end()) reduced.push_back(a);
  mark(reduced);
  // the unused sub-axes, as maximal runs between used ones
  std::vector<SubAxis> unused;
  AxisList all = reduced;
  for (const AxisList& d : from.dims()) all.insert(all.end(), d.begin(), d.end());
  std::sort(all.begin(), all.end());
  int next = 1;
  for (SubAxis a : all) {
    if (a.pre > next) unused.push_back({next, a.pre / next});
    next = a.pre * a.size;
  }
  if (next < n) unused.push_back({next, n / next});
  std::vector<int> positions;
  for (int q = 0; q < n; q++)
    if (std::all_of(unused.begin(), unused.end(), [&](SubAxis a) { return coordinate(a, p, n) == coordinate(a, q, n); }))
      positions.push_back(q);
  return positions;
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

void move_pieces(const Mover& m, int v, const std::vector<BoxMove>& moves, const Addresses& at) {
  for (const BoxMove& b : moves) {
    if (b.to != m.p) continue;
    Exchange::Piece x = m.piece(b.box, row_major(at.stored_tile(v, b.from).size));
    x.sources.push_back(m.source(v, b.from, b.box.lo));
    m.to.pieces.push_back(std::move(x));
  }
}

// The part `s` of the output of an op made of boxes, from wherever its elements are.
void box_pieces(const Mover& m, const BoxSource& s, int v, const Addresses& at, int devices) {
  const Box needed = source_box(s);
  std::vector<Box> sources, targets(static_cast<std::size_t>(devices), Box{needed.lo, Shape::filled(needed.lo.size(), 0)});
  for (int q = 0; q < devices; q++) sources.push_back(at.tile(v, q));
  targets[static_cast<std::size_t>(m.p)] = needed;
  if (s.out.lo.empty()) targets[static_cast<std::size_t>(m.p)] = needed;
  for (const BoxMove& b : box_moves(sources, targets)) {
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
  const int dst = s.out[0], devices = at.order()->size();
  const Type& type = at.value(dst).type;
  e.dtype = type.dtype;
  e.transfer = s.transfer;
  const FlatNode* n = s.node < 0 ? nullptr : &g.nodes[static_cast<std::size_t>(s.node)];
  const bool reduces = !n && at.value(s.in[0]).layout->unreduced() != at.value(dst).layout->unreduced();
  std::vector<BoxMove> moves;
  if (!n && !reduces) {
    std::vector<Box> sources, targets;
    for (int q = 0; q < devices; q++) {
      sources.push_back(at.tile(s.in[0], q));
      targets.push_back(at.tile(dst, q));
    }
    moves = box_moves(sources, targets);
  }
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
          box_pieces(m, b, s.in[static_cast<std::size_t>(b.operand)], at, devices);
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
