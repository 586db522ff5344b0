#include "compile/strict.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/duration_text.h"
#include "runtime/transfer_times.h"
#include "shardarray/error.h"

namespace shardarray {

bool is_auto(const FlatGraph& g) {
  return std::ranges::all_of(g.nodes, [](const FlatNode& n) { return n.modes->policy == Policy::auto_; });
}

// The function that the user called, or the op if there is none.
static std::string asked_by(const Transfer& t) { return t.where.function ? t.where.function : t.op; }

// If the function is not its op, it may have made the operand itself, for which its caller has no name.
static std::string about_maker(const MoveReason& why, const std::string& function) {
  if (!why.operand || why.maker->op->form == Form::leaf || function == why.by.op->name) return "";
  return fmt::format(
      " If {} made it, reshard an argument, or allow it: `const policy::auto_ allowed;` around the call.",
      function);
}

// About mesh axes that the suggested sharding splits.
static std::string about_parts(const ShardingCode& code) {
  if (code.in_parts.empty()) return "";
  return fmt::format(" The mesh needs {} {} in parts.", code.in_parts.size() == 1 ? "axis" : "axes",
                     fmt::join(code.in_parts, ", "));
}

// `56 bytes per device`, on a described machine `56 bytes per device (4.02 us)`.
static std::string price_text(const Transfer& t, const DeviceOrder& order) {
  const double seconds = described_seconds(t, order);
  return fmt::format("{} bytes per device{}", t.bytes,
                     seconds > 0 ? fmt::format(" ({})", duration_text(seconds)) : "");
}

static std::string ways_text(const std::string& others) {
  return others.empty() ? "" : " Other ways, by bytes:" + others;
}

void refuse_transfer(const Transfer& t, const LocalValue& moved, const Layout& to, const Mesh* mesh,
                     const MoveReason& why) {
  const detail::RecordedSite site(t.where);
  const std::string function = asked_by(t);
  std::string operand = why.operand ? fmt::format("operand {}", *why.operand) : "operand", of;
  if (why.operand && function != why.by.op->name) of = fmt::format(" of its {}", why.by.op->name);
  const ShardingCode code = sharding_code(to, mesh);
  throw ShardingError(fmt::format(
      "{}: policy strict refuses an implicit {} over {} of {} for {}{} {}. Every transfer "
      "must be asked for. Cheapest fix: reshard({}, {}) before.{}{}{}",
      function, name(t.kind), axis_names(t.axes, to.order(), mesh), price_text(t, *to.order()), operand, of,
      type_string(moved.type.dtype, moved.type.shape, *moved.layout, mesh), operand, code.text,
      about_parts(code), about_maker(why, function), ways_text(why.others ? (*why.others)() : "")));
}

void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh,
                  const std::string& others) {
  const detail::RecordedSite site(t.where);
  const ShardingCode code = sharding_code(to, mesh);
  throw ShardingError(fmt::format(
      "{}: policy strict refuses an implicit {} over {} of {}: parts of the result {} come from other "
      "devices. Every transfer must be asked for. Say where the result lies, filter_shard(result, {}).{}{}",
      asked_by(t), name(t.kind), axis_names(t.axes, to.order(), mesh), price_text(t, *to.order()),
      type_string(made.dtype, made.shape, to, mesh), code.text, about_parts(code), ways_text(others)));
}

}  // namespace shardarray
