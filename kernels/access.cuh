// How kernels check their accesses to elements.
#pragma once
#ifndef __CUDACC__
#include <stdexcept>
#endif

#include "kernels/device.cuh"

namespace shardarray::device {

/// Faults on a misaligned address as the device does; the host would read it.
SHARDARRAY_DEVICE inline void check_aligned([[maybe_unused]] const std::byte* p,
                                            [[maybe_unused]] std::uint32_t bytes) {
#ifndef __CUDACC__
  if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0) throw std::runtime_error("misaligned address");
#endif
}

}  // namespace shardarray::device
