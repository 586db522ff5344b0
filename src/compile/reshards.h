// Paths of reshards, their prices and what they move, each found once in a compilation.
#pragma once
#include <string>
#include <unordered_map>

#include "compile/reshard.h"
#include "compile/state_key.h"

namespace shardarray {

class Reshards {
 public:
  explicit Reshards(const CostModel& model) : model_(model) {}
  /// Of a value of type t from one layout to another of the same devices: the cheapest.
  const ReshardPath& of(const Layout* from, const Layout* to, const Type& t);
  MoveCost cost(const Layout* from, const Layout* to, const Type& t) { return of(from, to, t).cost; }
  /// One transfer between any layouts, with what each device receives.
  const Transfer& transfer(const Layout* from, const Layout* to, const Type& t);
  /// What the device that has to receive most has to, see least_received(); 0: not known.
  std::int64_t least(const Layout* from, const Layout* to, const Type& t);
  /// What count() says of neighbours' elements, asked once for each key.
  template <class F> std::int64_t neighbours(const StateKey& key, const F& count) {
    const auto [it, fresh] = neighbours_.try_emplace(key);
    if (fresh) it->second = count();
    return it->second;
  }
  const CostModel& model() const { return model_; }

 private:
  const CostModel& model_;
  const ReshardPath stays_;  // of what is there
  std::unordered_map<std::string, ReshardPath> known_;
  std::unordered_map<std::string, Transfer> transfers_;
  std::unordered_map<std::string, std::int64_t> least_;
  std::unordered_map<StateKey, std::int64_t, StateHash> neighbours_;
};

}  // namespace shardarray
