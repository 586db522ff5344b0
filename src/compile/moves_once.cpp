#include "compile/moves_once.h"

#include <algorithm>
#include <set>
#include <utility>

#include "compile/iterate.h"
#include "compile/received.h"
#include "compile/reshards.h"
#include "layout/tiles.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

class MovesOnce {
 public:
  MovesOnce(BodyRun& run, const LoopOperands& operands, const CompileInput& in)
      : run_(run),
        it_(run.iteration()),
        types_(operands.types),
        given_(operands.given),
        reshards_(in.cost),
        order_(in.order) {
    for (std::size_t k = 0; k < it_.carries; k++) sums_.push_back(operands.may_be_sums[k] && run.adds_to(k));
  }
  RunLayouts of(const RunLayouts& inputs, const RunLayouts& first) try {
    const Price now = price(run_.partitioned(inputs, true, true), inputs);
    if (now.bytes == 0) return inputs;
    best_ = inputs;
    least_ = now.all;
    tried_.insert(inputs);
    const SubAxes sub_axes = SubAxes::of(order_, inputs);
    std::vector<SubAxisDims> places;
    for (const Layout* l : inputs)
      if (sub_axes.can_express(*l)) places.push_back(to_sub_axes(sub_axes, *l));
    const std::vector<SubAxisList> kinds = sharing_axes(sub_axes, places);
    for (const SubAxisList& kind : kinds) {
      consider(with_sums(sub_axes, kind, inputs));
      for (const auto* const from : {&inputs, &first}) consider_copies(sub_axes, kind, *from, from == &first);
    }
    if (best_ == inputs) return inputs;
    const RunLayouts all_copies = best_;
    put_back(inputs);
    const Price before = price(run_.partitioned(inputs, true), inputs);
    for (const RunLayouts& where : {best_, all_copies}) {
      const Partition& once = run_.partitioned(where, true);
      const Price after = price(once, where);
      const double worth = std::max(before.bytes * kWorthMemory, after.held - before.held);
      if (after.all < before.all && after.bytes <= before.bytes - worth && run_.keeps_carries(once, where))
        return where;
      if (where == all_copies) break;
    }
    return inputs;
  } catch (const ShardingError&) {  // policy::strict refuses a transfer, in what the body calls
    return inputs;
  }

 private:
  static constexpr std::size_t kMostPutBack = 12, kMostLeftOut = 3;  // copies

  /// Of all iterations, and of what moves before and after them.
  struct Price {
    double all = 0, bytes = 0;
    double held = 0;  // bytes of constants and carries
  };
  // Whether it is requested as a partial sum.
  bool is_asked(std::size_t k) const {
    return given_[k] && !given_[k]->unreduced().empty() && given_[k]->order() == order_;
  }
  // Operands may be on other devices.
  double cost(const Layout* from, const Layout* to, const Type& t) {
    return from->order() == to->order() ? reshards_.cost(from, to, t).moved
                                        : static_cast<double>(reshards_.transfer(from, to, t).bytes);
  }
  Price price(const Partition& one, const RunLayouts& where) {
    const auto runs = static_cast<double>(it_.length);
    Price r = price_outside(where);
    r.all += runs * one.price;
    each_transfer(one, [&](const Transfer& t, double times) {  // also in what it calls
      r.bytes += runs * times * static_cast<double>(t.bytes);
    });
    return r;
  }
  // Before and after the iterations.
  Price price_outside(const RunLayouts& where) {
    Price r;
    for (std::size_t k = 0; k < it_.first_element(); k++) {
      const bool is_carry = k >= it_.constants;
      const Type& type = types_[k];
      double moved = 0;
      if (given_[k]) moved += cost(given_[k], where[k], type);
      if (is_carry && !is_asked(k)) moved += cost(where[k], whole_sums(where[k]), type);
      r.all += moved;
      r.bytes += moved;
      r.held += static_cast<double>(
          tile_bytes(*where[k], type.shape, static_cast<std::int64_t>(itemsize(type.dtype))));
    }
    return r;
  }
  // Constants are no longer sharded along these axes.
  RunLayouts with_copies(const SubAxes& sub_axes, const SubAxisList& kind, RunLayouts inputs) const {
    for (std::size_t k = 0; k < it_.constants; k++)
      if (sub_axes.can_express(*inputs[k]))
        inputs[k] = to_layout(sub_axes, without(to_sub_axes(sub_axes, *inputs[k]), kind));
    return inputs;
  }
  // Carries become partial sums over these axes; those that are given as partial sums stay as given.
  RunLayouts with_sums(const SubAxes& sub_axes, const SubAxisList& kind, RunLayouts inputs) const {
    for (std::size_t k = 0; k < it_.carries; k++) {
      const Layout*& l = inputs[it_.constants + k];
      if (is_asked(it_.constants + k)) l = given_[it_.constants + k];
      else if (sums_[k] && sub_axes.can_express(*l))
        l = to_layout(sub_axes, without(to_sub_axes(sub_axes, *l), kind), kind, Reducer::sum);
    }
    return inputs;
  }
  void consider(const RunLayouts& other) {
    if (!tried_.insert(other).second || price_outside(other).all >= least_) return;
    const Partition& p = run_.partitioned(other, true, true);
    if (const double all = price(p, other).all; all < least_ && run_.keeps_carries(p, other)) {
      least_ = all;
      best_ = other;
    }
  }
  // Copies of all constants, else of all but the largest: reading data again costs more than moving it, and parameters are smaller.
  // `settles`: the carries settle for them.
  void consider_copies(const SubAxes& sub_axes, const SubAxisList& kind, const RunLayouts& from,
                       bool settles) {
    RunLayouts copies = with_copies(sub_axes, kind, from);
    for (std::size_t left_out = 0; copies != from && left_out <= kMostLeftOut; left_out++) {
      if (price_outside(copies).all < least_) {
        RunLayouts where = copies;
        if (settles) run_.settle_carries(where, true);
        const double least = least_;
        consider(where);
        consider(with_sums(sub_axes, kind, std::move(where)));
        copies_help_ |= least_ < least;
      }
      if (copies_help_) return;
      std::size_t largest = 0;
      double most = 0;
      for (std::size_t k = 0; k < it_.constants; k++)
        if (copies[k] != from[k])
          if (const double bytes = cost(from[k], copies[k], types_[k]); bytes > most) {
            most = bytes;
            largest = k;
          }
      copies[largest] = from[largest];
    }
  }
  // Drops copies that are not needed beside the others, and partial sums of carries that are better combined: counters.
  void put_back(const RunLayouts& inputs) {
    std::size_t tried = 0;
    for (std::size_t k = 0; k < it_.first_element() && tried < kMostPutBack; k++) {
      const Layout* const back = k < it_.constants ? inputs[k] : whole_sums(best_[k]);
      if (best_[k] == back || (k >= it_.constants && is_asked(k))) continue;
      RunLayouts other = best_;
      other[k] = back;
      consider(other);
      tried++;
    }
  }

  BodyRun& run_;
  const Iteration& it_;
  std::span<const Type> types_;
  std::span<const Layout* const> given_;
  Reshards reshards_;
  const DeviceOrder* order_;
  std::vector<bool> sums_;  // by carry
  RunLayouts best_;
  double least_ = 0;
  bool copies_help_ = false;
  std::set<RunLayouts> tried_;
};

}  // namespace

RunLayouts moved_once(BodyRun& run, const LoopOperands& operands, const RunLayouts& layouts,
                      const RunLayouts& first, const CompileInput& in) {
  return MovesOnce(run, operands, in).of(layouts, first);
}

}  // namespace shardarray
