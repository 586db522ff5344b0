#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/ceil_div.h"
#include "cuda/step_launches.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray::cuda {

std::uint32_t blocks_for(std::int64_t points, std::uint32_t threads, std::size_t items) {
  const std::int64_t all = (std::int64_t{1} << 20) / threads;  // several per multiprocessor of a large GPU
  const std::int64_t most = std::max<std::int64_t>(ceil_div(all, static_cast<std::int64_t>(items)), 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(ceil_div(points, std::int64_t{threads}), 1, most));
}

KernelLaunch make_launch(const Step& step, const char* kernel, std::size_t items, std::int64_t points,
                         LaunchTable table) {
  constexpr std::size_t most_items = 65535;  // of a grid's y dimension
  if (items > most_items) {
    throw CompileError(
        fmt::format("cuda: the step `{}` has {} items. A launch serves up to {}. Use fewer devices.",
                    step.label, items, most_items));
  }
  KernelLaunch l;
  l.kernel = l.any_block_kernel = kernel;
  l.threads = block_threads;
  l.blocks = blocks_for(points, block_threads);
  l.items = static_cast<std::uint32_t>(items);
  l.points = points;
  l.table = table.take();
  l.label = step.label;
  l.where = step.where;
  return l;
}

std::uint64_t call_alignment(const ProgramCall& call, std::uint64_t alignment) {
  std::uint64_t all = alignment;
  for (const ProgramCall::Binding& b : call.items[0].bases)
    all |= b.first.offset | b.even.offset | b.odd.offset | static_cast<std::uint64_t>(b.stride);
  return all & -all;  // the lowest set bit
}

static void add_call(const Step& step, const ProgramCall& call, std::uint64_t alignment,
                     std::vector<KernelLaunch>& launches) {
  KernelLaunch& l = launches.emplace_back();
  l.label = step.label;
  l.where = step.where;
  l.call = &call;
  l.alignment = call_alignment(call, alignment);
}

// Ascending, without duplicates.
static std::vector<std::uint32_t> bases_of(const Step& step) {
  std::vector<std::uint32_t> bases;
  std::visit(
      [&](const auto& body) {
        for (const auto& item : body.items) {
          const ItemRanges ranges = ranges_of(body, item);
          for (const MemoryRanges* all : {&ranges.reads, &ranges.writes})
            for (const MemoryRange& r : *all) bases.push_back(r.base);
        }
      },
      step.body);
  std::sort(bases.begin(), bases.end());
  bases.erase(std::unique(bases.begin(), bases.end()), bases.end());
  return bases;
}

void add_step_launches(const Step& step, std::uint64_t alignment, std::vector<KernelLaunch>& to) {
  const std::size_t first = to.size();
  std::visit(
      [&]<class Body>(const Body& body) {
        if constexpr (std::is_same_v<Body, Loop>) add_loop_launches(step, body, to);
        else if constexpr (std::is_same_v<Body, Gemm>) add_gemm_launches(step, body, alignment, to);
        else if constexpr (std::is_same_v<Body, LibraryCall>) add_library_launches(step, body, alignment, to);
        else if constexpr (std::is_same_v<Body, ProgramCall>) add_call(step, body, alignment, to);
        else if constexpr (std::is_same_v<Body, Exchange>) add_exchange_launches(step, body, alignment, to);
        else
          throw InternalError(
              "cuda: a branch or a loop of unknown length is no launch: the host decides. Please report "
              "this.");
      },
      step.body);
  if (to.size() == first) return;
  const std::vector<std::uint32_t> bases = bases_of(step);
  for (std::size_t k = first; k < to.size(); k++) to[k].bases = bases;
}

std::vector<KernelLaunch> launches_of(const Program& program, std::uint64_t alignment) {
  std::vector<KernelLaunch> launches;
  for (const Step& step : program.steps) add_step_launches(step, alignment, launches);
  return launches;
}

const Target& cuda_target() {
  // Guesses, to be measured: enough points to fill a GPU.
  static constexpr Target target = {
      .split = {.min_points = 1 << 15,
                .most_results = 1 << 14,
                .parts = 1 << 13,
                .part_points = 128,
                .rows = 1 << 13},
      .fusion = {.most_operations = 96, .enough_rows = 2048, .few_points = 1 << 16},
      .gathers_loops = true,
      .half_products = true,
      .alignment = 64,
      // Relative rates of an H200 (machine("h200x8")). Sums are not joined: a step with several has no kernel with compile-time addresses,
      // and NCCL's all-reduce takes one.
      .links = {.start = 64,
                .halo_start = 64,
                .operation = 4.0 / 500,
                .float16_product = 4.0 / 7400,
                .bfloat16_product = 4.0 / 7400,
                .float64_product = 4.0 / 500,
                .tf32_product = 4.0 / 3700}};
  return target;
}

}  // namespace shardarray::cuda
