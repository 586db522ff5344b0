#include "execute/places.h"

#include "compile/assignment.h"
#include "ops/record.h"

namespace shardarray {

namespace {

bool is_elsewhere(const Place& a, const Place& b) {
  return a.kind == Place::Kind::bound && b.kind == Place::Kind::bound &&
         a.order->sorted() != b.order->sorted();
}

Place bound_to(const DeviceOrder* order, double weight) { return {Place::Kind::bound, order, weight}; }

// The place of what is computed from values at both.
Place meet(const Place& a, const Place& b) {
  using enum Place::Kind;
  if (a.kind == free && b.kind == free && a.order != b.order) return {mixed};
  if (a.kind == bound && b.kind == bound) return b.weight > a.weight ? b : a;
  return b.kind > a.kind ? b : a;
}

// Whether one program can compute both, each placed as if it were computed alone.
bool agree(const Place& a, const Modes& in_a, const Place& b, const Modes& in_b) {
  using enum Place::Kind;
  if (a.kind == bound || b.kind == bound) return a.kind == b.kind && a.order == b.order;
  if (a.kind == free && b.kind == free) return a.order == b.order;
  return in_a.default_device == in_b.default_device && (a.kind == b.kind || a.kind == open || b.kind == open);
}

}  // namespace

Place Places::of(const Array& a) {
  using enum Place::Kind;
  if (!a.node()->evaluated()) return of(a.node());
  const Value* v = a.node()->out()[a.index()].value.get();
  if (!v || v->number) return {};
  if (is_bound(*v))
    return bound_to(v->layout->order(), static_cast<double>(num_elements(a.node()->type(a.index()).shape)));
  return {free, v->layout->order()};
}

std::optional<Move> Places::add(Node* n) {
  Place here;
  for (const Array& a : n->in())
    if (a.has_value()) here = meet(here, of(a));
  std::optional<Move> move;
  std::vector<Array> all;
  const auto operands = [&] { return std::vector<Array>(n->in().begin(), n->in().end()); };
  if (n->op->trait == Trait::beside) {
    here = of(n->in()[0]);
    const Place home = of(n->in()[1]);
    if (is_elsewhere(here, home)) {
      here = home;
      move = Move{handle(n), operands()};
    }
  } else if (n->op->form == Form::constraint) {
    const auto lead = n->attrs().lo.empty() ? 0 : static_cast<int>(n->attrs().lo[0]);
    const Place to = bound_to(
        layout_of(*n->attrs().sharding, static_cast<int>(n->type().shape.size()) - lead)->order(), 0.5);
    if (is_elsewhere(here, to)) {
      here = to;
      move = Move{handle(n), operands()};
    } else {
      here = meet(here, to);
    }
  } else if (const CalledDevices called = called_devices(*n); called.order) {
    const Place home = bound_to(called.order, 0.5);
    if (called.of_pmap) {
      all = operands();
      bool apart = false;
      for (Array& a : all) {
        if (a.has_value() && is_elsewhere(of(a), home)) apart = true;
        else a = Array();
      }
      if (apart) {
        here = home;
        move = Move{handle(n), std::move(all), called.order};
      }
    }
    here = meet(here, home);
  }
  number_.insert(n).first = static_cast<int>(places_.size());
  places_.push_back(here);
  return move;
}

bool may_move(const Node* n) {
  return n->op->form == Form::constraint || !n->attrs().graphs.empty() || n->op->trait == Trait::beside;
}

bool lie_together(std::span<Node* const> nodes) {
  const Modes& modes = *nodes[0]->modes;
  const DeviceOrder* common = nullptr;
  for (const Node* n : nodes) {
    if (may_move(n) || (n->modes != &modes && n->modes->default_device != modes.default_device)) return false;
    for (const Array& a : n->in()) {
      const Value* v = a.node()->evaluated() ? a.node()->out()[a.index()].value.get() : nullptr;
      if (!v || v->number) continue;
      if (is_bound(*v) || (common && common != v->layout->order())) return false;
      common = v->layout->order();
    }
  }
  return true;
}

std::vector<Array> first_place(std::span<Node* const> nodes, const std::vector<bool>& held) {
  std::vector<Array> chosen;
  Places places(nodes.size());
  PointerTable waits(nodes.size());  // whether it depends on a held node that is placed elsewhere
  Place common;
  const Modes* modes = nullptr;
  for (std::size_t k = 0; k < nodes.size(); k++) {
    Node* const n = nodes[k];
    places.add(n);
    int late = 0;
    for (const Array& a : n->in())
      if (a.has_value()) late |= waits[a.node()];
    if (held[k]) {
      const Place& here = places.of(n);
      if (!modes) modes = n->modes, common = here;
      late |= !agree(common, *modes, here, *n->modes);
      if (!late) {
        common = meet(common, here);
        chosen.push_back(handle(n));
      }
    }
    waits.insert(n).first = late;
  }
  return chosen;
}

}  // namespace shardarray
