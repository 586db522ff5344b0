// Loops: kernel IR as tables for the interpreting kernels.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/ceil_div.h"
#include "cuda/loop_shape.h"
#include "cuda/slots.h"
#include "cuda/step_launches.h"
#include "kernels/interpreter.cuh"
#include "runtime/evaluate_instruction.h"

namespace shardarray::cuda {
namespace {

constexpr int most_slots = 512;  // of the largest interpreting kernel

/// Builds the table of a Loop step.
class LoopTableWriter {
 public:
  LoopTableWriter(const Step& step, const Loop& loop)
      : step_(step),
        k_(*loop.kernel),
        loop_(loop),
        slots_(slots_of(k_)),
        operands_(k_),
        axes_(loop, operands_) {}

  void add_to(std::vector<KernelLaunch>& to) {
    check();
    const std::uint32_t head = table_.reserve<device::LoopTable>();
    std::vector<device::LoopItem> items;
    std::int64_t most = 0;
    for (std::size_t i = 0; i < loop_.items.size(); i++) {
      items.push_back(add_item(i));
      most = std::max(most, items.back().outer_points);
    }
    if (most == 0) return;
    device::LoopTable t{};
    const LoopShape shape = axes_.shape();
    t.block = std::numeric_limits<std::int64_t>::max();
    if (ordered_ || shape.row_warps > 1) t.block = k_.order.block;
    add_code(t);
    t.items = table_.add(items);
    table_.put(head, t);
    const bool rows = has_inner_stage(k_);
    const std::int64_t threads = rows ? most * device::warp_lanes : most;
    to.push_back(make_launch(step_, kernel_name(rows), items.size(), threads, std::move(table_)));
    KernelLaunch& l = to.back();
    l.loop = loop_.kernel;
    l.shape = shape;
    l.printed_threads = printed_bounds(k_, shape).threads;
    const std::int64_t lanes = transposed(k_, shape).empty()
                                   ? ceil_div(threads, std::int64_t{run_length(k_, shape)}) * shape.row_warps
                                   : axes_.tiles(shape) * l.printed_threads;
    l.printed_blocks = blocks_for(lanes, l.printed_threads, l.items);
  }

 private:
  void check() {
    for (const Instr& in : k_.code) ordered_ = ordered_ || is_ordered(in);
    if (slots_.count > most_slots) {
      throw CompileError(
          fmt::format("cuda: the loop `{}` holds {} values at once. Its kernels hold up to 512. Evaluate a "
                      "part of it first.",
                      step_.label, slots_.count, most_slots));
    }
    if (axes_.count() > static_cast<std::uint32_t>(device::most_axes)) {
      throw CompileError(fmt::format(
          "cuda: the loop `{}` has {} dimensions. Its kernels take up to {}. Join dimensions first.",
          step_.label, axes_.count(), device::most_axes));
    }
    constexpr auto lanes = static_cast<std::int32_t>(device::warp_lanes);
    if (ordered_ && k_.order.lanes != lanes) {
      throw CompileError(fmt::format(
          "cuda: the loop `{}` sums floats in {} lanes. A warp has {}. Compile for the CUDA target.",
          step_.label, k_.order.lanes, lanes));
    }
  }
  const char* kernel_name(bool rows) const {
    if (slots_.count <= 32) return rows ? "shardarray_rows_32" : "shardarray_points_32";
    if (slots_.count <= 128) return rows ? "shardarray_rows_128" : "shardarray_points_128";
    return rows ? "shardarray_rows_512" : "shardarray_points_512";
  }

