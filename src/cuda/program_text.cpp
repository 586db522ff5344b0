#include "cuda/program_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <iterator>
#include <limits>
#include <string_view>

#include "base/ceil_div.h"
#include "cuda/known_items.h"
#include "cuda/launch.h"
#include "cuda/loop_texts.h"
#include "cuda/printed_words.h"
#include "cuda/printer.h"
#include "cuda/step_launches.h"
#include "cuda/table.h"
#include "kernels/exchange.cuh"
#include "kernels/program_table.cuh"
#include "kernels/scan.cuh"
#include "kernels/scatter.cuh"
#include "kernels/update.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

constexpr std::size_t most_shared_values = 46 << 10, most_shared_arenas = 20 << 10;  // of a block's 48 KB
constexpr std::uint32_t most_texts = 8;                     // per step whose items differ
constexpr int most_known = 128;                             // structs per program
constexpr char known_scope[] = "shardarray_program_items";  // their namespace
static_assert(std::string_view(known_scope).starts_with(program_kernel_name));

struct HandWritten {
  std::string_view kernel, text;
  int together;
};
#define SHARDARRAY_KERNEL(name, text, together) {#name, #text, together},
constexpr HandWritten hand_written[] = {
#include "kernels/list.inc"
};
#undef SHARDARRAY_KERNEL

/// The combining operation of a kernel with a TableCombine, as a type that fixes it at compile time.
std::string printed_combine(const KernelLaunch& l) {
  const std::string_view kernel = l.kernel;
  const TableReader table(l.table);
  device::Instruction in =
      kernel == "shardarray_move" ? table.head<device::MoveTable>().combine
      : kernel == "shardarray_scatter" || kernel == "shardarray_update_rows_combine"
          ? table.head<device::ScatterTable>().combine
      : kernel == "shardarray_update_combine" ? table.head<device::UpdateTable>().combine
      : kernel == "shardarray_scatter_segments" || kernel == "shardarray_update_row_segments_combine"
          ? table.head<device::SegmentTable>().combine
          : table.head<device::ScanTable>().combine;
  if (in.code == Code::constant) return "device::NoCombine";
  const bool is_operator = in.code == Code::and_ || in.code == Code::or_;
  return fmt::format("device::KnownCombine<{}, Code::{}{}>", printed_type(in.type), name(in.code),
                     is_operator ? "_" : "");
}
/// The type of a hand-written kernel's step. `known`: the struct of its numbers, or empty.
std::string printed_step(const KernelLaunch& l, const std::string& known) {
  const std::string_view kernel = l.any_block_kernel;
  const auto* const found = std::find_if(std::begin(hand_written), std::end(hand_written),
                                         [&](const HandWritten& h) { return h.kernel == kernel; });
  if (found == std::end(hand_written))
    throw InternalError(fmt::format(
        "cuda: a program has a step by {}. Kernels stand in kernels/list.inc. Please report this.",
        l.kernel));
  std::string text(found->text);
  const auto replace = [&](std::string_view part, const std::string& by) {
    if (const std::size_t at = text.find(part); at != text.npos) text.replace(at, part.size(), by);
  };
  constexpr std::string_view any = "device::TableCombine";
  if (text.find(any) != text.npos) replace(any, printed_combine(l));
  if (!known.empty()) {
    replace("device::product<", "known_product<");
    replace("device::product_by_lanes<", "known_product_by_lanes<");
    replace("device::move_boxes<", "known_move<");
    text.insert(text.rfind('>'), ", " + known);
  }
  return fmt::format("ProgramStep<{}, {}>", text, found->together);
}

std::size_t aligned_for_tables(std::size_t bytes) { return (bytes + 15) / 16 * 16; }

/// Into how many groups all threads divide to take a step's items: the number with the fewest rounds.
std::uint32_t groups_of(std::int64_t points, std::uint32_t items, std::uint32_t threads) {
  const std::uint32_t most = threads / 32;  // of whole warps
  std::uint32_t best = 1;
  std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t groups = 1; groups <= most && groups < 2 * items; groups *= 2) {
    const std::int64_t rounds = ceil_div(std::int64_t{items}, std::int64_t{groups}) *
                                ceil_div(points, std::int64_t{threads / groups});
    if (rounds <= fewest) best = groups;
    fewest = std::min(fewest, rounds);
  }
  return best;
}

