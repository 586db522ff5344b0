#include "compile/group_order.h"

#include <algorithm>
#include <map>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/in_place.h"
#include "compile/step_kind.h"

namespace shardarray {

GroupOrder::GroupOrder(const Fusion& f, const Partition& p, const FlatGraph& g, const CompileInput& in)
    : f_(f), p_(p), of_(f.groups.size()), position_(f.groups.size()) {
  const std::vector<Group>& groups = f.groups;
  std::vector<StepKind> kinds;
  kinds.reserve(p.steps.size());
  for (int s = 0; s < static_cast<int>(p.steps.size()); s++) kinds.push_back(step_kind(p, g, s));
  std::set<int> given;  // donated inputs, as local values
  for (std::size_t k = 0; k < p.inputs.size(); k++)
    if (k < in.donated.size() && in.donated[k]) given.insert(p.inputs[k]);
  std::map<int, int> writer;                     // memory -> group
  std::map<int, std::vector<int>> written_over;  // memory -> groups that may overwrite it, ascending
  for (int k = 0; k < static_cast<int>(groups.size()); k++) {
    order_.push_back(k);
    for (const int v : at(groups, k).roots) {
      writer.emplace(v, k);
      at(of_, k).bytes = add_sizes(at(of_, k).bytes, bytes_of(at(p.values, v).type));
    }
    if (at(groups, k).loop) continue;
    const LocalStep& step = at(p.steps, at(groups, k).steps[0]);
    for (const InPlace& x : in_place_of(step, p, g, f.storage))
      written_over[at(f.storage, step.in[x.operand]).memory].push_back(k);
  }
  for (int k = 0; k < static_cast<int>(groups.size()); k++) {
    std::set<int> read;  // memories
    for (const int s : at(groups, k).steps)
      for (const int v : at(p.steps, s).in)
        for (const int m : memories_before(p, f.storage, kinds, v, at(f.storage, v).memory)) read.insert(m);
    for (const int m : read) {
      if (m < 0) continue;
      at(of_, k).bytes = add_sizes(at(of_, k).bytes, bytes_of(at(p.values, m).type));
      if (given.contains(m)) at(of_, k).read_inputs.push_back(m);
      if (const auto w = writer.find(m); w != writer.end() && w->second != k)
        at(of_, k).front.push_back(w->second);
      if (const auto over = written_over.find(m); over != written_over.end())
        if (const auto next = std::ranges::upper_bound(over->second, k); next != over->second.end())
          at(of_, *next).front.push_back(k);  // later writers come after that one
    }
  }
  number();
}

void GroupOrder::number() {
  for (int p = 0; p < static_cast<int>(order_.size()); p++) at(position_, at(order_, p)) = p;
}

void GroupOrder::bring_together(const std::vector<std::vector<int>>& alike) {
  std::vector<int> first_behind(order_.size(), static_cast<int>(order_.size()));
  for (int k = 0; k < static_cast<int>(order_.size()); k++)
    for (const int w : at(of_, k).front) at(first_behind, w) = std::min(at(first_behind, w), position(k));
  std::vector<int> anchor = position_;
  for (const std::vector<int>& all : alike)
    for (std::size_t k = all.size() - 1; k-- > 0;) {
      const int next = at(anchor, all[k + 1]);
      if (at(first_behind, all[k]) >= next) at(anchor, all[k]) = next;
    }
  std::stable_sort(order_.begin(), order_.end(), [&](int a, int b) { return at(anchor, a) < at(anchor, b); });
  number();
}

bool GroupOrder::waits(const Run& run, int group) const {
  return std::ranges::any_of(at(of_, group).front, [&](int w) {
    return run.waits.contains(w) || std::ranges::count(run.groups, w) > 0;
  });
}

bool GroupOrder::may_take(int group, int input) const {
  const LocalValue& there = at(p_.values, input);
  return std::ranges::any_of(at(f_.groups, group).roots, [&](int v) {
    const LocalValue& made = at(p_.values, v);
    return made.layout == there.layout && made.type.shape == there.type.shape &&
           made.type.dtype == there.type.dtype;
  });
}

// Groups that stay neighbours wait together.
void GroupOrder::look_at(Run& run, int position) const {
  const int group = at(order_, position);
  std::vector<int> all = at(of_, group).together;
  if (all.empty()) all.push_back(group);
  if (std::ranges::none_of(all, [&](int k) { return waits(run, k); })) {
    run.is_closed |= std::ranges::any_of(run.read_inputs, [&](int i) { return may_take(group, i); });
    return;
  }
  for (const int k : all)
    if (run.waits.insert(k).second) {
      run.delayed = add_sizes(run.delayed, at(of_, k).bytes);
      run.read_inputs.insert(at(of_, k).read_inputs.begin(), at(of_, k).read_inputs.end());
    }
}

bool GroupOrder::join(Run& run, int group) const {
  constexpr std::int64_t most_bytes = 1 << 20;
  while (run.seen + 1 < position(group)) look_at(run, ++run.seen);
  if (run.is_closed || run.delayed > most_bytes || waits(run, group)) return false;
  run.seen = position(group);
  run.groups.push_back(group);
  return true;
}

void GroupOrder::place(const Run& run) {
  const auto first = order_.begin() + position(run.groups[0]),
             end = order_.begin() + position(run.groups.back()) + 1;
  const std::set<int> members(run.groups.begin(), run.groups.end());
  const auto rank = [&](int k) { return members.contains(k) ? 1 : run.waits.contains(k) ? 2 : 0; };
  std::stable_sort(first, end, [&](int a, int b) { return rank(a) < rank(b); });
  for (const int k : run.groups) at(of_, k).together = run.groups;
  number();
}

}  // namespace shardarray
