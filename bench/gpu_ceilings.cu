// What the first GPU can do without the library: its name, copies, the cost of a launch; products by cuBLASLt and random floats by cuRAND
// if these are installed.
//   gpu_ceilings [ROWS]     ROWS: of the square matrices that are multiplied (4096)
// Prints `key value` lines; exit status 1 without a GPU. `./dev gpu run` compares the library with these figures.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#if __has_include(<curand.h>)
#include <curand.h>
#define CEILINGS_HAVE_CURAND
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
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
__device__ float uniform_of(std::uint32_t i) {
  std::uint32_t x = i * 2654435761u + 12345u;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  x ^= x >> 16;
  return (static_cast<float>(x >> 8) + 0.5f) / 16777216.0f;
}
/// Normal numbers, as in the library's rows: the power that a product takes depends on the values.
template <class T> __global__ void random_normals(T* to, std::size_t n) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const auto at = static_cast<std::uint32_t>(2 * i);
    to[i] = static_cast<T>(sqrtf(-2 * logf(uniform_of(at))) * cospif(2 * uniform_of(at + 1)));
  }
}

double median(std::vector<float> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

/// The median of 15 samples of `count` operations: seconds of one.
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
  return median(samples) / 1e3 / count;
}

/// The same for an operation that takes about `guess` seconds, after the GPU has done nothing else for 0.1 s: in a short burst its clock is
/// higher than its power limit sustains.
template <class F> double lasting_seconds(double guess, const F& operation) {
  constexpr double sample = 0.01, warm = 0.1, all = 0.4;
  const int count = std::max(1, static_cast<int>(sample / guess));
  const auto samples = static_cast<std::size_t>(all / sample),
             unused = static_cast<std::size_t>(warm / sample);
  std::vector<cudaEvent_t> ends(samples + 1);
  for (cudaEvent_t& e : ends) check(cudaEventCreate(&e), "event");
  check(cudaEventRecord(ends[0]), "record");
  for (std::size_t k = 1; k <= samples; k++) {
    for (int i = 0; i < count; i++) operation();
    check(cudaEventRecord(ends[k]), "record");
    check(cudaEventSynchronize(ends[k - 1]), "wait");  // one sample ahead: the GPU never waits
  }
  check(cudaEventSynchronize(ends[samples]), "wait");
  std::vector<float> times;
  for (std::size_t k = unused; k < samples; k++) {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, ends[k], ends[k + 1]), "time");
    times.push_back(ms);
  }
  for (const cudaEvent_t e : ends) check(cudaEventDestroy(e), "event");
  return median(times) / 1e3 / count;
}

/// A library that a machine may lack. Failed calls end the program.
class Calls {
 public:
  explicit Calls(const char* name) : name_(name), library_(dlopen(name, RTLD_NOW)) {
    if (library_ == nullptr)
      library_ = dlopen((std::string("/usr/local/cuda/lib64/") + name).c_str(), RTLD_NOW);
    if (library_ == nullptr) std::fprintf(stderr, "gpu_ceilings: %s is not installed\n", name);
  }
  explicit operator bool() const { return library_ != nullptr; }
  /// F: the type of the header's declaration.
  template <class F, class... Arguments> void call(const char* function, Arguments... arguments) const {
    auto* const f = reinterpret_cast<F*>(dlsym(library_, function));
    const int status = f == nullptr ? -1 : static_cast<int>(f(arguments...));
    if (status == 0) return;
    std::fprintf(stderr, "gpu_ceilings: %s: %s gave %d\n", name_, function, status);
    std::exit(1);
  }

 private:
  const char* name_;
  void* library_;
};
#define CEILINGS_CALL(calls, function, ...) (calls).call<decltype(function)>(#function, __VA_ARGS__)

#ifdef CEILINGS_HAVE_CURAND
/// Uniform and normal floats by Philox, as many as fit at `to`.
void measure_random(float* to, std::size_t n) {
  const Calls curand("libcurand.so.10");
  if (!curand) return;
  curandGenerator_t generator{};
  CEILINGS_CALL(curand, curandCreateGenerator, &generator, CURAND_RNG_PSEUDO_PHILOX4_32_10);
  CEILINGS_CALL(curand, curandSetPseudoRandomGeneratorSeed, generator, 42ull);
  const double bytes = 4e-9 * static_cast<double>(n);
  const double uniform = seconds(10, [&] { CEILINGS_CALL(curand, curandGenerateUniform, generator, to, n); });
  std::printf("curand_uniform_gbs %.0f\n", bytes / uniform);
  const double normal =
      seconds(10, [&] { CEILINGS_CALL(curand, curandGenerateNormal, generator, to, n, 0.0f, 1.0f); });
  std::printf("curand_normal_gbs %.0f\n", bytes / normal);
}
#else
void measure_random(float*, std::size_t) {
  std::fprintf(stderr, "gpu_ceilings: built without cuRAND's header\n");
}
#endif

