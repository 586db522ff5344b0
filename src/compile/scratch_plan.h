// Places temporaries in the arenas of their devices. Devices that hold equally much of each of them have the same addresses, so that only
// one device of each kind is planned.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "compile/addresses.h"
#include "compile/lives.h"

namespace shardarray {

class ScratchPlan {
 public:
  ScratchPlan(std::vector<Memory>& memories, const Lives& temporary, std::size_t devices,
              std::uint64_t alignment);
  /// Places some of these memories. Returns the bytes of the arenas, by device.
  std::vector<std::uint64_t> place(const Lives& temporary);
  /// Sets their addresses to the places that were found last.
  void give_addresses(const Lives& temporary);
  /// By group: bytes of these memories on the device that holds most.
  std::vector<std::uint64_t> held(const Lives& temporary, std::size_t groups) const;

 private:
  struct Part {
    std::size_t kind;
    std::uint64_t bytes, offset;
  };
  std::vector<Memory>& memories_;
  const std::uint64_t alignment_;
  std::vector<std::size_t> kind_;  // by device
  std::size_t kinds_ = 0;
  std::map<int, std::vector<Part>> parts_;  // by memory: on a device of each kind that holds it
};

}  // namespace shardarray
