#include "cuda/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/ceil_div.h"
#include "cuda/launch.h"
#include "cuda/loop_texts.h"
#include "cuda/printed_words.h"
#include "cuda/printer.h"
#include "cuda/step_launches.h"
#include "kernels/exchange.cuh"
#include "kernels/program_table.cuh"
#include "kernels/scan.cuh"
#include "kernels/scatter.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

// Beside them stand addresses of called programs, in 48 KB.
constexpr std::size_t most_shared_tables = 28 << 10;

struct HandWritten {
  std::string_view kernel, text;
  int together;
};
#define SHARDARRAY_KERNEL(name, text, together) {#name, #text, together},
constexpr HandWritten hand_written[] = {
#include "kernels/list.inc"
};
#undef SHARDARRAY_KERNEL

template <class Table> Table table_head(const KernelLaunch& l) {
  Table t;
  std::memcpy(static_cast<void*>(&t), l.table.data(), sizeof t);
  return t;
}
/// What a kernel with a TableCombine combines elements by, as a type that knows it.
std::string printed_combine(const KernelLaunch& l) {
  const std::string_view kernel = l.kernel;
  device::Instruction in = kernel == "shardarray_move"      ? table_head<device::MoveTable>(l).combine
                           : kernel == "shardarray_scatter" ? table_head<device::ScatterTable>(l).combine
                           : kernel == "shardarray_scatter_segments"
                               ? table_head<device::SegmentTable>(l).combine
                               : table_head<device::ScanTable>(l).combine;
  if (in.code == Code::constant) return "device::NoCombine";
  const bool is_operator = in.code == Code::and_ || in.code == Code::or_;
  return fmt::format("device::KnownCombine<{}, Code::{}{}>", printed_type(in.type), name(in.code),
                     is_operator ? "_" : "");
}
/// The type of a hand-written kernel's step.
std::string printed_step(const KernelLaunch& l) {
  const auto* const found = std::find_if(std::begin(hand_written), std::end(hand_written),
                                         [&](const HandWritten& h) { return h.kernel == l.kernel; });
  if (found == std::end(hand_written))
    throw InternalError(fmt::format(
        "cuda: a program has a step by {}. Kernels stand in kernels/list.inc. Please report this.",
        l.kernel));
  std::string text(found->text);
  constexpr std::string_view any = "device::TableCombine";
  if (const std::size_t at = text.find(any); at != text.npos)
    text.replace(at, any.size(), printed_combine(l));
  return fmt::format("ProgramStep<{}, {}>", text, found->together);
}

std::size_t aligned_for_tables(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// The groups in which a block's threads take the items of a step: the fewest rounds.
std::uint32_t groups_of(std::int64_t points, std::uint32_t items) {
  constexpr std::uint32_t most = device::program_threads / 32;  // of whole warps
  std::uint32_t best = 1;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t groups = 1; groups <= most && groups < 2 * items; groups *= 2) {
    const std::int64_t rounds = ceil_div(std::int64_t{items}, std::int64_t{groups}) *
                                ceil_div(points, std::int64_t{device::program_threads / groups});
    if (rounds <= fewest) best = groups;
    fewest = std::min(fewest, rounds);
  }
  return best;
}

