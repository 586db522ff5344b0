// The GPUs of a program of several processes: what each of them sees, which ones it uses, and the devices that all have together.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shardarray/device.h"

namespace shardarray::cuda {

/// What CUDA shows a process, as it tells the others.
struct SeenGpus {
  struct Seen {
    std::string uuid, name;
    std::uint64_t memory = 0;  ///< bytes that arrays may have
  };
  std::vector<Seen> gpus;   ///< in the order of CUDA's numbers
  int logical_devices = 1;  ///< on each
  int nccl = 0;             ///< its version; 0: there is none
  std::string failure;      ///< why it can use none, where it cannot
};
std::string to_text(const SeenGpus& seen);
SeenGpus seen_gpus(const std::string& text);

/// What is used of them.
struct UsedGpus {
  std::vector<std::vector<int>>
      numbers;                  ///< process -> GPUs, as CUDA numbers them there: one after the other
  std::vector<Device> devices;  ///< of all processes, by ascending id
  std::uint64_t memory = 0;     ///< bytes of a device that arrays may have: the same everywhere
  std::vector<std::vector<std::string>> uuids;  ///< of `numbers`
  bool by_nccl =
      false;  ///< it can move boxes between them: all have the same one, and no GPU is that of two processes
};
/// Processes that see the same GPUs in the same order deal them out: each gets a row of them, or, if there are fewer than processes,
/// one that others use too. Throws DeviceError naming a process that has none.
UsedGpus deal_out(const std::vector<SeenGpus>& all);

}  // namespace shardarray::cuda
