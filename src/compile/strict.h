// Whether lines have a policy, and how policy strict refuses transfers that were not requested: by ShardingError.
#pragma once
#include "compile/local_values.h"

namespace shardarray {

/// Whether every line leaves it to the planner what moves.
bool is_auto(const FlatGraph& g);
/// `moved` would be resharded to `to`.
[[noreturn]] void refuse_transfer(const Transfer& t, const LocalValue& moved, const Layout& to,
                                  const Mesh* mesh, const MoveReason& why);
/// Parts of a result of type `made`, in `to`, would be moved; `others`: alternatives, as lines.
[[noreturn]] void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh,
                               const std::string& others);

}  // namespace shardarray
