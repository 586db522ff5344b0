// Call tables of CUDA toolkit libraries that are opened at run time: linking and starting do not need them.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/env.h"
#include "cuda/driver.h"

namespace shardarray::cuda {

/// NVRTC of CUDA 13, the run-time compiler. Each member is the library call of that name, which returns 0 on success.
struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  int (*version)(int* major, int* minor);
  int (*create_program)(Program* to, const char* text, const char* name, int headers,
                        const char* const* header_texts, const char* const* header_names);
  int (*compile_program)(Program program, int options, const char* const* option);
  int (*get_program_log_size)(Program program, std::size_t* bytes);  ///< including the final NUL
  int (*get_program_log)(Program program, char* to);
  int (*get_cubin_size)(Program program, std::size_t* bytes);
  int (*get_cubin)(Program program, char* to);
  int (*destroy_program)(Program* program);
  const char* (*get_error_string)(int status);
};

/// cuBLASLt of CUDA 13, for matrix products; matrices are column-major. Each member is the library call of that name, which returns 0 on
/// success; numbers and structs are those of its header, checked by cublaslt_header.cpp.
struct CublasLt {
  using Handle = struct CublasLtHandleObject*;
  /// Descriptors, which own no memory.
  struct Product {
    std::uint64_t data[32] = {};
  };
  struct Layout {
    std::uint64_t data[8] = {};
  };
  struct Preference {
    std::uint64_t data[8] = {};
  };
  struct Algorithm {
    std::uint64_t data[8] = {};
  };
  struct Candidate {
    Algorithm algorithm;
    std::size_t workspace = 0;  ///< bytes
    int status = 0;
    float waves = 0;
    int reserved[4] = {};
  };
  static constexpr int no_memory = 3;                                     ///< a status
  static constexpr int real32 = 0, real64 = 1, real16 = 2, brain16 = 14;  ///< element types
  static constexpr int compute32 = 68, compute64 = 70,
                       compute_tf32 = 77;                          ///< IEEE float32; float64; TF32
  static constexpr int transpose_first = 3, transpose_second = 4;  ///< of a Product, std::int32_t
  static constexpr int epilogue = 7;                               ///< std::uint32_t, of these bits
  static constexpr std::uint32_t relu = 2, bias = 4;               ///< with both, the bias is added first
  static constexpr int bias_address = 8;  ///< const void*; outside of runs only its alignment matters
  static constexpr int bias_offset = 10;  ///< stride between products in elements, std::int64_t
  static constexpr int batch_count = 5;   ///< of a Layout, std::int32_t
  static constexpr int batch_offset = 6;  ///< stride in elements, std::int64_t
  static constexpr int batch_mode = 8;    ///< std::uint32_t; 1: the address is that of an array of pointers
  /// Of a Preference: std::uint64_t; std::uint32_t, for the first factor, the second, the addend, the result.
  static constexpr int most_workspace = 1, least_alignment[4] = {5, 6, 7, 8};
  /// Of a Preference: allowed reduction schemes, std::uint32_t, of these bits.
  static constexpr int reduction_schemes = 3;
  static constexpr std::uint32_t in_compute_type = 2;

  std::size_t (*version)();
  int (*create)(Handle* to);  ///< for the thread's current GPU
  const char* (*status_name)(int status);
  int (*product_init)(Product* to, std::size_t bytes, int compute_type, int scale_type);
  int (*product_set)(Product* to, int attribute, const void* value, std::size_t bytes);
  int (*layout_init)(Layout* to, std::size_t bytes, int type, std::uint64_t rows, std::uint64_t columns,
                     std::int64_t ld);
  int (*layout_set)(Layout* to, int attribute, const void* value, std::size_t bytes);
  int (*preference_init)(Preference* to, std::size_t bytes);
  int (*preference_set)(Preference* to, int attribute, const void* value, std::size_t bytes);
  /// Up to `wanted` candidates, ordered by the library's estimate of their speed.
  int (*find_algorithms)(Handle handle, const Product* product, const Layout* first, const Layout* second,
                         const Layout* added, const Layout* result, const Preference* preference, int wanted,
                         Candidate* to, int* found);
  int (*check_algorithm)(Handle handle, const Product* product, const Layout* first, const Layout* second,
                         const Layout* added, const Layout* result, const Algorithm* algorithm,
                         Candidate* to);
  /// result = alpha first second + beta added
  int (*multiply)(Handle handle, const Product* product, const void* alpha, const void* first,
                  const Layout* first_layout, const void* second, const Layout* second_layout,
                  const void* beta, const void* added, const Layout* added_layout, void* result,
                  const Layout* result_layout, const Algorithm* algorithm, void* workspace,
                  std::size_t workspace_bytes, Stream stream);
};

