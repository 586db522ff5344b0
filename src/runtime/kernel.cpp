#include "runtime/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr const char* code_names[] = {
    "constant", "index", "load", "load_at", "store", "reduce", "cast", "bitcast", "neg", "abs",
    "sqrt",     "floor", "ceil", "round",   "trunc", "not",    "add",  "sub",     "mul", "div",
    "rem",      "min",   "max",  "and",     "or",    "xor",    "shl",  "shr",     "eq",  "ne",
    "lt",       "le",    "gt",   "ge",      "fma",   "select", "call"};
static_assert(std::size(code_names) == static_cast<int>(Code::call) + 1);

struct FunctionInfo {
  const char* name;
  int operands;
};
constexpr FunctionInfo functions[] = {
#define SHARDARRAY_UNARY(name) {#name, 1},
#define SHARDARRAY_BINARY(name) {#name, 2},
#include "runtime/functions.inc"
};

bool is_comparison(Code c) { return c >= Code::eq && c <= Code::ge; }
/// The types that kernels compute with.
bool has_arithmetic(DType t) { return t <= uint64 || t == float32 || t == float64; }

std::string constant_text(const Instr& in) {
  switch (in.type) {
    case DType::bool_: return in.imm ? "true" : "false";
    case DType::float32: return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(in.imm)));
    case DType::float64: return fmt::format("{}", std::bit_cast<double>(in.imm));
    default: break;
  }
  if (is_unsigned_integer(in.type)) return fmt::format("{}", in.imm);
  const int unused = 64 - 8 * static_cast<int>(itemsize(in.type));
  return fmt::format("{}", static_cast<std::int64_t>(in.imm << unused) >> unused);
}

/// `%3 = mul f32 %1 %2`.
std::string instruction_text(const Kernel& k, std::size_t i) {
  const Instr& in = k.code[i];
  std::string s =
      in.code == Code::store ? "store" : fmt::format("%{} = {} {}", i, name(in.code), short_name(in.type));
  switch (in.code) {
    case Code::constant: return s + " " + constant_text(in);
    case Code::index: s += fmt::format(" dim{}", in.imm); break;
    case Code::load:
    case Code::load_at:
    case Code::store: s += fmt::format(" arg{}", in.imm); break;
    case Code::reduce: s += fmt::format(" {}", name(static_cast<Reducer>(in.imm))); break;
    case Code::call: s += fmt::format(" {}", name(static_cast<Function>(in.imm))); break;
    default: break;
  }
  const std::int32_t operands[] = {in.a, in.b, in.c};
  for (int n = 0; n < operand_count(in.code, in.imm); n++) s += fmt::format(" %{}", operands[n]);
  return s;
}

/// Checks one kernel, instruction by instruction.
class Verifier {
 public:
  explicit Verifier(const Kernel& k) : k_(k), stored_(k.args.size(), false) {}

  void run() {
    if (k_.outer < 0 || k_.inner < 0) {
      throw InternalError(
          fmt::format("verify: a kernel has {} outer and {} inner dimensions. Neither may be negative. "
                      "Count them again where it is built.",
                      k_.outer, k_.inner));
    }
    const auto [lanes, block] = k_.order;
    if (lanes < 1 || block < lanes || !std::has_single_bit(static_cast<std::uint32_t>(lanes)) ||
        !std::has_single_bit(static_cast<std::uint32_t>(block))) {
      throw InternalError(fmt::format(
          "verify: float sums in {} lanes and blocks of {}. Both are powers of two, and a block has "
          "an element for every lane. Mend the order that the kernel was given.",
          lanes, block));
    }
    std::int32_t begin = 0;
    for (const Stage& s : k_.stages) {
      if (s.end < begin || s.end > size()) bad_stages();
      stage_of_.resize(static_cast<std::size_t>(s.end), static_cast<int>(&s - k_.stages.data()));
      begin = s.end;
    }
    if (begin != size()) bad_stages();
    for (at_ = 0; at_ < k_.code.size(); at_++) instruction(k_.code[at_]);
  }

