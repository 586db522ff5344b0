// Places the nodes one by one, each by its cheapest strategy.
#include "compile/partitioner.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/at.h"
#include "compile/branches.h"
#include "compile/compose_boxes.h"
#include "compile/halo.h"
#include "compile/in_place.h"
#include "compile/linearities.h"
#include "compile/other_ways.h"
#include "compile/scan.h"
#include "compile/strict.h"
#include "compile/used_steps.h"
#include "compile/whole_axes.h"
#include "ops/asked.h"
#include "ops/record.h"
#include "runtime/half_floats.h"

namespace shardarray {

namespace {

class Partitioner {
 public:
  Partitioner(FlatGraph& g, const CompileInput& in, const Propagation& propagation, const NodeFacts& facts,
              const Placing& how)
      : g_(g),
        in_(in),
        sub_axes_(propagation.sub_axes),
        search_(*how.search),
        how_(how),
        rules_(propagation.rules),
        preferences_(*how.preferences),
        facts_(facts),
        layouts_(search_.layouts()),
        values_(p_, in, search_.reshards()) {
    p_.of_value.assign(g.types.size(), -1);
    p_.forwards = !in.is_run;
  }

  Trial run() {
    for (std::size_t k = 0; k < g_.inputs.size(); k++) add_input(static_cast<int>(k));
    const std::size_t given = g_.nodes.size(), given_values = g_.types.size();
    const auto scans = std::ranges::count_if(rules_, [](auto& r) { return r.has(Role::scan); });
    g_.nodes.reserve(g_.nodes.size() + 2 * static_cast<std::size_t>(scans));  // references stay valid
    for (int i = 0; i < static_cast<int>(given); i++) visit(i);
    p_.of_value.resize(g_.types.size(), -1);
    for (std::size_t k = 0; k < g_.outputs.size(); k++) p_.outputs.push_back(output(k));
    p_ = used_steps(std::move(p_), g_);
    if (compose_boxes(p_, g_)) p_ = used_steps(std::move(p_), g_);
    Trial t{std::move(p_),    g_.take_tail(given, given_values), work_, {}, std::move(movers_),
            std::move(moved_)};
    t.decided.insert(t.decided.end(), others_.begin(), others_.end());
    for (const auto& needed : needed_) t.needed.push_back(needed.size() == 1 ? needed[0] : nullptr);
    return t;
  }

 private:
  void add_input(int k) {
    const int v = at(g_.inputs, k);
    p_.inputs.push_back(values_.add(at(g_.types, v), at(in_.inputs, k), -1));
    at(p_.values, p_.inputs.back()).input = k;
    at(p_.of_value, v) = p_.inputs.back();
  }

  Making making_of(int v) const { return at(facts_.makings, at(g_.producer, v)); }
  bool is_anywhere(int v) const { return making_of(v) == Making::anywhere; }

  // Flat value v in `layout`: as it is, made there, or moved.
  int require(int v, const Layout* layout, const MoveReason& why) {
    if (making_of(v) != Making::once) {
      const auto made = [&](const Layout* l) { return make(v, l, why.by, why.asked); };
      return adds_nothing(v, layout) ? made(layout) : values_.move(made(whole_sums(layout)), layout, why);
    }
    std::vector<const Layout*>& all = at(needed_, v);
    if (std::ranges::find(all, layout) == all.end()) all.push_back(layout);
    return values_.move(at(p_.of_value, v), layout, why);
  }
  int require_operand(const FlatNode& n, std::size_t k, const Layout* layout, bool asked,
                      const Text* others) {
    const int v = n.in[k], maker = at(g_.producer, v);
    const Text reason = [&] { return needed_as(n, k, layout); };
    return require(v, layout,
                   {reason, n, line_of(n), asked || at(asked_, v), others, k, &at(g_.nodes, maker)});
  }

  // Whether each device may have all of a free value as its part of `layout`: as a summand only if it is zero.
  bool adds_nothing(int v, const Layout* layout) const {
    return layout->unreduced().empty() || layout->reducer() != Reducer::sum || literal(v, g_) == 0;
  }

  // The layout of a result for which nothing else is requested.
  const Layout* preferred(int v) {
    return is_anywhere(v) ? layouts_.of(at(preferences_.dims, v)) : strategy_of(at(g_.producer, v)).out[0];
  }

