#include "cpu/loops/interpreter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/nest_axes.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

std::int64_t product(const std::vector<LoopAxis>& axes, std::size_t from) {
  std::int64_t n = 1;
  for (std::size_t i = from; i < axes.size(); i++) n *= axes[i].extent;
  return n;
}

bool all_zero(const std::vector<LoopAxis>& axes) {
  return std::all_of(axes.begin(), axes.end(), [](const LoopAxis& a) { return a.stride == 0; });
}

/// Whether `in` only passes bits on: bitcasts, and casts between integers of one width.
bool passes_bits(const Kernel& k, const Instr& in) {
  if (in.code == Code::bitcast) return true;
  if (in.code != Code::cast) return false;
  const DType from = k.code[in.a].type;
  return is_integer(from) && is_integer(in.type) && itemsize(from) == itemsize(in.type);
}

}  // namespace

LoopPlanner::LoopPlanner(LoopPlan& plan, const Kernel& kernel, const Loop::Item& item)
    : plan_(plan), k_(kernel), item_(item) {}

void LoopPlanner::build() {
  check_arguments();
  find_values();
  make_accesses();
  choose_tile();
  find_hoisted();
  find_uses();
  find_direct();
  request_rows();
  allocate_rows();
  emit();
  estimate();
}

/// Whether elements of two arguments interleave in memory without overlapping, like the parts of complex numbers.
bool LoopPlanner::take_turns(std::size_t a, std::size_t b) const {
  const LoopArg &x = item_.args[a], &y = item_.args[b];
  const auto size = [&](std::size_t k) { return static_cast<std::int64_t>(itemsize(k_.args[k].type)); };
  std::int64_t period = std::gcd(x.indirect_stride * size(a), y.indirect_stride * size(b));
  for (std::size_t d = 0; d < item_.extents.size(); d++)
    if (item_.extents[d] > 1)
      period = std::gcd(period, std::gcd(x.strides[d] * size(a), y.strides[d] * size(b)));
  std::int64_t from = static_cast<std::int64_t>(y.ref.offset) - static_cast<std::int64_t>(x.ref.offset);
  if (period == 0) return from >= size(a) || -from >= size(b);  // one element each
  from = (from % period + period) % period;
  return from >= size(a) && period - from >= size(b);
}

/// Whether two arguments share memory.
bool LoopPlanner::overlap(std::size_t a, std::size_t b) const {
  const LoopArg &x = item_.args[a], &y = item_.args[b];
  const std::int64_t x0 = static_cast<std::int64_t>(x.ref.offset - x.first),
                     y0 = static_cast<std::int64_t>(y.ref.offset - y.first);
  return x.ref.base == y.ref.base && x0 < y0 + static_cast<std::int64_t>(y.bytes) &&
         y0 < x0 + static_cast<std::int64_t>(x.bytes) && !take_turns(a, b);
}

void LoopPlanner::check_arguments() const {
  const std::size_t rank = static_cast<std::size_t>(k_.outer + k_.inner);
  if (rank > LoopPlan::max_rank) {
    throw InternalError(
        fmt::format("LoopPlan: a kernel of rank {}. The interpreter takes at most {} dimensions. Merge some.",
                    rank, LoopPlan::max_rank));
  }
  if (k_.order.lanes != Loops::lanes) {
    throw InternalError(fmt::format(
        "LoopPlan: a kernel whose float sums run in {} lanes. On a CPU they run in {}. Compile the "
        "program for the backend that loads it.",
        k_.order.lanes, Loops::lanes));
  }
  bool fits =
      item_.extents.size() == rank && item_.start.size() == rank && item_.args.size() == k_.args.size();
  for (const LoopArg& a : item_.args) fits = fits && a.strides.size() == rank;
  if (!fits) {
    throw InternalError(
        fmt::format("LoopPlan: an item with {} arguments over {} does not fit its kernel of {} arguments and "
                    "rank {}. Extents, starts and strides have one entry per dimension. Mend the pass that "
                    "made the item.",
                    item_.args.size(), to_string(item_.extents), k_.args.size(), rank));
  }
  for (std::size_t o = 0; o < k_.args.size(); o++) {
    if (!k_.args[o].output) continue;
    for (std::size_t i = 0; i < k_.args.size(); i++) {
      if (i == o || !overlap(i, o)) continue;
      const LoopArg &in = item_.args[i], &out = item_.args[o];
      bool same = !k_.args[i].output && in.ref.offset == out.ref.offset && k_.args[i].type == k_.args[o].type;
      for (std::size_t d = 0; d < rank; d++)
        same = same && (item_.extents[d] == 1 || in.strides[d] == out.strides[d]);
      if (same && may_overwrite(k_, static_cast<int>(i), static_cast<int>(o))) continue;
      throw InternalError(fmt::format(
          "LoopPlan: output {} overlaps argument {}. An output may take over an input's memory only "
          "with the same address, type and strides, and when it is written after every read. "
          "Give the output memory of its own.",
          o, i));
    }
  }
}

