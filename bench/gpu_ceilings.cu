// What the first GPU can do, without the library: its name, copies, the cost of a launch. Prints `key value` lines; exit status 1
// where there is no GPU. `./dev gpu run` puts its figures beside the library's.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void check(cudaError_t e, const char* what) {
  if (e == cudaSuccess) return;
  std::fprintf(stderr, "gpu_ceilings: %s: %s\n", what, cudaGetErrorString(e));
  std::exit(1);
}

__global__ void copy_kernel(float4* to, const float4* from, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}
__global__ void nothing() {}

/// Median seconds of one of `count` operations, of 15 samples.
template <class F> double seconds(int count, const F& operation) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  std::vector<float> samples;
  for (int k = 0; k < 16; k++) {
    check(cudaEventRecord(begin), "record");
    for (int i = 0; i < count; i++) operation();
    check(cudaEventRecord(end), "record");
    check(cudaEventSynchronize(end), "wait");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "time");
    if (k > 0) samples.push_back(ms);
  }
  std::nth_element(samples.begin(), samples.begin() + samples.size() / 2, samples.end());
  return samples[samples.size() / 2] / 1e3 / count;
}

}  // namespace

int main() {
  int count = 0, driver = 0, runtime = 0;
  check(cudaGetDeviceCount(&count), "devices");
  cudaDeviceProp p{};
  check(cudaGetDeviceProperties(&p, 0), "properties");
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  std::printf(
      "name %s\ncount %d\ncapability %d.%d\nmultiprocessors %d\nmemory_gb %.1f\ndriver %d\nruntime %d\n",
      p.name, count, p.major, p.minor, p.multiProcessorCount, static_cast<double>(p.totalGlobalMem) / 1e9,
      driver, runtime);
  const std::size_t bytes = std::min<std::size_t>(std::size_t{1} << 30, p.totalGlobalMem / 8);
  void *from = nullptr, *to = nullptr, *host = nullptr;
  check(cudaMalloc(&from, bytes), "memory");
  check(cudaMalloc(&to, bytes), "memory");
  check(cudaMallocHost(&host, bytes / 8), "pinned memory");
  check(cudaMemset(from, 1, bytes), "fill");
  const double both = 2e-9 * static_cast<double>(bytes);  // read and written
  const auto blocks = static_cast<unsigned>(p.multiProcessorCount * 16);
  std::printf("copy_gbs %.0f\n", both / seconds(10, [&] {
                                   copy_kernel<<<blocks, 512>>>(static_cast<float4*>(to),
                                                                static_cast<const float4*>(from), bytes / 16);
                                 }));
  check(cudaGetLastError(), "launch");
  std::printf(
      "memcpy_gbs %.0f\n",
      both / seconds(10, [&] { check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice), "copy"); }));
  const double part = 1e-9 * static_cast<double>(bytes / 8);
  std::printf("to_device_gbs %.1f\n", part / seconds(3, [&] {
                                        check(cudaMemcpyAsync(to, host, bytes / 8, cudaMemcpyHostToDevice),
                                              "copy");
                                      }));
  std::printf("to_host_gbs %.1f\n", part / seconds(3, [&] {
                                      check(cudaMemcpyAsync(host, to, bytes / 8, cudaMemcpyDeviceToHost),
                                            "copy");
                                    }));
  std::printf("launch_us %.2f\n", 1e6 * seconds(1000, [] { nothing<<<1, 32>>>(); }));
  return 0;
}