  int part_of(int v, const FlatNode& by) {
    return making_of(v) == Making::once ? at(p_.of_value, v) : make(v, preferred(v), by, at(asked_, v));
  }

  // v in `layout`, made from operands in the layouts which that needs.
  int make(int v, const Layout* layout, const FlatNode& by, bool asked) {
    auto [it, fresh] = made_.try_emplace({v, layout}, -1);
    if (!fresh) return it->second;
    const int node = at(g_.producer, v);
    const FlatNode& n = at(g_.nodes, node);
    if (n.op->trait == Trait::like) return it->second = make(n.in[0], layout, by, asked);
    if (!adds_nothing(v, layout))
      throw InternalError(fmt::format(
          "partition: {} would be one part of a sum on every device. Please report this.", n.op->name));
    LocalStep s{node, -1, {}, {}};
    for (std::size_t k = 0; k < n.in.size(); k++)
      s.in.push_back(require_operand(n, k, layout_of_operand(at(rules_, node), k, *layout), asked, nullptr));
    for (std::size_t k = 0; k < n.out_types.size(); k++) {
      s.out.push_back(values_.add(n.out_types[k], layout, static_cast<int>(p_.steps.size())));
      made_[{n.first_out + static_cast<int>(k), layout}] = s.out.back();
    }
    p_.steps.push_back(std::move(s));
    return made_.at({v, layout});
  }

  detail::RecordedLine line_of(const FlatNode& n) const { return facts_.uses.line_of(n, g_); }

  void visit(int i) {
    const FlatNode& n = at(g_.nodes, i);
    if (at(facts_.makings, i) == Making::at_use) at(asked_, n.first_out) = takes_asked_only(n);
    if (n.op->form == Form::leaf || at(facts_.makings, i) != Making::once) return;
    if (n.op->form == Form::collective)
      throw CompileError(
          fmt::format("{} ({}:{}): a collective is only possible inside the map that binds its axis.",
                      n.op->name, n.where.file, n.where.line));
    if (n.op->form == Form::constraint) {
      const Layout* to = n.attrs->hi.empty() ? constraint_layout(n, in_.order)
                                             : layouts_.of(at(preferences_.dims, n.first_out));
      at(p_.of_value, n.first_out) =
          require(n.in[0], to, {[] { return "asked for by a sharding constraint"; }, n, line_of(n), true});
      return;
    }
    if (n.op->trait == Trait::asked && at(p_.of_value, n.in[0]) >= 0) {
      at(p_.of_value, n.first_out) = at(p_.of_value, n.in[0]);
      at(asked_, n.first_out) = true;
      return;
    }
    if (n.op->trait == Trait::behind) emit_behind(i);
    else if (n.op->form == Form::iterate) emit_iteration(i);
    else if (n.op->form == Form::choose || n.op->form == Form::repeat) emit_branches(i);
    else emit_by_cost(i, strategy_of(i));
  }

  void emit_by_cost(int i, const Strategy& d) {
    (d.moved > 0 ? movers_ : others_).push_back(i);
    at(moved_, i) = d.moved;
    const RunnerUp other = how_.tells ? runner_up_of(i, d) : RunnerUp();
    std::string note =
        other.next.empty() ? "" : fmt::format("moves {}; next best {}", other.taken, other.next);
    if (d.narrowed > 0)
      note += fmt::format("{}not all of {:.0f} strategies compared", note.empty() ? "" : "; ", d.narrowed);
    if (!note.empty()) p_.notes[i] = std::move(note);
    const std::size_t before = p_.transfers.size();
    const bool is_strict = at(g_.nodes, i).modes->policy == Policy::strict;
    emit(i, d, is_strict ? Text([&] { return other_ways(state_of(i), d, search_, in_); }) : nullptr);
    for (std::size_t t = before; t < p_.transfers.size(); t++) p_.transfers[t].runner_up = other.next;
  }

  RunnerUp runner_up_of(int i, const Strategy& d) {
    const NodeState s = state_of(i);
    if (std::ranges::find(how_.detours, i) != how_.detours.end()) return {};  // it saves more at others
    const auto [it, fresh] = runner_ups_.try_emplace(key_of(s));
    if (fresh) it->second = runner_up(s, d, search_, in_);
    return it->second;
  }

