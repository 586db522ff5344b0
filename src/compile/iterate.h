// Iterations: the graph that is called again and again is compiled as a program of its own, for operands where they are, and
// called in one step.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "compile/addresses.h"

namespace shardarray {

struct PlacedBranches;
struct PlacedIteration {
  std::vector<const Layout*> in, out;  ///< of the node's operands and results
  CalledIteration called;
};
/// `given`: where the operands are; null: they can be made anywhere. A carry lies where it is given or, if that cuts it finer or
/// leaves less to move in every run, as a run leaves it; one that begins as zeros and that runs add partial sums to stays one,
/// combined behind the last run. Sequences are not cut along the runs.
PlacedIteration place_iteration(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                                const CompileInput& in);
/// What place_iteration() gave during one compilation: an iteration inside of others is looked at again and again.
struct PlacedIterations {
  struct Key {
    AttrsRef attrs;  ///< of the node
    std::vector<const Layout*> given;
    std::vector<bool> zeros;             ///< carries that begin so
    std::vector<const Layout*> asked{};  ///< of a choice's results
    std::vector<bool> may_take{};  ///< by result and operand of a choice: whether it may be written over that
    Key(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> where, std::size_t first_carry,
        std::size_t carries);
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, PlacedIteration> all;
  std::map<Key, PlacedBranches> branches;  ///< choices and repetitions: see compile/branches.h
};
/// A graph that the program calls, compiled by itself for operands in these layouts. `outputs`: as in CompileInput.
CompileInput input_of_called(FlatGraph graph, const std::vector<const Layout*>& layouts,
                             std::vector<const Layout*> outputs, const CompileInput& in);
/// A result of a called program takes the buffers of that input, if it can.
void write_over(CompileInput& called, std::size_t result, std::size_t input);
/// Without partial sums.
const Layout* whole_sums(const Layout* l);
/// Into how many tiles it cuts a value.
std::int64_t all_tiles(const Layout& l);

/// The call for node `n`, whose step is s; `scratch`: one address for every device.
ProgramCall make_program_call(const LocalStep& s, const FlatNode& n, const CalledIteration& called,
                              std::span<const Ref> scratch, Addresses& at);

}  // namespace shardarray
