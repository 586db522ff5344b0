// The launches of prefix scans: in tiles, with one launch if there are enough lines, else with three.
#pragma once
#include <cstdint>
#include <vector>

#include "cuda/launch.h"

namespace shardarray::cuda {

void add_scan(const Step& step, const LibraryCall& call, std::uint64_t alignment,
              std::vector<KernelLaunch>& to);

}  // namespace shardarray::cuda
