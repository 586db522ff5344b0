#include "compile/gather_sums.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/at.h"
#include "base/sizes.h"
#include "compile/addresses.h"
#include "compile/group_order.h"
#include "compile/received.h"
#include "layout/transfer.h"

namespace shardarray {
namespace {

/// What steps that share a transfer have in common.
using Likeness = std::tuple<TransferKind, AxisList, DType, Reducer, const DeviceOrder*, bool>;

class Sums {
 public:
  Sums(Partition& p, Fusion& f, const FlatGraph& g, const CompileInput& in)
      : p_(p), f_(f), g_(g), in_(in), most_(in.target->links.together) {}

  void run() {
    std::vector<std::pair<Likeness, std::vector<int>>> alike;  // in order of first occurrence
    for (int k = 0; k < static_cast<int>(f_.groups.size()); k++)
      if (const auto like = likeness(at(f_.groups, k))) {
        auto there = std::ranges::find(alike, *like, [](const auto& all) { return all.first; });
        if (there == alike.end()) there = alike.insert(there, {*like, {}});
        there->second.push_back(k);
      }
    std::erase_if(alike, [](const auto& all) { return all.second.size() < 2; });
    if (alike.empty()) return;
    GroupOrder order(f_, p_, g_, in_);
    with_.resize(p_.transfers.size());
    for (int t = 0; t < static_cast<int>(with_.size()); t++) at(with_, t) = t;
    for (auto& [like, groups] : alike) {
      std::ranges::sort(groups, {}, [&](int k) { return order.position(k); });
      gather(groups, order);
    }
    std::vector<Group> moved;
    for (const int k : order.order()) moved.push_back(std::move(at(f_.groups, k)));
    f_.groups = std::move(moved);
    renumber();
  }

 private:
  const LocalStep& step(const Group& group) const { return at(p_.steps, group.steps[0]); }
  int transfer_of(int group) const { return step(at(f_.groups, group)).transfer; }

  /// None if it is no small sum.
  std::optional<Likeness> likeness(const Group& group) const {
    if (group.loop || !is_between_layouts(step(group))) return std::nullopt;
    const LocalStep& s = step(group);
    const LocalValue &from = at(p_.values, s.in[0]), &to = at(p_.values, s.out[0]);
    const Transfer& t = at(p_.transfers, s.transfer);
    if (from.layout->unreduced() == to.layout->unreduced() || t.bytes > most_) return std::nullopt;
    return Likeness{t.kind,
                    t.axes,
                    t.dtype,
                    from.layout->reducer(),
                    to.layout->order(),
                    flushes_denormals(group, p_, g_)};
  }

  /// Packs them in order, up to `most_` bytes per transfer.
  void gather(const std::vector<int>& groups, GroupOrder& order) {
    GroupOrder::Run run;
    std::int64_t bytes = 0;
    const auto finish = [&] {
      if (run.groups.size() < 2) return;
      order.place(run);
      share_transfer(run.groups);
    };
    for (const int k : groups) {
      const std::int64_t more = at(p_.transfers, transfer_of(k)).bytes;
      if (!run.groups.empty() && bytes + more <= most_ && order.join(run, k)) {
        bytes += more;
        continue;
      }
      finish();
      run = order.run_of(k);
      bytes = more;
    }
    finish();
  }

  static double least(const Transfer& t) { return t.gap > 0 ? static_cast<double>(t.bytes) / t.gap : 0; }
  static void add(Transfer& to, const Transfer& t) {
    const double both = t.gap > 0 && to.gap > 0 ? least(to) + least(t) : 0;
    add_received(to, t);
    to.gap = both > 0 ? static_cast<double>(to.bytes) / both : 0;
    to.values++;
  }

  void share_transfer(const std::vector<int>& groups) {
    const int first = transfer_of(groups[0]);
    for (std::size_t k = 1; k < groups.size(); k++) {
      const int t = transfer_of(groups[k]);
      add(at(p_.transfers, first), at(p_.transfers, t));
      at(with_, t) = first;
    }
  }

  void renumber() {
    std::vector<int> number(with_.size(), -1);
    std::vector<Transfer> kept;
    for (int t = 0; t < static_cast<int>(with_.size()); t++)
      if (at(with_, t) == t) {
        at(number, t) = static_cast<int>(kept.size());
        kept.push_back(std::move(at(p_.transfers, t)));
      }
    for (LocalStep& s : p_.steps)
      if (s.transfer >= 0) s.transfer = at(number, at(with_, s.transfer));
    p_.transfers = std::move(kept);
  }

  Partition& p_;
  Fusion& f_;
  const FlatGraph& g_;
  const CompileInput& in_;
  const std::int64_t most_;
  std::vector<int> with_;  // transfer -> the one that it is merged into
};

}  // namespace

void gather_sums(Partition& p, Fusion& f, const FlatGraph& g, const CompileInput& in) {
  Sums(p, f, g, in).run();
}

bool take_sums(Step& step, Step& next) {
  auto* const to = std::get_if<Exchange>(&step.body);
  auto* const from = std::get_if<Exchange>(&next.body);
  if (!to || !from || from->transfer < 0 || to->transfer != from->transfer || to->reducer != from->reducer)
    return false;
  std::ranges::move(from->items, std::back_inserter(to->items));
  return true;
}

}  // namespace shardarray