  // The operand under another name, whose readers run after the other operands.
  void emit_behind(int i) {
    const FlatNode& n = at(g_.nodes, i);
    LocalStep s{i, -1, {}, {}};
    for (int v : n.in)
      if (v == n.in[0] || !is_anywhere(v)) s.in.push_back(part_of(v, n));
    const Layout* l = at(p_.values, s.in[0]).layout;
    s.out = {values_.add(n.out_types[0], l, static_cast<int>(p_.steps.size()))};
    at(p_.of_value, n.first_out) = s.out[0];
    p_.steps.push_back(std::move(s));
  }

  std::vector<const Layout*> operand_layouts(const FlatNode& n) {
    std::vector<const Layout*> r;
    for (int v : n.in) r.push_back(is_anywhere(v) ? nullptr : expressible(v, n));
    return r;
  }

  void emit_iteration(int i) {
    const FlatNode& n = at(g_.nodes, i);
    PlacedIteration placed = place_iteration(n, g_, operand_layouts(n), in_);
    const Iteration& it = placed.called.iteration;
    p_.notes[i] = fmt::format("{} times {} steps", it.length, placed.called.compiled->program->steps.size());
    emit(i, {{}, {}, std::move(placed.in), placed.out});
    const CalledIteration& called = p_.iterations[i] = std::move(placed.called);
    copy_written_over(p_, values_, g_);
    if (called.iteration.length > 1) give_second_buffers(p_, values_, called.carries);
  }

  // A repetition also has a buffer for its condition's result.
  void emit_branches(int i) {
    const FlatNode& n = at(g_.nodes, i);
    PlacedBranches placed = place_branches(n, g_, operand_layouts(n),
                                           asked_summands(sub_axes_, preferences_, n), facts_.uses, in_);
    p_.notes[i] = placed.called.note();
    emit(i, {{}, {}, std::move(placed.in), placed.out});
    const CalledBranches& called = p_.branches[i] = std::move(placed.called);
    copy_written_over(p_, values_, g_);
    if (n.op->form == Form::choose) return;
    give_second_buffers(p_, values_, called.carries);
    p_.steps.back().out.push_back(values_.add({{}, DType::bool_, false}, Layout::replicated(in_.order, 0),
                                              static_cast<int>(p_.steps.size()) - 1));
  }

  // An operand's layout in the search; if sub-axes cannot express it, the operand is moved at once.
  const Layout* expressible(int v, const FlatNode& by) {
    if (const int node = at(g_.producer, v); at(facts_.makings, node) == Making::at_use)
      return layout_of_result(at(rules_, node), *expressible(at(g_.nodes, node).in[0], by));
    int& part = at(p_.of_value, v);
    const Layout* l = at(p_.values, part).layout;
    if (layouts_.can_express(l)) return l;
    results_.try_emplace(v, part);
    part = values_.move(part, sub_axes_.nearest(*l),
                        {[] { return "its placement fits into no common mesh with the others"; }, by,
                         line_of(by), at(asked_, v)});
    return at(p_.values, part).layout;
  }

  NodeState state_of(int i) {
    const FlatNode& n = at(g_.nodes, i);
    const Rule& rule = at(rules_, i);
    const std::vector<Linear>& linear = at(facts_.linear, i);
    NodeState s{&n, &rule, at(facts_.kinds, i), {}, {}, {}};
    s.operands.reserve(n.in.size());
    for (std::size_t k = 0; k < n.in.size(); k++) {
      const int v = n.in[k];
      TermState t;
      t.type = at(g_.types, v);
      t.factors = &rule.operands[k];
      t.free = is_anywhere(v);
      if (!t.free) {
        t.layout = expressible(v, n);
        t.source = source_of(v, n);
        t.can_carry = linear[k] != Linear::no;
        t.should_stay = n.modes->policy == Policy::strict && !at(asked_, v);
      }
      s.operands.push_back(std::move(t));
    }
    for (std::size_t k = 0; k < rule.results.size(); k++) {
      const int v = n.first_out + static_cast<int>(k);
      TermState t;
      t.type = at(g_.types, v);
      t.factors = &rule.results[k];
      t.layout = layouts_.of(at(preferences_.dims, v), at(preferences_.unreduced, v), Reducer::sum);
      t.weight = at(preferences_.closed, v) || at(preferences_.from_closed, v) ? 1.0 : 1e-3;
      s.results.push_back(std::move(t));
    }
    s.pending = passing_sums(s, n, linear);
    for (std::size_t k = 0; k < n.in.size(); k++)
      s.operands[k].can_split = !s.pending.empty() && linear[k] == Linear::joint;
    s.is_asked = std::ranges::any_of(n.in, [&](int v) { return at(asked_, v); });
    return s;
  }

