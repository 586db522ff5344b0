// Whether lines have a policy, and what strict says to a transfer that nobody asked for. Throws ShardingError.
#pragma once
#include "compile/local_values.h"

namespace shardarray {

/// Whether every line leaves it to the planner what moves.
bool is_auto(const FlatGraph& g);
/// `moved` comes over as a whole, to `to`.
[[noreturn]] void refuse_transfer(const Transfer& t, const LocalValue& moved, const Layout& to,
                                  const Mesh* mesh, const MoveReason& why);
/// A result of type `made`, in `to`, has parts that come over; `others`: what else would do, as lines.
[[noreturn]] void refuse_boxes(const Transfer& t, const Type& made, const Layout& to, const Mesh* mesh,
                               const std::string& others);

}  // namespace shardarray
