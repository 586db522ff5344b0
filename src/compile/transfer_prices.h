// What transfers cost, each looked up once in a compilation.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/cost.h"
#include "compile/passes.h"

namespace shardarray {

class TransferPrices {
 public:
  explicit TransferPrices(const CostModel& model) : model_(model) {}
  /// Of a value of type t from one layout to another, along the cheapest path.
  MoveCost of(const Layout* from, const Layout* to, const Type& t);
  const CostModel& model() const { return model_; }

 private:
  const CostModel& model_;
  std::unordered_map<std::string, MoveCost> known_;
};

}  // namespace shardarray
