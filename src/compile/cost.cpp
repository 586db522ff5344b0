#include "compile/cost.h"

namespace shardarray {

// One transfer's start, in bytes: keeps tiny values from taking detours that save a few bytes.
constexpr double kLatency = 64;

double CostModel::moved(std::int64_t bytes) const {
  return bytes > 0 ? static_cast<double>(bytes) + kLatency : 0;
}

double CostModel::transfer(const Layout* from, const Layout* to, const Shape& shape,
                           std::int64_t itemsize) const {
  if (from == to) return 0;
  double cost = 0;
  const Layout* at = from;
  for (const Layout* next : transfer_path(from, to, shape, itemsize)) {
    cost += moved(transfer_cost(*at, *next, shape, itemsize).bytes);
    at = next;
  }
  return cost;
}

}  // namespace shardarray
