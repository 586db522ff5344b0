// Libraries of CUDA's toolkit that are opened at run time, as tables of their calls: nobody needs them to link or to start.
#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/env.h"
#include "cuda/driver.h"

namespace shardarray::cuda {

/// NVRTC of CUDA 13, the compiler of texts. Each member is the library's call of that name, which gives 0 where all went well.
struct Nvrtc {
  using Program = struct NvrtcProgramObject*;
  int (*version)(int* major, int* minor);
  int (*create_program)(Program* to, const char* text, const char* name, int headers,
                        const char* const* header_texts, const char* const* header_names);
  int (*compile_program)(Program program, int options, const char* const* option);
  int (*get_program_log_size)(Program program, std::size_t* bytes);  ///< with the zero at its end
  int (*get_program_log)(Program program, char* to);
  int (*get_cubin_size)(Program program, std::size_t* bytes);
  int (*get_cubin)(Program program, char* to);
  int (*destroy_program)(Program* program);
  const char* (*get_error_string)(int status);
};

/// cuBLASLt of CUDA 13, which multiplies matrices. Matrices stand column by column. Each member is the library's call of that
/// name, which gives 0 where all went well; numbers and structs are those of its header, as cublaslt_header.cpp checks.
struct CublasLt {
  using Handle = struct CublasLtHandleObject*;
  /// Descriptions, which hold no memory.
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
  static constexpr int real32 = 0, real64 = 1, real16 = 2, brain16 = 14;  ///< types of elements
  static constexpr int compute32 = 68, compute64 = 70,
                       compute_tf32 = 77;                          ///< in IEEE float32, in float64, of TF32
  static constexpr int transpose_first = 3, transpose_second = 4;  ///< of a Product, std::int32_t
  static constexpr int epilogue = 7;                               ///< std::uint32_t, of these bits
  static constexpr std::uint32_t relu = 2, bias = 4;               ///< of both: the bias first
  static constexpr int bias_address = 8;  ///< const void*; without a run its alignment counts alone
  static constexpr int bias_offset = 10;  ///< elements from one to that of the next product, std::int64_t
  static constexpr int batch_count = 5;   ///< of a Layout, std::int32_t
  static constexpr int batch_offset = 6;  ///< elements, std::int64_t
  static constexpr int batch_mode = 8;    ///< std::uint32_t; 1: the address is that of an array of addresses
  /// Of a Preference: std::uint64_t; std::uint32_t, of the first factor, the second, what is added, the result.
  static constexpr int most_workspace = 1, least_alignment[4] = {5, 6, 7, 8};
  /// Of a Preference: how parts of sums may be added, std::uint32_t, of these bits.
  static constexpr int reduction_schemes = 3;
  static constexpr std::uint32_t in_compute_type = 2;

  std::size_t (*version)();
  int (*create)(Handle* to);  ///< for the GPU that the thread has set
  const char* (*status_name)(int status);
  int (*product_init)(Product* to, std::size_t bytes, int compute_type, int scale_type);
  int (*product_set)(Product* to, int attribute, const void* value, std::size_t bytes);
  int (*layout_init)(Layout* to, std::size_t bytes, int type, std::uint64_t rows, std::uint64_t columns,
                     std::int64_t ld);
  int (*layout_set)(Layout* to, int attribute, const void* value, std::size_t bytes);
  int (*preference_init)(Preference* to, std::size_t bytes);
  int (*preference_set)(Preference* to, int attribute, const void* value, std::size_t bytes);
  /// Up to `wanted` of them, which it guesses to be the fastest, in that order.
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

/// NCCL 2, which moves data between GPUs and combines it on the way. Each member is the library's call of that name, which gives 0
/// where all went well; numbers and structs are those of its header, as nccl_header.cpp checks.
struct Nccl {
  using Rank = struct NcclRankObject*;  ///< what one GPU has of a communicator
  struct Id {
    char data[128] = {};
  };
  /// As it was when `blocking` was its last member; later ones are then as the library likes.
  struct Config {
    std::size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef, version = 21400;
    int blocking =
        0;  ///< calls return before they are done, and `get_async_error` says `in_progress` so long
    int unused = 0;
  };
  /// Statuses. The first one is that of all that CUDA refuses, memory as a rule.
  static constexpr int unhandled_cuda_error = 1, invalid_usage = 5, in_progress = 7;
  static constexpr int int8 = 0, uint8 = 1, int32 = 2, uint32 = 3, int64 = 4, uint64 = 5, real32 = 7,
                       real64 = 8;                           ///< types of elements
  static constexpr int sum = 0, prod = 1, max = 2, min = 3;  ///< reductions
  static constexpr int least_version = 22200;  ///< the first that gives up several communicators at once

  int (*get_version)(int* version);
  int (*get_unique_id)(Id* to);
  int (*init_rank)(Rank* to, int ranks, Id id, int rank,
                   Config* config);  ///< on the GPU that the thread has set
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

/// These open a library at the first call: by its name, else in `lib64` of CUDA_HOME, of CUDA_PATH, of /usr/local/cuda. They throw
/// CompileError where it is not there, each time.
const Nvrtc& nvrtc();
const CublasLt& cublas_lt();
const Nccl& nccl();

/// When NCCL is asked, and when it is given up, and with it the GPUs. The plug-in of the tests has numbers of its own.
struct NcclLimits {
  /// For what was begun on all GPUs and does not end, and for the making of a communicator: comm_timeout(), or ten years.
  std::chrono::milliseconds deadline = own_deadline();
  /// Steps of a communicator that are under way at most: GPUs take only so many launches before they make their asker wait.
  int most_under_way = 16;
  /// Of a rank, where GPUs read each other's memory: fewer bytes go by kernels, which begin sooner. A guess, to be measured.
  std::size_t least_bytes = 64 << 10;

  static std::chrono::milliseconds own_deadline() {
    const std::int64_t timeout = comm_timeout();
    return timeout > 0 ? std::chrono::milliseconds(timeout) : std::chrono::hours(24 * 3650);
  }
};
/// Throws Error where a variable is not what it should be.
const NcclLimits& nccl_limits();

/// Which products are worth a library's call, by their multiply-adds. The plug-in of the tests has numbers of its own.
struct ProductLimits {
  double own = 1 << 18;  ///< up to so many: the own kernel
  double guessed =
      5e8;  ///< of all products of a call; above: the fastest of several algorithms is found by trying
  /// Of those of the own kernels, which add up each element in a thread or a warp. A guess, to be measured.
  std::int64_t own_depth = 1024;
  /// Terms of a sum, from which on products of few elements are tried in parts of their depth, however few multiply-adds they are: what
  /// adds them up one after the other takes 30 ns a term. A guess, to be measured.
  std::int64_t deep = 8192;
};
const ProductLimits& product_limits();

/// Throws CompileError where it is too old.
void check_version(const Nccl& library);

/// The library `name`, from the loader's folders, else from these. `purpose` is a sentence for the CompileError where there is none.
void* open_cuda_library(const std::string& name, const char* purpose,
                        const char* remedy = "Install CUDA 13's toolkit");

}  // namespace shardarray::cuda
