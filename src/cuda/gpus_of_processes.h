// The GPUs of a multi-process program: what each process sees, which ones it uses, and all their devices.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shardarray/device.h"

namespace shardarray::cuda {

/// What CUDA shows a process, as sent to the others.
struct SeenGpus {
  struct Seen {
    std::string uuid, name;
    std::uint64_t memory = 0;  ///< bytes available to arrays
  };
  std::vector<Seen> gpus;   ///< in CUDA's order
  int logical_devices = 1;  ///< per GPU
  int nccl = 0;             ///< version; 0: none
  std::string failure;      ///< why the process can use no GPU, if so
};
std::string to_text(const SeenGpus& seen);
SeenGpus seen_gpus(const std::string& text);

/// The GPUs in use.
struct UsedGpus {
  std::vector<std::vector<int>> numbers;  ///< process -> its GPUs, in its own CUDA numbering, consecutive
  std::vector<Device> devices;            ///< of all processes, by ascending id
  std::uint64_t memory = 0;               ///< bytes per device available to arrays, the same everywhere
  std::vector<std::vector<std::string>> uuids;  ///< of `numbers`
  bool by_nccl =
      false;  ///< NCCL can move boxes between them: one version everywhere, no GPU shared by processes
};
/// Processes that see the same GPUs in the same order divide them: each gets a consecutive range, or, with fewer GPUs than processes,
/// shares one. Throws DeviceError naming a process that has none.
UsedGpus deal_out(const std::vector<SeenGpus>& all);

}  // namespace shardarray::cuda