  TermSource source_of(int v, const FlatNode& by) {
    TermSource s;
    for (; making_of(v) == Making::at_use; v = at(g_.nodes, at(g_.producer, v)).in[0])
      s.rules.push_back(&at(rules_, at(g_.producer, v)));
    s.type = at(g_.types, v);
    s.layout = expressible(v, by);
    for (int c : values_.copies_of(at(p_.of_value, v)))
      if (const Layout* l = at(p_.values, c).layout; l != s.layout && l->order() == s.layout->order())
        s.copies.push_back(l);
    if (const Layout* l = how_.copies.empty() ? nullptr : at(how_.copies, v);
        l && std::ranges::find(s.copies, l) == s.copies.end())
      s.copies.push_back(l);
    return s;
  }

  // The sub-axes of partial sums that may pass through: all joint operands carry the same ones, or one `each` operand carries them. If the
  // program requests summands, they pass whoever else uses them, also beside operands that are not partial.
  SubAxisList passing_sums(const NodeState& s, const FlatNode& n, const std::vector<Linear>& linear) const {
    if (is_half(n.out_types[0].dtype)) return {};  // combined in float32, rounded once
    const Layout* pending = nullptr;
    int carriers = 0, joint = 0;
    bool each = false;
    const bool is_wanted = at(facts_.wanted, n.first_out);
    for (std::size_t k = 0; k < s.operands.size(); k++) {
      const TermState& t = s.operands[k];
      const Linear l = linear[k];
      joint += l == Linear::joint;
      if (t.free || t.layout->unreduced().empty()) continue;
      if (t.layout->reducer() != Reducer::sum || l == Linear::no) return {};
      if (n.modes->reproducible || at(g_.nodes, at(g_.producer, n.in[k])).modes->reproducible)
        return {};  // a sum that is scaled later has other bits
      if (pending && t.layout->unreduced() != pending->unreduced()) return {};
      if (num_elements(n.out_types[0].shape) > num_elements(t.type.shape) ||
          !(is_wanted || facts_.uses.has_one(n.in[k])))
        return {};
      pending = t.layout;
      each |= l == Linear::each;
      carriers++;
    }
    if (!pending || (each ? carriers != 1 : !is_wanted && carriers != joint)) return {};
    SubAxisList sub_axes;
    for (SubAxis a : pending->unreduced()) sub_axes_.append(a, sub_axes);
    return sub_axes;
  }

  const Strategy& strategy_of(int i) {
    NodeState s = state_of(i);
    const Strategy* d = &search_.cheapest(s);
    if (!s.pending.empty()) {  // passing them on must not cost more than combining them here
      NodeState combined = s;
      combined.pending = {};
      const Strategy& e = search_.cheapest(combined);
      if (e.cost + 1e-9 < d->cost) {
        d = &e;
        s = std::move(combined);
      }
    }
    const auto places = static_cast<std::size_t>(std::ranges::count(how_.detours, i));
    return places == 0 ? *d : search_.behind(s, *d, places);
  }

  void emit(int i, const Strategy& d, const Text& others = nullptr) {
    const FlatNode& n = at(g_.nodes, i);
    LocalStep s{i, -1, {}, {}};
    work_ += d.cost - d.moved;
    for (std::size_t k = 0; k < n.in.size(); k++)
      s.in.push_back(require_operand(n, k, d.in[k], false, others ? &others : nullptr));
    if (n.op->windows) fetch_windows(i, d, s);
    if (n.op->boxes && cut_factor(at(rules_, i), d.assignment, Role::halo))
      s.transfer = add_transfer(i, d, halo_transfer(n, d.in, d.out[0]));
    const auto f = cut_factor(at(rules_, i), d.assignment, Role::scan);
    if (const int result = f ? carried(i, d, *f, s) : -1; result >= 0) {
      at(p_.of_value, n.first_out) = result;
      return;
    }
    for (std::size_t k = 0; k < d.out.size(); k++) {
      const int v = n.first_out + static_cast<int>(k);
      at(asked_, v) = passes_asking(n, d);
      s.out.push_back(values_.add(at(g_.types, v), d.out[k], static_cast<int>(p_.steps.size())));
      at(p_.of_value, v) = s.out.back();
    }
    p_.steps.push_back(std::move(s));
  }

