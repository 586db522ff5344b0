// The second half of the planner: turns instructions into the tables that LoopPlan::run executes.
#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "cpu/loops/interpreter_plan.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray {
namespace {

/// A full row of one value, shared by all live plans.
std::shared_ptr<const std::vector<std::byte>> constant_row(std::uint64_t bits, int size_log2) {
  static std::mutex mutex;
  using Rows = std::unordered_map<std::uint64_t, std::weak_ptr<const std::vector<std::byte>>>;
  static Rows* const rows = new Rows[4];
  static std::size_t most[4] = {1024, 1024, 1024, 1024};  // after which unused ones are dropped
  const std::lock_guard lock(mutex);
  auto& known = rows[size_log2];
  if (auto row = known[bits].lock()) return row;
  if (known.size() > most[size_log2]) {
    std::erase_if(known, [](const auto& e) { return e.second.expired(); });
    most[size_log2] = std::max(std::size_t{1024}, 2 * known.size());
  }
  auto row = std::make_shared<std::vector<std::byte>>(LoopPlanner::full_row << size_log2);
  baseline_loops().splat[size_log2](row->data(), &bits, nullptr, nullptr, LoopPlanner::full_row);
  known[bits] = row;
  return row;
}

/// Rough nanoseconds per element (x86-64-v3, rows in cache).
double element_ns(const Instr& in) {
  const double bytes = static_cast<double>(itemsize(in.type));
  switch (in.code) {
    case Code::call: return 12;
    case Code::rem: return is_floating(in.type) ? 8 : 2;
    case Code::div: return is_floating(in.type) ? 0.06 * bytes : 2;
    case Code::sqrt: return 0.08 * bytes;
    case Code::load_at: return 1.2;
    case Code::cast: return 0.05 * bytes;
    default: return 0.012 * std::max(bytes, 2.0);
  }
}

}  // namespace

std::uint16_t LoopPlanner::constant_slot(DType type, std::uint64_t bits) {
  auto row = constant_row(bits, size_log2_of(type));
  auto& rows = plan_.constants_;
  auto at = std::find(rows.begin(), rows.end(), row);
  if (at == rows.end()) at = rows.insert(rows.end(), std::move(row));
  return static_cast<std::uint16_t>(plan_.first_constant_ + static_cast<std::size_t>(at - rows.begin()));
}

/// The slot of a computed value's row.
std::uint16_t LoopPlanner::native_slot(int v) const {
  const LoopValue& x = values_[v];
  if (x.dynamic >= 0) return static_cast<std::uint16_t>(row_count_ + x.dynamic);
  return slot_of_request(x.request);
}

/// The slot where an instruction of `stage` finds v.
std::uint16_t LoopPlanner::operand_slot(int v, int stage) {
  const int root = values_[v].root;
  const Instr& in = k_.code[root];
  if (in.code == Code::constant) return constant_slot(in.type, in.imm);
  if (values_[root].narrow && inner(stage)) return slot_of_request(values_[root].splat);
  return native_slot(root);
}

StageRows& LoopPlanner::rows_for(int v) {
  const LoopValue& x = values_[v];
  if (!x.hoisted) return plan_.stages_[x.stage];
  return x.narrow ? plan_.once_narrow_ : plan_.once_;
}

void LoopPlanner::add_cost(int v, double fixed, double element) {
  if (values_[v].hoisted) return;
  Cost& c = cost_[values_[v].stage];
  c.fixed += fixed;
  c.element += element;
}

/// Nanoseconds per element to load or store a row.
double LoopPlanner::access_ns(const Access& a) const {
  const std::int64_t size = std::int64_t{1} << a.size_log2;
  if (a.contiguous || a.run.empty()) return 0.01 * static_cast<double>(size);
  if (a.run.back().stride == 0) return 0.05;
  // Short runs cost one call each.
  const double runs = a.run.size() > 1 ? 4 / static_cast<double>(a.run.back().extent) : 0;
  return runs + (a.run.back().stride == size || a.is_index ? 0.05 : 0.6);
}

void LoopPlanner::emit_load(int v) {
  const LoopValue& x = values_[v];
  const std::int32_t copy = x.request >= 0 ? slot_of_request(x.request) : -1;
  rows_for(v).loads.push_back({static_cast<std::uint16_t>(x.access), native_slot(v), copy});
  add_cost(v, 2, access_ns(plan_.accesses_[x.access]));
}

void LoopPlanner::emit_op(int v) {
  const Instr& in = k_.code[v];
  const Loops& loops = *plan_.loops_;
  const int stage = values_[v].stage, type = static_cast<int>(in.type);
  OpRow op{nullptr, native_slot(v), 0, 0, 0};
  if (in.a >= 0) op.a = operand_slot(in.a, stage);
  if (in.b >= 0) op.b = operand_slot(in.b, stage);
  if (in.c >= 0) op.c = operand_slot(in.c, stage);
  switch (in.code) {
    case Code::load_at: op.b = static_cast<std::uint16_t>(values_[v].access); break;
    case Code::cast: op.function = loops.cast[static_cast<int>(k_.code[in.a].type)][type]; break;
    case Code::select: op.function = loops.select[size_log2_of(in.type)]; break;
    case Code::call: op.function = loops.call[in.imm]; break;
    default: op.function = loops.op[static_cast<int>(in.code)][static_cast<int>(k_.code[in.a].type)]; break;
  }
  rows_for(v).ops.push_back(op);
  add_cost(v, 3, element_ns(in));
}

