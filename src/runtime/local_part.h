// What one process does of a program that spans several.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/fingerprint.h"
#include "runtime/program.h"

namespace shardarray {

/// A box that every run sends to another process or receives from there.
struct PartBox {
  std::size_t step = 0;  ///< of the part's program, before which it moves; later boxes have no earlier one
  std::size_t exchange = 0;  ///< of the whole program; those of one move at once, first what is sent
  bool sent = false;         ///< else received
  int peer = 0;
  int memory = 0;  ///< Device::memory of the device there
  std::uint64_t tag = 0;
  Ref ref;  ///< of its first byte
  std::uint64_t bytes = 0;
  int device = 0;          ///< Device::id of the one here that it is of
  int transfer = -1;       ///< the Program::transfers that counts its bytes; -1: an exchange does
  std::string label = {};  ///< of its step, which may be whole in boxes
  Where where = {};
};

/// The tag that no box has: of what a backend tells those of other processes before the first one.
inline constexpr std::uint64_t parcel_of_the_begin = 0, first_box_tag = 1;

struct LocalPart {
  /// The whole program's bases, of which this process has those of its own devices and instances: ports list only these, steps
  /// have only items of these devices. What other devices' boxes bring stands in scratch that is added to the arenas.
  std::shared_ptr<const Program> program;
  std::vector<PartBox> boxes;
  std::vector<int>
      peers;  ///< the other processes of the program, ascending; none where this one has no device in it
  std::shared_ptr<const Fingerprint> fingerprint;  ///< of the whole program: the same in all processes
};

/// Throws CompileError for what cannot be split yet.
LocalPart local_part(const Program& program, int process);

}  // namespace shardarray
