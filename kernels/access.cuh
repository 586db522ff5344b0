// Where kernels read and write elements.
#pragma once
#ifndef __CUDACC__
#include <stdexcept>
#endif

#include "kernels/device.cuh"

namespace shardarray::device {

/// What the device does at such an address; hosts would read it.
SHARDARRAY_DEVICE inline void check_aligned([[maybe_unused]] const std::byte* p,
                                            [[maybe_unused]] std::uint32_t bytes) {
#ifndef __CUDACC__
  if (reinterpret_cast<std::uintptr_t>(p) % bytes != 0) throw std::runtime_error("misaligned address");
#endif
}

}  // namespace shardarray::device