void LoopPlanner::find_values() {
  values_.resize(k_.code.size());
  int stage = 0;
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    while (v >= k_.stages[stage].end) stage++;
    const Instr& in = k_.code[v];
    LoopValue& x = values_[v];
    x.stage = stage;
    x.root = passes_bits(k_, in) ? values_[in.a].root : v;
    x.narrow = rows_mode() && (!inner(stage) || in.code == Code::reduce);
  }
}

Access LoopPlanner::make_access(const Instr& in, int stage) const {
  Access a;
  std::vector<std::int64_t> strides(item_.extents.size(), 0);
  if (in.code == Code::index) {
    a.is_index = true;
    a.size_log2 = 3;
    a.offset = item_.start[in.imm];
    strides[in.imm] = 1;
  } else {
    const LoopArg& arg = item_.args[in.imm];
    const auto size = static_cast<std::int64_t>(itemsize(k_.args[in.imm].type));
    a.base = arg.ref.base;
    a.offset = static_cast<std::int64_t>(arg.ref.offset);
    a.size_log2 = static_cast<std::uint8_t>(size_log2_of(k_.args[in.imm].type));
    a.row_stride = arg.indirect_stride;
    a.lo = arg.lo;
    a.count = arg.count;
    for (std::size_t d = 0; d < strides.size(); d++) strides[d] = arg.strides[d] * size;
  }
  const std::size_t outer = static_cast<std::size_t>(k_.outer), end = inner(stage) ? strides.size() : outer;
  for (std::size_t d = 0; d < end; d++)
    append_axis<&LoopAxis::stride>((d < outer) == rows_mode() ? a.walk : a.run,
                                   {item_.extents[d], strides[d]});
  const std::int64_t size = std::int64_t{1} << a.size_log2;
  a.contiguous = !a.is_index && (a.run.empty() || (a.run.size() == 1 && a.run[0].stride == size));
  return a;
}

void LoopPlanner::make_accesses() {
  for (std::size_t v = 0; v < k_.code.size(); v++) {
    const Instr& in = k_.code[v];
    if (in.code < Code::index || in.code > Code::store) continue;
    values_[v].access = static_cast<int>(plan_.accesses_.size());
    plan_.accesses_.push_back(make_access(in, values_[v].stage));
  }
}

/// The number of elements along the row after which an access repeats; 0: never.
std::int64_t LoopPlanner::period(const Access& a) const {
  if (all_zero(a.run)) return 1;
  return a.run[0].stride == 0 ? product(a.run, 1) : 0;
}