class ProgramPrinter {
 public:
  explicit ProgramPrinter(std::uint32_t blocks) : blocks_(blocks) {}
  ProgramText print(const Program& program, std::uint64_t alignment) {
    place_arenas(program, alignment);
    steps(program, alignment, 0);
    tables_.resize(aligned_for_tables(tables_.size()));
    ProgramText out;
    out.text = fmt::format(
        "#define SHARDARRAY_PROGRAM_BASES {}\n#define SHARDARRAY_PROGRAM_BLOCKS {}\n#include "
        "\"kernels/program.cuh\"\n",
        bases_, blocks_);
    out.text += loops_.text();
    out.text +=
        fmt::format("namespace shardarray {{\nusing namespace device;\nnamespace {} {{\n", known_scope);
    if (arenas_.count > 0)
      out.text += fmt::format("SHARDARRAY_ARENAS({}, {})\n", arenas_.count * arenas_.bytes, arena_alignment_);
    out.text += known_ + "}\n";
    out.text += fmt::format("SHARDARRAY_PROGRAM({}) {{\n", program_kernel_name);
    const bool looked_up = arenas_.count > 0 && !tables_.empty();  // tables refer to arenas by address
    const std::size_t addresses = (looked_up + static_cast<std::size_t>(depth_)) * (1 + bases_) * 8;
    const bool shared_tables =
        !tables_.empty() && tables_.size() + arenas_.count * arenas_.bytes + addresses <= most_shared_values;
    if (shared_tables)
      out.text += fmt::format(
          "  SHARDARRAY_BLOCK_SHARED alignas(16) std::byte here[{0}];\n  copy_tables(here, tables, {0});\n",
          tables_.size());
    if (looked_up)
      out.text += fmt::format(
          "  SHARDARRAY_BLOCK_SHARED Bases all_bases;\n  put_arenas(all_bases, bases, {}::arenas, {}, {});\n",
          known_scope, arenas_.count, arenas_.bytes);
    out.text += "  wait_for_kernel_before(tables);\n";
    if (arenas_.count > 0) out.text += fmt::format("  SHARDARRAY_FORGET({}::arenas);\n", known_scope);
    out.text += fmt::format("  const ProgramPlace p0{{{}, scratch, {}}};\n",
                            shared_tables ? "here" : "tables", looked_up ? "all_bases" : "bases");
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
  std::uint32_t threads() const { return blocks_ * device::program_threads; }
  /// Puts the scratch arenas of all devices into a block's shared memory if they fit: they hold nothing before or after the program. Not
  /// with several blocks, which share no memory.
  void place_arenas(const Program& program, std::uint64_t alignment) {
    if (blocks_ > 1) return;
    arena_alignment_ = std::max(alignment, buffer_alignment);  // a called program's bases may be less aligned
    std::uint64_t bytes = 0;
    for (const std::uint64_t b : program.scratch_bytes) bytes = std::max(bytes, b);
    bytes = (bytes + arena_alignment_ - 1) / arena_alignment_ * arena_alignment_;
    if (bytes > 0 && bytes * program.scratch_bytes.size() <= most_shared_arenas)
      arenas_ = {static_cast<std::uint32_t>(program.scratch_bytes.size()), bytes};
  }
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
      if (!print_known(l, depth)) print_step(l, depth, "");
    }
  }
  /// `known`: the struct of all items' numbers; empty: they stay in the launch's table.
  void print_step(const KernelLaunch& l, int depth, const std::string& known) {
    text_ += fmt::format("{:{}}{}_step<{}>(p{}, {}, {}, {}, {});\n", "", 2 + 2 * depth,
                         l.loop || !known.empty() ? "run" : "call", printed(l, known), depth,
                         known.empty() ? add(l.table) : 0, l.items, groups_of(l.points, l.items, threads()),
                         std::min(l.points, std::int64_t{threads()}));
  }
  /// A few items may have a struct, and warps, each.
  bool print_known(const KernelLaunch& l, int depth) {
    const std::string all = add_known(l, 0, l.items, depth);
    if (!all.empty()) return print_step(l, depth, all), true;
    if (l.items < 2 || l.items > most_texts) return false;
    std::string items;
    for (std::uint32_t k = 0; k < l.items; k++) {
      const std::string one = add_known(l, k, 1, depth);
      if (one.empty()) return false;
      items += (k == 0 ? "" : ", ") + printed(l, one);
    }
    text_ += fmt::format("{:{}}run_items<{}>(p{}, {});\n", "", 2 + 2 * depth, items, depth,
                         std::bit_ceil(l.items));
    return true;
  }
  /// The struct of some items' numbers. Called programs have other arenas.
  std::string add_known(const KernelLaunch& l, std::uint32_t first, std::uint32_t count, int depth) {
    if (known_count_ >= most_known) return "";
    const std::string name = fmt::format("Known{}", known_count_);
    const std::string text = known_items(l, first, count, depth == 0 ? arenas_ : KnownArenas(), name);
    if (text.empty()) return "";
    known_count_++;
    known_ += text;
    return fmt::format("{}::{}", known_scope, name);
  }
  std::string printed(const KernelLaunch& l, const std::string& known) {
    return l.loop ? printed_loop(l, known) : printed_step(l, known);
  }
  /// For blocks of any number of warps, with no shared memory left.
  std::string printed_loop(const KernelLaunch& l, const std::string& known) {
    LoopShape shape = l.shape;
    shape.columns = false;
    shape.row_warps = 1;
    shape.kept_points = 0;
    // Without runs the text is half as long, and instruction fetch dominates; few points have one thread each anyway.
    shape.runs = l.points * l.items > 2 * threads();
    shape.tile_axis = shape.tile_side = 0;
    return fmt::format("{}<{}>", loops_.add(*l.loop, shape),
                       known.empty() ? "PrintedItem" : fmt::format("KnownItem<{}>", known));
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
        "run{2}, bases{2});\n",
        "", 2 + 2 * depth, depth + 1, l.call->trip, depth, add(table.take()));
    steps(*l.call->program, l.alignment, depth + 1);
    text_ += fmt::format("{:{}}}}\n", "", 2 + 2 * depth);
  }
  /// Its offset in the tables.
  std::size_t add(const std::vector<std::byte>& table) {
    const std::size_t at = aligned_for_tables(tables_.size());
    tables_.resize(at);
    tables_.insert(tables_.end(), table.begin(), table.end());
    return at;
  }

  const std::uint32_t blocks_;
  std::deque<std::vector<KernelLaunch>> launches_;  // loops_ points into them
  LoopTexts loops_;
  KnownArenas arenas_;
  std::uint64_t arena_alignment_ = 1;
  std::string text_, known_;
  int known_count_ = 0;
  std::vector<std::byte> tables_;
  std::size_t scratch_bytes_ = 0, bases_ = 1;
  int depth_ = 0;
};

}  // namespace

ProgramText print_program(const Program& program, std::uint64_t alignment, std::uint32_t blocks) {
  return ProgramPrinter(blocks).print(program, alignment);
}

}  // namespace shardarray::cuda
