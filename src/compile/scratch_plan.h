// Where temporary values lie in the arenas of their devices. Devices that hold as much of each of them need the same addresses:
// whatever the number of devices, those of one of a kind are looked for.
#pragma once
#include <cstdint>
#include <vector>

#include "compile/addresses.h"
#include "compile/lives.h"

namespace shardarray {

class ScratchPlan {
 public:
  ScratchPlan(std::vector<Memory>& memories, const Lives& temporary, std::size_t devices,
              std::uint64_t alignment);
  /// Gives addresses to some of these memories. Bytes of the arenas, by device.
  std::vector<std::uint64_t> place(const Lives& temporary);
  /// By group: bytes of these memories on the device that holds most.
  std::vector<std::uint64_t> held(const Lives& temporary, std::size_t groups) const;

 private:
  // f(kind, number of the instance) of one device of each kind that holds the memory.
  template <class F> void each_kind(const Memory& memory, const F& f) const;

  std::vector<Memory>& memories_;
  const std::uint64_t alignment_;
  std::vector<std::size_t> kind_;  // by device
  std::vector<int> devices_;       // by kind: the first one
};

}  // namespace shardarray