 private:
  std::int32_t size() const { return static_cast<std::int32_t>(k_.code.size()); }
  void bad_stages() const {
    throw InternalError(
        fmt::format("verify: the stages do not cut the {} instructions of the kernel in order. Ends ascend "
                    "and the last one is the number of instructions. Build kernels with KernelBuilder.",
                    k_.code.size()));
  }
  [[noreturn]] void fail(const std::string& rule) const {
    throw InternalError(
        fmt::format("verify: instruction `{}` breaks a rule of kernel IR. {}. Mend the pass that emitted it.",
                    instruction_text(k_, at_), rule));
  }
  void require(bool ok, const char* rule) const {
    if (!ok) fail(rule);
  }
  bool inner() const { return k_.stages[stage_of_[at_]].inner; }

  void operand(std::int32_t v) const {
    if (v < 0 || static_cast<std::size_t>(v) >= at_ || k_.code[v].code == Code::store)
      fail("Operands are results of instructions before it");
    const int from = stage_of_[v];
    const bool visible = from == stage_of_[at_] || !k_.stages[from].inner || k_.code[v].code == Code::reduce;
    require(visible, "Only reduced values leave an inner stage");
    require(k_.code[v].code != Code::reduce || from != stage_of_[at_],
            "A reduced value exists after its stage only");
  }
  DType type_of(std::int32_t v) const { return k_.code[v].type; }

  void instruction(const Instr& in) {
    require(static_cast<int>(in.code) <= static_cast<int>(Code::call), "Codes are those of `Code`");
    require(in.code != Code::call || in.imm < function_count, "Called functions are those of `Function`");
    require(has_arithmetic(in.type), "Kernels compute with bool, integers, float32 and float64");
    const int count = operand_count(in.code, in.imm);
    const std::int32_t operands[] = {in.a, in.b, in.c};
    for (int n = 0; n < count; n++) operand(operands[n]);
    if (in.code <= Code::reduce) place(in);
    else arithmetic(in);
  }

  void place(const Instr& in) {
    switch (in.code) {
      case Code::constant: {
        const int unused = 64 - 8 * static_cast<int>(itemsize(in.type));
        require(in.type == bool_ ? in.imm <= 1 : in.imm << unused >> unused == in.imm,
                "Bits stand in the low bytes");
        return;
      }
      case Code::index:
        require(in.type == int64, "An index is int64");
        require(in.imm < static_cast<std::uint64_t>(k_.outer) + static_cast<std::uint64_t>(k_.inner),
                "An index names a dimension of the domain");
        require(inner() || in.imm < static_cast<std::uint64_t>(k_.outer), "Outer stages have no inner index");
        return;
      case Code::reduce: reduce(in); return;
      default: argument(in); return;
    }
  }
  void argument(const Instr& in) {
    require(in.imm < k_.args.size(), "The argument exists");
    const KernelArg& arg = k_.args[in.imm];
    require(arg.type == (in.code == Code::store ? type_of(in.a) : in.type),
            "The argument has the value's type");
    require(arg.output == (in.code == Code::store), "Outputs are stored, other arguments loaded");
    if (in.code == Code::store) {
      require(!stored_[in.imm], "An output is stored once");
      stored_[in.imm] = true;
    } else {
      require(arg.indirect == (in.code == Code::load_at),
              "load_at reads indirect arguments, load the others");
      require(in.code == Code::load || type_of(in.a) == int64, "The row of load_at is int64");
    }
  }
  void reduce(const Instr& in) {
    const auto r = static_cast<Reducer>(in.imm);
    require(inner(), "Only inner stages reduce");
    require(in.imm >= 1 && in.imm <= static_cast<std::uint64_t>(Reducer::all),
            "The reducer is one of sum .. all");
    require(type_of(in.a) == in.type, "A reduced value keeps its type");
    const bool logical = r == Reducer::any || r == Reducer::all;
    require(logical == (in.type == bool_), "any and all take bool, the other reducers numbers");
  }

