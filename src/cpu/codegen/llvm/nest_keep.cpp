// LoopNestEmitter: kept rows. Values do not leave inner stages, so a later stage recomputes an earlier one's expressions (softmax: exp, for
// the sum and for the quotient). If rows are short, costly values are kept on the stack instead.
#include "cpu/codegen/llvm/nest_emitter.h"

namespace shardarray::codegen {

namespace {
constexpr int worth_keeping = 6;  // instructions
// Bytes on the stack that fit into the L2 cache.
constexpr std::uint64_t most_kept = std::uint64_t{256} << 10;
}  // namespace

/// For every value of an inner stage, the first one that computes the same.
std::vector<int> LoopNestEmitter::equal_values() const {
  std::vector<int> same(k_.code.size());
  for (int v = 0; v < static_cast<int>(k_.code.size()); v++) {
    same[static_cast<std::size_t>(v)] = v;
    Instr in = k_.code[static_cast<std::size_t>(v)];
    if (!inner(values_[static_cast<std::size_t>(v)].stage) || in.code == Code::store ||
        in.code == Code::reduce)
      continue;
    const auto named = [&](Instr x) {
      for (std::int32_t* o : {&x.a, &x.b, &x.c}) {
        if (*o >= 0) *o = same[static_cast<std::size_t>(*o)];
      }
      return x;
    };
    in = named(in);
    for (int w = 0; w < v; w++) {
      if (!inner(values_[static_cast<std::size_t>(w)].stage) ||
          named(k_.code[static_cast<std::size_t>(w)]) != in)
        continue;
      same[static_cast<std::size_t>(v)] = w;
      break;
    }
  }
  return same;
}

/// Finds the values to be loaded from an earlier stage's row.
void LoopNestEmitter::find_kept() {
  if (!spec_.short_rows) return;
  const std::vector<int> same = equal_values();
  const auto size = k_.code.size();
  std::vector<int> cost(size);
  std::vector<bool> needed(size), candidate(size);
  for (std::size_t v = 0; v < size; v++) {
    const Instr& in = k_.code[v];
    const int stage = values_[v].stage;
    cost[v] = in.code == Code::constant || in.code == Code::load ? 0 : 1;
    for (const std::int32_t o : {in.a, in.b, in.c}) {
      if (o >= 0 && values_[static_cast<std::size_t>(o)].stage == stage)
        cost[v] += cost[static_cast<std::size_t>(o)];
    }
    cost[v] = std::min(cost[v], 1000);
    const auto first = static_cast<std::size_t>(same[v]);
    candidate[v] = first != v && values_[first].stage != stage && in_body(static_cast<int>(v)) &&
                   cost[v] >= worth_keeping;
  }
  std::uint64_t kept_bytes = 0;
  for (std::size_t v = size; v-- > 0;) {
    const Instr& in = k_.code[v];
    if (in.code != Code::store && in.code != Code::reduce && !needed[v]) continue;
    constexpr auto elements = static_cast<std::uint64_t>(LoopNestSpec::short_row + lanes);
    const std::uint64_t bytes = elements * itemsize(in.type);
    if (candidate[v] && (values_[static_cast<std::size_t>(same[v])].row || kept_bytes + bytes <= most_kept)) {
      values_[v].kept = same[v];
      EmittedValue& first = values_[static_cast<std::size_t>(same[v])];
      if (!first.row) {
        first.row = memory_.stack(memory_type(b_.getContext(), in.type), elements);
        kept_bytes += bytes;
      }
      continue;
    }
    for (const std::int32_t o : {in.a, in.b, in.c}) {
      if (o >= 0) needed[static_cast<std::size_t>(o)] = true;
    }
  }
}

llvm::Value* LoopNestEmitter::row_address(int v, llvm::Value* i) {
  const DType t = k_.code[static_cast<std::size_t>(v)].type;
  return b_.CreateGEP(memory_type(b_.getContext(), t), values_[static_cast<std::size_t>(v)].row, i);
}

}  // namespace shardarray::codegen
