// Communication between the processes of one program, outside of its computations.
//
// A launcher starts the same program several times: `mpirun -np 4 ./train`. Every process sees all devices (`devices()`), owns some of
// them (`local_devices()`), and computes the same in the same order: arrays may span all of them. Only local parts of an array can be
// read: its `addressable_shards()`, or all of it if every process has a full copy.
//
// If processes diverge, or one ends or stays silent for longer than SHARDARRAY_COMM_TIMEOUT seconds (300; 0: for ever), all throw
// TransportError, which says who and in which operation. From then on, everything across processes fails; process-local work continues,
// so that it can be saved.
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
/// What must be equal in the trees of all processes: the positions of arrays, and numbers and strings.
template <class T> std::vector<std::string> parts_of(const T& tree) {
  std::vector<std::string> r;
  const SavedTree saved = saved_tree(const_cast<T&>(tree));
  for (const auto& [path, array] : saved.arrays) r.push_back(path);
  for (const auto& [path, value] : saved.statics) r.push_back(path + " = " + to_string(value));
  return r;
}
}  // namespace detail

/// Returns when every process has called it with the same name. Throws TransportError as above, and if names differ.
SHARDARRAY_API void sync_devices(const std::string& name, Where w = Where::here());

/// Returns the trees of all processes, indexed by process. Arrays may differ in values, shapes and dtypes between processes; their
/// positions, and everything that is no array, must be equal in all: make a differing number an array. Arrays of other processes are
/// uncommitted on the default device. An array sharded over the devices of several processes is one array of all of them: each tree has
/// all of it, replicated on all devices of its platform. Evaluates. Errors in one process are thrown in all: DeviceError for an array
/// only on devices of other processes, what its evaluation throws; in the others it is a TransportError. TreeError if the trees differ,
/// TransportError as above.
template <Tree T> [[nodiscard]] std::vector<T> gather_from_processes(const T& tree, Where w = Where::here()) {
  const Site site(w, "gather_from_processes");
  std::vector<T> r;
  for (const core::Arrays& leaves : core::gather_from_processes(tree_leaves(tree), detail::parts_of(tree)))
    r.push_back(with_leaves(tree, leaves));
  return r;
}

/// Returns the tree of process `source` in every process; on that process, the very same arrays. All pass the same tree, with arbitrary
/// values; arrays sharded over several processes are unchanged. Throws as gather_from_processes, and DeviceError for a process that does
/// not exist.
template <Tree T>
[[nodiscard]] T broadcast_one_to_all(const T& tree, int source = 0, Where w = Where::here()) {
  const Site site(w, "broadcast_one_to_all");
  return with_leaves(tree, core::broadcast_one_to_all(tree_leaves(tree), detail::parts_of(tree), source));
}

}  // namespace shardarray
