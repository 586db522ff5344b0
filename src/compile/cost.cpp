#include "compile/cost.h"

namespace shardarray {

// One transfer's start, in bytes: keeps tiny values from taking detours that save a few bytes.
constexpr double kLatency = 64;

double CostModel::transfer(const Layout* from, const Layout* to, const Shape& shape,
                           std::int64_t itemsize) const {
  if (from == to) return 0;
  double cost = 0;
  const Layout* at = from;
  for (const Layout* next : transfer_path(from, to, shape, itemsize)) {
    const TransferCost step = transfer_cost(*at, *next, shape, itemsize);
    cost += static_cast<double>(step.bytes) + (step.bytes > 0 ? kLatency : 0);
    at = next;
  }
  return cost;
}

}  // namespace shardarray
