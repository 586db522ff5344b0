// The processes of one launched program: which one this is, and how they exchange texts. A plug-in (src/mpi) joins them; it is opened only
// if a launcher's environment is found.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/plugin.h"
#include "runtime/transport.h"
#include "shardarray/device.h"

namespace shardarray {

/// All processes, as seen by one. Thread-safe.
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int index() const = 0;
  virtual int count() const = 0;
  /// Gathers one text of each process, ordered by index; blocks until all have called. All must make the same calls in the same order;
  /// `what` identifies the call. Throws TransportError if one makes another call, has ended or failed, or is silent too long.
  virtual std::vector<std::string> all_gather(const std::string& what, const std::string& mine) = 0;
  virtual Transport& transport() = 0;
};

/// all_gather() for texts of any length, in parts.
std::vector<std::string> gather_texts(Processes& all, const std::string& what, const std::string& mine);

/// A plug-in that joins processes.
struct ProcessesPlugin : Plugin {
  /// Joins all processes, of which `count` are expected. The object is never destroyed. Throws DeviceError.
  Processes* (*join)(int count) = nullptr;
};

/// The processes launched together with this one, joined at the first use; null if it is alone. Throws DeviceError if a launcher's
/// variables contradict each other or the plug-in is missing. If the others run another build or do not join, every later call throws as
/// well, because MPI starts only once.
Processes* other_processes();

/// All devices of this platform, numbered through, if process k has counts[k].
std::vector<Device> devices_of_processes(const char* platform, std::span<const int> counts);

}  // namespace shardarray
