#include "cuda/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "runtime/evaluate_instruction.h"

namespace shardarray::cuda {
namespace {

const char* printed_type(DType t) {
  switch (t) {
    case DType::bool_: return "bool";
    case DType::int8: return "std::int8_t";
    case DType::int16: return "std::int16_t";
    case DType::int32: return "std::int32_t";
    case DType::int64: return "std::int64_t";
    case DType::uint8: return "std::uint8_t";
    case DType::uint16: return "std::uint16_t";
    case DType::uint32: return "std::uint32_t";
    case DType::uint64: return "std::uint64_t";
    case DType::float32: return "float";
    default: return "double";
  }
}

std::string printed_bits(DType t, std::uint64_t bits) {
  if (t == bool_) return (bits & 1) != 0 ? "true" : "false";
  if (t == float32) return fmt::format("scalar::from_bits<float>({:#x}u)", bits);
  if (t == float64) return fmt::format("scalar::from_bits<double>({:#x}ull)", bits);
  return fmt::format("static_cast<{}>({:#x}{})", printed_type(t), bits, itemsize(t) == 8 ? "ull" : "u");
}

const char* printed_reducer(Reducer r) {
  switch (r) {
    case Reducer::sum: return "Sum";
    case Reducer::prod: return "Prod";
    case Reducer::max: return "Max";
    case Reducer::min: return "Min";
    case Reducer::any: return "Any";
    default: return "All";
  }
}

/// Names in the text: v<instruction> values, r<instruction> reductions, p<argument> places at domain point 0, b<operand> the
/// beginnings of indices, q<argument> what load_at asks for, s<operand>_<axis> strides, e<axis> extents, x<axis> coordinates.
class KernelText {
 public:
  KernelText(const Kernel& k, const LoopShape& shape, const std::string& name)
      : k_(k), shape_(shape), operands_(k), name_(name) {
    for (const Stage& s : k.stages) rows_ = rows_ || s.inner;
  }

  std::string print() {
    line(0, "namespace shardarray::device {{");
    line(
        0,
        "static SHARDARRAY_DEVICE void {}_text(const Grid& g, const std::byte* table, const Bases& bases) {{",
        name_);
    line(1, "const PrintedItem item(g, table, bases);");
    line(1, "using Index = {};", shape_.small ? "std::uint32_t" : "std::uint64_t");
    declare_places();
    declare_axes();
    if (rows_) {
      line(1, "const std::int64_t rows = point_step(g) / warp_lanes;");
      line(1,
           "for (std::int64_t row = first_point(g) / warp_lanes; row < item.outer_points; row += rows) {{");
      coordinates(2, "row", 0, shape_.outer_axes);
    } else {
      line(1, "const std::int64_t points = point_step(g);");
      line(1, "for (std::int64_t at = first_point(g); at < item.outer_points; at += points) {{");
      coordinates(2, "at", 0, shape_.outer_axes);
    }
    stages();
    line(1, "}}");
    line(0, "}}");
    line(0, "SHARDARRAY_PRINTED({0}, {0}_text, {1})", name_, rows_ ? "warp_lanes" : "1");
    line(0, "}}  // namespace shardarray::device\n");
    return std::move(text_);
  }

 private:
  using Move = LoopShape::Move;

