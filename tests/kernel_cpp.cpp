#include "kernel_cpp.h"

#include <fmt/format.h>

#include "runtime/evaluate_instruction.h"

namespace shardarray {
namespace {

const char* cpp_type(DType t) {
  switch (t) {
    case DType::bool_: return "bool";
    case DType::int8: return "int8_t";
    case DType::int16: return "int16_t";
    case DType::int32: return "int32_t";
    case DType::int64: return "int64_t";
    case DType::uint8: return "uint8_t";
    case DType::uint16: return "uint16_t";
    case DType::uint32: return "uint32_t";
    case DType::uint64: return "uint64_t";
    case DType::float32: return "float";
    default: return "double";
  }
}

std::string literal(DType t, std::uint64_t bits) {
  if (t == float32) return fmt::format("from_bits<float>(uint32_t{{{}u}})", bits);
  if (t == float64) return fmt::format("from_bits<double>(uint64_t{{{}u}})", bits);
  return fmt::format("static_cast<{}>({}u)", cpp_type(t), bits);
}

class CppPrinter {
 public:
  CppPrinter(const Kernel& k, const std::string& name) : k_(k), rank_(k.outer + k.inner) {
    text_ = fmt::format(
        "extern \"C\" void {}(void* const* args, const int64_t* extents, const int64_t* starts, const "
        "int64_t* "
        "strides, const int64_t* indirect) {{\n  (void)starts; (void)strides; (void)indirect;\n",
        name);
  }

  std::string print() {
    open_loop("o", 0, k_.outer);
    std::size_t begin = 0;
    for (const Stage& s : k_.stages) {
      inner_ = s.inner;
      const auto end = static_cast<std::size_t>(s.end);
      if (s.inner) {
        for (std::size_t v = begin; v < end; v++) open_lanes(v);
        open_loop("j", k_.outer, rank_);
      }
      for (std::size_t v = begin; v < end; v++) instruction(v);
      if (s.inner) {
        text_ += "  }\n";
        for (std::size_t v = begin; v < end; v++) result(v);
      }
      begin = end;
    }
    return text_ + "  }\n}\n";
  }

 private:
  /// Coordinates x<d> of the dimensions [from, to), row-major.
  void open_loop(const char* point, int from, int to) {
    text_ += fmt::format("  for (int64_t {0} = 0, n{0} = int64_t{{1}}", point);
    for (int d = from; d < to; d++) text_ += fmt::format(" * extents[{}]", d);
    text_ += fmt::format("; {0} < n{0}; {0}++) {{\n  int64_t rest_{0} = {0};\n", point);
    for (int d = to; d-- > from;) {
      text_ += fmt::format("  const int64_t x{0} = rest_{1} % extents[{0}]; rest_{1} /= extents[{0}];\n", d,
                           point);
    }
    text_ += fmt::format("  (void)rest_{};\n", point);
  }

  std::string element(std::uint64_t arg, DType t) const {
    std::string at = "0";
    for (int d = 0; d < (inner_ ? rank_ : k_.outer); d++)
      at += fmt::format(" + x{} * strides[{}]", d, arg * rank_ + d);
    return fmt::format("static_cast<{}*>(args[{}])[{}", cpp_type(t), arg, at);
  }

  std::string expression(const Instr& in) const {
    const char* type = cpp_type(in.type);
    switch (in.code) {
      case Code::constant: return literal(in.type, in.imm);
      case Code::index: return fmt::format("starts[{0}] + x{0}", in.imm);
      case Code::load: return element(in.imm, in.type) + "]";
      case Code::load_at: {
        const std::uint64_t i = in.imm * 3;
        return fmt::format(
            "v{0} >= indirect[{1}] && v{0} < indirect[{1}] + indirect[{2}] ? {3} + (v{0} - indirect[{1}]) * "
            "indirect[{4}]] : {5}{{}}",
            in.a, i + 1, i + 2, element(in.imm, in.type), i, type);
      }
      case Code::cast: return fmt::format("cast<{}>(v{})", type, in.a);
      case Code::bitcast: return fmt::format("from_bits<{}>(v{})", type, in.a);
      case Code::not_: return fmt::format("not_(v{})", in.a);
      case Code::and_:
      case Code::or_:
      case Code::xor_: return fmt::format("{}_(v{}, v{})", name(in.code), in.a, in.b);
      default: break;
    }
    const char* f = in.code == Code::call ? name(static_cast<Function>(in.imm)) : name(in.code);
    const int count = operand_count(in.code, in.imm);
    std::string s = fmt::format("shardarray::scalar::{}(v{}", f, in.a);
    if (count > 1) s += fmt::format(", v{}", in.b);
    if (count > 2) s += fmt::format(", v{}", in.c);
    return s + ")";
  }

