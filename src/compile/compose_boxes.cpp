#include "compile/compose_boxes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/at.h"
#include "compile/halo.h"
#include "compile/step_kind.h"
#include "layout/box_moves.h"

namespace shardarray {

namespace {

constexpr std::size_t kMostSources = 256;  // per position

// `outer` reads a value of which `inner` is a part: where it reads that part. Empty if they are disjoint.
BoxSource composed(const BoxSource& outer, const BoxSource& inner) {
  BoxSource s = inner;
  s.out = outer.out;
  for (std::size_t d = 0; d < s.in_lo.size(); d++) {
    const IndexRun run =
        run_within(outer.in_lo[d], outer.step[d], outer.out.size[d], inner.out.lo[d], inner.out.size[d]);
    s.out.lo[d] += run.begin;
    s.out.size[d] = run.count;
    s.in_lo[d] += inner.step[d] * (outer.in_lo[d] + outer.step[d] * run.begin - inner.out.lo[d]);
    s.step[d] *= outer.step[d];
  }
  return s;
}

class Composer {
 public:
  Composer(Partition& p, const FlatGraph& g) : p_(p), g_(g) {}

  bool run() {
    if (std::none_of(p_.steps.begin(), p_.steps.end(), [&](const LocalStep& s) { return reads_boxes(s); }))
      return false;
    find_users();
    changed_ = share_windows();
    if (changed_) find_users();
    for (int s = static_cast<int>(p_.steps.size()) - 1; s >= 0; s--) pass(s);
    return changed_;
  }

 private:
  struct Plan {
    std::vector<int> in;
    Assembly assembly;
    Lacked lacked;
  };

  const FlatNode* node(const LocalStep& s) const { return node_of(s, g_); }
  LocalValue& result(const LocalStep& s) const { return at(p_.values, s.out[0]); }
  bool is_view(const LocalStep& s) const {
    const FlatNode* n = node(s);
    return n && n->op->form == Form::map && n->op->boxes;
  }
  // Whether the result is assembled from boxes into memory of its own.
  bool is_assembled(const LocalStep& s) const {
    const FlatNode* n = node(s);
    if (s.copy || s.assembly) return !s.copy;
    if (!n) return bool(result(s).windows);
    return n->op->trait != Trait::row_list && (n->op->form == Form::boxes || (is_view(s) && s.transfer >= 0));
  }
  bool reads_boxes(const LocalStep& s) const { return is_view(s) || is_assembled(s); }
  std::int64_t bytes(const LocalStep& s) const {
    return s.transfer < 0 ? 0 : at(p_.transfers, s.transfer).bytes;
  }

  void find_users() {
    users_.assign(p_.values.size(), {});
    is_output_.assign(p_.values.size(), false);
    for (int v : p_.outputs) at(is_output_, v) = true;
    for (int s = 0; s < static_cast<int>(p_.steps.size()); s++) add_users(s);
  }
  void add_users(int s) {
    for (int v : at(p_.steps, s).in)
      if (auto& u = at(users_, v); u.empty() || u.back() != s) u.push_back(s);
  }
  bool all_users_assemble(int v) const {
    const auto& users = at(users_, v);
    return !at(is_output_, v) &&
           std::all_of(users.begin(), users.end(), [&](int u) { return is_assembled(at(p_.steps, u)); });
  }

