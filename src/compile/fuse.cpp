// Decides which steps become one loop. Steps are visited from last to first: a step joins the group of its users if they are all in one
// group (or in groups over one domain that can be merged) and no other path leads back into it.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/at.h"
#include "compile/awaited.h"
#include "compile/group_graph.h"
#include "compile/group_rows.h"
#include "compile/in_place.h"
#include "compile/index_map.h"
#include "compile/passes.h"
#include "compile/siblings.h"
#include "compile/step_kind.h"
#include "shardarray/error.h"

namespace shardarray {

namespace {

constexpr std::size_t kMostMaps = 4;

class Fuser {
 public:
  /// `alone`: steps that share no group with others.
  Fuser(const Partition& p, const FlatGraph& g, const Target::Fusion& limits, std::vector<bool>& alone)
      : p_(p), g_(g), limits_(limits), alone_(alone) {}

  /// None if groups depend on each other in a cycle: their steps are `alone` from now on.
  std::optional<Fusion> run() {
    find_users();
    awaited_.emplace(p_, kinds_, users_);
    for (int s = static_cast<int>(p_.steps.size()) - 1; s >= 0; s--) assign(s);
    merge_siblings();
    settle_storage();
    if (!collect()) return std::nullopt;
    return std::move(fusion_);
  }

 private:
  struct Domain {
    int value = -1, reduce = -1;
    int full = -1;  // of a group of rows: a value at all their points
    std::vector<int> steps;
    std::set<int> awaited;
    bool loop = false;
    std::optional<bool> flush_denormals;  // none: so far it only moves values
  };

  const FlatNode* node(int s) const { return node_of(at(p_.steps, s), g_); }
  StepKind kind(int s) const { return at(kinds_, s); }

  std::optional<bool> flushes(int s) const {
    const FlatNode* n = node(s);
    if (!n || kind(s) != StepKind::loop) return std::nullopt;
    return n->modes->flush_denormals;
  }
  static bool differ(std::optional<bool> a, std::optional<bool> b) { return a && b && a != b; }

  void find_users() {
    users_.resize(p_.values.size());
    for (std::size_t s = 0; s < p_.steps.size(); s++)
      for (int v : p_.steps[s].in) at(users_, v).push_back(static_cast<int>(s));
    groups_of_.resize(p_.steps.size());
    must_store_.assign(p_.values.size(), false);
    kinds_.resize(p_.steps.size());
    for (int s = static_cast<int>(p_.steps.size()) - 1; s >= 0; s--) {
      const LocalStep& step = at(p_.steps, s);
      const FlatNode* n = node(s);
      StepKind k = step_kind(p_, g_, s);
      // A reshape whose result must be stored aliases its operand.
      if (k == StepKind::inlined && n && is_split(*n) && at(must_store_, step.out[0])) k = StepKind::alias;
      at(kinds_, s) = k;
      if (k == StepKind::single || k == StepKind::alias)
        for (int v : step.in) at(must_store_, v) = true;
      if (n && n->op->form == Form::take) at(must_store_, step.in[0]) = true;
    }
    for (int v : p_.outputs) at(must_store_, v) = true;
  }

  int find(int group) { return graph_.find(group); }

  int open(int s, bool loop) {
    Domain d;
    d.loop = loop;
    if (loop) d.value = at(p_.steps, s).out[0];
    domains_.push_back(d);
    return graph_.add();
  }

  void join(int s, int group, std::vector<IndexMap> maps) {
    at(groups_of_, s).insert(group);
    Domain& d = at(domains_, group);
    d.steps.push_back(s);
    d.awaited.insert(awaited_->by(s).begin(), awaited_->by(s).end());
    if (!d.flush_denormals) d.flush_denormals = flushes(s);
    maps_[{group, s}] = std::move(maps);
  }

