#include "cuda/program_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/codegen_mode.h"
#include "cuda/one_kernel.h"
#include "cuda/program_text.h"
#include "kernels/program_table.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

constexpr std::uint32_t most_cluster_blocks = 8;  // the portable maximum of CUDA

}  // namespace

std::shared_ptr<ProgramKernel> ProgramKernel::of(CudaBackend& backend, Gpu& gpu,
                                                 std::shared_ptr<const Program> program,
                                                 std::uint64_t alignment) {
  if (codegen_mode_of_environment() == CodegenMode::off) return nullptr;
  const std::uint32_t cluster = gpu.properties().major >= 9 ? most_cluster_blocks : 1;
  const std::uint32_t blocks = one_kernel_blocks(*program, cluster);
  if (blocks == 0) return nullptr;
  std::shared_ptr<ProgramKernel> kernel(
      new ProgramKernel(backend, gpu, std::move(program), alignment, blocks));
  kernel->begin();
  return kernel;
}

void ProgramKernel::build() {
  ProgramText printed = print_program(*program_, alignment_, blocks_);
  const Library library = loaded_text(gpu_, printed.text);
  kernel_ = gpu_.kernel(program_kernel_name, library);
  if (blocks_ > 1 && gpu_.clusters_at_once(kernel_, blocks_, device::program_threads) == 0)
    throw CompileError(
        fmt::format("cuda: GPU {} ({}) has no room for {} blocks that wait for each other. A program of more "
                    "work than one block's is a cluster of them. Use more of the GPU.",
                    gpu_.number(), gpu_.properties().name, blocks_));
  tables_ = backend_.allocate_for_launches(gpu_, printed.tables.size() + device::table_margin);
  Turn(gpu_).upload(tables_->data, printed.tables.data(), printed.tables.size());
  scratch_bytes_ = printed.scratch_bytes;
  bases_ = printed.bases;
  ready_.store(true, std::memory_order_release);
}

BufferRef ProgramKernel::take_scratch() const {
  return scratch_bytes_ > 0 ? backend_.allocate_for_launches(gpu_, scratch_bytes_) : BufferRef();
}

void ProgramKernel::ask(Turn& turn, std::span<void* const> bases, const BufferRef& scratch,
                        const std::string& steps) const {
  const std::byte* tables = static_cast<const std::byte*>(tables_->data);
  void* memory = scratch ? scratch->data : nullptr;
  std::vector<std::uint64_t> addresses(1 + bases_);  // device::Bases with a list of another length
  std::transform(bases.begin(), bases.end(), addresses.begin() + 1,
                 [](void* b) { return reinterpret_cast<std::uint64_t>(b); });
  void* arguments[] = {&tables, &memory, addresses.data()};
  turn.launch(kernel_, {blocks_, 1, device::program_threads}, arguments, steps);
}

}  // namespace shardarray::cuda