  device::LoopItem add_item(std::size_t number) {
    const Loop::Item& item = loop_.items[number];
    device::LoopItem it{};
    it.outer_points = it.inner_points = 1;
    for (std::size_t d = 0; d < item.extents.size(); d++)
      (d < static_cast<std::size_t>(k_.outer) ? it.outer_points : it.inner_points) *= item.extents[d];
    it.outer_axes = axes_.outer();
    it.axes = axes_.count();
    it.extents = table_.add(axes_.extents(number)).offset;
    it.strides = table_.add(axes_.strides(number)).offset;
    std::vector<device::LoopArgument> arguments;
    for (std::size_t a = 0; a < operands_.arguments; a++) {
      const LoopArg& arg = item.args[a];
      arguments.push_back({device_address(arg.ref),
                           arg.indirect_stride * static_cast<std::int64_t>(itemsize(k_.args[a].type)), arg.lo,
                           arg.count});
    }
    for (const std::size_t d : operands_.indices)
      arguments.push_back({{0, static_cast<std::uint64_t>(item.start[d])}, 0, 0, 0});
    it.arguments = table_.add(arguments).offset;
    return it;
  }

  void add_code(device::LoopTable& t) {
    std::vector<device::Instruction> code;
    std::vector<device::LoopStage> stages;
    std::vector<device::Reduction> reductions;
    for (const Stage& s : k_.stages) {
      const auto begin = static_cast<std::uint32_t>(code.size()),
                 first = static_cast<std::uint32_t>(reductions.size());
      for (auto v = static_cast<std::int32_t>(begin); v < s.end; v++) {
        code.push_back(instruction(v));
        if (k_.code[v].code != Code::reduce) continue;
        code.back().imm = reductions.size();
        reductions.push_back(reduction(v));
      }
      stages.push_back({begin, static_cast<std::uint32_t>(s.end), first,
                        static_cast<std::uint32_t>(reductions.size()) - first, s.inner, 0});
    }
    t.code = table_.add(code);
    t.stages = table_.add(stages);
    t.reductions = table_.add(reductions);
  }
  device::Instruction instruction(std::int32_t v) const {
    const Instr& in = k_.code[v];
    const int count = operand_count(in.code, in.imm);
    const auto slot = [&](int n, std::int32_t operand) {
      return static_cast<std::uint16_t>(n < count ? slots_.places[operand].value : 0);
    };
    device::Instruction out{};
    out.code = in.code;
    out.type = out.from = in.type;
    if (count > 0) out.from = k_.code[in.code == Code::select ? in.b : in.a].type;
    out.dst = static_cast<std::uint16_t>(slots_.places[v].value);
    out.a = slot(0, in.a);
    out.b = slot(1, in.b);
    out.c = slot(2, in.c);
    out.imm = in.code == Code::index ? operands_.number_of_index(in.imm) : in.imm;
    if (in.code == Code::call) out.detail = static_cast<std::uint8_t>(in.imm);
    if (in.code == Code::load || in.code == Code::load_at || in.code == Code::store)
      out.detail = static_cast<std::uint8_t>(itemsize(k_.args[in.imm].type));
    return out;
  }
  device::Reduction reduction(std::int32_t v) const {
    const Instr& in = k_.code[v];
    const auto reducer = static_cast<Reducer>(in.imm);
    const KernelSlots::Place& p = slots_.places[v];
    device::Reduction r{};
    r.combine.code = combining_code(reducer);
    r.combine.type = r.combine.from = in.type;
    r.identity = identity_bits(reducer, in.type);
    r.result = static_cast<std::uint16_t>(p.value);
    r.total = static_cast<std::uint16_t>(p.total);
    r.lost = static_cast<std::uint16_t>(p.lost);
    r.compensated = is_ordered(in) && reducer == Reducer::sum;
    return r;
  }

  const Step& step_;
  const Kernel& k_;
  const Loop& loop_;
  KernelSlots slots_;
  LoopOperands operands_;
  LoopAxes axes_;
  bool ordered_ = false;  // the order of a reduce is part of the kernel
  LaunchTable table_;
};

}  // namespace

void add_loop_launches(const Step& step, const Loop& loop, std::vector<KernelLaunch>& to) {
  LoopTableWriter(step, loop).add_to(to);
}

}  // namespace shardarray::cuda
