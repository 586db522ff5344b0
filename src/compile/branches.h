// Choices and repetitions (cond, while_loop): their graphs are compiled as separate programs; one step calls them, as values decide.
#pragma once
#include "compile/iterate.h"
#include "compile/uses.h"

namespace shardarray {

struct PlacedBranches {
  std::vector<const Layout*> in, out;  ///< of the node's operands and results
  CalledBranches called;
};
/// `given`: the operands' layouts; null: they can be made anywhere. The branch number is replicated. A result of a choice gets the layout
/// `asked` for, or (null) the most finely sharded one that a branch leaves; a repetition's carries get those of a loop of 8 iterations. A
/// choice may overwrite what nobody else reads.
PlacedBranches place_branches(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                              const std::vector<const Layout*>& asked, const Uses& uses,
                              const CompileInput& in);

/// The step of a node, whose local step is s; `scratch`: one address per device.
ProgramChoice make_program_choice(const LocalStep& s, const CalledBranches& called,
                                  std::span<const Ref> scratch, Addresses& at);
ProgramLoop make_program_loop(const LocalStep& s, const FlatNode& n, const CalledBranches& called,
                              std::span<const Ref> scratch, Addresses& at);

}  // namespace shardarray
