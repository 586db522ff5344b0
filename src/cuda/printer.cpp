#include "cuda/printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>

#include "base/ceil_div.h"
#include "cuda/half_casts.h"
#include "cuda/kept_rows.h"
#include "cuda/printed_words.h"
#include "cuda/run_values.h"
#include "cuda/same_bits.h"
#include "kernels/lanes.cuh"
#include "kernels/transposed.cuh"
#include "runtime/evaluate_instruction.h"

namespace shardarray::cuda {

namespace {

class KernelText {
 public:
  KernelText(const Kernel& k, const LoopShape& shape, const std::string& name)
      : k_(k),
        shape_(shape),
        operands_(k),
        halves_(k),
        name_(name),
        rows_(has_inner_stage(k)),
        run_(run_length(k, shape)),
        in_run_(k, shape, operands_, halves_, run_),
        kept_(k, halves_, shape),
        tiled_(transposed(k, shape)) {
    for (std::size_t a = 0; a < k.args.size(); a++)
      in_runs_.push_back(run_ > 1 && !k.args[a].indirect && moves_in_runs(shape, a));
  }

  std::string print() {
    line(0, "namespace shardarray::device {{");
    line(0, "template <class Item>");
    line(0, "SHARDARRAY_DEVICE void {}_text(const Grid& g, const std::byte* table, const Bases& bases) {{",
         name_);
    line(1, "const Item item(g, table, bases);");
    line(1, "using Index = {};", shape_.small ? "std::uint32_t" : "std::uint64_t");
    declare_places();
    declare_axes();
    declare_rows();
    if (rows_) teams();
    else if (!tiled_.empty()) tiles();
    else points();
    line(0, "}}");
    const PrintedBounds bounds = printed_bounds(k_, shape_);
    const std::uint32_t together =
        !rows_ ? (tiled_.empty() ? 1 : device::transposed_lanes) : shape_.row_warps * device::warp_lanes;
    line(0, "SHARDARRAY_PRINTED({0}, {0}_text, {1}, {2}, {3})", name_, bounds.threads, bounds.blocks,
         together);
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
  /// The first axis of its group needs no extent: it takes what the others leave.
  void declare_axes() {
    for (std::uint32_t x = 0; x < shape_.axes; x++)
      if (x != shape_.outer_axes && (x != 0 || !tiled_.empty()))
        line(1, "const auto e{0} = static_cast<Index>(item.extent({0}));", x);
  }
  void declare_rows() {
    if (kept_.empty()) return;
    const std::uint32_t warps = printed_bounds(k_, shape_).threads / device::warp_lanes;
    line(1, "SHARDARRAY_KEPT_ROWS(kept, {}, {});", kept_.bytes(), warps / shape_.row_warps);
    for (const KeptRows::Row& r : kept_.rows())
      line(1, "auto* const {}{} = reinterpret_cast<Unsigned<{}>*>(kept + {});", r.is_value ? 'm' : 'k',
           r.number, printed_type(r.type), r.at);
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

  void points() {
    // Signed: lets the compiler compute trip counts up front and unroll short loops.
    line(1, "using Number = {};", shape_.small ? "std::int32_t" : "std::int64_t");
    line(1, "const auto points = static_cast<Number>(item.outer_points);");
    line(1, "const auto first = static_cast<Number>(first_point(g));");
    line(1, "const auto step = static_cast<Number>(point_step(g));");
    read_shared();
    if (run_ > 1) runs();
    line(1, "SHARDARRAY_POINTS");
    line(1, "for (Number at = {}first; at < points; at += step) {{", run_ > 1 ? "done + " : "");
    coordinates(2, "at", 0, shape_.outer_axes);
    for (std::size_t v = 0; v < k_.code.size(); v++)
      if (!is_shared(v)) instruction(2, v);
    line(1, "}}");
  }
  /// Whether all points read one element. No result aliases it: all points would write to one place.
  bool is_shared(std::size_t v) const {
    const Instr& in = k_.code[v];
    if (in.code != Code::load) return false;
    for (std::uint32_t x = 0; x < shape_.outer_axes; x++)
      if (move(in.imm, x) != Move::none) return false;
    return true;
  }
  /// Once per item, if it has points.
  void read_shared() {
    bool first = true;
    for (std::size_t v = 0; v < k_.code.size(); v++) {
      if (!is_shared(v) || !halves_.is_needed(v)) continue;
      if (first) line(1, "if (first >= points) return;");
      first = false;
      instruction(1, v);
    }
  }
  void runs() {
    line(1, "Number done = 0;");
    line(1, "if ({}) {{", runs_are_whole());
    line(2, "done = points - points % {};", run_);
    line(2, "SHARDARRAY_POINTS");
    line(2, "for (Number at = first * {0}; at < done; at += step * {0}) {{", run_);
    coordinates(3, "at", 0, shape_.outer_axes);
    printing_run_ = true;
    for (std::size_t v = 0; v < k_.code.size(); v++)
      if (!is_shared(v)) run_instruction(3, v);
    printing_run_ = false;
    line(2, "}}");
    line(1, "}}");
  }
  bool is_of_tiles(std::uint32_t axis) const {
    return axis == shape_.tile_axis || axis + 1 == shape_.outer_axes;
  }
  void tiles() {
    std::uint32_t bytes = 0;
    for (const std::size_t a : tiled_) bytes += tile_bytes(k_, shape_, a);
    line(1, "SHARDARRAY_TRANSPOSED(tiles, {});", bytes);
    bytes = 0;
    for (const std::size_t a : tiled_) {
      const char* const type = printed_type(k_.args[a].type);
      line(1, "auto* const t{} = reinterpret_cast<Unsigned<{}>*>(tiles + {});", a, type, bytes);
      bytes += tile_bytes(k_, shape_, a);
    }
    std::string all = "std::int64_t{1}";
    for (std::uint32_t x = 0; x < shape_.outer_axes; x++) {
      if (is_of_tiles(x)) line(1, "const Index n{0} = tiles_of<{1}>(e{0});", x, shape_.tile_side);
      all += fmt::format(" * {}{}", is_of_tiles(x) ? 'n' : 'e', x);
    }
    line(1, "const std::int64_t count = {};", all);
    if (run_ > 1) line(1, "const bool runs = {};", runs_are_whole());
    line(1, "for (std::int64_t tile = g.block; tile < count; tile += g.blocks) {{");
    tile_coordinates();
    read_tiles();
    if (run_ > 1) {
      line(2, "if (runs) {{");
      tile_points(3, run_);
      line(2, "}} else {{");
      tile_points(3, 1);
      line(2, "}}");
    } else {
      tile_points(2, 1);
    }
    line(2, "SHARDARRAY_TRANSPOSED_SYNC();");
    line(1, "}}");
  }
  void tile_coordinates() {
    line(2, "auto left = static_cast<Index>(tile);");
    for (std::uint32_t x = shape_.outer_axes; x-- > 0;) {
      const std::string number = x == 0 ? "static_cast<std::int64_t>(left)"
                                        : fmt::format("take_off(left, {}{})", is_of_tiles(x) ? 'n' : 'e', x);
      if (is_of_tiles(x)) line(2, "const std::int64_t c{} = {} * {};", x, number, shape_.tile_side);
      else line(2, "[[maybe_unused]] const std::int64_t x{} = {};", x, number);
    }
  }
  void read_tiles() {
    const std::uint32_t last = shape_.outer_axes - 1, along = shape_.tile_axis;
    line(2, "SHARDARRAY_TRANSPOSED_LANES(lane) {{");
    line(3, "const std::int64_t x{0} = c{0}, x{1} = c{1};", along, last);
    for (const std::size_t a : tiled_)
      line(3, "read_transposed<{0}, {1}>(lane, t{2}, {3}, s{2}_{4}, e{4} - x{4}, e{5} - x{5});",
           printed_type(k_.args[a].type), shape_.tile_side, a, place(a), last, along);
    line(2, "}}");
    line(2, "SHARDARRAY_TRANSPOSED_SYNC();");
  }
  /// All points of a tile, `run` adjacent ones at once.
  void tile_points(std::size_t depth, std::uint32_t run) {
    const std::uint32_t last = shape_.outer_axes - 1, along = shape_.tile_axis, side = shape_.tile_side;
    constexpr std::uint32_t lanes = device::transposed_lanes;
    const std::uint32_t in_row = side / run, all = side * in_row;
    line(depth, "SHARDARRAY_TRANSPOSED_LANES(lane) {{");
    line(depth + 1, "SHARDARRAY_ROLLED");
    line(depth + 1, "for (std::uint32_t k = 0; k < {}; k++) {{", ceil_div(all, lanes));
    line(depth + 2, "const std::uint32_t i = lane + k * transposed_lanes;");
    line(depth + 2, "const std::uint32_t across = i / {0}, first = i % {0} * {1};", in_row, run);
    line(depth + 2, "const std::int64_t x{0} = c{0} + across, x{1} = c{1} + first;", along, last);
    line(depth + 2, "if ({2}x{0} >= e{0} || x{1} >= e{1}) continue;", along, last,
         all < lanes ? fmt::format("i >= {} || ", all) : "");
    printing_run_ = run > 1;
    for (std::size_t v = 0; v < k_.code.size(); v++)
      run > 1 ? run_instruction(depth + 2, v) : instruction(depth + 2, v);
    printing_run_ = false;
    line(depth + 1, "}}");
    line(depth, "}}");
  }
  /// The condition that no run of an item crosses the end of a row, and that its accesses are aligned.
  std::string runs_are_whole() const {
    std::map<std::uint64_t, std::string> multiples;  // by size
    if (shape_.outer_axes > 1) multiples[run_] = fmt::format(", e{}", shape_.outer_axes - 1);
    for (std::size_t a = 0; a < operands_.arguments; a++) {
      if (!in_runs_[a]) continue;
      std::string& all = multiples[run_ * itemsize(k_.args[a].type)];
      all += fmt::format(", p{}", a);
      for (std::uint32_t x = 0; x + 1 < shape_.outer_axes; x++)
        if (move(a, x) == Move::any) all += fmt::format(", s{}_{}", a, x);
    }
    std::string s;
    for (const auto& [size, what] : multiples)
      s += fmt::format("{}multiples_of<{}>({})", s.empty() ? "" : " && ", size, what.substr(2));
    return s;
  }

  void teams() {
    const char* const team = shape_.columns ? "ColumnTeam" : shape_.row_warps > 1 ? "BlockTeam" : "RowTeam";
    line(1, "using Number = {};", shape_.small ? "std::int32_t" : "std::int64_t");
    line(1, "SHARDARRAY_POINTS");
    line(1, "for ({} team(g, item.outer_points); team.works(); team.next()) {{", team);
    line(2, "[[maybe_unused]] const std::int64_t point = team.point();");
    coordinates(2, "point", 0, shape_.outer_axes);
    for (const std::size_t a : kept_.arguments())
      line(2, "keep_row<{}>(team, k{}, {}, item.inner_points);", printed_type(k_.args[a].type), a, place(a));
    std::size_t begin = 0;
    for (const Stage& s : k_.stages) {
      const auto end = static_cast<std::size_t>(s.end);
      inner_ = s.inner;
      if (s.inner) inner_stage(team, begin, end);
      else
        for (std::size_t v = begin; v < end; v++) instruction(2, v);
      line(2, "team.sync();");
      begin = end;
    }
    line(1, "}}");
  }
  void inner_stage(const char* team, std::size_t begin, std::size_t end) {
    std::vector<std::size_t> reduced;
    for (std::size_t v = begin; v < end; v++)
      if (k_.code[v].code == Code::reduce) reduced.push_back(v);
    for (const std::size_t v : reduced) {
      const Instr& in = k_.code[v];
      const auto r = static_cast<Reducer>(in.imm);
      line(2, "LaneReduction<{}, {}, {}> r{}(item, {});", printed_type(in.type), printed_reducer(r), team, v,
           printed_bits(in.type, identity_bits(r, in.type)));
    }
    if (reduced.empty()) {
      line(2, "SHARDARRAY_TEAM_LANES(team, lane) {{");
      inner_points("team.rank(lane)", "item.inner_points", "team.threads()", begin, end);
      return line(2, "}}");
    }
    if (shape_.row_warps > 1) return rounds(reduced, begin, end);
    line(2, "for (std::int64_t begin = 0, stop; begin < item.inner_points; begin = stop) {{");
    line(3, "stop = item.inner_points - begin > item.block ? begin + item.block : item.inner_points;");
    block(reduced, begin, end, "close_block(team)");
  }
  /// Each warp takes at most one block; then all add up the results, in the blocks' order.
  void rounds(const std::vector<std::size_t>& reduced, std::size_t begin, std::size_t end) {
    line(2, "for (std::int64_t round = 0; round < item.inner_points; round += item.block * team.warps()) {{");
    line(3, "const std::int64_t begin = round + item.block * team.warp(), left = item.inner_points - begin;");
    line(3, "const std::int64_t stop = begin + (left < item.block ? left : item.block);");
    block(reduced, begin, end, "close_round(item, team, round)");
  }
  /// The inner points from `begin` to `stop`, then the results over all of them.
  void block(const std::vector<std::size_t>& reduced, std::size_t begin, std::size_t end, const char* close) {
    for (const std::size_t v : reduced) line(3, "r{}.open_block();", v);
    line(3, "SHARDARRAY_TEAM_LANES(team, lane) {{");
    inner_points("begin + lane", "stop", "warp_lanes", begin, end);
    line(3, "}}");
    for (const std::size_t v : reduced) line(3, "r{}.{};", v, close);
    line(2, "}}");
    for (const std::size_t v : reduced)
      line(2, "const {} v{} = r{}.result();", printed_type(k_.code[v].type), v, v);
  }
  void inner_points(const char* first, const char* stop, const char* step, std::size_t begin,
                    std::size_t end) {
    constexpr std::uint32_t most = 8, operations = 256;  // to unroll
    std::uint32_t cost = 1;
    for (std::size_t v = begin; v < end; v++) cost += kept_.is_needed(v) ? operation_cost(k_.code[v]) : 0;
    line(4, "each_inner_point<{}, Number>({}, {}, {}, [&](const Number j) {{",
         std::bit_floor(std::clamp(operations / cost, 1u, most)), first, stop, step);
    coordinates(5, "j", shape_.outer_axes, shape_.axes);
    for (std::size_t v = begin; v < end; v++) instruction(5, v);
    line(4, "}});");
  }

  Move move(std::size_t operand, std::uint32_t axis) const { return shape_.move(operand, axis); }
  bool is_tiled(std::size_t argument) const {
    return std::find(tiled_.begin(), tiled_.end(), argument) != tiled_.end();
  }
  /// The offset of the point, or of its k-th neighbour, from the operand's start; each summand preceded by " + ".
  std::string distance(std::size_t operand, std::size_t unit, std::uint32_t k) const {
    std::string s;
    for (std::uint32_t x = 0; x < (inner_ ? shape_.axes : shape_.outer_axes); x++) {
      const Move m = move(operand, x);
      const std::string at =
          k > 0 && x + 1 == shape_.outer_axes ? fmt::format("(x{} + {})", x, k) : fmt::format("x{}", x);
      if (m == Move::any) s += fmt::format(" + {} * s{}_{}", at, operand, x);
      else if (m == Move::one && unit == 1) s += " + " + at;
      else if (m == Move::one) s += fmt::format(" + {} * {}", at, unit);
    }
    return s;
  }
  std::string place(std::uint64_t argument, std::uint32_t k = 0) const {
    const std::string d = distance(argument, itemsize(k_.args[argument].type), k);
    return d.empty() ? fmt::format("p{}", argument) : fmt::format("p{} + ({})", argument, d.substr(3));
  }

  void instruction(std::size_t depth, std::size_t v) {
    if (!kept_.is_needed(v)) return;
    const Instr& in = k_.code[v];
    if (in.code == Code::store && rows_ && !inner_)
      line(depth, "write_once(team, {}, v{});", place(in.imm), in.a);
    else if (in.code == Code::store) line(depth, "write({}, v{});", place(in.imm), in.a);
    else if (in.code == Code::reduce) line(depth, "r{}.take(lane, v{});", v, in.a);
    else line(depth, "const {} v{} = {};", printed_type(in.type), v, expression(v, 0));
    if (kept_.keeps_value(v))
      line(depth, "m{0}[x{1}] = scalar::from_bits<Unsigned<{2}>>(v{0});", v, shape_.outer_axes,
           printed_type(in.type));
  }
  /// The instruction for the points of a run: once for points that share a value, and for all of them before the next instruction, so that
  /// a store comes after all its points' loads.
  void run_instruction(std::size_t depth, std::size_t v) {
    if (!halves_.is_needed(v)) return;
    const Instr& in = k_.code[v];
    const char* const type = printed_type(in.type);
    if (in.code == Code::store) {
      std::string values;
      for (std::uint32_t k = 0; k < run_; k++) values += ", " + value(in.a, k);
      return line(depth, "write_run({}{});", place(in.imm), values);
    }
    if (together(depth, v)) return;
    const bool whole = in.code == Code::load && in_runs_[in.imm];
    if (whole) line(depth, "const auto w{} = read_run<{}, {}>({});", v, type, run_, place(in.imm));
    for (std::uint32_t k = 0; k < run_; k += in_run_.group(v)) {
      const std::string x = whole                 ? fmt::format("element<{}>(w{}.bits[{}])", type, v, k)
                            : in_run_.is_known(v) ? printed_bits(in.type, in_run_.known(v, k))
                                                  : expression(v, k);
      line(depth, "const {} {} = {};", type, value(static_cast<std::int32_t>(v), k), x);
    }
  }
  /// Roots and quotients of all points, with one test whether all operands are ordinary.
  bool together(std::size_t depth, std::size_t v) {
    const Instr& in = k_.code[v];
    if (in.type != float32 || in_run_.group(v) != 1) return false;
    const auto all = [&](std::int32_t operand) {
      std::string s;
      for (std::uint32_t k = 0; k < run_; k++) s += (k == 0 ? "" : ", ") + value(operand, k);
      return s;
    };
    const std::int32_t small = in.code == Code::div ? added_to_one(k_, in) : -1;
    if (small >= 0)
      line(depth, "const auto z{} = ratios<{}>({{{}}}, {{{}}}, {{{}}});", v, run_, all(in.a), all(in.b),
           all(small));
    else if (in.code == Code::sqrt) line(depth, "const auto z{} = roots<{}>({{{}}});", v, run_, all(in.a));
    else return false;
    for (std::uint32_t k = 0; k < run_; k++)
      line(depth, "const float {} = z{}.of[{}];", value(static_cast<std::int32_t>(v), k), v, k);
    return true;
  }
  /// The value's name at the k-th point of a run.
  std::string value(std::int32_t v, std::uint32_t k) const {
    const std::uint32_t group = in_run_.group(static_cast<std::size_t>(v));
    return printing_run_ && group < run_ ? fmt::format("v{}_{}", v, k - k % group) : fmt::format("v{}", v);
  }
  /// At the point, or at its k-th neighbour.
  std::string expression(std::size_t v, std::uint32_t k) const {
    if (const std::size_t first = kept_.stands_for(v); first != v)
      return fmt::format("element<{}>(m{}[x{}])", printed_type(k_.code[v].type), first, shape_.outer_axes);
    if (halves_.is_cast(v)) return half_cast(halves_.of(v), k);
    const Instr& in = k_.code[v];
    const char* const type = printed_type(in.type);
    switch (in.code) {
      case Code::constant: return printed_bits(in.type, in.imm);
      case Code::index: {
        const std::size_t o = operands_.number_of_index(in.imm);
        return fmt::format("b{}{}", o, distance(o, 1, k));
      }
      case Code::load:
        if (inner_ && kept_.keeps_argument(in.imm))
          return fmt::format("element<{}>(k{}[x{}])", type, in.imm, shape_.outer_axes);
        if (is_tiled(in.imm))
          return fmt::format("transposed_element<{}, {}>(t{}, first + {}, across)", type, shape_.tile_side,
                             in.imm, k);
        return fmt::format("read<{}>({})", type, place(in.imm, k));
      case Code::load_at:
        return fmt::format("read_row<{}>(q{}, {}, {})", type, in.imm, place(in.imm, k), value(in.a, k));
      case Code::cast: return fmt::format("scalar::cast<{}>({})", type, value(in.a, k));
      case Code::bitcast: return fmt::format("scalar::from_bits<{}>({})", type, value(in.a, k));
      case Code::and_:
      case Code::or_:
      case Code::xor_:
      case Code::not_: return called(fmt::format("{}_", name(in.code)), in, k);
      case Code::call: return called(name(static_cast<Function>(in.imm)), in, k);
      case Code::select:
        if (const char* const limit = limited_by(k_, in))
          return fmt::format("scalar::{}({}, {})", limit, value(in.b, k), value(in.c, k));
        return called(name(in.code), in, k);
      default: return called(name(in.code), in, k);
    }
  }
  std::string half_cast(const HalfCasts::Cast& c, std::uint32_t k) const {
    using Kind = HalfCasts::Kind;
    std::string x = value(c.operand, k);
    if (c.kind == Kind::repeats) return x;
    const char* const way = c.kind == Kind::widens ? "widen" : c.kind == Kind::narrows ? "narrow" : "rounded";
    return fmt::format("{}_{}({})", way, shardarray::name(c.half), x);
  }
  std::string called(const std::string& function, const Instr& in, std::uint32_t k) const {
    const int count = operand_count(in.code, in.imm);
    std::string s = fmt::format("scalar::{}({}", function, value(in.a, k));
    if (count > 1) s += ", " + value(in.b, k);
    if (count > 2) s += ", " + value(in.c, k);
    return s + ")";
  }

  const Kernel& k_;
  const LoopShape& shape_;
  const LoopOperands operands_;
  const HalfCasts halves_;
  const std::string& name_;
  const bool rows_;          // the kernel has inner stages
  bool inner_ = false;       // the stage being printed is one
  const std::uint32_t run_;  // points per thread at once
  const RunValues in_run_;
  bool printing_run_ = false;
  const KeptRows kept_;
  const std::vector<std::size_t> tiled_;
  std::vector<bool> in_runs_;  // arguments whose elements of a run are one access
  std::string text_;
};

}  // namespace

std::string printed_prelude() { return "#include \"kernels/printed.cuh\"\n"; }

std::string print_kernel(const Kernel& k, const LoopShape& shape, const std::string& name) {
  return KernelText(k, shape, name).print();
}

}  // namespace shardarray::cuda