  template <class... Args> void line(std::size_t depth, fmt::format_string<Args...> format, Args&&... args) {
    text_.append(depth * 2, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void declare_places() {
    std::vector<bool> at_rows(k_.args.size());
    for (const Instr& in : k_.code)
      if (in.code == Code::load_at) at_rows[in.imm] = true;
    for (std::size_t o = 0; o < operands_.count(); o++) {
      if (o < operands_.arguments) line(1, "std::byte* const p{0} = item.place({0});", o);
      else line(1, "const std::int64_t b{0} = item.start({0});", o);
      if (o < operands_.arguments && at_rows[o]) line(1, "const LoopArgument q{0} = item.argument({0});", o);
      for (std::uint32_t x = 0; x < shape_.axes; x++)
        if (move(o, x) == Move::any)
          line(1, "const std::int64_t s{}_{} = item.stride({});", o, x, o * shape_.axes + x);
    }
  }
  /// The first axis of its group takes what the others leave.
  void declare_axes() {
    for (std::uint32_t x = 0; x < shape_.axes; x++)
      if (x != 0 && x != shape_.outer_axes)
        line(1, "const auto e{0} = static_cast<Index>(item.extent({0}));", x);
  }
  void coordinates(std::size_t depth, const char* of, std::uint32_t first, std::uint32_t end) {
    if (end - first > 1) line(depth, "Index left_{0} = static_cast<Index>({0});", of);
    for (std::uint32_t x = end; x-- > first;) {
      if (x > first)
        line(depth, "[[maybe_unused]] const std::int64_t x{0} = take_off(left_{1}, e{0});", x, of);
      else if (end - first > 1)
        line(depth, "[[maybe_unused]] const auto x{} = static_cast<std::int64_t>(left_{});", x, of);
      else line(depth, "[[maybe_unused]] const std::int64_t x{} = {};", x, of);
    }
  }

  void stages() {
    std::size_t begin = 0;
    for (const Stage& s : k_.stages) {
      const auto end = static_cast<std::size_t>(s.end);
      inner_ = s.inner;
      if (s.inner) inner_stage(begin, end);
      else
        for (std::size_t v = begin; v < end; v++) instruction(2, v);
      if (rows_) line(2, "SHARDARRAY_SYNC_LANES();");
      begin = end;
    }
  }
  void inner_stage(std::size_t begin, std::size_t end) {
    std::vector<std::size_t> reduced;
    for (std::size_t v = begin; v < end; v++)
      if (k_.code[v].code == Code::reduce) reduced.push_back(v);
    for (const std::size_t v : reduced) {
      const Instr& in = k_.code[v];
      const auto r = static_cast<Reducer>(in.imm);
      line(2, "LaneReduction<{}, {}> r{}(item, {});", printed_type(in.type), printed_reducer(r), v,
           printed_bits(in.type, identity_bits(r, in.type)));
    }
    if (reduced.empty()) {
      line(2, "SHARDARRAY_LANES(lane) {{");
      inner_points("0", "item.inner_points", begin, end);
      return line(2, "}}");
    }
    line(2, "for (std::int64_t begin = 0, stop; begin < item.inner_points; begin = stop) {{");
    line(3, "stop = item.inner_points - begin > item.block ? begin + item.block : item.inner_points;");
    for (const std::size_t v : reduced) line(3, "r{}.open_block();", v);
    line(3, "SHARDARRAY_LANES(lane) {{");
    inner_points("begin", "stop", begin, end);
    line(3, "}}");
    for (const std::size_t v : reduced) line(3, "r{}.close_block();", v);
    line(2, "}}");
    for (const std::size_t v : reduced)
      line(2, "const {} v{} = r{}.result();", printed_type(k_.code[v].type), v, v);
  }
  void inner_points(const char* first, const char* stop, std::size_t begin, std::size_t end) {
    line(4, "for (std::int64_t j = {} + lane; j < {}; j += warp_lanes) {{", first, stop);
    coordinates(5, "j", shape_.outer_axes, shape_.axes);
    for (std::size_t v = begin; v < end; v++) instruction(5, v);
    line(4, "}}");
  }

  Move move(std::size_t operand, std::uint32_t axis) const {
    return shape_.moves[operand * shape_.axes + axis];
  }
  /// What is added to an operand's beginning at the point; " + " before each summand.
  std::string distance(std::size_t operand, std::size_t unit) const {
    std::string s;
    for (std::uint32_t x = 0; x < (inner_ ? shape_.axes : shape_.outer_axes); x++) {
      const Move m = move(operand, x);
      if (m == Move::any) s += fmt::format(" + x{0} * s{1}_{0}", x, operand);
      else if (m == Move::one && unit == 1) s += fmt::format(" + x{}", x);
      else if (m == Move::one) s += fmt::format(" + x{} * {}", x, unit);
    }
    return s;
  }
  std::string place(std::uint64_t argument) const {
    const std::string d = distance(argument, itemsize(k_.args[argument].type));
    return d.empty() ? fmt::format("p{}", argument) : fmt::format("p{} + ({})", argument, d.substr(3));
  }

  void instruction(std::size_t depth, std::size_t v) {
    const Instr& in = k_.code[v];
    if (in.code == Code::store)
      line(depth, "{}({}, v{});", rows_ && !inner_ ? "write_once" : "write", place(in.imm), in.a);
    else if (in.code == Code::reduce) line(depth, "r{}.take(lane, v{});", v, in.a);
    else line(depth, "const {} v{} = {};", printed_type(in.type), v, expression(in));
  }
  std::string expression(const Instr& in) const {
    const char* const type = printed_type(in.type);
    switch (in.code) {
      case Code::constant: return printed_bits(in.type, in.imm);
      case Code::index: {
        const std::size_t o = operands_.number_of_index(in.imm);
        return fmt::format("b{}{}", o, distance(o, 1));
      }
      case Code::load: return fmt::format("read<{}>({})", type, place(in.imm));
      case Code::load_at: return fmt::format("read_row<{}>(q{}, {}, v{})", type, in.imm, place(in.imm), in.a);
      case Code::cast: return fmt::format("scalar::cast<{}>(v{})", type, in.a);
      case Code::bitcast: return fmt::format("scalar::from_bits<{}>(v{})", type, in.a);
      case Code::and_:
      case Code::or_:
      case Code::xor_:
      case Code::not_: return called(fmt::format("{}_", name(in.code)), in);
      case Code::call: return called(name(static_cast<Function>(in.imm)), in);
      default: return called(name(in.code), in);
    }
  }
  static std::string called(const std::string& function, const Instr& in) {
    const int count = operand_count(in.code, in.imm);
    std::string s = fmt::format("scalar::{}(v{}", function, in.a);
    if (count > 1) s += fmt::format(", v{}", in.b);
    if (count > 2) s += fmt::format(", v{}", in.c);
    return s + ")";
  }

  const Kernel& k_;
  const LoopShape& shape_;
  const LoopOperands operands_;
  const std::string& name_;
  bool rows_ = false, inner_ = false;  // the kernel has inner stages; the stage being printed is one
  std::string text_;
};

}  // namespace

std::string printed_prelude() { return "#include \"kernels/printed.cuh\"\n"; }

std::string print_kernel(const Kernel& k, const LoopShape& shape, const std::string& name) {
  return KernelText(k, shape, name).print();
}

}  // namespace shardarray::cuda
