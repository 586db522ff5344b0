// Reshard paths, their costs and transfers, each found once per compilation.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/reshard.h"
#include "compile/state_key.h"

namespace shardarray {

class Reshards {
 public:
  explicit Reshards(const CostModel& model) : model_(model) {}
  /// The cheapest, for a value of type t between layouts of the same devices.
  const ReshardPath& of(const Layout* from, const Layout* to, const Type& t);
  MoveCost cost(const Layout* from, const Layout* to, const Type& t) { return of(from, to, t).cost; }
  /// One transfer between any two layouts, with what each device receives.
  const Transfer& transfer(const Layout* from, const Layout* to, const Type& t);
  /// Lower bound of what the busiest device receives, see least_received(); 0: unknown.
  std::int64_t least(const Layout* from, const Layout* to, const Type& t);
  /// The result of count() for neighbours' data, called once per key.
  template <class F> std::int64_t neighbours(const StateKey& key, const F& count) {
    const auto [it, fresh] = neighbours_.try_emplace(key);
    if (fresh) it->second = count();
    return it->second;
  }
  const CostModel& model() const { return model_; }

 private:
  const CostModel& model_;
  const ReshardPath stays_;  // empty
  std::unordered_map<std::string, ReshardPath> known_;
  std::unordered_map<std::string, Transfer> transfers_;
  std::unordered_map<std::string, std::int64_t> least_;
  std::unordered_map<StateKey, std::int64_t, StateHash> neighbours_;
};

}  // namespace shardarray
