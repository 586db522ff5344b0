// Results that overwrite an operand: arrays with a part overwritten, and carries that each iteration of a loop overwrites.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "compile/local_values.h"
#include "compile/passes.h"

namespace shardarray {

std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g);
/// The same, if no other operand of the step is in that memory.
std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g,
                                 const std::vector<Storage>& storage);

/// Groups that may overwrite what others read wait for these, unless these wait for them. `before`: group -> groups that it waits for;
/// `order`: all groups, as ordered so far; `readers`: of each memory. True if a wait was added.
bool write_last(std::map<int, std::set<int>>& before, const std::vector<int>& order,
                const std::map<int, std::set<int>>& readers, const std::map<int, Group>& groups,
                const Partition& p, const FlatGraph& g, const std::vector<Storage>& storage);
/// Whether the group is a loop that only copies one value.
bool is_copy(const Group& group, const Partition& p);

/// Such a result takes its operand's memory, if it is the last reader and the memory is not an input's.
void lay_in_place(Fusion& f, const Partition& p, const FlatGraph& g, const std::vector<GroupKernel>& kernels);

/// The last step overwrites copies of its operands, which others may still read.
void copy_written_over(Partition& p, LocalValues& values, const FlatGraph& g);
/// Second buffers for the last step, a loop: for carries that iterations do not overwrite in place.
void give_second_buffers(Partition& p, LocalValues& values, const CarryBuffers& carries);

/// Which results of a loop's body are carries (its inputs from `first_carry` on) with a part overwritten.
std::vector<bool> written_over(const FlatGraph& body, std::size_t first_carry, std::size_t carries);

}  // namespace shardarray