  // ---- one window for overlapping slices
  bool share_windows() {
    std::vector<std::vector<int>> found;  // in program order, whatever the addresses of layouts are
    std::map<std::pair<int, const Layout*>, std::size_t> number;
    for (int s = 0; s < static_cast<int>(p_.steps.size()); s++) {
      const LocalStep& step = at(p_.steps, s);
      if (!is_view(step) || all_users_assemble(step.out[0])) continue;
      const LocalValue &in = at(p_.values, step.in[0]), &out = result(step);
      if (in.windows || in.layout->order() != out.layout->order()) continue;
      const auto [it, fresh] = number.try_emplace({step.in[0], out.layout}, found.size());
      if (fresh) found.emplace_back();
      found[it->second].push_back(s);
    }
    std::map<int, LocalStep> before;  // step -> the step inserted before it
    for (const std::vector<int>& slices : found)
      if (std::optional<LocalStep> w = shared(slices)) {
        for (int s : slices) {
          at(p_.steps, s).in = w->out;
          at(p_.steps, s).transfer = -1;
        }
        before.emplace(slices[0], std::move(*w));
      }
    if (before.empty()) return false;
    std::vector<LocalStep> steps;
    for (int s = 0; s < static_cast<int>(p_.steps.size()); s++) {
      if (const auto w = before.find(s); w != before.end()) steps.push_back(std::move(w->second));
      steps.push_back(std::move(at(p_.steps, s)));
    }
    p_.steps = std::move(steps);
    for (int s = 0; s < static_cast<int>(p_.steps.size()); s++)
      for (int v : at(p_.steps, s).out) at(p_.values, v).step = s;
    return true;
  }

  // Whether it has to be stored: it is an output, or a reader cannot compute it in its loop.
  bool is_stored(const LocalStep& slice) const {
    const auto& users = at(users_, slice.out[0]);
    return at(is_output_, slice.out[0]) || std::any_of(users.begin(), users.end(), [&](int u) {
             const StepKind k = step_kind(p_, g_, u);
             return k == StepKind::single || k == StepKind::alias;
           });
  }

  // The step that makes the window of these slices, if that moves less, or as much and stores less.
  std::optional<LocalStep> shared(const std::vector<int>& slices) {
    const LocalStep& first = at(p_.steps, slices[0]);
    const int v = first.in[0];
    const Layout* const layout = result(first).layout;
    const int made_by = at(p_.values, v).step;
    const auto& users = at(users_, v);
    const bool is_last = made_by >= 0 && is_assembled(at(p_.steps, made_by)) && node(at(p_.steps, made_by)) &&
                         !at(is_output_, v) && users.size() == slices.size();
    const auto moves =
        std::find_if(slices.begin(), slices.end(), [&](int s) { return at(p_.steps, s).transfer >= 0; });
    const LocalStep* moving = moves == slices.end() ? nullptr : &at(p_.steps, *moves);
    if (!moving && is_last && at(p_.steps, made_by).transfer >= 0) moving = &at(p_.steps, made_by);
    if (!moving || slices.size() == 1) return std::nullopt;
    std::vector<Box> room;
    auto assembly = std::make_shared<Assembly>();
    std::int64_t stored = 0, stored_now = 0, moved_now = 0;
    const LocalValue source = at(p_.values, v);
    Lacked lacked(layout->order()->size(), source.type.dtype);
    for (int s : slices) moved_now += bytes(at(p_.steps, s));
    for (int p = 0; p < layout->order()->size(); p++) {
      std::vector<Box> read;
      for (int s : slices) {
        const LocalStep& step = at(p_.steps, s);
        const Box tile = held_box(result(step), p);
        if (tile.empty()) continue;
        for (const BoxSource& b : node(step)->op->boxes(node(step)->call(), tile))
          read.push_back(source_box(b));
        if (step.transfer >= 0) stored_now += tile.elements();
        if (is_stored(step)) stored += tile.elements();
      }
      const Box held = held_box(at(p_.values, v), p);
      if (is_last) stored_now += held.elements();
      room.push_back(read.empty() ? Box{held.lo, Shape::filled(held.lo.size(), 0)} : around(read));
      stored += room.back().elements();
      auto& sources = assembly->sources.emplace_back();
      assembly->fills.push_back(false);
      for (const Box& b : disjoint(read)) {
        sources.push_back(identity(b));
        lacked.read(p, sources.back(), held);
      }
    }
    LocalStep w{-1, -1, {v}, {static_cast<int>(p_.values.size())}};
    w.assembly = assembly;
    p_.values.push_back(
        {source.type, layout, -1, -1, std::make_shared<const std::vector<Box>>(std::move(room))});
    std::int64_t moved = lacked.most_bytes();
    if (is_last) {
      const std::optional<Plan> plan = through(w, at(p_.steps, made_by));
      moved_now += bytes(at(p_.steps, made_by));
      moved = plan ? plan->lacked.most_bytes() : moved + bytes(at(p_.steps, made_by));
    }
    if (moved > moved_now || (moved == moved_now && stored >= stored_now)) {
      p_.values.pop_back();
      return std::nullopt;
    }
    w.transfer = transfer_like(*moving, source.type, lacked);
    return w;
  }

