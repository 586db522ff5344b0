// What the processes of one program say to each other beside their programs.
//
// A launcher starts the same program several times: `mpirun -np 4 ./train`. Every process then sees the devices of all
// (`devices()`), has some of them (`local_devices()`), and computes the same in the same order: arrays may lie on all of them. What
// is read of an array must be here: its `addressable_shards()`, or all of it where every process has it.
//
// What differs between processes, ends or stays silent for longer than SHARDARRAY_COMM_TIMEOUT seconds (300; 0: for ever) throws
// TransportError in all of them, which says who and for what. What runs over several processes fails from then on; what each has
// for itself goes on, so that it can be saved.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/device.h"
#include "shardarray/files.h"
#include "shardarray/tree.h"

namespace shardarray {

namespace core {
using Arrays = std::vector<Array>;
/// Item p: the leaves of process p.
[[nodiscard]] SHARDARRAY_API std::vector<Arrays> gather_from_processes(std::span<const Array> leaves,
                                                                       const std::vector<std::string>& parts);
[[nodiscard]] SHARDARRAY_API Arrays broadcast_one_to_all(std::span<const Array> leaves,
                                                         const std::vector<std::string>& parts, int source);
}  // namespace core

namespace detail {
/// What processes have alike in a tree: where its arrays stand, and its numbers and texts.
template <class T> std::vector<std::string> parts_of(const T& tree) {
  std::vector<std::string> r;
  const SavedTree saved = saved_tree(const_cast<T&>(tree));
  for (const auto& [path, array] : saved.arrays) r.push_back(path);
  for (const auto& [path, value] : saved.statics) r.push_back(path + " = " + to_string(value));
  return r;
}
}  // namespace detail

/// Returns when every process has called it, with the same name. Throws TransportError as above, and where names differ.
SHARDARRAY_API void sync_devices(const std::string& name, Where w = Where::here());

/// The tree of every process, at the process' index. Arrays may have other values, shapes and dtypes in each process; where they stand,
/// and all that is no array, is the same in all: a number that differs is made an array. What comes from others lies uncommitted on the default device. An array that is cut over the devices of several processes is
/// one array of all of them: each tree has it whole, replicated on all devices of its platform. Evaluates. What goes wrong in one process
/// is thrown in all: DeviceError for an array on devices of other processes alone, what its evaluation throws; in the others it is a
/// TransportError. TreeError where the trees differ, TransportError as above.
template <Tree T> [[nodiscard]] std::vector<T> gather_from_processes(const T& tree, Where w = Where::here()) {
  const Site site(w, "gather_from_processes");
  std::vector<T> r;
  for (const core::Arrays& leaves : core::gather_from_processes(tree_leaves(tree), detail::parts_of(tree)))
    r.push_back(with_leaves(tree, leaves));
  return r;
}

/// The tree of process `source`, in every process; there, the very same arrays. All give the same tree, with arrays of whatever
/// values; arrays that are cut over several processes stay as they are. Throws as gather_from_processes, and DeviceError for a process
/// that there is not.
template <Tree T>
[[nodiscard]] T broadcast_one_to_all(const T& tree, int source = 0, Where w = Where::here()) {
  const Site site(w, "broadcast_one_to_all");
  return with_leaves(tree, core::broadcast_one_to_all(tree_leaves(tree), detail::parts_of(tree), source));
}

}  // namespace shardarray
