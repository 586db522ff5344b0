// Hoists transfers out of loops: constants are copied once before the first iteration, and sums that carries accumulate are combined once
// after the last.
#pragma once
#include <span>
#include <vector>

#include "compile/body_run.h"

namespace shardarray {

/// A loop's operands: types, layouts (null: anywhere), and which carries may be partial sums.
struct LoopOperands {
  std::span<const Type> types;
  std::span<const Layout* const> given;
  const std::vector<bool>& may_be_sums;
};
/// `layouts`, or cheaper ones that move no more; carries may get other layouts to suit copies of constants. `first`: the layouts before
/// carries got theirs. What is held during all iterations must save as many bytes as it takes, and kWorthMemory of what moves.
RunLayouts moved_once(BodyRun& run, const LoopOperands& operands, const RunLayouts& layouts,
                      const RunLayouts& first, const CompileInput& in);

}  // namespace shardarray