  static Box around(const std::vector<Box>& boxes) {
    Box all = boxes[0];
    for (const Box& b : boxes)
      for (std::size_t d = 0; d < b.lo.size(); d++) {
        const std::int64_t end = std::max(all.lo[d] + all.size[d], b.lo[d] + b.size[d]);
        all.lo[d] = std::min(all.lo[d], b.lo[d]);
        all.size[d] = end - all.lo[d];
      }
    return all;
  }

  // -1 if nothing moves.
  int transfer_like(const LocalStep& s, const Type& moved, const Lacked& lacked) {
    if (lacked.most_bytes() == 0) return -1;
    Transfer t = at(p_.transfers, s.transfer);
    t.shape = moved.shape;
    lacked.tell(t);
    p_.transfers.push_back(std::move(t));
    return static_cast<int>(p_.transfers.size()) - 1;
  }

  // ---- what is assembled is read from its sources
  // Steps that assemble what s makes read what s reads instead: of a view each one, of a stored result all or none. Its views are then
  // assembled too, if that moves less.
  void pass(int s) {
    const LocalStep& step = at(p_.steps, s);
    if (!reads_boxes(step) || result(step).windows || !node(step)) return;
    const bool stored = is_assembled(step);
    const int v = step.out[0];
    if (stored && at(is_output_, v)) return;
    std::int64_t before = bytes(step), after = 0;
    std::vector<std::pair<int, Plan>> plans;
    bool stores_more = false;
    const std::vector<int> users = at(users_, v);
    for (int u : users) {
      const LocalStep& user = at(p_.steps, u);
      const bool assembles = is_assembled(user) || (stored && is_view(user));
      std::optional<Plan> plan = assembles ? through(user, step) : std::nullopt;
      if (!plan) {
        if (stored) return;
        continue;
      }
      stores_more |= !is_assembled(user) || !plans.empty();
      before += bytes(user);
      after += plan->lacked.most_bytes();
      plans.emplace_back(u, std::move(*plan));
    }
    if (stored && (stores_more ? after >= before : after > before)) return;
    for (auto& [u, plan] : plans) read_instead(u, step, std::move(plan));
    for (const auto& [u, plan] : plans) pass(u);  // now they may lack more than their readers would
  }

  void read_instead(int u, const LocalStep& step, Plan plan) {
    changed_ = true;
    LocalStep& user = at(p_.steps, u);
    const bool moved = user.transfer >= 0;
    user.transfer = transfer_like(
        moved ? user : step, at(p_.values, plan.in.empty() ? user.out[0] : plan.in[0]).type, plan.lacked);
    const std::vector<int> read = std::exchange(user.in, std::move(plan.in));
    user.assembly = std::make_shared<const Assembly>(std::move(plan.assembly));
    for (int v : user.in) {
      auto& users = at(users_, v);
      if (std::find(users.begin(), users.end(), u) == users.end()) users.push_back(u);
    }
    for (int v : read)
      if (std::find(user.in.begin(), user.in.end(), v) == user.in.end()) forget(u, v);
  }