/// Products of square random matrices by the fastest of eight algorithms that cuBLASLt proposes, under a lasting load like the library's
/// rows.
class Products {
 public:
  Products(const Calls& lt, std::size_t n, void* a, void* b, void* c, void* workspace)
      : lt_(lt), n_(n), a_(a), b_(b), c_(c), workspace_(workspace) {
    CEILINGS_CALL(lt_, cublasLtCreate, &handle_);
  }
  void measure(const char* key, cudaDataType_t type, cublasComputeType_t compute) const {
    cublasLtMatmulDesc_t product{};
    cublasLtMatrixLayout_t layout{};
    cublasLtMatmulPreference_t preference{};
    CEILINGS_CALL(lt_, cublasLtMatmulDescCreate, &product, compute, CUDA_R_32F);
    CEILINGS_CALL(lt_, cublasLtMatrixLayoutCreate, &layout, type, n_, n_, static_cast<std::int64_t>(n_));
    CEILINGS_CALL(lt_, cublasLtMatmulPreferenceCreate, &preference);
    std::size_t bytes = workspace_bytes;
    CEILINGS_CALL(lt_, cublasLtMatmulPreferenceSetAttribute, preference,
                  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes);
    cublasLtMatmulHeuristicResult_t found[8];
    int count = 0;
    CEILINGS_CALL(lt_, cublasLtMatmulAlgoGetHeuristic, handle_, product, layout, layout, layout, layout,
                  preference, 8, found, &count);
    const auto multiplied = [&](int k) {
      const float one = 1, zero = 0;
      CEILINGS_CALL(lt_, cublasLtMatmul, handle_, product, &one, a_, layout, b_, layout, &zero, c_, layout,
                    c_, layout, &found[k].algo, workspace_, workspace_bytes, nullptr);
    };
    std::vector<double> burst;
    for (int k = 0; k < count; k++) burst.push_back(seconds(4, [&] { multiplied(k); }));
    const auto best = std::min_element(burst.begin(), burst.end());
    if (best == burst.end()) return;
    const double s = lasting_seconds(*best, [&] { multiplied(static_cast<int>(best - burst.begin())); });
    const auto side = static_cast<double>(n_);
    std::printf("%s %.2f\n", key, 2e-12 * side * side * side / s);
  }
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

 private:
  const Calls& lt_;
  std::size_t n_;
  void *a_, *b_, *c_, *workspace_;
  cublasLtHandle_t handle_{};
};

/// `a`, `b`, `c`: `bytes` of memory each.
void measure_products(std::size_t n, void* a, void* b, void* c, std::size_t bytes) {
  const Calls lt("libcublasLt.so.13");
  if (!lt || bytes < n * n * sizeof(float)) return;
  void* workspace = nullptr;
  check(cudaMalloc(&workspace, Products::workspace_bytes), "memory");
  const Products products(lt, n, a, b, c, workspace);
  for (void* const m : {a, b}) random_normals<<<1024, 256>>>(static_cast<float*>(m), n * n);
  products.measure("cublaslt_float32_tflops", CUDA_R_32F, CUBLAS_COMPUTE_32F);
  products.measure("cublaslt_tf32_tflops", CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32);
  for (void* const m : {a, b}) random_normals<<<1024, 256>>>(static_cast<__nv_bfloat16*>(m), n * n);
  products.measure("cublaslt_bfloat16_tflops", CUDA_R_16BF, CUBLAS_COMPUTE_32F);
  check(cudaFree(workspace), "memory");
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t rows = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 4096;
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
  measure_random(static_cast<float*>(to), bytes / 4);
  void* third = nullptr;
  check(cudaMalloc(&third, bytes), "memory");
  measure_products(rows, from, to, third, bytes);
  check(cudaGetLastError(), "launch");
  return 0;
}