  // Operands of which devices read more than their tiles, or parts: what they read become values of their own.
  void fetch_windows(int i, const Strategy& d, LocalStep& s) {
    for (Window& w : windows_of(at(g_.nodes, i), d.in, d.out)) {
      LocalStep fetch{-1, add_transfer(i, d, std::move(w.transfer)), {s.in[w.operand]}, {}};
      const Type type = at(p_.values, fetch.in[0]).type;
      s.in[w.operand] = values_.add(type, d.in[w.operand], static_cast<int>(p_.steps.size()));
      at(p_.values, s.in[w.operand]).windows = std::make_shared<const std::vector<Box>>(std::move(w.boxes));
      fetch.out = {s.in[w.operand]};
      p_.steps.push_back(std::move(fetch));
    }
  }

  // The transfer of node i that brings neighbours' data; -1: all data is local.
  int add_transfer(int i, const Strategy& d, Transfer t) {
    const FlatNode& n = at(g_.nodes, i);
    if (t.bytes == 0) return -1;
    t.op = n.op->name;
    t.where = line_of(n);
    const bool is_placed = places_result(i, d.out[0]);
    if (is_placed) t.reason += " where the program places the result";
    if (n.modes->policy == Policy::strict && !is_placed && n.op->trait != Trait::row_list &&
        !takes_asked_only(n))
      refuse_boxes(t, n.out_types[0], *d.out[0], in_.mesh, other_ways(state_of(i), d, search_, in_));
    p_.transfers.push_back(std::move(t));
    return static_cast<int>(p_.transfers.size()) - 1;
  }

  // For scan i along sharded factor f: combines each scanned tile, made by `local`, with the totals before it. -1: there are none.
  int carried(int i, const Strategy& d, std::size_t f, LocalStep& local) {
    const std::size_t dim = scanned_dim(at(rules_, i), f);
    const FlatNode& n = at(g_.nodes, i);
    const Transfer t = carry_transfer(n, *d.in[0], dim);
    const int transfer = add_transfer(i, d, t);
    if (transfer < 0) return -1;
    const auto add_step = [&](LocalStep s, const Type& type, const Layout* l) {
      s.out.push_back(values_.add(type, l, static_cast<int>(p_.steps.size())));
      p_.steps.push_back(std::move(s));
      return p_.steps.back().out.back();
    };
    const Type slice{t.shape, t.dtype, false};
    const Layout* each = layout_of_totals(n, *d.in[0], dim);
    const int scanned = values_.add(n.out_types[0], d.out[0], static_cast<int>(p_.steps.size()));
    local.out = {scanned};
    const int totals = add_step(std::move(local), slice, each);
    LocalStep carry{i, transfer, {totals, scanned}, {}};
    const ScanTail tail = append_scan_tail(g_, i, dim);
    LocalStep spread{tail.spread, -1, {add_step(std::move(carry), slice, each)}, {}};
    const int everywhere = add_step(std::move(spread), n.out_types[0], d.out[0]);
    return add_step({tail.combine, -1, {everywhere, scanned}, {}}, n.out_types[0], d.out[0]);
  }

  // Whether a constraint or a requested result places node i's result as it is made: directly, or after a few other steps that change
  // extents or order (stack is made of pads).
  bool places_result(int i, const Layout* l, int steps = 3) const {
    const FlatNode& n = at(g_.nodes, i);
    for (std::size_t k = 0; k < g_.outputs.size(); k++)
      if (g_.outputs[k] == n.first_out && preferences_.outputs[k] == l) return true;
    const auto places = [&](int u) {
      const FlatNode& user = at(g_.nodes, u);
      if (user.op->form == Form::constraint)
        return !user.attrs->hi.empty() || constraint_layout(user, in_.order) == l;
      return user.op->boxes && steps > 0 && places_result(u, l, steps - 1);
    };
    return std::ranges::any_of(at(facts_.uses.nodes, n.first_out), places);
  }