  // Step u no longer reads v. If v has no readers left, its step reads nothing either.
  void forget(int u, int v) {
    std::erase(at(users_, v), u);
    const int s = at(p_.values, v).step;
    if (s < 0 || !at(users_, v).empty() || at(is_output_, v) || !reads_boxes(at(p_.steps, s))) return;
    for (int x : at(p_.steps, s).in) forget(s, x);
  }

  Assembly assembly_of(const LocalStep& s) const {
    if (s.assembly) return *s.assembly;
    Assembly a;
    const FlatNode* n = node(s);
    a.bits = n && n->attrs ? n->attrs->bits : 0;
    for (int p = 0; p < result(s).layout->order()->size(); p++) {
      const Box tile = held_box(result(s), p);
      std::vector<BoxSource> sources;
      if (!tile.empty()) {
        if (n) sources = n->op->boxes(n->call(), tile);
        else sources.push_back(identity(tile));
      }
      std::int64_t covered = 0;
      for (const BoxSource& b : sources) covered += b.out.elements();
      a.fills.push_back(covered < tile.elements());
      a.sources.push_back(std::move(sources));
    }
    return a;
  }

  // How `user` is assembled from the operands of `made` instead of its result.
  std::optional<Plan> through(const LocalStep& user, const LocalStep& made) const {
    const int v = made.out[0];
    const DeviceOrder* const order = result(user).layout->order();
    const auto elsewhere = [&](int x) {
      return at(p_.values, x).layout->order() != order || at(p_.values, x).windows;
    };
    if (std::any_of(user.in.begin(), user.in.end(), elsewhere) ||
        std::any_of(made.in.begin(), made.in.end(), elsewhere))
      return std::nullopt;
    if (made.assembly && user.transfer >= 0) return std::nullopt;  // known only for each device's own tile
    const FlatNode& n = *node(made);
    const Call call = n.call();
    const std::uint64_t bits = made.assembly ? made.assembly->bits : n.attrs ? n.attrs->bits : 0;
    Plan plan{{}, {}, Lacked(order->size(), result(user).type.dtype)};
    const auto operand = [&](int x) {
      const auto there = std::find(plan.in.begin(), plan.in.end(), x);
      if (there != plan.in.end()) return static_cast<int>(there - plan.in.begin());
      plan.in.push_back(x);
      return static_cast<int>(plan.in.size()) - 1;
    };
    const Assembly old = assembly_of(user);
    Assembly& a = plan.assembly;
    const bool filled = std::find(old.fills.begin(), old.fills.end(), true) != old.fills.end();
    a.bits = filled ? old.bits : bits;
    a.fills = old.fills;
    for (int p = 0; p < order->size(); p++) {
      auto& sources = a.sources.emplace_back();
      const auto add = [&](BoxSource s, int x) {
        s.operand = operand(x);
        plan.lacked.read(p, s, held_box(at(p_.values, x), p));
        sources.push_back(std::move(s));
      };
      for (const BoxSource& s : at(old.sources, p)) {
        if (at(user.in, s.operand) != v) {
          add(s, at(user.in, s.operand));
          continue;
        }
        std::int64_t covered = 0;
        for (const BoxSource& t :
             made.assembly ? at(made.assembly->sources, p) : n.op->boxes(call, source_box(s))) {
          BoxSource c = composed(s, t);
          if (c.out.empty()) continue;
          covered += c.out.elements();
          add(std::move(c), at(made.in, t.operand));
        }
        if (covered == s.out.elements()) continue;
        if (a.bits != bits) return std::nullopt;
        a.fills[static_cast<std::size_t>(p)] = true;
      }
      if (sources.size() > kMostSources) return std::nullopt;
    }
    return plan;
  }

  Partition& p_;
  const FlatGraph& g_;
  std::vector<std::vector<int>> users_;  // by value
  std::vector<bool> is_output_;
  bool changed_ = false;
};

}  // namespace

bool compose_boxes(Partition& p, const FlatGraph& g) { return Composer(p, g).run(); }

}  // namespace shardarray
