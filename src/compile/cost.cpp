#include "compile/cost.h"

namespace shardarray {

double CostModel::transfer(const Layout* from, const Layout* to, const Shape& shape, std::int64_t itemsize) const {
  if (from == to) return 0;
  double cost = 0;
  const Layout* at = from;
  for (const Layout* next : transfer_path(from, to, shape, itemsize)) {
    const TransferCost step = transfer_cost(*at, *next, shape, itemsize);
    cost += static_cast<double>(step.bytes) + (step.bytes > 0 ? 0.25 : 0);
    at = next;
  }
  return cost;
}

}  // namespace shardarray