  bool takes_asked_only(const FlatNode& n) const {
    return std::all_of(n.in.begin(), n.in.end(), [&](int v) { return at(asked_, v); });
  }

  // Whether it moves with a collective's operand: made from that alone, by rearranging or reducing, or carrying its partial sums.
  bool passes_asking(const FlatNode& n, const Strategy& d) const {
    const bool rearranges = n.op->form == Form::map || n.op->form == Form::view ||
                            n.op->form == Form::reduce || n.op->form == Form::boxes ||
                            n.op->trait == Trait::conversion;
    bool carries = false;
    for (std::size_t k = 0; k < n.in.size() && !d.pending.empty(); k++)
      carries |= at(asked_, n.in[k]) && !d.in[k]->unreduced().empty();
    return (rearranges && !n.in.empty() && takes_asked_only(n)) || carries;
  }

  std::string needed_as(const FlatNode& n, std::size_t k, const Layout* needed) {
    if (making_of(n.in[k]) != Making::once) return "";
    const Layout* now = at(p_.values, at(p_.of_value, n.in[k])).layout;
    if (!now->unreduced().empty())
      return fmt::format("partial sums over {} must be combined before {}", how_.spelled->summed(now),
                         n.op->name);
    return fmt::format("operand {} of {} is needed as {}", k, n.op->name, how_.spelled->of(needed));
  }

  int output(std::size_t k) {
    const int v = g_.outputs[k];
    const Layout* const asked = preferences_.outputs[k];
    const FlatNode& source = at(g_.nodes, at(g_.producer, v));
    const FlatNode by{nullptr, nullptr, {}, 0, {}, {}, Where(source.where), source.modes};
    const int part = results_.contains(v) ? results_.at(v) : at(p_.of_value, v);
    const Layout* now = making_of(v) == Making::once ? at(p_.values, part).layout : nullptr;
    const bool is_partial = now && !now->unreduced().empty();
    const Layout* to = asked ? asked : now ? now : preferred(v);
    if (!asked) to = on_whole_axes(to, at(g_.types, v).shape, in_, *how_.spelled);
    if (!asked && is_partial && !may_leave_partial(source, in_)) {
      const SubAxisDims& wanted = at(preferences_.dims, v);
      to = std::ranges::all_of(wanted, std::ranges::empty) ? whole_sums(now) : layouts_.of(wanted);
    }
    const auto reason = [&]() -> std::string {
      const bool is_placed = k < in_.outputs.size() && in_.outputs[k];
      return is_partial   ? fmt::format("partial sums over {} leave {}", how_.spelled->summed(now),
                                      in_.is_run ? "a step" : "the program")
             : in_.is_run ? "the next step needs what is carried where this one found it"
             : is_placed  ? "asked for as a result"
                          : "nobody placed this result: it lies where it was first";
    };
    return require(v, to, {reason, by, line_of(by), !in_.is_run || !now || at(asked_, v)});
  }

  FlatGraph& g_;
  const CompileInput& in_;
  const SubAxes& sub_axes_;
  StrategySearch& search_;
  const Placing& how_;
  std::unordered_map<StateKey, RunnerUp, StateHash> runner_ups_;
  const std::vector<Rule>& rules_;
  const Preferences& preferences_;
  std::vector<bool> asked_ = std::vector<bool>(g_.types.size());     // by value: the program asks to move it
  std::vector<std::vector<const Layout*>> needed_{g_.types.size()};  // by value: layouts that users need
  double work_ = 0;                                                  // price of arithmetic
  std::vector<int> movers_, others_;  // nodes that had a choice: with and without moves
  std::vector<double> moved_ = std::vector<double>(g_.nodes.size());  // by node
  Partition p_;
  const NodeFacts& facts_;
  SubAxisLayouts& layouts_;
  LocalValues values_;
  std::map<std::pair<int, const Layout*>, int> made_;  // made where they are needed
  std::map<int, int> results_;  // value -> its copy that is a result, where others read another copy
};

}  // namespace

Trial place_nodes(FlatGraph& g, const CompileInput& in, const Propagation& propagation,
                  const NodeFacts& facts, const Placing& how) {
  return Partitioner(g, in, propagation, facts, how).run();
}

}  // namespace shardarray
