// On a GPU, for every float32: the kernels' shortcuts (kernels/ordinary.cuh, halves.cuh, scalar.h) have the bits of the operations that
// they replace. Prints a line per shortcut; exit status 1 if a bit differs, or without a GPU.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdio>

#include "kernels/device.cuh"
#include "kernels/elements.cuh"
#include "kernels/halves.cuh"
#include "kernels/ordinary.cuh"

namespace {

using namespace shardarray;
using namespace shardarray::device;

constexpr const char* ways[] = {"y / (y + c)", "c / (y + c)", "roots", "roundings to bfloat16", "max", "min"};
constexpr int count = sizeof ways / sizeof *ways;
struct Found {
  unsigned long long wrong[count];
  unsigned first[count];
};

class Check {
 public:
  __device__ Check(Found& found, unsigned x) : found_(found), x_(x) {}
  __device__ void operator()(int way, float a, float b) const {
    if (__float_as_uint(a) == __float_as_uint(b) || (a != a && b != b)) return;
    if (atomicAdd(&found_.wrong[way], 1ull) == 0) found_.first[way] = x_;
  }

 private:
  Found& found_;
  const unsigned x_;
};

__global__ void check_all(Found* found) {
  const unsigned long long all = 1ull << 32, step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = blockIdx.x * static_cast<unsigned long long>(blockDim.x) + threadIdx.x; i < all;
       i += step) {
    const auto x = static_cast<unsigned>(i);
    const Check check(*found, x);
    const float y = __uint_as_float(x), other = __uint_as_float(x * 2654435761u);
    for (const float c : {1.f, 0.5f, 0x1p-8f, 0x1p7f}) {
      check(0, ratios<1>({y}, {y + c}, {y}).of[0], __fdiv_rn(y, y + c));
      check(1, ratios<1>({1.f}, {y + c}, {y}).of[0], __fdiv_rn(1.f, y + c));
    }
    check(2, roots<1>({y}).of[0], __fsqrt_rn(y));
    check(3, rounded_bfloat16(y), widen_bfloat16(narrow_bfloat16(y)));
    for (const float b : {0.f, -0.f, 1.f, other}) {
      const unsigned u = __float_as_uint(y), v = __float_as_uint(b);
      const bool nan = y != y || b != b;
      const float most = y > b   ? y
                         : b > y ? b
                                 : __uint_as_float(u & v),
                  least = y < b   ? y
                          : b < y ? b
                                  : __uint_as_float(u | v);
      check(4, scalar::max(y, b), nan ? NAN : most);
      check(5, scalar::min(y, b), nan ? NAN : least);
    }
  }
}

}  // namespace

int main() {
  Found* found = nullptr;
  cudaError_t status = cudaMallocHost(&found, sizeof *found);
  if (status == cudaSuccess) {
    *found = {};
    check_all<<<1056, 256>>>(found);
    status = cudaGetLastError();
  }
  if (status == cudaSuccess) status = cudaDeviceSynchronize();
  if (status != cudaSuccess) {
    std::fprintf(stderr, "same_bits: %s\n", cudaGetErrorString(status));
    return 1;
  }
  unsigned long long wrong = 0;
  for (int k = 0; k < count; k++) {
    std::printf("%s: %llu of all float32 differ", ways[k], found->wrong[k]);
    if (found->wrong[k] > 0) std::printf(", the first is 0x%08x", found->first[k]);
    std::printf("\n");
    wrong += found->wrong[k];
  }
  return wrong == 0 ? 0 : 1;
}
