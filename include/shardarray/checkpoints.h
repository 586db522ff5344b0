// Checkpoints: trees saved by step in a folder, from which training resumes on any devices, in any number of processes.
//
//     checkpoints::save("run", step, std::tuple(model, state), {.keep = 3});
//     if (const auto step = checkpoints::latest("run")) std::tie(model, state) = checkpoints::restore("run", std::tuple(model, state));
//
// A checkpoint is the folder `run/step_00000120`: safetensors files with shards of the arrays, one per process that has any, and
// `shardarray.index.json`, which maps shards to arrays, with checksums (CRC-32) of every 256 KiB and of itself. Every element is written
// once, by the first device that holds it. The folder gets its name once all of it is on disk: until then, whatever ends the program or
// the machine, the previous state remains. Unfinished folders have names that start with `.step_`; those older than a day are removed by
// the next save.
//
// Several processes call these functions together, and see the same folder. Of process-local arrays, numbers and strings, those of
// process 0 are saved; every process gets them.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardarray/files.h"
#include "shardarray/tree_filter.h"

namespace shardarray::checkpoints {

/// Options of save().
struct SaveOptions {
  int keep =
      0;  ///< how many checkpoints to keep, counting this step and those before it; older ones go. 0: all
};
/// Options of restore(); `step` and `part` also apply to metadata() and convert().
struct RestoreOptions {
  std::optional<std::int64_t> step = std::nullopt;  ///< none: the latest one
  /// For restore(): where arrays are placed, instead of as in `like`: all of them, or those at these paths of the tree (tree_paths()).
  std::optional<Sharding> sharding = std::nullopt;
  std::map<std::string, Sharding> shardings = {};
  /// The path (tree_paths()) of `like`, or of what to inspect, within the saved tree; the rest is not read. Default: all of it.
  std::string part = {};
};

class Saving;
namespace detail {
Saving begin_save(const char* function, const std::string& folder, std::int64_t step,
                  const shardarray::detail::SavedTree& tree, const SaveOptions& options, bool beside,
                  Where w);
}  // namespace detail

/// An ongoing save, started by async_save(). Default: none, already finished.
///
///     checkpoints::Saving saving;
///     for (..) {
///       std::tie(model, state) = step(std::move(model), std::move(state), batch);
///       if (..) {
///         saving.wait();  // for the one before
///         saving = checkpoints::async_save("run", i, std::tuple(model, state));
///       }
///     }
///     saving.wait();
class SHARDARRAY_API Saving {
 public:
  Saving() noexcept;
  Saving(Saving&&) noexcept;
  /// Finishes the previous save as the destructor does.
  Saving& operator=(Saving&&) noexcept;
  /// Waits; errors are reported on stderr. With several processes, the checkpoint is abandoned unless wait() was called, as the other
  /// processes may be gone.
  ~Saving();
  /// Whether this process' part is on disk: then wait() only waits for the other processes.
  [[nodiscard]] bool is_written() const;
  /// Returns when the checkpoint is complete. Throws as save(), once; called by several processes together, like everything else.
  void wait();

