#include "ops/table.h"

namespace shardarray {

std::span<const Op* const> all_ops() {
  static const auto& ops = *[] {
    auto* const all = new std::vector<const Op*>;
    for (const auto& part : {arithmetic_ops, math_ops, logic_ops, movement_ops, slicing_ops, reduce_ops,
                             dot_ops, gather_ops, structure_ops, collective_ops, host_ops})
      all->insert(all->end(), part.begin(), part.end());
    return all;
  }();
  return ops;
}

}  // namespace shardarray
