// What the fake libraries share with the fake driver.
#pragma once
#include "fake_control.h"
#include "fake_gpu.h"

namespace shardarray::testing {

/// Every call begins with it: not 0 if the call must fail, because a test asks for that or earlier work failed.
int fake_enter(const char* call);
FakeBlocks& fake_device_blocks();
int fake_current_gpu();
/// Calls of the fake cuBLASLt that were made; 1: of several products, 2: by addresses, 3: with an epilogue, 0: all of them.
std::uint64_t fake_products(int kind);
/// The algorithm of the last one.
int fake_algorithm();
/// As FakeCudaControl says.
std::uint64_t fake_nccl_calls(int kind);
std::uint64_t fake_nccl_misuse();
void fail_fake_nccl(int after, int status);
void break_fake_nccl(int status);
void miss_fake_rank(int gpu);
void differ_fake_rank(int gpu, FakeDifference how);

}  // namespace shardarray::testing
