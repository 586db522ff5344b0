#include "compile/body_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/at.h"
#include "compile/in_place.h"
#include "compile/iterate.h"
#include "compile/linearities.h"
#include "compile/received.h"
#include "compile/strict.h"

namespace shardarray {
namespace {

const Layout* result_layout(const Partition& p, std::size_t k) { return at(p.values, p.outputs[k]).layout; }

}  // namespace

BodyRun::BodyRun(const Iteration& it, const CompileInput& in)
    : it_(it), in_(in), body_(simplify_and_order(flatten(*it.body), in.order->size(), *in.target)) {}

CompileInput BodyRun::input(const RunLayouts& layouts, bool closed) const {
  std::vector<const Layout*> outputs;
  const auto carries = layouts.begin() + static_cast<std::ptrdiff_t>(it_.constants);
  if (closed) outputs.assign(carries, carries + static_cast<std::ptrdiff_t>(it_.carries));
  CompileInput r = input_of_called(body_, layouts, std::move(outputs), in_);
  if (!closed) return r;
  const std::vector<bool> over = written_over(body_, it_.constants, it_.carries);
  r.written_over.assign(body_.outputs.size(), -1);
  for (std::size_t k = 0; k < it_.carries; k++)
    if (over[k]) write_over(r, k, it_.constants + k);
  return r;
}

const Partition& BodyRun::partitioned(const RunLayouts& layouts, bool closed, bool is_draft) {
  const std::tuple key(layouts, closed, is_draft);
  if (const auto known = partitions_.find(key); known != partitions_.end()) return known->second;
  CompileInput one = input(layouts, closed);
  one.is_draft = is_draft;
  return partitions_.try_emplace(key, partition(one.graph, one)).first->second;
}

// For one iteration, which may leave the carries in other layouts.
const Partition& BodyRun::cut_carries(RunLayouts& layouts, bool is_draft) {
  for (;;) {
    const Partition& open = partitioned(layouts, false, is_draft);
    bool grew = false;
    for (std::size_t k = 0; k < it_.carries; k++) {
      const Layout*& carry = layouts[it_.constants + k];
      if (all_tiles(*result_layout(open, k)) <= all_tiles(*carry)) continue;
      carry = result_layout(open, k);
      grew = true;
    }
    if (!grew) return open;
  }
}

void BodyRun::settle_carries(RunLayouts& layouts, bool is_draft) {
  const Partition& open = cut_carries(layouts, is_draft);
  RunLayouts left = layouts;
  for (std::size_t k = 0; k < it_.carries; k++)
    if (all_tiles(*result_layout(open, k)) == all_tiles(*layouts[it_.constants + k]))
      left[it_.constants + k] = result_layout(open, k);
  if (left == layouts) return;
  const auto moved = [&](const RunLayouts& x) { return received_bytes(partitioned(x, true, is_draft)); };
  if (moved(left) < moved(layouts)) layouts = std::move(left);
}

bool BodyRun::keeps_carries(const Partition& p, const RunLayouts& layouts) const {
  for (std::size_t k = 0; k < it_.carries; k++)
    if (result_layout(p, k) != layouts[it_.constants + k]) return false;
  return true;
}

bool BodyRun::adds_to(std::size_t k) const {
  const int carry = body_.inputs[it_.constants + k];
  std::vector<int> open{body_.outputs[k]};
  std::vector<bool> seen(body_.types.size());
  while (!open.empty()) {
    const int v = open.back();
    open.pop_back();
    if (v == carry) return true;
    if (at(seen, v)) continue;
    at(seen, v) = true;
    const FlatNode& n = at(body_.nodes, at(body_.producer, v));
    if (n.op->form == Form::leaf) continue;
    const std::vector<Linear> linear = linearities(n, body_, false);
    const auto is_number = [&](int u) { return !std::isnan(literal(u, body_)); };
    const bool scales = std::ranges::count_if(n.in, is_number) + 1 == std::ssize(n.in);
    for (std::size_t i = 0; i < n.in.size(); i++)
      if (linear[i] == Linear::joint || (linear[i] == Linear::each && scales)) open.push_back(n.in[i]);
  }
  return false;
}

bool BodyRun::may_choose() const {
  const auto is_collective = [](const FlatNode& n) { return n.op->trait == Trait::asked; };
  return is_auto(body_) && std::ranges::none_of(body_.nodes, is_collective);
}

}  // namespace shardarray
