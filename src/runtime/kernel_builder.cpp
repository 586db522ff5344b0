#include "runtime/kernel_builder.h"

#include <fmt/format.h>

#include <utility>

#include "base/hash.h"
#include "runtime/evaluate_instruction.h"
#include "shardarray/error.h"

namespace shardarray {

std::size_t KernelBuilder::Hash::operator()(const Instr& in) const {
  std::uint64_t h =
      hash_mix(static_cast<std::uint64_t>(in.code) << 8 | static_cast<std::uint64_t>(in.type), in.imm);
  h = hash_mix(h, static_cast<std::uint64_t>(in.a) << 32 | static_cast<std::uint32_t>(in.b));
  return hash_mix(h, static_cast<std::uint32_t>(in.c));
}

KernelBuilder::KernelBuilder(int outer, int inner) {
  kernel_.outer = outer;
  kernel_.inner = inner;
}

int KernelBuilder::arg(KernelArg a) {
  kernel_.args.push_back(a);
  return static_cast<int>(kernel_.args.size()) - 1;
}

void KernelBuilder::begin_stage(bool inner) {
  kernel_.stages.push_back({inner, static_cast<std::int32_t>(kernel_.code.size())});
}

bool KernelBuilder::visible(int v) const {
  const int from = stage_of_[v], here = static_cast<int>(kernel_.stages.size()) - 1;
  if (kernel_.code[v].code == Code::reduce) return from != here;
  return from == here || !kernel_.stages[from].inner;
}

/// Constant folding.
bool KernelBuilder::fold(Instr& in) const {
  if (in.code < Code::cast) return false;
  std::uint64_t bits[3] = {};
  DType operand = in.type;
  const std::int32_t operands[] = {in.a, in.b, in.c};
  for (int n = 0; n < operand_count(in.code, in.imm); n++) {
    const Instr& from = kernel_.code[operands[n]];
    if (from.code != Code::constant) return false;
    bits[n] = from.imm;
    if (n == 0 && in.code != Code::select) operand = from.type;
  }
  in = {.code = Code::constant,
        .type = in.type,
        .imm = evaluate_instruction(in, operand, bits[0], bits[1], bits[2])};
  return true;
}

int KernelBuilder::emit(Instr in) {
  if (kernel_.stages.empty()) {
    throw InternalError(
        fmt::format("KernelBuilder: `{}` stands in no stage. Instructions belong to the stage opened last. "
                    "Call begin_stage first.",
                    name(in.code)));
  }
  for (const std::int32_t v : {in.a, in.b, in.c}) {
    if (v < -1 || v >= static_cast<std::int32_t>(kernel_.code.size()) || (v >= 0 && !visible(v))) {
      throw InternalError(fmt::format(
          "KernelBuilder: `{}` uses %{}, which is not visible in its stage. Only outer and reduced "
          "values leave their stage. Recompute it here.",
          name(in.code), v));
    }
  }
  fold(in);
  Stage& stage = kernel_.stages.back();
  const bool by_point = in.code == Code::load || in.code == Code::load_at || in.code == Code::reduce;
  auto& numbers = numbers_[by_point && stage.inner];
  if (in.code != Code::store) {
    const auto found = numbers.find(in);
    // A reduction of this stage is not visible yet, but may be reused.
    if (found != numbers.end()) {
      const bool here = stage_of_[found->second] == static_cast<int>(kernel_.stages.size()) - 1;
      if (here || visible(found->second)) return found->second;
    }
  }
  const int v = static_cast<int>(kernel_.code.size());
  kernel_.code.push_back(in);
  stage_of_.push_back(static_cast<int>(kernel_.stages.size()) - 1);
  stage.end = v + 1;
  if (in.code != Code::store) numbers[in] = v;
  return v;
}

int KernelBuilder::constant(DType type, double value) { return constant_bits(type, bits_of(type, value)); }
int KernelBuilder::constant_bits(DType type, std::uint64_t bits) {
  return emit({.code = Code::constant, .type = type, .imm = bits});
}
int KernelBuilder::index(int dim) {
  return emit({.code = Code::index, .type = int64, .imm = static_cast<std::uint64_t>(dim)});
}
int KernelBuilder::load(int arg) {
  return emit(
      {.code = Code::load, .type = kernel_.args.at(arg).type, .imm = static_cast<std::uint64_t>(arg)});
}
int KernelBuilder::load_at(int arg, int row) {
  return emit({.code = Code::load_at,
               .type = kernel_.args.at(arg).type,
               .a = row,
               .imm = static_cast<std::uint64_t>(arg)});
}
void KernelBuilder::store(int arg, int v) {
  emit({.code = Code::store, .type = type(v), .a = v, .imm = static_cast<std::uint64_t>(arg)});
}
int KernelBuilder::reduce(Reducer r, int v) {
  return emit({.code = Code::reduce, .type = type(v), .a = v, .imm = static_cast<std::uint64_t>(r)});
}
int KernelBuilder::cast(int v, DType to) {
  return to == type(v) ? v : emit({.code = Code::cast, .type = to, .a = v});
}
int KernelBuilder::bitcast(int v, DType to) {
  return to == type(v) ? v : emit({.code = Code::bitcast, .type = to, .a = v});
}
int KernelBuilder::unary(Code code, int a) { return emit({.code = code, .type = type(a), .a = a}); }
int KernelBuilder::binary(Code code, int a, int b) {
  const bool comparison = code >= Code::eq && code <= Code::ge;
  return emit({.code = code, .type = comparison ? bool_ : type(a), .a = a, .b = b});
}
int KernelBuilder::fma(int a, int b, int c) {
  return emit({.code = Code::fma, .type = type(a), .a = a, .b = b, .c = c});
}
int KernelBuilder::select(int condition, int a, int b) {
  return emit({.code = Code::select, .type = type(a), .a = condition, .b = a, .c = b});
}
int KernelBuilder::call(Function f, int a, int b) {
  return emit({.code = Code::call, .type = float64, .a = a, .b = b, .imm = static_cast<std::uint64_t>(f)});
}

Kernel KernelBuilder::finish() {
  const std::size_t n = kernel_.code.size();
  std::vector<bool> live(n, false);
  for (std::size_t i = n; i-- > 0;) {
    const Instr& in = kernel_.code[i];
    if (in.code == Code::store) live[i] = true;
    if (!live[i]) continue;
    for (const std::int32_t v : {in.a, in.b, in.c}) {
      if (v >= 0) live[v] = true;
    }
  }
  Kernel out;
  out.outer = kernel_.outer;
  out.inner = kernel_.inner;
  out.args = std::move(kernel_.args);
  std::vector<std::int32_t> number(n, -1);
  std::size_t i = 0;
  for (const Stage& stage : kernel_.stages) {
    const std::size_t first = out.code.size();
    for (; i < static_cast<std::size_t>(stage.end); i++) {
      if (!live[i]) continue;
      number[i] = static_cast<std::int32_t>(out.code.size());
      Instr in = kernel_.code[i];
      for (std::int32_t* v : {&in.a, &in.b, &in.c}) *v = *v < 0 ? -1 : number[*v];
      out.code.push_back(in);
    }
    if (out.code.size() > first)
      out.stages.push_back({stage.inner, static_cast<std::int32_t>(out.code.size())});
  }
  verify(out);
  return out;
}

}  // namespace shardarray
