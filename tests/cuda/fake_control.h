// How tests steer the fake CUDA driver and the fake libraries: the symbol `shardarray_fake_cuda` of their plug-in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace shardarray {
class Backend;
class Processes;
}  // namespace shardarray
namespace shardarray::cuda {
struct CublasLt;
struct Driver;
struct Nccl;
struct UsedGpus;
}  // namespace shardarray::cuda
namespace shardarray::testing {

/// How the rank on a GPU deviates from the others: one element less in every call, or two calls swapped.
enum class FakeDifference : std::uint8_t { count, order };

struct FakeCudaControl {
  /// The call after `after` others fails with `status`, and only that one; -1: none does.
  void (*fail_call)(int after, int status);
  /// The next `times` calls of that name fail with `status`.
  void (*fail_named)(const char* call, int times, int status);
  /// The piece of work after `after` others, on any stream, fails with `status`, which is sticky; -1: none does.
  void (*fail_work)(int after, int status);
  /// The memory of all GPUs together.
  void (*set_capacity)(std::size_t bytes);
  std::size_t (*held)();  ///< of that
  /// While held, no stream starts any work.
  void (*hold)(bool on);
  std::uint64_t (*calls)();                     ///< made up to now
  std::uint64_t (*calls_of)(const char* call);  ///< of that name
  std::uint64_t (*done)();                      ///< pieces of work done up to now
  const char* (*last_call)();                   ///< the name of the one that failed last
  std::uint64_t (*printed_launches)();          ///< of kernels that were printed and compiled
  std::uint64_t (*graph_launches)();            ///< of whole graphs
  /// Calls of the fake cuBLASLt; 1: of several products, 2: by addresses, 3: with an epilogue, 0: all of them.
  std::uint64_t (*products)(int kind);
  int (*algorithm)();  ///< of the last one
  /// Of the fake NCCL; 0: sends, 1: receives, 2: all_reduce, 3: all_gather, 4: reduce_scatter, each for one rank; -1: all calls.
  std::uint64_t (*nccl_calls)(int kind);
  std::uint64_t (*nccl_misuse)();  ///< calls that it refused
  /// The call of it after so many fails with `status`, and only that one; -1: none does.
  void (*fail_nccl)(int after, int status);
  void (*break_nccl)(int status);  ///< all communicators that there are
  void (*miss_rank)(int gpu);      ///< the rank on this GPU never comes
  void (*differ_rank)(int gpu, FakeDifference how);
  std::uint64_t (*launches)();  ///< of all kernels, those of graphs included
  std::uint64_t (
      *early_launches)();  ///< asked for or captured: they may begin while the kernel before them runs
  /// The backend of one of several processes, all of them in this one.
  std::unique_ptr<Backend> (*make_process)(const cuda::UsedGpus& used, Backend& (*host)(), Processes* others);
  const cuda::Driver& (*driver)();
  const cuda::CublasLt& (*cublas_lt)();
  const cuda::Nccl& (*nccl)();
};
inline constexpr char fake_cuda_symbol[] = "shardarray_fake_cuda";

}  // namespace shardarray::testing