  void assign(int s) {
    const StepKind k = kind(s);
    if (k == StepKind::alias) return;
    find_readers(s);
    if (k == StepKind::single) {
      place(s, open(s, false), {});
      return;
    }
    if (at(alone_, s)) {
      start(s);
      return;
    }
    std::set<int> groups;
    bool other_users = false;
    users_in_.clear();
    for (int v : at(p_.steps, s).out) {
      other_users |= at(must_store_, v);
      for (int u : at(users_, v)) {
        other_users |= at(alone_, u);
        for (int x : at(groups_of_, u))
          if (const int group = find(x); at(domains_, group).loop && !at(alone_, u)) {
            groups.insert(group);
            users_in_[group].insert(u);
          }
      }
    }
    if (k == StepKind::inlined) {
      inline_into(groups, s, other_users);
      return;
    }
    if (groups.size() > 1 && !merge_all(groups)) {
      if (!other_users && repeat(s, groups)) return;
      // One group computes it and stores it for the others.
      for (int group : groups)
        if (try_join(s, group, true)) return;
      groups.clear();
    }
    if (groups.size() == 1 && try_join(s, find(*groups.begin()), other_users)) return;
    start(s);
  }

  // Readers that cannot compute it load it; if it is a reshape, they load its operand's memory.
  void inline_into(const std::set<int>& groups, int s, bool other_users) {
    std::vector<std::pair<int, std::vector<IndexMap>>> joins;
    for (int group : groups)
      if (auto maps = maps_in(s, group)) joins.emplace_back(group, std::move(*maps));
      else other_users = true;
    if (const FlatNode* n = node(s); other_users && n && is_split(*n)) {
      at(kinds_, s) = StepKind::alias;
      at(must_store_, at(p_.steps, s).in[0]) = true;
      return;
    }
    for (auto& [group, maps] : joins) join(s, group, std::move(maps));
    if (other_users || groups.empty()) start(s);
  }

  // Several sums of one value, one of which waits for another: each recomputes the value, if that is little work and reads no more than
  // loading the value would.
  bool repeat(int s, const std::set<int>& groups) {
    if (groups.size() > kMostMaps || !is_cheap(p_, g_, s)) return false;
    std::vector<std::pair<int, std::vector<IndexMap>>> joins;
    for (int group : groups) {
      const Domain& d = at(domains_, group);
      auto maps = maps_in(s, group);
      if (d.reduce < 0 || std::ssize(d.steps) >= limits_.most_operations || !maps || maps->size() != 1)
        return false;
      joins.emplace_back(group, std::move(*maps));
    }
    for (auto& [group, maps] : joins) join(s, group, std::move(maps));
    return true;
  }

  // A new group with s as its root.
  void start(int s) {
    const int group = open(s, true);
    started_[s] = group;
    const FlatNode* n = node(s);
    if (n && n->op->form == Form::reduce) at(domains_, group).reduce = s;
    place(s, group, {identity_map(at(p_.values, at(p_.steps, s).out[0]).type.shape.size())});
  }

  // The groups of the users of s, and those of the users of its aliases.
  void find_readers(int s) {
    users_at_.clear();
    names_at_.clear();
    std::vector<int> names = {s};
    while (!names.empty()) {
      const int name = names.back();
      names.pop_back();
      for (int v : at(p_.steps, name).out)
        for (int u : at(users_, v)) {
          if (kind(u) == StepKind::alias) names.push_back(u);
          auto& list = name == s ? users_at_ : names_at_;
          list.insert(at(groups_of_, u).begin(), at(groups_of_, u).end());
        }
    }
  }

  // The groups that load s if `group` stores it. A group that computes s itself does not; an alias is loaded even there.
  std::vector<int> readers(int s, int group) {
    std::vector<int> list;
    for (int r : users_at_)
      if (const int g = find(r); g != group && !in_group(s, g)) list.push_back(g);
    for (int r : names_at_) list.push_back(find(r));
    return list;
  }

  // s is computed in `group`, and others load it from there.
  void place(int s, int group, std::vector<IndexMap> maps) {
    join(s, group, std::move(maps));
    for (int r : readers(s, group)) graph_.link(group, r);
  }

