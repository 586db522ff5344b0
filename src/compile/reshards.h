// Paths of reshards and their prices, each looked for once in a compilation.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/reshard.h"

namespace shardarray {

class Reshards {
 public:
  explicit Reshards(const CostModel& model) : model_(model) {}
  /// Of a value of type t from one layout to another of the same devices: the cheapest.
  const ReshardPath& of(const Layout* from, const Layout* to, const Type& t);
  MoveCost cost(const Layout* from, const Layout* to, const Type& t) { return of(from, to, t).cost; }
  const CostModel& model() const { return model_; }

 private:
  const CostModel& model_;
  const ReshardPath stays_;  // of what is there
  std::unordered_map<std::string, ReshardPath> known_;
};

}  // namespace shardarray
