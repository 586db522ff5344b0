// The processes of one program that a launcher has started several times: which one this is, and what they tell each other.
// A plug-in joins them (src/mpi): it is opened where a launcher's environment is found, and nowhere else.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "runtime/plugin.h"
#include "runtime/transport.h"
#include "shardarray/device.h"

namespace shardarray {

/// All of them, as one sees them. All calls are thread-safe.
class Processes {
 public:
  virtual ~Processes() = default;
  virtual int index() const = 0;
  virtual int count() const = 0;
  /// What each of them gives, in order of index; it returns when all have asked. They ask in one order, `what` says for what. Throws
  /// TransportError where one asks for something else, has ended or failed, or is silent too long.
  virtual std::vector<std::string> all_gather(const std::string& what, const std::string& mine) = 0;
  virtual Transport& transport() = 0;
};

/// all_gather() of texts of any length, in parts.
std::vector<std::string> gather_texts(Processes& all, const std::string& what, const std::string& mine);

/// What a plug-in that joins processes brings.
struct ProcessesPlugin : Plugin {
  /// Joins all of them, of which there should be `count`. The object is never destroyed. Throws DeviceError.
  Processes* (*join)(int count) = nullptr;
};

/// Those that this one was started with; null: it is alone. They are joined at the first use, if there are others. Throws
/// DeviceError where a launcher's variables contradict each other or the plug-in is missing; where the others are of another build or do
/// not join: at every call, since MPI starts once.
Processes* other_processes();

/// Process k has counts[k] devices of this platform: all of them, numbered through.
std::vector<Device> devices_of_processes(const char* platform, std::span<const int> counts);

}  // namespace shardarray