  // The maps by which users in `group` read s; none if there are too many, or one of them reads s at data-dependent rows.
  std::optional<std::vector<IndexMap>> maps_in(int s, int group) {
    std::vector<IndexMap> maps;
    for (int v : at(p_.steps, s).out)
      for (int u : users_in_[group]) {
        auto it = maps_.find({group, u});
        if (it == maps_.end()) continue;
        for (std::size_t k = 0; k < at(p_.steps, u).in.size(); k++) {
          if (at(p_.steps, u).in[k] != v) continue;
          if (const FlatNode* n = node(u); n && n->op->form == Form::take && k == 0) return std::nullopt;
          for (const IndexMap& m : it->second) {
            IndexMap composed = compose(with_inner(m, node(u)), reading_map(u, k, group));
            if (std::find(maps.begin(), maps.end(), composed) == maps.end())
              maps.push_back(std::move(composed));
          }
        }
      }
    if (maps.size() > kMostMaps) return std::nullopt;
    return maps;
  }

  // How step u reads operand k in a group.
  IndexMap reading_map(int u, std::size_t k, int group) const {
    return in_group_map(at(p_.steps, u), k, p_, g_,
                        at(p_.values, at(domains_, group).value).type.shape.size());
  }

  bool try_join(int s, int group, bool other_users) {
    Domain& d = at(domains_, group);
    if (static_cast<std::int64_t>(d.steps.size()) >= limits_.most_operations) return false;
    if (differ(d.flush_denormals, flushes(s)) || !awaited_->may_join(s, d.awaited)) return false;
    auto maps = maps_in(s, group);
    if (!maps || maps->empty()) return false;
    const std::vector<int> outside = readers(s, group);
    if (graph_.leads_to(outside, group)) return false;
    other_users |= !outside.empty();
    const FlatNode* n = node(s);
    if (n && n->op->form == Form::reduce) {
      if (!is_point(d, s, *maps, d.value)) return turn_into_rows(s, group, std::move(*maps));
      if (maps->size() > 1 || !same_inner(d, s)) return false;
      d.reduce = s;
    } else if (other_users &&
               (maps->size() > 1 || !(is_point(d, s, *maps, d.value) || is_point(d, s, *maps, d.full)))) {
      return false;
    }
    place(s, group, std::move(*maps));
    return true;
  }

  // Whether s is computed exactly at the points of `domain`: the rows, or all points.
  bool is_point(const Domain& d, int s, const std::vector<IndexMap>& maps, int domain) const {
    if (domain < 0) return false;
    const LocalValue &out = at(p_.values, at(p_.steps, s).out[0]), &points = at(p_.values, domain);
    const std::size_t outer = at(p_.values, d.value).type.shape.size();
    const IndexMap map = domain == d.full ? reduce_map(*node(d.reduce), outer) : identity_map(outer);
    return out.type.shape == points.type.shape && out.layout == points.layout &&
           std::find(maps.begin(), maps.end(), map) != maps.end();
  }

  // Turns the group's points into the rows that s reduces: where its sum is used, a row is read again, not stored.
  bool turn_into_rows(int s, int group, std::vector<IndexMap> maps) {
    Domain& d = at(domains_, group);
    if (d.reduce >= 0 || maps.size() != 1) return false;
    const auto value = [&](int v) -> const LocalValue& { return at(p_.values, v); };
    const LocalStep& step = at(p_.steps, s);
    const IndexMap to_rows = reduce_map(*node(s), value(step.out[0]).type.shape.size());
    if (!are_rows({value(step.in[0]), value(d.value), value(step.out[0]), maps[0], to_rows}, limits_))
      return false;
    for (int member : d.steps)
      for (IndexMap& m : maps_[{group, member}]) m = compose(to_rows, m);
    d.full = d.value;
    d.value = step.out[0];
    d.reduce = s;
    place(s, group, {identity_map(value(d.value).type.shape.size())});
    return true;
  }

  bool same_inner(const Domain& d, int s) const {
    if (d.reduce < 0) return true;
    const FlatNode &a = *node(d.reduce), &b = *node(s);
    const LocalValue &x = at(p_.values, at(p_.steps, d.reduce).in[0]),
                     &y = at(p_.values, at(p_.steps, s).in[0]);
    return a.attrs->dims == b.attrs->dims && x.type.shape == y.type.shape && x.layout == y.layout;
  }

  bool in_group(int s, int group) const { return at(groups_of_, s).contains(group); }

  bool merge_all(std::set<int>& groups) {
    const int first = *groups.begin();
    const auto others = std::next(groups.begin());
    if (!std::all_of(others, groups.end(), [&](int k) { return can_merge(find(first), k); })) return false;
    for (auto it = others; it != groups.end(); ++it) {
      if (!can_merge(find(first), *it)) return false;
      merge(find(first), *it);
    }
    groups = {find(first)};
    return true;
  }