  void arithmetic(const Instr& in) {
    const DType t = in.type, a = type_of(in.a);
    const Code c = in.code;
    if (c == Code::cast) return;
    if (c == Code::bitcast) {
      return require(itemsize(t) == itemsize(a) && (t == bool_) == (a == bool_), "A bitcast keeps the width");
    }
    if (c == Code::select) {
      require(a == bool_, "The condition of select is bool");
      return require(type_of(in.b) == t && type_of(in.c) == t,
                     "Both values of select have the result's type");
    }
    if (c == Code::call) {
      require(t == float64 && a == float64 && (in.b < 0 || type_of(in.b) == float64),
              "Calls compute in float64");
      return;
    }
    if (is_comparison(c)) {
      require(t == bool_, "A comparison gives bool");
      return require(a == type_of(in.b), "Compared operands have one type");
    }
    const int count = operand_count(c, in.imm);
    const bool same = a == t && (count < 2 || type_of(in.b) == t) && (count < 3 || type_of(in.c) == t);
    require(same, "Operands have the result's type");
    const bool floating = is_floating(t), logical = t == bool_;
    if (c == Code::fma || (c >= Code::sqrt && c <= Code::trunc))
      require(floating, "It computes with floats only");
    else if (c == Code::not_ || (c >= Code::and_ && c <= Code::xor_))
      require(!floating, "It computes with bool and integers");
    else if (c == Code::shl || c == Code::shr)
      require(!floating && !logical, "It computes with integers only");
    else require(!logical, "It computes with numbers, not bool");
  }

  const Kernel& k_;
  std::vector<int> stage_of_;  // instruction -> stage
  std::vector<bool> stored_;   // argument -> has a store
  std::size_t at_ = 0;
};

}  // namespace

const char* name(Code c) { return c <= Code::call ? code_names[static_cast<int>(c)] : "unknown"; }
const char* name(Function f) {
  return static_cast<int>(f) < function_count ? functions[static_cast<int>(f)].name : "unknown";
}

int operand_count(Code c, std::uint64_t imm) {
  switch (c) {
    case Code::constant:
    case Code::index:
    case Code::load: return 0;
    case Code::fma:
    case Code::select: return 3;
    case Code::call: return imm < function_count ? functions[imm].operands : 1;
    default: return c >= Code::add && c <= Code::ge ? 2 : 1;
  }
}

void verify(const Kernel& k) { Verifier(k).run(); }

bool may_overwrite(const Kernel& k, int input, int output) {
  bool stored = false;
  for (const Instr& in : k.code) {
    if (in.code == Code::store && in.imm == static_cast<std::uint64_t>(output)) stored = true;
    const bool reads = in.code == Code::load || in.code == Code::load_at;
    if (reads && in.imm == static_cast<std::uint64_t>(input) && (stored || in.code == Code::load_at))
      return false;
  }
  return true;
}

std::string to_string(const Kernel& k) {
  std::string s = fmt::format("kernel outer={} inner={}", k.outer, k.inner);
  if (k.order != ReductionOrder()) s += fmt::format(" lanes={} block={}", k.order.lanes, k.order.block);
  s += "\n";
  for (std::size_t a = 0; a < k.args.size(); a++) {
    s += fmt::format("arg{} {}{}{}\n", a, short_name(k.args[a].type), k.args[a].output ? " output" : "",
                     k.args[a].indirect ? " indirect" : "");
  }
  std::size_t i = 0;
  for (const Stage& stage : k.stages) {
    s += stage.inner ? "inner:\n" : "outer:\n";
    for (; i < static_cast<std::size_t>(stage.end); i++) s += "  " + instruction_text(k, i) + "\n";
  }
  return s;
}

bool is_pointwise(const Kernel& k) {
  return k.inner == 0 && k.stages.size() == 1 && !k.stages[0].inner &&
         std::none_of(k.code.begin(), k.code.end(),
                      [](const Instr& in) { return in.code == Code::index || in.code == Code::load_at; });
}

}  // namespace shardarray
