// What one process does of a program that spans several, as launches see it: where what has come lies, and what moves together.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/local_part.h"

namespace shardarray::cuda {

/// Position of the device on which a base of the program is: a part of one has bases elsewhere too, of which this says -1.
std::vector<int> devices_of_bases(const Program& program);
/// The part's program, in which whatever has come from another process is where it lies: on a device here. `is_here`: position -> whether
/// a device is.
std::shared_ptr<const Program> with_own_sources(const Program& program, const std::vector<bool>& is_here);
/// The boxes that move before step `step`, those of each exchange at once, one after the other: no exchange waits for a later one.
std::vector<std::span<const PartBox>> crossings(std::span<const PartBox> boxes, std::size_t step);

}  // namespace shardarray::cuda
