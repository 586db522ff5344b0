// What the fake driver's calls give, by CUDA's numbers and names.
#pragma once
#include "cuda/driver.h"

namespace shardarray::cuda {

inline constexpr Status invalid_value = 1, invalid_grid = 9, invalid_image = 200, invalid_handle = 400,
                        no_symbol = 500, not_while_capturing = 900, capture_spoiled = 901,
                        captures_merged = 902, other_origin = 903, not_joined = 904, not_captured = 905,
                        captured_event = 907, other_nodes = 910;

inline const char* name_of(Status status) {
  switch (status) {
    case ok: return "cudaSuccess";
    case invalid_value: return "cudaErrorInvalidValue";
    case out_of_memory: return "cudaErrorMemoryAllocation";
    case invalid_grid: return "cudaErrorInvalidConfiguration";
    case no_device: return "cudaErrorNoDevice";
    case invalid_handle: return "cudaErrorInvalidResourceHandle";
    case no_symbol: return "cudaErrorSymbolNotFound";
    case 700: return "cudaErrorIllegalAddress";
    case 802: return "cudaErrorSystemNotReady";
    case not_joined: return "cudaErrorStreamCaptureUnjoined";
    case not_captured: return "cudaErrorStreamCaptureIsolation";
    default: return "cudaErrorUnknown";
  }
}

}  // namespace shardarray::cuda
