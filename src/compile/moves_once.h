// What moves in every run of an iteration may move once: constants before the first one, as copies, and sums that carries add up behind
// the last.
#pragma once
#include <span>
#include <vector>

#include "compile/body_run.h"

namespace shardarray {

/// An iteration's operands: their types, where they are (null: anywhere), which carries may be partial sums.
struct LoopOperands {
  std::span<const Type> types;
  std::span<const Layout* const> given;
  const std::vector<bool>& may_be_sums;
};
/// `layouts`, or cheaper ones by which no more moves; carries may have other places for copies of constants. `first`: those before they
/// had any. What lies there for all runs has to save as many bytes as it takes, and kWorthMemory of what moves.
RunLayouts moved_once(BodyRun& run, const LoopOperands& operands, const RunLayouts& layouts,
                      const RunLayouts& first, const CompileInput& in);

}  // namespace shardarray
