// Choices and repetitions: their graphs are compiled as programs of their own, and one step calls them as values say.
#pragma once
#include "compile/iterate.h"
#include "compile/uses.h"

namespace shardarray {

struct PlacedBranches {
  std::vector<const Layout*> in, out;  ///< of the node's operands and results
  CalledBranches called;
};
/// `given`: where the operands are; null: they can be made anywhere. The number of the branch is whole on every device. A result of a
/// choice lies where it is `asked` for, else (null) as the branch leaves it that cuts it finest; a carry as of an iteration, of eight runs. What nobody
/// else reads a choice may write over.
PlacedBranches place_branches(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                              const std::vector<const Layout*>& asked, const Uses& uses,
                              const CompileInput& in);

/// The step for node `n`, whose local step is s; `scratch`: one address for every device.
ProgramChoice make_program_choice(const LocalStep& s, const CalledBranches& called,
                                  std::span<const Ref> scratch, Addresses& at);
ProgramLoop make_program_loop(const LocalStep& s, const FlatNode& n, const CalledBranches& called,
                              std::span<const Ref> scratch, Addresses& at);

}  // namespace shardarray
