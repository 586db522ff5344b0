// Global graph -> per-device graph: every node by its strategy, every transfer explicit. A node is placed before its users, by what they
// are expected to prefer; so the program is placed again, by what they turned out to need, and the cheapest plan is kept.
#include <algorithm>
#include <list>
#include <numeric>
#include <optional>

#include "base/at.h"
#include "base/print_time.h"
#include "compile/partitioner.h"
#include "compile/received.h"
#include "compile/shared_copies.h"
#include "compile/shared_sums.h"
#include "compile/sort_by_columns.h"
#include "compile/strict.h"

namespace shardarray {

namespace {

constexpr int kMostTrials = 3, kMostOfDraft = 1;  // per kind of search; later ones hardly ever find more
constexpr std::size_t kMostDecided = 64, kMostDetours = 24,
                      kMostPlaces = 8;     // limits that keep planning fast
constexpr double kOneMoreTransfer = 4096;  // bytes that one transfer less is worth: about a microsecond

// The price of one transfer, including that of its step.
double price_of(const Transfer& t, const CostModel& cost) {
  return cost.transfer(t.bytes) + kOneMoreTransfer;
}
// The price of its work and of all that moves.
double price_of(const Trial& trial, const CostModel& cost) {
  double price = trial.work;
  each_transfer(trial.partition,
                [&](const Transfer& t, double times) { price += times * price_of(t, cost); });
  return price;
}

// Layouts that all users of a value needed count as if they were given. False if nothing is new.
bool renew(Preferences& p, const Trial& t, const FlatGraph& g, const SubAxes& sub_axes) {
  std::vector<bool> is_output(p.dims.size());
  for (const int v : g.outputs) at(is_output, v) = true;
  bool is_new = false;
  for (int v = 0; v < std::ssize(p.dims); v++) {
    const Layout* needed = at(t.needed, v);
    const bool is_open =
        !at(p.closed, v) && !at(is_output, v) && at(g.nodes, at(g.producer, v)).op->form != Form::constraint;
    if (!needed || !is_open || !needed->unreduced().empty() || !sub_axes.can_express(*needed)) continue;
    SubAxisDims dims = to_sub_axes(sub_axes, *needed);
    if (at(p.from_closed, v) && dims == at(p.dims, v)) continue;
    is_new = true;
    at(p.dims, v) = std::move(dims);
    at(p.from_closed, v) = true;
  }
  return is_new;
}

// Whether other plans may be better. With `follow` or `strict` the first placement counts, and its errors.
bool may_choose(const FlatGraph& g, const Partition& first) { return !first.transfers.empty() && is_auto(g); }

// Results without a requested layout stay where the first plan has them, not where it is cheapest to leave them.
void place_outputs(Preferences& p, const Partition& first, const FlatGraph& g, const SubAxes& sub_axes) {
  for (std::size_t k = 0; k < g.outputs.size(); k++) {
    const Layout*& to = p.outputs[k];
    const int v = g.outputs[k];
    if (to) continue;
    to = at(first.values, first.outputs[k]).layout;
    if (at(p.closed, v) || !sub_axes.can_express(*to)) continue;
    at(p.dims, v) = to_sub_axes(sub_axes, *to);
    at(p.closed, v) = at(p.from_closed, v) = true;
  }
}

}  // namespace

bool may_leave_partial(const FlatNode& n, const CompileInput& in) {
  return !in.is_run && (n.op->form == Form::constraint || n.op->form == Form::leaf);
}

namespace {

struct Plan {
  Trial trial;
  Preferences by;
  StrategySearch* search;
  std::vector<int> detours = {};
  Copies copies = {};
};

/// A trial, and the preferences for the next one.
struct Tried {
  Preferences by, renewed;
  bool is_new = false;  // whether `renewed` has anything new
  StrategySearch* search = nullptr;
};

// Whether to vary the best plan. Called programs, and programs that call others, are planned too often for that; collectives are fixed by
// the program.
bool may_vary(const Plan& best, const FlatGraph& g, const CompileInput& in) {
  const auto is_collective = [](const FlatNode& n) { return n.op->trait == Trait::asked; };
  return !std::ranges::any_of(g.nodes, is_collective) && !in.is_run &&
         best.trial.partition.iterations.empty() && best.trial.partition.branches.empty();
}

double sum_of(const std::vector<double>& all) { return std::accumulate(all.begin(), all.end(), 0.0); }

/// Variations of the best plan so far, which may be cheaper.
class Variations {
 public:
  Variations(Plan& best, FlatGraph& g, const CompileInput& in, const Propagation& propagation,
             const NodeFacts& facts, SpelledLayouts& spelled)
      : best_(best),
        g_(g),
        in_(in),
        propagation_(propagation),
        facts_(facts),
        spelled_(spelled),
        by_(best.by),
        price_(price_of(best.trial, in.cost)) {
    place_outputs(by_, best.trial.partition, g, propagation.sub_axes);
  }
  void share_copies() { count_on_copies(best_.trial, by_, best_.detours); }
  // Counts on copies, too: partial sums that are combined late depend on operands that several products read. Starts from the program's
  // preferences: those of the best plan are renewed for sums that are combined at once.
  void share_sums() {
    for (const Preferences& by : shared_sums(propagation_.preferences, g_, propagation_, facts_)) {
      Plan now = placed(by, {}, {});
      count_on_copies(now.trial, by, {});
      keep_if_cheaper(std::move(now), worth());
    }
  }
  // A costlier strategy for one node may save more at others.
  void take_detours() {
    const std::vector<int> decided = best_.trial.decided;
    if (decided.size() < 2 || decided.size() > kMostDecided) return;
    for (std::size_t k = 0; k < std::min(decided.size() * kMostPlaces, kMostDetours); k++) {
      const int node = decided[k % decided.size()];
      std::vector<int> detours = best_.detours;
      std::erase(detours, node);
      detours.insert(detours.end(), 1 + k / decided.size(), node);
      keep_if_cheaper(placed(by_, std::move(detours), best_.copies), 1e-9 * price_);
    }
  }

