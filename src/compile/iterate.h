// Iterations (scan): the body is compiled as a separate program, for the layouts of its operands, and called by one step.
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
/// `given`: the operands' layouts; null: they can be made anywhere. A carry has its given layout, or the one in which an iteration leaves
/// it, if that shards it finer or moves less per iteration. A carry that starts as zeros, and to which iterations add partial sums, stays a
/// partial sum, combined after the last iteration. Sequences are not sharded along the iterations.
PlacedIteration place_iteration(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> given,
                                const CompileInput& in);
/// Results of place_iteration() in one compilation, which visits nested loops many times.
struct PlacedIterations {
  struct Key {
    AttrsRef attrs;  ///< of the node
    std::vector<const Layout*> given;
    std::vector<bool> zeros;             ///< carries that start as zeros
    std::vector<const Layout*> asked{};  ///< layouts requested for a choice's results
    std::vector<bool> may_take{};        ///< by result and operand of a choice: whether it may overwrite that
    Key(const FlatNode& n, const FlatGraph& g, std::span<const Layout* const> where, std::size_t first_carry,
        std::size_t carries);
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  std::map<Key, PlacedIteration> all;
  std::map<Key, PlacedBranches> branches;  ///< choices and repetitions: see compile/branches.h
};
/// The input for compiling a called graph by itself, with operands in these layouts. `outputs`: as in CompileInput.
CompileInput input_of_called(FlatGraph graph, const std::vector<const Layout*>& layouts,
                             std::vector<const Layout*> outputs, const CompileInput& in);
/// Lets a result of a called program take the buffers of that input, if it can.
void write_over(CompileInput& called, std::size_t result, std::size_t input);
/// `l` without partial sums.
const Layout* whole_sums(const Layout* l);
/// The number of tiles of a value.
std::int64_t all_tiles(const Layout& l);

/// The call of node `n`, whose step is s; `scratch`: one address per device.
ProgramCall make_program_call(const LocalStep& s, const FlatNode& n, const CalledIteration& called,
                              std::span<const Ref> scratch, Addresses& at);

}  // namespace shardarray