  void instruction(std::size_t v) {
    const Instr& in = k_.code[v];
    if (in.code == Code::store) {
      text_ += fmt::format("  {}] = v{};\n", element(in.imm, k_.code[in.a].type), in.a);
    } else if (in.code == Code::reduce) {
      const std::string lane = fmt::format("l{}[j % {}]", v, k_.order.lanes);
      text_ += fmt::format("  {} = {};\n", lane, combined(in, lane, fmt::format("v{}", in.a)));
      close_block(v);
    } else {
      text_ += fmt::format("  const {} v{} = {};\n", cpp_type(in.type), v, expression(in));
    }
  }

  std::string combined(const Instr& in, const std::string& a, const std::string& b) const {
    const Code c = combining_code(static_cast<Reducer>(in.imm));
    const bool logical = c == Code::and_ || c == Code::or_;
    return fmt::format("shardarray::scalar::{}{}({}, {})", name(c), logical ? "_" : "", a, b);
  }
  void open_lanes(std::size_t v) {
    const Instr& in = k_.code[v];
    if (in.code != Code::reduce) return;
    const std::string identity = literal(in.type, identity_bits(static_cast<Reducer>(in.imm), in.type));
    text_ += fmt::format("  {0} l{1}[{2}], total{1} = {3}, lost{1} = 0;\n  for (auto& l : l{1}) l = {3};\n",
                         cpp_type(in.type), v, k_.order.lanes, identity);
  }
  /// Where point j is the last one of its block, or of all.
  void close_block(std::size_t v) {
    const Instr& in = k_.code[v];
    text_ += fmt::format("  if ((j + 1) % {} == 0 || j + 1 == nj) {{\n", k_.order.block);
    text_ += fmt::format(
        "  for (int w = {}; w > 0; w /= 2) {{\n  for (int i = 0; i < w; i++) l{}[i] = {};\n  }}\n",
        k_.order.lanes / 2, v, combined(in, fmt::format("l{}[i]", v), fmt::format("l{}[i + w]", v)));
    if (compensated(in))
      text_ += fmt::format("  lost{0} += shardarray::scalar::rounded_off(total{0}, l{0}[0]);\n", v);
    text_ += fmt::format("  total{} = {};\n", v,
                         combined(in, fmt::format("total{}", v), fmt::format("l{}[0]", v)));
    text_ += fmt::format("  for (auto& l : l{}) l = {};\n  }}\n", v,
                         literal(in.type, identity_bits(static_cast<Reducer>(in.imm), in.type)));
  }
  void result(std::size_t v) {
    const Instr& in = k_.code[v];
    if (in.code != Code::reduce) return;
    const std::string total = compensated(in)
                                  ? fmt::format("shardarray::scalar::with_rounded_off(total{0}, lost{0})", v)
                                  : fmt::format("total{}", v);
    text_ += fmt::format("  const {} v{} = {};\n  (void)lost{};\n", cpp_type(in.type), v, total, v);
  }
  static bool compensated(const Instr& in) {
    return is_ordered(in) && static_cast<Reducer>(in.imm) == Reducer::sum;
  }

  const Kernel& k_;
  int rank_;
  bool inner_ = false;
  std::string text_;
};

}  // namespace

std::string cpp_prelude() {
  return "#include <cstdint>\n#include \"runtime/scalar.h\"\nusing namespace shardarray::scalar;\n";
}
std::string to_cpp(const Kernel& k, const std::string& name) { return CppPrinter(k, name).print(); }

}  // namespace shardarray
