// Results that lie on the memory of what they are made of: a part written over, and carries that every run of a loop writes so.
#pragma once
#include <map>
#include <set>
#include <vector>

#include "compile/local_values.h"
#include "compile/passes.h"

namespace shardarray {

std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g);
/// The same, where no other operand of the step lies on that memory.
std::vector<InPlace> in_place_of(const LocalStep& s, const Partition& p, const FlatGraph& g,
                                 const std::vector<Storage>& storage);

/// Groups that may write over what others read wait for these, if these do not wait for them. `before`: group -> groups that it waits
/// for; `order`: of all groups by now; `readers`: of each memory. True: somebody waits for one more.
bool write_last(std::map<int, std::set<int>>& before, const std::vector<int>& order,
                const std::map<int, std::set<int>>& readers, const std::map<int, Group>& groups,
                const Partition& p, const FlatGraph& g, const std::vector<Storage>& storage);
/// A loop that copies one value and does nothing else.
bool is_copy(const Group& group, const Partition& p);

/// Where such a result is the last reader of memory that is no input's, it lies on it.
void lay_in_place(Fusion& f, const Partition& p, const FlatGraph& g, const std::vector<GroupKernel>& kernels);

/// The last step writes over copies of operands, which others may read.
void copy_written_over(Partition& p, LocalValues& values, const FlatGraph& g);
/// Second buffers of the last step, a loop, for carries that runs leave and find in turns.
void give_second_buffers(Partition& p, LocalValues& values, const CarryBuffers& carries);

/// Which results of a loop's body are carries (its inputs from `first_carry` on) with parts written over.
std::vector<bool> written_over(const FlatGraph& body, std::size_t first_carry, std::size_t carries);

}  // namespace shardarray