  bool can_merge(int a, int b) {
    const Domain &x = at(domains_, a), &y = at(domains_, b);
    const LocalValue &v = at(p_.values, x.value), &w = at(p_.values, y.value);
    if (!x.loop || !y.loop || !(v.type.shape == w.type.shape) || v.layout != w.layout) return false;
    if (static_cast<std::int64_t>(x.steps.size() + y.steps.size()) > limits_.most_operations) return false;
    if (x.reduce >= 0 && y.reduce >= 0 && !same_inner(x, y.reduce)) return false;
    if (differ(x.flush_denormals, y.flush_denormals)) return false;
    return !graph_.is_before(a, b) && !graph_.is_before(b, a);
  }

  void merge(int a, int b) {
    Domain &x = at(domains_, a), &y = at(domains_, b);
    graph_.merge(a, b);
    x.awaited.merge(y.awaited);
    users_in_[a].merge(users_in_[b]);
    if (x.reduce < 0) x.reduce = y.reduce;
    if (x.full < 0) x.full = y.full;
    if (!x.flush_denormals) x.flush_denormals = y.flush_denormals;
    for (int s : y.steps) {
      at(groups_of_, s).erase(b);
      at(groups_of_, s).insert(a);
      auto& mine = maps_[{a, s}];
      for (IndexMap& m : maps_[{b, s}])
        if (std::find(mine.begin(), mine.end(), m) == mine.end()) mine.push_back(std::move(m));
      maps_.erase({b, s});
      if (std::find(x.steps.begin(), x.steps.end(), s) == x.steps.end()) x.steps.push_back(s);
    }
    y.steps.clear();
  }

  // Merges loops that read one value at the points where they write: it is read once, and may be overwritten.
  void merge_siblings() {
    const StepGroups groups{p_, g_, kinds_, groups_of_, users_, must_store_, alone_};
    std::map<int, GroupReads> reads;          // by group
    std::map<int, std::vector<int>> readers;  // by value
    for (int k = 0; k < std::ssize(domains_); k++) {
      const Domain& d = at(domains_, k);
      if (find(k) != k || !d.loop || d.reduce >= 0) continue;
      const std::vector<IndexMap> points{identity_map(at(p_.values, d.value).type.shape.size())};
      auto found = groups.reads(k, d.steps, d.value, [&](int s) { return maps_.at({k, s}) == points; });
      if (!found) continue;
      for (const int v : found->all) readers[v].push_back(k);
      reads[k] = std::move(*found);
    }
    for (const auto& [v, all] : readers) {
      int first = find(all[0]);
      for (const int k : all) {
        const int other = find(k);
        if (other == first) continue;
        if (can_merge(first, other) && GroupReads::nest(reads[first], reads[other])) {
          merge(first, other);
          reads[first].temporary.merge(reads[other].temporary);
        } else first = other;
      }
    }
  }

  void settle_storage() {
    fusion_.storage.resize(p_.values.size());
    for (std::size_t v = 0; v < p_.values.size(); v++) {
      const int s = p_.values[v].step;
      const int value = static_cast<int>(v);
      if (s < 0) {
        fusion_.storage[v] = {value, value};
      } else if (kind(s) == StepKind::alias) {
        fusion_.storage[v] = {at(fusion_.storage, at(p_.steps, s).in[0]).memory, value};
      } else {
        for (int group : at(groups_of_, s))
          if (is_root(value, s, group)) fusion_.storage[v] = {value, value};
      }
    }
  }

  // Whether this group stores it: the step is the group's own (not one repeated from elsewhere) and something outside reads it.
  bool is_root(int v, int s, int group) {
    const Domain& d = at(domains_, group);
    if (!d.loop) return true;
    const auto& maps = maps_.at({group, s});
    if (!is_point(d, s, maps, d.value) && !is_point(d, s, maps, d.full)) return false;
    const bool several = kind(s) == StepKind::inlined || at(groups_of_, s).size() > 1;
    if (several && (!started_.contains(s) || find(started_.at(s)) != group)) return false;
    if (at(must_store_, v)) return true;
    for (int u : at(users_, v))
      if (!in_group(u, group) || at(groups_of_, u).size() > 1) return true;
    return false;
  }

