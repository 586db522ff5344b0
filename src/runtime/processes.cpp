#include "runtime/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>

#include "abi_hash.h"
#include "base/count_text.h"
#include "base/env.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

/// The variables in which a launcher gives the number of processes and the index of this one.
struct Launcher {
  const char *count, *index;
};
constexpr Launcher launchers[] = {{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},  // mpirun of Open MPI
                                  {"PMI_SIZE", "PMI_RANK"},                          // MPICH and derivatives
                                  {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},          // srun
                                  {"WORLD_SIZE", "RANK"}};                           // torchrun and similar
constexpr int most_processes = 1 << 20;

std::int64_t number(const char* variable) {
  try {
    return env_int(variable, -1, 0, most_processes);
  } catch (const Error& e) { throw DeviceError(e.text()); }
}

/// How many processes a launcher started; 1 if there is no launcher.
int launched_processes() {
  for (const Launcher& l : launchers) {
    const std::int64_t count = number(l.count), index = number(l.index);
    if (count <= 1 && index <= 0) continue;
    if (count < 1 || index < 0 || index >= count)
      throw DeviceError(
          fmt::format("processes: {} is {} and {} is {}. A launcher sets both, the second below the first. "
                      "Start the program by mpirun or srun, or set SHARDARRAY_PROCESSES=alone.",
                      l.count, count < 0 ? "not set" : std::to_string(count), l.index,
                      index < 0 ? "not set" : std::to_string(index)));
    return static_cast<int>(count);
  }
  return 1;
}

bool wants_to_be_alone() {
  const char* const said = std::getenv("SHARDARRAY_PROCESSES");
  if (said == nullptr || *said == 0 || std::string_view(said) == "auto") return false;
  if (std::string_view(said) == "alone") return true;
  throw DeviceError(fmt::format(
      "environment: SHARDARRAY_PROCESSES={} is not understood. It is `auto`: the processes that a "
      "launcher started belong together, or `alone`. Correct the variable or unset it.",
      said));
}

/// All processes must run the same build.
void check_builds(Processes& all) {
  const std::string mine = fmt::format("{} ({:016x})", SHARDARRAY_PLUGIN_VERSION, abi_hash());
  const std::vector<std::string> builds = all.all_gather("join", mine);
  for (std::size_t p = 0; p < builds.size(); p++)
    if (builds[p] != builds[0])
      throw DeviceError(
          fmt::format("processes: process 0 has version {} of the library, process {} has {}. All processes "
                      "run one build. Install it on all machines.",
                      builds[0], p, builds[p]));
}

Processes* joined() {
  if (wants_to_be_alone()) return nullptr;
  const int count = launched_processes();
  if (count == 1) return nullptr;
  const ProcessesPlugin* plugin = nullptr;
  try {
    plugin = static_cast<const ProcessesPlugin*>(
        &open_plugin(plugin_path("mpi"), "processes", "MPI (Open MPI 4.1 or another MPI 3.1)"));
  } catch (const CompileError& e) {
    throw DeviceError(
        e.text() +
        fmt::format(
            " A launcher has started {}; SHARDARRAY_PROCESSES=alone lets each of them run for itself.",
            count_text(count, "process")));
  }
  static std::exception_ptr& failure = *new std::exception_ptr;  // MPI can be started only once
  if (failure) std::rethrow_exception(failure);
  try {
    Processes* const all = plugin->join(count);
    check_builds(*all);
    return all;
  } catch (...) {
    failure = std::current_exception();
    throw;
  }
}

struct Joining {
  std::mutex mutex;
  std::atomic<bool> done{false};
  Processes* all = nullptr;
};

}  // namespace

Processes* other_processes() {
  static Joining& j = *new Joining;  // never destroyed
  if (j.done.load(std::memory_order_acquire)) return j.all;
  const std::lock_guard lock(
      j.mutex);  // not a static object: if its initialization throws, waiting threads may hang
  if (!j.done.load(std::memory_order_relaxed)) {
    j.all = joined();
    j.done.store(true, std::memory_order_release);
  }
  return j.all;
}

std::vector<std::string> gather_texts(Processes& all, const std::string& what, const std::string& mine) {
  // MPI counts the bytes of all processes in 31 bits.
  const std::size_t most = std::min<std::size_t>(
      std::size_t{1} << 26, (std::size_t{1} << 31) / static_cast<std::size_t>(all.count()) - 64);
  std::vector<std::string> r(static_cast<std::size_t>(all.count()));
  std::size_t longest = mine.size();
  for (std::size_t at = 0; at == 0 || at < longest; at += most) {
    std::string part = at < mine.size() ? mine.substr(at, most) : std::string();
    if (at == 0) part = fmt::format("{} ", mine.size()) + part;
    std::vector<std::string> parts = all.all_gather(what, part);
    for (std::size_t p = 0; p < r.size(); p++) {
      if (at == 0) {
        const std::size_t space = parts[p].find(' ');
        longest = std::max(longest, static_cast<std::size_t>(std::stoull(parts[p].substr(0, space))));
        parts[p].erase(0, space + 1);
      }
      r[p] += parts[p];
    }
  }
  return r;
}

std::vector<Device> devices_of_processes(const char* platform, std::span<const int> counts) {
  std::vector<Device> devices;
  for (std::size_t p = 0; p < counts.size(); p++)
    for (int k = 0; k < counts[p]; k++) {
      Device d;
      d.id = static_cast<int>(devices.size());
      d.platform = d.kind = platform;
      d.process_index = static_cast<int>(p);
      devices.push_back(std::move(d));
    }
  return devices;
}

}  // namespace shardarray
