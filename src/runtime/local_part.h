// One process's part of a program that spans several.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/fingerprint.h"
#include "runtime/program.h"

namespace shardarray {

/// A box that every run sends to another process or receives from one.
struct PartBox {
  std::size_t step = 0;      ///< the part's program step before which it moves; ascending
  std::size_t exchange = 0;  ///< step of the whole program; boxes of one step move together, sends first
  bool sent = false;         ///< otherwise received
  int peer = 0;
  int memory = 0;  ///< Device::memory of the peer's device
  std::uint64_t tag = 0;
  Ref ref;  ///< address of its first byte
  std::uint64_t bytes = 0;
  int device = 0;          ///< Device::id of the local device
  int transfer = -1;       ///< the entry of Program::transfers that counts its bytes; -1: an exchange does
  std::string label = {};  ///< of its step, which may consist only of boxes
  Where where = {};
};

/// A tag that no box has: for what a backend tells other processes before the first box.
inline constexpr std::uint64_t parcel_of_the_begin = 0, first_box_tag = 1;

struct LocalPart {
  /// Has the bases of the whole program, of which this process uses those of its own devices and instances: ports and steps contain only
  /// these. Boxes from other devices are in scratch added to the arenas.
  std::shared_ptr<const Program> program;
  std::vector<PartBox> boxes;
  std::vector<int>
      peers;  ///< the other processes of the program, ascending; empty if this one has none of its devices
  std::shared_ptr<const Fingerprint> fingerprint;  ///< of the whole program: equal in all processes
};

/// Throws CompileError for what cannot be split yet.
LocalPart local_part(const Program& program, int process);

}  // namespace shardarray