/// Row lengths such that broadcast operands look the same in every tile, and lanes start over.
void LoopPlanner::choose_tile() {
  bool reduces = false;
  std::size_t widest = 1;
  for (const Instr& in : k_.code) {
    reduces = reduces || in.code == Code::reduce;
    widest = std::max(widest, itemsize(in.type));
  }
  // 32 rows of lanes stay in the L1 cache.
  const std::int64_t most = reduces && !rows_mode() ? (widest > 4 ? 64 : 128) : LoopPlanner::full_row;
  const bool lanes = reduces && rows_mode();
  std::int64_t unit = lanes ? Loops::lanes : 16;  // 16: rows in the arguments' memory stay aligned
  for (const Access& a : plan_.accesses_) {
    const std::int64_t p = period(a);
    if (p == 0 || p > most || !all_zero(a.walk)) continue;
    const std::int64_t both = std::lcm(unit, p);
    if (both <= most) unit = both;
    else if (!lanes && unit == 16) unit = p;
  }
  plan_.tile_ = most / unit * unit;
}

/// Whether the row of load or index v is the same in every tile.
bool LoopPlanner::fixed(int v) const {
  const Access& a = plan_.accesses_[values_[v].access];
  if (!all_zero(a.walk)) return false;
  if (values_[v].narrow || run_length() <= plan_.tile_) return true;
  const std::int64_t p = period(a);
  return p != 0 && plan_.tile_ % p == 0;
}

void LoopPlanner::find_hoisted() {
  const std::int64_t points = rows_mode() ? plan_.outer_count_ : plan_.inner_count_;
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    const Instr& in = k_.code[v];
    LoopValue& x = values_[v];
    const bool tiles = !x.narrow && run_length() > plan_.tile_;
    const bool repeats = tiles || (points > 1 && (rows_mode() || inner(x.stage)));
    if (!repeats || in.code == Code::constant || in.code == Code::store || in.code == Code::reduce ||
        in.code == Code::load_at)
      continue;
    if (x.access >= 0) {
      x.hoisted = fixed(v);
      continue;
    }
    x.hoisted = true;
    for (const std::int32_t o : {in.a, in.b, in.c}) {
      if (o >= 0 && k_.code[values_[o].root].code != Code::constant)
        x.hoisted = x.hoisted && values_[values_[o].root].hoisted;
    }
    if (x.root != v) x.hoisted = values_[x.root].hoisted;
  }
}

/// Records that `stage` uses v at a point of the timeline; `at_end`: at the stage's end.
void LoopPlanner::use(int v, int stage, int at, bool at_end) {
  LoopValue& x = values_[values_[v].root];
  if (k_.code[values_[v].root].code == Code::constant) return;
  const bool spread = x.narrow && inner(stage);
  const int when = spread                                         ? begin_of(stage)
                   : (inner(stage) && stage != x.stage) || at_end ? end_of(stage)
                                                                  : at;
  if (spread) {
    if (x.splat < 0) {
      x.splat_stage = stage;
      const DType type = k_.code[values_[v].root].type;
      x.splat = request(x.hoisted ? -1 : begin_of(stage), 0, type, false);
    }
    Request& r = requests_[x.splat];
    r.end = x.hoisted ? always : std::max(r.end, end_of(stage));
  }
  if (stage != x.stage) x.leaves = true;
  x.last_own = std::max(x.last_own, when);
}

void LoopPlanner::find_uses() {
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    const Instr& in = k_.code[v];
    if (values_[v].root != v) continue;
    const bool at_end = in.code == Code::store || in.code == Code::reduce;
    for (const std::int32_t o : {in.a, in.b, in.c}) {
      if (o >= 0) use(o, values_[v].stage, position(v), at_end);
    }
  }
}

/// Whether the value of a store can be computed in the argument's memory: nothing may read there afterwards.
bool LoopPlanner::may_be_direct(int store) const {
  const int v = values_[k_.code[store].a].root;
  const LoopValue &x = values_[v], &s = values_[store];
  if (k_.code[v].code <= Code::reduce || x.hoisted || x.stage != s.stage || x.direct >= 0 ||
      x.narrow != s.narrow)
    return false;
  const Access& to = plan_.accesses_[s.access];
  if (!to.run.empty() && to.run.back().stride != std::int64_t{1} << to.size_log2) return false;
  for (int l = 0; l < static_cast<int>(k_.code.size()); l++) {
    if (k_.code[l].code != Code::load || values_[l].stage != s.stage) continue;
    if (overlap(k_.code[l].imm, k_.code[store].imm) && values_[l].last_own > position(v)) return false;
  }
  return true;
}

