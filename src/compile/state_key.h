// All that a decision depends on, as words.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/passes.h"

namespace shardarray {

using StateKey = std::vector<std::int64_t>;
struct StateHash {
  std::size_t operator()(const StateKey& key) const;
};

class KeyWriter {
 public:
  explicit KeyWriter(StateKey& key) : key_(key) {}
  template <class T> void add(const T* p) {
    add(static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(p)));
  }
  void add(std::int64_t n) { key_.push_back(n); }
  template <class C> void add_all(const C& c) {
    add(static_cast<std::int64_t>(c.size()));
    for (const auto& x : c) add(x);
  }
  void add(const Type& t) {
    add(static_cast<std::int64_t>(t.dtype));
    add_all(t.shape);
  }
  void add(const Rule& r);

 private:
  StateKey& key_;
};

}  // namespace shardarray
