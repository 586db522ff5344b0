// Transport: how values come from device to device. The steps of a program are the same for all of them: boxes that are
// copied, or combined in a fixed order (Exchange). One process on CPUs copies in memory; other transports send.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/program.h"

namespace shardarray {

/// One destination's part of an exchange, ready to run in chunks of units that any worker may take.
class Communication {
 public:
  virtual ~Communication() = default;
  /// Units are elements: [0, fill_units()) those of the destination where it is filled, [fill_units(), units()) those of the
  /// pieces, in order, which come from sources. The first part must end before the second begins; apart from that any cut
  /// gives the same bits.
  virtual std::int64_t fill_units() const = 0;
  virtual std::int64_t units() const = 0;
  virtual double cost_ns(std::int64_t begin, std::int64_t end) const = 0;
  /// An exception ends the run of the program: its other steps stop and the caller gets it.
  virtual void run(void* const* bases, std::int64_t begin, std::int64_t end) const = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// bases[counters] points to the bytes received so far, one int64 for each transfer; it may be null.
  /// Throws CompileError for what it cannot do.
  virtual std::unique_ptr<Communication> plan(const Exchange& x, const Exchange::Item& item,
                                              std::uint32_t counters) = 0;
};

}  // namespace shardarray