void LoopPlanner::find_direct() {
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    if (k_.code[v].code == Code::store && may_be_direct(v)) values_[values_[k_.code[v].a].root].direct = v;
  }
}

/// Loads whose row is always in scratch: strided ones, those kept for the whole run, and those whose memory an output overwrites while they
/// are still needed, at the end of the stage or later.
bool LoopPlanner::copied(int v) const {
  const LoopValue& x = values_[v];
  const Access& a = plan_.accesses_[x.access];
  if (a.is_index || x.hoisted) return true;
  if (!a.run.empty() && a.run.back().stride != std::int64_t{1} << a.size_log2) return true;
  const bool late = x.leaves || x.last_own >= end_of(x.stage);
  for (std::size_t o = 0; late && o < k_.args.size(); o++) {
    if (k_.args[o].output && overlap(k_.code[v].imm, o)) return true;
  }
  return false;
}

int LoopPlanner::request(int start, int end, DType type, bool narrow) {
  requests_.push_back({start, end, size_log2_of(type), narrow});
  return static_cast<int>(requests_.size()) - 1;
}

void LoopPlanner::request_rows() {
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    const Instr& in = k_.code[v];
    LoopValue& x = values_[v];
    if (x.root != v || in.code == Code::constant || in.code == Code::store || in.code == Code::reduce)
      continue;
    const bool load = x.access >= 0 && in.code != Code::load_at;
    const int start = x.hoisted ? -1 : load ? begin_of(x.stage) : position(v);
    const int end = x.hoisted ? always : std::max(x.last_own, start);
    bool in_scratch = true;
    if (load && !copied(v)) {
      x.dynamic = dynamic_count_++;
      in_scratch = !plan_.accesses_[x.access].contiguous;
    } else if (x.direct >= 0) {
      x.dynamic = dynamic_count_++;
      in_scratch = !plan_.accesses_[values_[x.direct].access].contiguous;
    }
    // A direct row that was computed in scratch is stored at the end of its stage.
    if (in_scratch)
      x.request = request(start, x.direct >= 0 ? std::max(end, end_of(x.stage)) : end, in.type, x.narrow);
  }
}

/// Assigns every request a row that is free during its lifetime; an instruction may overwrite its last-used operand.
void LoopPlanner::allocate_rows() {
  std::vector<int> order(requests_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return requests_[a].start < requests_[b].start; });
  struct Row {
    int size_log2, busy_until;
    bool narrow;
  };
  std::vector<Row> rows;
  std::size_t bytes = 0;
  const auto take = [&](std::size_t n) {
    plan_.row_offset_.push_back(static_cast<std::uint32_t>(bytes));
    bytes += (n + 63) / 64 * 64;
    return row_count_++;
  };
  for (const int i : order) {
    Request& r = requests_[i];
    for (std::size_t row = 0; row < rows.size() && r.row < 0; row++) {
      const Row& w = rows[row];
      if (w.size_log2 == r.size_log2 && w.narrow == r.narrow && w.busy_until <= r.start)
        r.row = static_cast<int>(row);
    }
    if (r.row < 0) {
      r.row = take((r.narrow ? 1 : plan_.tile_) << r.size_log2);
      rows.push_back({r.size_log2, 0, r.narrow});
    }
    rows[r.row].busy_until = r.end;
  }
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    if (k_.code[v].code != Code::reduce) continue;
    const std::size_t lane = rows_mode() ? itemsize(k_.code[v].type) : lane_bytes(k_.code[v].type);
    requests_.push_back({});
    requests_.back().row = take(lane * (Loops::lanes + (has_blocks(v) ? 2 : 0)));
    values_[v].request = static_cast<int>(requests_.size()) - 1;
  }
  plan_.scratch_bytes_ = bytes;
  plan_.first_constant_ = static_cast<std::size_t>(row_count_ + dynamic_count_);
}

}  // namespace shardarray
