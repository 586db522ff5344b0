#include "cuda/kept_rows.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace shardarray::cuda {
namespace {

constexpr std::uint32_t most_bytes = 47 << 10;  // per block, beside what its teams need
constexpr std::uint32_t fewest_rows = 2;  // per block with a warp per row: with fewer, rows are read again
constexpr std::uint32_t much = 8;         // operations from which keeping their value pays

/// Calls f with each operand of the instruction as printed.
template <class F> void each_operand(const Kernel& k, const HalfCasts& halves, std::size_t v, const F& f) {
  if (halves.is_cast(v)) return f(static_cast<std::size_t>(halves.of(v).operand));
  const Instr& in = k.code[v];
  const int count = operand_count(in.code, in.imm);
  const std::int32_t operands[] = {in.a, in.b, in.c};
  for (int n = 0; n < count; n++) f(static_cast<std::size_t>(operands[n]));
}

}  // namespace

KeptRows::KeptRows(const Kernel& k, const HalfCasts& halves, const LoopShape& shape)
    : k_(k), halves_(halves), shape_(shape), same_(k.code.size()), needed_(k.code.size()) {
  std::iota(same_.begin(), same_.end(), std::size_t{0});
  const bool keeps = shape.kept_points > 0 && !shape.columns && shape.axes == shape.outer_axes + 1;
  if (keeps) find_values();
  find_needed();
  if (keeps) find_arguments();
  place();
  const std::uint32_t most = shape.row_warps > 1 ? most_bytes : most_bytes / fewest_rows;
  if (bytes_ > most) {  // keep arguments only
    values_.clear();
    std::iota(same_.begin(), same_.end(), std::size_t{0});
    find_needed();
    find_arguments();
    place();
  }
  if (bytes_ <= most) return;
  arguments_.clear();
  place();
}

bool KeptRows::keeps_argument(std::size_t argument) const {
  return std::find(arguments_.begin(), arguments_.end(), argument) != arguments_.end();
}
bool KeptRows::keeps_value(std::size_t v) const {
  return std::find(values_.begin(), values_.end(), v) != values_.end();
}

bool KeptRows::reads(std::size_t v, std::size_t argument) const {
  return needed_[v] && same_[v] == v && k_.code[v].code == Code::load && k_.code[v].imm == argument;
}
/// Whether instructions from v on read the argument.
bool KeptRows::is_read_from(std::size_t v, std::size_t argument) const {
  while (v < k_.code.size() && !reads(v, argument)) v++;
  return v < k_.code.size();
}
/// Safe to reuse memory: within a stage one thread reads and writes an inner point, in instruction order.
void KeptRows::place() {
  rows_.clear();
  bytes_ = 0;
  const auto add = [&](std::size_t number, bool is_value, DType type) {
    rows_.push_back({number, is_value, type, bytes_});
    bytes_ += static_cast<std::uint32_t>(shape_.kept_points * itemsize(type));
  };
  for (const std::size_t a : arguments_) add(a, false, k_.args[a].type);
  std::vector<std::size_t> left = arguments_;
  for (const std::size_t v : values_) {
    const DType type = k_.code[v].type;
    const auto ended = std::find_if(left.begin(), left.end(), [&](std::size_t a) {
      return itemsize(k_.args[a].type) == itemsize(type) && !is_read_from(v, a);
    });
    if (ended == left.end()) {
      add(v, true, type);
      continue;
    }
    const auto row = std::find_if(rows_.begin(), rows_.end(),
                                  [&](const Row& r) { return !r.is_value && r.number == *ended; });
    rows_.push_back({v, true, type, row->at});
    left.erase(ended);
  }
}

/// Equal expressions of inner points get one number. Those already computed in an earlier stage, and used by something that is not itself
/// such an expression, are kept.
void KeptRows::find_values() {
  using Expression = std::tuple<Code, DType, std::uint64_t, std::size_t, std::size_t, std::size_t>;
  std::map<Expression, std::size_t> known;
  std::vector<std::size_t> number(k_.code.size()), stage(k_.code.size());
  std::vector<std::uint32_t> cost(k_.code.size());
  std::vector<bool> again(k_.code.size());
  std::size_t v = 0;
  for (std::size_t s = 0; s < k_.stages.size(); s++)
    for (; v < static_cast<std::size_t>(k_.stages[s].end); v++) {
      const Instr& in = k_.code[v];
      number[v] = v;
      stage[v] = s;
      if (!k_.stages[s].inner || !halves_.is_needed(v) || in.code == Code::store || in.code == Code::reduce)
        continue;
      std::size_t operands[3] = {}, count = 0;
      cost[v] = operation_cost(in);
      each_operand(k_, halves_, v, [&](std::size_t o) {
        operands[count++] = number[o];
        cost[v] = std::min(cost[v] + cost[o], much);
      });
      // A cast has the opcode of its last instruction; a distinct imm tells them apart.
      const HalfCasts::Cast& cast = halves_.of(v);
      const auto imm =
          halves_.is_cast(v)
              ? ~(static_cast<std::uint64_t>(cast.kind) << 8 | static_cast<std::uint64_t>(cast.half))
              : in.imm;
      const auto [found, is_new] =
          known.try_emplace({in.code, in.type, imm, operands[0], operands[1], operands[2]}, v);
      number[v] = found->second;
      again[v] = !is_new && stage[number[v]] < s;
    }
  std::vector<bool> read(k_.code.size());  // by what is not recomputed
  for (v = 0; v < k_.code.size(); v++)
    if (halves_.is_needed(v) && !again[v])
      each_operand(k_, halves_, v, [&](std::size_t o) { read[o] = true; });
  for (v = 0; v < k_.code.size(); v++) {
    if (!again[v] || !read[v] || cost[v] < much) continue;
    same_[v] = number[v];
    if (!keeps_value(number[v])) values_.push_back(number[v]);
  }
}

void KeptRows::find_needed() {
  std::fill(needed_.begin(), needed_.end(), false);
  for (std::size_t v = k_.code.size(); v-- > 0;) {
    const Instr& in = k_.code[v];
    needed_[v] = needed_[v] || in.code == Code::store || in.code == Code::reduce || keeps_value(v);
    if (needed_[v] && same_[v] == v) each_operand(k_, halves_, v, [&](std::size_t o) { needed_[o] = true; });
  }
}

void KeptRows::find_arguments() {
  using Move = LoopShape::Move;
  arguments_.clear();
  for (std::size_t a = 0; a < k_.args.size(); a++) {
    int stages = 0;
    std::size_t v = 0;
    for (const Stage& s : k_.stages) {
      bool is_read = false;
      for (; v < static_cast<std::size_t>(s.end); v++) is_read = is_read || reads(v, a);
      stages += s.inner && is_read;
    }
    bool own = false;  // rows shared by all outer points stay in caches
    for (std::uint32_t x = 0; x < shape_.outer_axes; x++) own = own || shape_.move(a, x) != Move::none;
    if (stages > 1 && own && shape_.move(a, shape_.outer_axes) == Move::one) arguments_.push_back(a);
  }
}

}  // namespace shardarray::cuda