class ProgramPrinter {
 public:
  ProgramText print(const Program& program, std::uint64_t alignment) {
    steps(program, alignment, 0);
    tables_.resize(aligned_for_tables(tables_.size()));
    ProgramText out;
    out.text = fmt::format("#define SHARDARRAY_PROGRAM_BASES {}\n#include \"kernels/program.cuh\"\n", bases_);
    out.text += loops_.text();
    out.text += "namespace shardarray {\nusing namespace device;\n";
    out.text += fmt::format("SHARDARRAY_PROGRAM({}) {{\n", program_kernel_name);
    if (!tables_.empty() && tables_.size() <= most_shared_tables) {
      out.text += fmt::format(
          "  SHARDARRAY_BLOCK_SHARED alignas(16) std::byte here[{0}];\n  copy_tables(here, tables, {0});\n"
          "  const ProgramPlace p0{{here, scratch, bases}};\n",
          tables_.size());
    } else {
      out.text += "  const ProgramPlace p0{tables, scratch, bases};\n";
    }
    for (int k = 1; k <= depth_; k++)
      out.text += fmt::format(
          "  SHARDARRAY_BLOCK_SHARED Bases bases{0};\n  const ProgramPlace p{0}{{p0.tables, scratch, "
          "bases{0}}};\n",
          k);
    out.text += text_ + "}\n}  // namespace shardarray\n";
    out.tables = std::move(tables_);
    out.scratch_bytes = scratch_bytes_;
    out.bases = bases_;
    return out;
  }

 private:
  void steps(const Program& program, std::uint64_t alignment, int depth) {
    bases_ = std::max<std::size_t>(bases_, program.base_count);
    depth_ = std::max(depth_, depth);
    const std::vector<KernelLaunch>& launches = launches_.emplace_back(launches_of(program, alignment));
    for (const KernelLaunch& l : launches) {
      scratch_bytes_ = std::max(scratch_bytes_, l.scratch_bytes);
      if (l.call != nullptr) {
        call(l, depth);
        continue;
      }
      text_ += fmt::format("{:{}}{}_step<{}>(p{}, {}, {}, {}, {});\n", "", 2 + 2 * depth,
                           l.loop ? "run" : "call", l.loop ? printed_loop(l) : printed_step(l), depth,
                           add(l.table), l.items, groups_of(l.points, l.items),
                           std::min(l.points, std::int64_t{device::program_threads}));
    }
  }
  /// For blocks of any number of warps, which have no shared memory left.
  const std::string& printed_loop(const KernelLaunch& l) {
    LoopShape shape = l.shape;
    shape.columns = false;
    shape.row_warps = 1;
    shape.kept_points = 0;
    // A text without runs is half as long, and threads wait for its instructions; few points have a thread each.
    shape.runs = l.points * l.items > 2 * device::program_threads;
    shape.tile_axis = shape.tile_side = 0;
    return loops_.add(*l.loop, shape);
  }
  void call(const KernelLaunch& l, int depth) {
    LaunchTable table;
    table.reserve<device::CalledTable>();
    std::vector<device::CalledBase> bases;
    for (const ProgramCall::Binding& b : l.call->items[0].bases)
      bases.push_back({device_address(b.first), device_address(b.even), device_address(b.odd), b.stride});
    table.put(0, device::CalledTable{table.add(bases)});
    text_ += fmt::format(
        "{0:{1}}for (std::int64_t run{2} = 0; run{2} < {3}; run{2}++) {{\n{0:{1}}  bind_called(p{4}, {5}, "
        "run{2}, "
        "bases{2});\n",
        "", 2 + 2 * depth, depth + 1, l.call->trip, depth, add(table.take()));
    steps(*l.call->program, l.alignment, depth + 1);
    text_ += fmt::format("{:{}}}}\n", "", 2 + 2 * depth);
  }
  /// Where it stands in the tables.
  std::size_t add(const std::vector<std::byte>& table) {
    const std::size_t at = aligned_for_tables(tables_.size());
    tables_.resize(at);
    tables_.insert(tables_.end(), table.begin(), table.end());
    return at;
  }

  std::deque<std::vector<KernelLaunch>> launches_;  // loops_ refers to them
  LoopTexts loops_;
  std::string text_;
  std::vector<std::byte> tables_;
  std::size_t scratch_bytes_ = 0, bases_ = 1;
  int depth_ = 0;
};

}  // namespace

ProgramText print_program(const Program& program, std::uint64_t alignment) {
  return ProgramPrinter().print(program, alignment);
}

}  // namespace shardarray::cuda
