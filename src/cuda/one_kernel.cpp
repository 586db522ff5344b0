#include "cuda/one_kernel.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "cuda/launch.h"
#include "cuda/libraries.h"
#include "cuda/products.h"
#include "cuda/sort_launches.h"
#include "cuda/step_launches.h"
#include "kernels/sort.cuh"
#include "runtime/contraction.h"
#include "runtime/lines.h"

namespace shardarray::cuda {
namespace {

double points_of(const Exchange::Item& item, std::size_t bytes) {
  double points = item.fill ? static_cast<double>(item.dst_bytes / bytes) : 0;
  for (const Exchange::Piece& p : item.pieces)
    points += static_cast<double>(num_elements(p.extents)) * static_cast<double>(p.sources.size());
  return points;
}

double points_of(const LibraryCall& x, const LibraryCall::Item& item) {
  double points = 0;
  for (const Shape& s : item.in_shapes) points += static_cast<double>(num_elements(s));
  for (const Shape& s : item.out_shapes) points += static_cast<double>(num_elements(s));
  const bool is_update = x.name == "update" || x.name == "update_rows";
  if (is_update && item.in[0].base == item.out[0].base && item.in[0].offset == item.out[0].offset)
    return static_cast<double>(num_elements(item.in_shapes[x.name == "update" ? 1 : 2]));
  if (x.name != "sort") return points;
  double launches = 3;
  const std::int64_t length = lines_along(item.in_shapes[0], item.params[0]).length;
  for (std::int64_t width = device::sort_run; width < length; width *= 2) launches++;
  return points * launches;
}

/// Sorts that CUB does.
bool is_sort_of_pairs(const Step& step) {
  const auto* const call = std::get_if<LibraryCall>(&step.body);
  if (call == nullptr) return false;
  const bool is_sort = call->name == "sort", is_update = call->name == "update_rows";
  if (!is_sort && !is_update && call->name != "scatter") return false;
  return std::any_of(call->items.begin(), call->items.end(), [&](const LibraryCall::Item& item) {
    const std::int64_t dimension = is_sort ? item.params[0] : 1;
    return sorts_as_pairs(lines_along(item.in_shapes[is_update ? 1 : 0], dimension).length);
  });
}

/// Scans of lines with several blocks, which are computed in parallel in tiles.
bool is_long_scan(const Step& step) {
  const auto* const call = std::get_if<LibraryCall>(&step.body);
  if (call == nullptr || call->name != "scan") return false;
  return std::any_of(call->items.begin(), call->items.end(), [](const LibraryCall::Item& item) {
    return lines_along(item.in_shapes[0], item.params[0]).length > scan_block;
  });
}

/// Products by a library, or by kernels with another block size.
bool is_large_product(const Step& step) {
  const auto* const gemm = std::get_if<Gemm>(&step.body);
  if (gemm == nullptr) return false;
  const ProductSplit split = split_products(*gemm, buffer_alignment, product_limits().own);
  return !split.calls.empty() || in_tiles(*gemm, split.own);
}

/// Whether one kernel can do it, as a text of reasonable length.
bool can_be_printed(const Program& program, int depth, std::size_t& steps) {
  const OneKernelLimits& most = one_kernel_limits();
  if (depth > most.depth || program.base_count > most.bases) return false;
  for (const Step& step : program.steps) {
    if (++steps > most.printed_steps || is_large_product(step)) return false;
    if (std::holds_alternative<ProgramChoice>(step.body) || std::holds_alternative<ProgramLoop>(step.body))
      return false;  // the host decides
    if (!has_kernels(step) || is_sort_of_pairs(step) || is_long_scan(step)) return false;
    const auto* const call = std::get_if<ProgramCall>(&step.body);
    if (call != nullptr && !can_be_printed(*call->program, depth + 1, steps)) return false;
  }
  return true;
}

}  // namespace

ProgramWork work_of(const Program& program) {
  ProgramWork w;
  for (const Step& step : program.steps) {
    const auto add = [&]<class Body>(const Body& body) {
      if constexpr (std::is_same_v<Body, ProgramCall>) {
        const ProgramWork called = work_of(*body.program);
        const auto trip = static_cast<double>(body.trip);
        w.steps += called.steps * trip;
        w.points += called.points * trip;
        w.multiply_adds += called.multiply_adds * trip;
        w.chain = std::max(w.chain, called.chain);
        return;
      }
      w.steps++;
      for (const auto& item : body.items) {
        if constexpr (std::is_same_v<Body, Loop>) w.points += static_cast<double>(num_elements(item.extents));
        if constexpr (std::is_same_v<Body, Gemm>) {
          const double elements = static_cast<double>(item.batch * item.m) * static_cast<double>(item.n),
                       k = static_cast<double>(item.k), a_point = one_kernel_limits().multiply_adds_a_point;
          w.multiply_adds += elements * k;
          if (body.fixed_order) w.chain = std::max(w.chain, k);
          w.points += elements * std::max(0.0, 1 - k / a_point);  // each is written, however short its sum
        }
        if constexpr (std::is_same_v<Body, Exchange>) w.points += points_of(item, itemsize(body.dtype));
        if constexpr (std::is_same_v<Body, LibraryCall>) {
          w.points += points_of(body, item);
          if (body.name == "scan")
            w.chain =
                std::max(w.chain, static_cast<double>(lines_along(item.in_shapes[0], item.params[0]).length));
          if (body.name == "conv") w.multiply_adds += products_of(Contraction::of(item.params));
        }
      }
    };
    std::visit(add, step.body);
  }
  return w;
}

std::uint32_t one_kernel_blocks(const Program& program, std::uint32_t cluster) {
  const OneKernelLimits& most = one_kernel_limits();
  const ProgramWork w = work_of(program);
  if (w.steps < 2 || w.steps > most.steps) return 0;  // a single step already is one kernel
  const double blocks =
      (w.points + w.multiply_adds / most.multiply_adds_a_point) / (most.points_a_step * w.steps);
  if (blocks > cluster) return 0;
  std::size_t steps = 0;
  if (!can_be_printed(program, 0, steps)) return 0;
  if (blocks <= 1) return 1;
  return w.chain > most.cluster_chain ? 0 : cluster;
}

}  // namespace shardarray::cuda
