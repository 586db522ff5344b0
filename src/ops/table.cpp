#include "ops/table.h"

namespace shardarray {

std::span<const Op* const> all_ops() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> v;
    for (const auto& part : {arithmetic_ops, math_ops, logic_ops, movement_ops, slicing_ops, reduce_ops,
                             dot_ops, gather_ops, structure_ops, collective_ops, host_ops})
      v.insert(v.end(), part.begin(), part.end());
    return v;
  }();
  return ops;
}

}  // namespace shardarray