 private:
  class State;
  explicit Saving(std::unique_ptr<State> state) noexcept;
  friend Saving detail::begin_save(const char*, const std::string&, std::int64_t,
                                   const shardarray::detail::SavedTree&, const SaveOptions&, bool, Where);
  std::unique_ptr<State> state_;
};

namespace detail {
SHARDARRAY_API Saving async_save_tree(const std::string& folder, std::int64_t step,
                                      const shardarray::detail::SavedTree& tree, const SaveOptions& options,
                                      Where w);
SHARDARRAY_API void save_tree(const std::string& folder, std::int64_t step,
                              const shardarray::detail::SavedTree& tree, const SaveOptions& options, Where w);
SHARDARRAY_API void restore_tree(const std::string& folder, const shardarray::detail::SavedTree& tree,
                                 const RestoreOptions& options, Where w);
}  // namespace detail

/// Writes the tree as checkpoint `step` (0 or more) of the folder, which is created if necessary; an existing one of that step is
/// replaced atomically once the new one is complete. Leaves are written as by shardarray::save(), complex arrays too. Throws TreeError if
/// two leaves have the same path, IoError if the disk is full or something cannot be written: in all processes if it fails in one. The
/// folder is then unchanged, unless a process was lost or the disk failed after the complete checkpoint got its name. On file systems
/// that cannot exchange two names (NFS), a replaced step is missing for a moment.
template <class T>
void save(const std::string& folder, std::int64_t step, const T& tree, const SaveOptions& options = {},
          Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    detail::save_tree(folder, step, shardarray::detail::saved_tree(const_cast<T&>(tree)), options, w);
}

/// Like save(), but returns once the values are computed and, on GPUs, copied to the host: a thread writes them while the program
/// continues. Their memory is held until then: a step that takes them donated allocates new memory for its results. If the program uses
/// all cores, the thread takes a fiftieth of one, about 30 s for 1 GB, until somebody waits for it. In one process the checkpoint gets
/// its name as soon as it is written, in several once all have called wait(). Of concurrent saves of one step, the one started last
/// stays. Throws what save() throws before writing; later errors are thrown by wait().
template <class T>
[[nodiscard]] Saving async_save(const std::string& folder, std::int64_t step, const T& tree,
                                const SaveOptions& options = {}, Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    return detail::async_save_tree(folder, step, shardarray::detail::saved_tree(const_cast<T&>(tree)),
                                   options, w);
  else return {};
}

/// Returns `like` with the arrays, numbers, bools, enums and strings of a checkpoint. As for shardarray::load(), `like` determines what
/// must be there, and every array keeps its shape, dtype and sharding: however the checkpoint was sharded, it is placed as in `like` or
/// the options. Arrays without values (eval_shape()) are allowed, so no model has to be created first; without a sharding they are placed
/// uncommitted on the default device. A process reads what its own devices hold, in whole blocks of 256 KiB, and, where its contiguous
/// parts are shorter than 4 KiB, also the gaps between them:
///
///     const auto like = eval_shape(init, key);
///     model = checkpoints::restore("run", like, {.sharding = NamedSharding(mesh, P("x"))});
///
/// To restore only the model of `save("run", step, std::tuple(model, state))`: `restore("run", model, {.part = "[0]"})`.
///
/// Throws IoError if there is no such checkpoint, one of its files is damaged, truncated or missing, or it was written by a newer
/// version; TreeError, ShapeError, DTypeError, ShardingError and DeviceError as load(), before anything is read. Several processes call
/// it together; process 0 determines the latest step. An error in one is thrown in all: also if a step was replaced while they were
/// reading.
template <class T>
[[nodiscard]] T restore(const std::string& folder, T like, const RestoreOptions& options = {},
                        Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    detail::restore_tree(folder, shardarray::detail::saved_tree(like), options, w);
  return like;
}

/// The steps of all complete checkpoints in the folder, ascending; empty if there is no such folder. Needs no devices.
[[nodiscard]] SHARDARRAY_API std::vector<std::int64_t> steps(const std::string& folder,
                                                             Where w = Where::here());
/// The last of these steps.
[[nodiscard]] SHARDARRAY_API std::optional<std::int64_t> latest(const std::string& folder,
                                                                Where w = Where::here());
/// The description of a checkpoint.
struct Metadata {
  /// Of a global array.
  struct ArrayMetadata {
    Shape shape;
    DType dtype;
  };
  std::int64_t step = 0;
  std::map<std::string, ArrayMetadata> arrays;  ///< by paths, as in tree_paths()
  std::map<std::string, std::string> values;    ///< numbers, bools, enums and strings as texts, by paths
};
/// Reads and checks only the index, no arrays; needs no devices. Throws IoError as restore().
[[nodiscard]] SHARDARRAY_API Metadata metadata(const std::string& folder, const RestoreOptions& options = {},
                                               Where w = Where::here());
/// Converts a checkpoint to one safetensors file, as save() would have written it: for other programs, and for load(). Its arrays pass
/// through the memory of the default device. Only one process calls it. Throws as restore(), and as save_safetensors for complex arrays.
SHARDARRAY_API void convert(const std::string& folder, const std::string& path,
                            const RestoreOptions& options = {}, Where w = Where::here());

}  // namespace shardarray::checkpoints