  bool collect() {
    std::vector<int> order;
    for (int k = 0; k < static_cast<int>(domains_.size()); k++)
      if (find(k) == k && !at(domains_, k).steps.empty()) order.push_back(k);
    std::map<int, std::set<int>> before;  // group -> groups it reads from
    std::map<int, int> writer;            // memory -> group
    std::map<int, std::set<int>> readers;
    std::map<int, Group> made;
    for (int k : order) {
      Group group;
      Domain& d = at(domains_, k);
      std::sort(d.steps.begin(), d.steps.end());
      group.steps = d.steps;
      group.loop = d.loop;
      group.domain = d.value;
      group.reduce = d.reduce;
      group.flush_denormals = d.flush_denormals.value_or(false);
      for (int s : d.steps)
        for (int v : at(p_.steps, s).out)
          if (at(fusion_.storage, v).memory == v && is_root(v, s, k) && !writer.contains(v)) {
            group.roots.push_back(v);
            writer[v] = k;
          }
      made[k] = std::move(group);
    }
    for (int k : order)
      for (int s : made[k].steps)
        for (int v : at(p_.steps, s).in)
          for (const int m : memories_before(p_, fusion_.storage, kinds_, v, source_memory(v, s, k))) {
            readers[m].insert(k);
            if (writer.contains(m)) before[k].insert(writer[m]);
          }
    std::map<int, int> last_step;
    for (int k : order) last_step[k] = made[k].steps.back();
    std::vector<int> scheduled = schedule(before, last_step);
    if (scheduled.size() == order.size() &&
        write_last(before, scheduled, readers, made, p_, g_, fusion_.storage))
      scheduled = schedule(before, last_step);
    if (scheduled.size() < order.size()) {
      for (int k : scheduled) made.erase(k);
      part(made);
      return false;
    }
    for (int k : scheduled)
      if (!made[k].roots.empty() || !made[k].loop) fusion_.groups.push_back(std::move(made[k]));
    return true;
  }

  // Steps of groups that wait for each other share no group from now on.
  void part(const std::map<int, Group>& waiting) {
    bool fresh = false;
    for (const auto& [k, group] : waiting)
      for (int s : group.steps) {
        fresh |= !at(alone_, s);
        at(alone_, s) = true;
      }
    if (!fresh) throw InternalError("fuse: steps need each other's results. Please report this.");
  }

  // The memory that step `by` of group k reads for v; none if the group computes v itself. Data-dependent rows are always read from memory.
  int source_memory(int v, int by, int k) {
    const int s = at(p_.values, v).step;
    const FlatNode* n = node(by);
    const bool takes = n && n->op->form == Form::take && at(p_.steps, by).in[0] == v;
    if (s >= 0 && !takes && kind(s) != StepKind::alias && in_group(s, k) && at(domains_, k).loop) return -1;
    return at(fusion_.storage, v).memory;
  }

  const Partition& p_;
  const FlatGraph& g_;
  const Target::Fusion& limits_;
  std::vector<bool>& alone_;
  GroupGraph graph_;
  Fusion fusion_;
  std::vector<StepKind> kinds_;
  std::optional<Awaited> awaited_;
  std::vector<std::vector<int>> users_;
  std::map<int, std::set<int>> users_in_;  // by group: users of the step that is being assigned
  std::set<int> users_at_, names_at_;      // groups that use it; that use an alias of it
  std::vector<bool> must_store_;
  std::vector<std::set<int>> groups_of_;
  std::vector<Domain> domains_;
  std::map<std::pair<int, int>, std::vector<IndexMap>> maps_;
  std::map<int, int> started_;  // step -> the group whose root it is
};

}  // namespace

Fusion fuse(Partition& p, const FlatGraph& g, const Target& target) {
  copy_shared_outputs(p, g);
  std::vector<bool> alone(p.steps.size(), false);
  for (;;)
    if (std::optional<Fusion> fusion = Fuser(p, g, target.fusion, alone).run()) return std::move(*fusion);
}

}  // namespace shardarray
