#include "compile/strict.h"

#include <fmt/format.h>

#include "shardarray/error.h"

namespace shardarray {

// The function that the user called, or what has none.
static std::string asked_by(const Transfer& t) { return t.where.function ? t.where.function : t.op; }

// What is said of axes that the advice cuts.
static std::string about_parts(const ShardingCode& code) {
  if (code.in_parts.empty()) return "";
  return fmt::format(" The mesh needs {} {} in parts.", code.in_parts.size() == 1 ? "axis" : "axes",
                     fmt::join(code.in_parts, ", "));
}

static std::string ways_text(const std::string& others) {
  return others.empty() ? "" : " Other ways, by bytes:" + others;
}

void refuse_transfer(const Transfer& t, const LocalValue& moved, const Layout& to, const Mesh* mesh,
                     const std::string& others) {
  const detail::RecordedSite site(t.where);
  const ShardingCode code = sharding_code(to, mesh);
  throw ShardingError(fmt::format(
      "{}: policy strict refuses an implicit {} over {} of {} bytes per device for an operand {}. "
      "Every transfer must be asked for. Cheapest fix: reshard(operand, {}) before.{}{}",
      asked_by(t), name(t.kind), axis_names(t.axes, to.order(), mesh), t.bytes,
      type_string(moved.type.dtype, moved.type.shape, *moved.layout, mesh), code.text, about_parts(code),
      ways_text(others)));
}

void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh,
                  const std::string& others) {
  const detail::RecordedSite site(t.where);
  const ShardingCode code = sharding_code(to, mesh);
  throw ShardingError(fmt::format(
      "{}: policy strict refuses an implicit {} over {} of {} bytes per device: parts of the "
      "result {} come from "
      "other devices. Every transfer must be asked for. Cheapest fix: say where the result lies, "
      "filter_shard(result, {}).{}{}",
      asked_by(t), name(t.kind), axis_names(t.axes, to.order(), mesh), t.bytes,
      type_string(made.dtype, made.shape, to, mesh), code.text, about_parts(code), ways_text(others)));
}

}  // namespace shardarray