/// NCCL 2, collectives and transfers between GPUs. Each member is the library call of that name, which returns 0 on success; numbers and
/// structs are those of its header, checked by nccl_header.cpp.
struct Nccl {
  using Rank = struct NcclRankObject*;  ///< one GPU's part of a communicator
  struct Id {
    char data[128] = {};
  };
  /// The version whose last member was `blocking`; later members get the library's defaults.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 21400;
    int blocking = 0;  ///< calls return early, and `get_async_error` says `in_progress` until they are done
    int unused = 0;
  };
  /// Statuses. The first is that of any CUDA failure, usually lack of memory.
  static constexpr int unhandled_cuda_error = 1, invalid_usage = 5, in_progress = 7;
  static constexpr int int8 = 0, uint8 = 1, int32 = 2, uint32 = 3, int64 = 4, uint64 = 5, real32 = 7,
                       real64 = 8;                           ///< element types
  static constexpr int sum = 0, prod = 1, max = 2, min = 3;  ///< reductions
  static constexpr int least_version = 22200;  ///< the first that can abort several communicators at once

  int (*get_version)(int* version);
  int (*get_unique_id)(Id* to);
  int (*init_rank)(Rank* to, int ranks, Id id, int rank,
                   Config* config);  ///< on the thread's current GPU
  int (*get_async_error)(Rank rank, int* status);
  int (*abort)(Rank rank);
  const char* (*get_error_string)(int status);
  const char* (*get_last_error)(Rank rank);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void* from, std::size_t count, int type, int peer, Rank rank, Stream stream);
  int (*receive)(void* to, std::size_t count, int type, int peer, Rank rank, Stream stream);
  int (*all_reduce)(const void* from, void* to, std::size_t count, int type, int reduction, Rank rank,
                    Stream stream);
  int (*all_gather)(const void* from, void* to, std::size_t sent, int type, Rank rank, Stream stream);
  int (*reduce_scatter)(const void* from, void* to, std::size_t received, int type, int reduction, Rank rank,
                        Stream stream);
};

/// These open a library at the first call: by name, else in `lib64` of CUDA_HOME, of CUDA_PATH, of /usr/local/cuda. They throw CompileError
/// if it is missing, every time.
const Nvrtc& nvrtc();
const CublasLt& cublas_lt();
const Nccl& nccl();

/// When NCCL is used, and when it is aborted and its GPUs are lost. The tests' plug-in has its own numbers.
struct NcclLimits {
  /// For a step that has begun on all GPUs and does not end, and for creating a communicator: comm_timeout(), or ten years.
  std::chrono::milliseconds deadline = own_deadline();
  /// Most steps of a communicator in flight: a GPU queues only so many launches before it blocks the caller.
  int most_under_way = 16;
  /// Per rank, if the GPUs can read each other's memory: fewer bytes go by kernels, which start sooner. A guess, to be measured.
  std::size_t least_bytes = 64 << 10;

  static std::chrono::milliseconds own_deadline() {
    const std::int64_t timeout = comm_timeout();
    return timeout > 0 ? std::chrono::milliseconds(timeout) : std::chrono::hours(24 * 3650);
  }
};
/// Throws Error if a variable has an invalid value.
const NcclLimits& nccl_limits();

/// Which products are worth a library call, by their multiply-adds. The tests' plug-in has its own numbers.
struct ProductLimits {
  double own = 1 << 18;  ///< up to so many: our own kernel
  double guessed =
      5e8;  ///< of all products of a call; above, the fastest of several algorithms is found by trying
  /// The deepest products for our own kernels, where a thread or a warp sums each element. A guess, to be measured.
  std::int64_t own_depth = 1024;
  /// Depth from which products of few elements are tried split along it (split-K), however few their multiply-adds: adding one term after
  /// the other takes 30 ns each. A guess, to be measured.
  std::int64_t deep = 8192;
};
const ProductLimits& product_limits();

/// Throws CompileError if it is too old.
void check_version(const Nccl& library);

/// The library `name`, from the loader's folders or those above. `purpose` is a sentence for the CompileError if there is none.
void* open_cuda_library(const std::string& name, const char* purpose,
                        const char* remedy = "Install CUDA 13's toolkit");

}  // namespace shardarray::cuda