 private:
  // What is held for long must be worth its memory.
  double worth() const {
    double moves = 0;
    for (const Transfer& t : best_.trial.partition.transfers) moves += price_of(t, in_.cost);
    return moves * kWorthMemory;
  }
  // Tries copies that would have served in trial `t`. Nodes that gain nothing from replicated ones, which are free, gain from no others.
  void count_on_copies(const Trial& t, Preferences by, std::vector<int> detours) {
    const double saving = worth(), moved = sum_of(t.moved);
    for (Copies& copies : shared_copies(t, saving, g_, facts_, *best_.search)) {
      Plan now = placed(by, detours, std::move(copies));
      const double believed = sum_of(now.trial.moved);
      keep_if_cheaper(std::move(now), saving);
      if (believed >= moved - saving) return;
    }
  }
  Plan placed(Preferences by, std::vector<int> detours, Copies copies) {
    Plan p{{}, std::move(by), best_.search, std::move(detours), std::move(copies)};
    p.trial = place_nodes(g_, in_, propagation_, facts_, {&p.by, p.search, &spelled_, p.detours, p.copies});
    return p;
  }
  // Makes it the best plan, if it is cheaper by more than `saving` and moves no more.
  void keep_if_cheaper(Plan p, double saving) {
    const double price = price_of(p.trial, in_.cost);
    if (price >= price_ - saving || received_bytes(p.trial.partition) > received_bytes(best_.trial.partition))
      return;
    price_ = price;
    by_ = p.by;
    best_ = std::move(p);
  }

  Plan& best_;
  FlatGraph& g_;
  const CompileInput& in_;
  const Propagation& propagation_;
  const NodeFacts& facts_;
  SpelledLayouts& spelled_;
  Preferences by_;  // of the best plan, with its results fixed
  double price_;
};

}  // namespace

static Partition best_of_trials(FlatGraph& g, const CompileInput& in, Propagation propagation) {
  Reshards reshards(in.cost);
  SubAxisLayouts layouts(propagation.sub_axes);
  SpelledLayouts spelled(in.mesh);
  const NodeFacts facts(g, propagation);
  std::list<StrategySearch> searches;
  std::list<Tried> tried;
  std::optional<Plan> best;
  bool goes_on = true;
  const int most = in.is_draft ? kMostOfDraft : kMostTrials;
  for (const Freedom freedom : {Freedom::none, Freedom::roaming, Freedom::sharing}) {
    StrategySearch* const other = searches.empty() ? nullptr : &searches.front();
    StrategySearch& search = searches.emplace_back(layouts, reshards, freedom, other);
    Preferences renewed = propagation.preferences;
    for (int k = 0; k < most && goes_on; k++) {
      const auto known = std::ranges::find_if(
          tried, [&](const Tried& t) { return t.by == renewed && search.decides_as(*t.search); });
      if (known != tried.end()) {  // the same plan again
        if (!known->is_new) break;
        renewed = known->renewed;
        continue;
      }
      Plan now{place_nodes(g, in, propagation, facts, {&renewed, &search, &spelled}), renewed, &search};
      const bool is_first = !best, is_new = renew(renewed, now.trial, g, propagation.sub_axes);
      tried.push_back({now.by, renewed, is_new, &search});
      if (is_first) goes_on = may_choose(g, now.trial.partition);
      if (is_first || price_of(now.trial, in.cost) < price_of(best->trial, in.cost) * (1 - 1e-9))
        best = std::move(now);
      if (is_first && goes_on)
        for (Preferences* p : {&propagation.preferences, &renewed})
          place_outputs(*p, best->trial.partition, g, propagation.sub_axes);
      if (!is_new) break;
    }
  }
  if (goes_on && may_vary(*best, g, in)) {
    Variations variations(*best, g, in, propagation, facts, spelled);
    variations.take_detours();
    variations.share_sums();
    variations.share_copies();
  }
  if (in.tells_runner_ups) {  // one more search for whatever moves: only for the best plan
    best->trial = place_nodes(g, in, propagation, facts,
                              {&best->by, best->search, &spelled, best->detours, best->copies, true});
  }
  g.append(std::move(best->trial.tail));
  best->trial.partition.price = price_of(best->trial, in.cost);
  return std::move(best->trial.partition);
}

Partition partition(FlatGraph& g, const CompileInput& in) {
  Propagation propagation = timed("propagate", [&] { return propagate(g, in); });
#ifdef SHARDARRAY_VERIFY
  verify(propagation, g);
#endif
  std::optional<FlatGraph> by_columns =
      timed("sort_by_columns", [&] { return sort_by_columns(g, propagation); });
  Partition best = timed("partition", [&] { return best_of_trials(g, in, std::move(propagation)); });
  if (!by_columns) return best;
#ifdef SHARDARRAY_VERIFY
  verify(*by_columns, "sort_by_columns");
#endif
  try {
    Partition other =
        timed("partition", [&] { return best_of_trials(*by_columns, in, propagate(*by_columns, in)); });
    if (other.price >= best.price) return best;
    g = std::move(*by_columns);
    return other;
  } catch (const ShardingError&) {  // policy::strict refuses its transfers, in a loop's body
    return best;
  }
}

}  // namespace shardarray
