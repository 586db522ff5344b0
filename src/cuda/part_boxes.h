// One process's part of a program over several, as launches see it: where received boxes lie, and what moves together.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/local_part.h"

namespace shardarray::cuda {

/// By base: the position of its device, or -1 if a part's base is on another process's device.
std::vector<int> devices_of_bases(const Program& program);
/// The part's program with sources received from other processes replaced by their copies on local devices. `is_here`: by position, whether
/// the device is local.
std::shared_ptr<const Program> with_own_sources(const Program& program, const std::vector<bool>& is_here);
/// The boxes that move before step `step`, grouped by exchange, in order: no exchange waits for a later one.
std::vector<std::span<const PartBox>> crossings(std::span<const PartBox> boxes, std::size_t step);

}  // namespace shardarray::cuda