void LoopPlanner::emit_store(int v) {
  const LoopValue& s = values_[v];
  const int from = values_[k_.code[v].a].root;
  const bool direct = values_[from].direct == v;
  const std::int32_t copy =
      direct && values_[from].request >= 0 ? slot_of_request(values_[from].request) : -1;
  plan_.stages_[s.stage].stores.push_back(
      {static_cast<std::uint16_t>(s.access), operand_slot(k_.code[v].a, s.stage), copy, direct});
  add_cost(v, 2, direct && copy < 0 ? 0 : access_ns(plan_.accesses_[s.access]));
}

void LoopPlanner::emit_reduce(int v) {
  const Instr& in = k_.code[v];
  const auto reducer = static_cast<Reducer>(in.imm);
  const int code = static_cast<int>(combining_code(reducer)), type = static_cast<int>(in.type);
  ReduceRow r{};
  r.combine = plan_.loops_->op[code][type];
  r.accumulate = plan_.loops_->accumulate[code][type];
  r.fold = plan_.loops_->fold[code][type];
  r.accumulate_blocks = plan_.loops_->accumulate_blocks[code][type];
  r.src = operand_slot(in.a, values_[v].stage);
  r.dst = slot_of_request(values_[v].request);
  r.identity = constant_slot(in.type, identity_bits(reducer, in.type));
  r.size_log2 = static_cast<std::uint8_t>(size_log2_of(in.type));
  // Only float sums and products depend on the order: others need no blocks, and only one lane if a row holds many reductions.
  const bool ordered = is_ordered(in);
  r.blocks = has_blocks(v);
  r.block = r.blocks ? k_.order.block : std::int64_t{1} << 62;
  if (ordered && reducer == Reducer::sum) {
    r.add_rounded_off = plan_.loops_->add_rounded_off[type];
    r.with_rounded_off = plan_.loops_->with_rounded_off[type];
  }
  const std::int64_t lanes = ordered ? std::min<std::int64_t>(Loops::lanes, plan_.inner_count_) : 1;
  r.lanes = rows_mode() ? Loops::lanes : static_cast<std::int32_t>(std::max<std::int64_t>(lanes, 1));
  r.lane_bytes = static_cast<std::uint32_t>(rows_mode() ? itemsize(in.type) : lane_bytes(in.type));
  plan_.stages_[values_[v].stage].reduces.push_back(r);
  add_cost(v, 3, element_ns(in));
}

/// Rows mode: values of outer stages used by inner stages fill a row.
void LoopPlanner::emit_splats() {
  for (std::size_t v = 0; v < values_.size(); v++) {
    const LoopValue& x = values_[v];
    if (x.splat < 0) continue;
    StageRows& rows = x.hoisted ? plan_.once_ : plan_.stages_[x.splat_stage];
    const RowFunction splat = plan_.loops_->splat[size_log2_of(k_.code[v].type)];
    rows.enter.push_back({splat, slot_of_request(x.splat), native_slot(static_cast<int>(v)), 0, 0});
  }
}

void LoopPlanner::emit() {
  cost_.resize(k_.stages.size());
  plan_.stages_.resize(k_.stages.size());
  for (std::size_t s = 0; s < k_.stages.size(); s++) plan_.stages_[s].inner = k_.stages[s].inner;
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    const Code code = k_.code[v].code;
    if (values_[v].root != v || code == Code::constant) continue;
    if (code == Code::load || code == Code::index) emit_load(v);
    else if (code == Code::store) emit_store(v);
    else if (code == Code::reduce) emit_reduce(v);
    else emit_op(v);
  }
  emit_splats();
}

void LoopPlanner::estimate() {
  const double outer = static_cast<double>(plan_.outer_count_),
               inner_points = static_cast<double>(plan_.inner_count_);
  const double tile = static_cast<double>(plan_.tile_);
  double total = 30;
  for (std::size_t s = 0; s < k_.stages.size(); s++) {
    // How often the stage is entered, and its elements each time.
    const bool in = inner(static_cast<int>(s));
    const double times = rows_mode() ? outer : in ? inner_points : 1;
    const double elements = rows_mode() ? (in ? inner_points : 1) : outer;
    const double folds =
        15.0 * static_cast<double>(plan_.stages_[s].reduces.size()) * (rows_mode() ? times : 1);
    total += times * (cost_[s].fixed * std::max(1.0, elements / tile) + cost_[s].element * elements) + folds;
  }
  plan_.cost_ns_ = outer == 0 ? 0 : total;
}

}  // namespace shardarray
