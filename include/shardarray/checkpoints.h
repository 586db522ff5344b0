// Checkpoints: trees in a folder, step after step, from which training goes on: on any devices, in any number of processes.
//
//     checkpoints::save("run", step, std::tuple(model, state), {.keep = 3});
//     if (const auto step = checkpoints::latest("run")) std::tie(model, state) = checkpoints::restore("run", std::tuple(model, state));
//
// A checkpoint is the folder `run/step_00000120`: safetensors files with the pieces of the arrays, one file of each process that has
// some, and `shardarray.index.json`, which says which part of which array a piece is, with checksums (CRC-32) of every 256 KiB and of itself. Every
// element is written once, by the first device that holds it. The folder gets its name when the disk has all of it: until then, whatever
// ends the program or the machine, there is what was there before. Unfinished ones have names that begin with `.step_`; those that are
// older than a day are removed by the next save.
//
// Several processes call these functions together, and see the same folder. Of arrays that each has for itself, and of numbers and texts,
// those of process 0 are saved; every process gets them.
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
      0;  ///< so many checkpoints stay, of this step and of those before it: older ones are removed. 0: all
};
/// Options of restore(); `step` and `part` are of metadata() and convert() as well.
struct RestoreOptions {
  std::optional<std::int64_t> step = std::nullopt;  ///< none: the latest one
  /// Of restore(): where arrays go, in place of where those of `like` lie: all of them, or those at these paths of the tree
  /// (tree_paths()).
  std::optional<Sharding> sharding = std::nullopt;
  std::map<std::string, Sharding> shardings = {};
  /// Where in the tree that was saved `like` is, or what is looked at, as a path (tree_paths()); the rest is not read. Default: all of it.
  std::string part = {};
};

class Saving;
namespace detail {
Saving begin_save(const char* function, const std::string& folder, std::int64_t step,
                  const shardarray::detail::SavedTree& tree, const SaveOptions& options, bool beside,
                  Where w);
}  // namespace detail

/// A save that goes on beside the program, of async_save(). Default: none, which has ended.
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
  /// Ends the one that it was as the destructor does.
  Saving& operator=(Saving&&) noexcept;
  /// Waits; what went wrong is said on stderr. Of several processes: the checkpoint is given up unless wait() was called, as the other
  /// processes may not be there.
  ~Saving();
  /// Whether the disk has what this process writes: wait() takes no longer than the other processes do.
  [[nodiscard]] bool is_written() const;
  /// Returns when the checkpoint is there. Throws as save(), once; several processes call it together, as they call everything else.
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

/// Writes the tree as the checkpoint `step` (0 or more) of the folder, which is made if need be; one of that step is replaced at once
/// when the new one is whole. Leaves are written as by shardarray::save(); complex arrays too. Throws TreeError where two leaves have one
/// path, IoError where the disk is full or something cannot be written: in all processes if it goes wrong in one, and then nothing has
/// changed in the folder, unless a process was lost or the disk failed when the checkpoint, which is whole, had got its name. On file systems that cannot exchange
/// two names (NFS) a replaced step has none for a moment.
template <class T>
void save(const std::string& folder, std::int64_t step, const T& tree, const SaveOptions& options = {},
          Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    detail::save_tree(folder, step, shardarray::detail::saved_tree(const_cast<T&>(tree)), options, w);
}

/// save(), but it returns when the values are computed and, on GPUs, copied to the host: a thread writes them while the program goes on.
/// Their memory is held until then: a step that takes them donated finds new memory for its results. Where the program wants all cores,
/// the thread takes a fiftieth of one, about 30 s for 1 GB, until somebody waits for it. In one process the checkpoint gets
/// its name as soon as it is written, in several when all have called wait(). Of saves of one step under way that which began last stays.
/// Throws what save() throws before it writes; the rest is thrown by wait().
template <class T>
[[nodiscard]] Saving async_save(const std::string& folder, std::int64_t step, const T& tree,
                                const SaveOptions& options = {}, Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    return detail::async_save_tree(folder, step, shardarray::detail::saved_tree(const_cast<T&>(tree)),
                                   options, w);
  else return {};
}

/// `like` with the arrays, numbers, bools, enums and strings of a checkpoint. As for shardarray::load(), `like` says what there must be,
/// and every array keeps its shape, dtype and sharding: however the checkpoint was cut, it lies then as in `like`, or as the options say.
/// Arrays without values (eval_shape()) will do, so that no model has to be made first; without a sharding they lie on the default
/// device, uncommitted. A process reads what its own devices hold, in whole blocks of 256
/// KiB; of rows of which it has less than 4 KiB in one piece all that stands between its parts:
///
///     const auto like = eval_shape(init, key);
///     model = checkpoints::restore("run", like, {.sharding = NamedSharding(mesh, P("x"))});
///
/// Of `save("run", step, std::tuple(model, state))` the model alone is `restore("run", model, {.part = "[0]"})`.
///
/// Throws IoError where there is no such checkpoint, one of its files is damaged, shortened or missing, or a newer
/// version has written it; TreeError, ShapeError, DTypeError, ShardingError and DeviceError as load(), before anything is read. Several
/// processes call it together; which step is the latest says process 0. What goes wrong in one is thrown in all: also where a step was
/// replaced between two of them.
template <class T>
[[nodiscard]] T restore(const std::string& folder, T like, const RestoreOptions& options = {},
                        Where w = Where::here()) {
  if constexpr (shardarray::detail::TreeCheck<T>::ok())
    detail::restore_tree(folder, shardarray::detail::saved_tree(like), options, w);
  return like;
}

/// The steps of the whole checkpoints in the folder, ascending; none where there is no such folder. Needs no devices.
[[nodiscard]] SHARDARRAY_API std::vector<std::int64_t> steps(const std::string& folder,
                                                             Where w = Where::here());
/// The last of them.
[[nodiscard]] SHARDARRAY_API std::optional<std::int64_t> latest(const std::string& folder,
                                                                Where w = Where::here());
/// What a checkpoint says of itself.
struct Metadata {
  /// Of an array, as a whole.
  struct ArrayMetadata {
    Shape shape;
    DType dtype;
  };
  std::int64_t step = 0;
  std::map<std::string, ArrayMetadata> arrays;  ///< by paths, those of tree_paths()
  std::map<std::string, std::string> values;    ///< numbers, bools, enums and strings as texts, by paths
};
/// Reads and checks the index alone, no array; needs no devices. Throws IoError as restore().
[[nodiscard]] SHARDARRAY_API Metadata metadata(const std::string& folder, const RestoreOptions& options = {},
                                               Where w = Where::here());
/// Writes a checkpoint as one safetensors file, which save() would have written: for other programs, and for load(). Its arrays go through
/// the memory of the default device. Of several processes one calls it. Throws as restore(), and as save_safetensors for complex arrays.
SHARDARRAY_API void convert(const std::string& folder, const std::string& path,
                            const RestoreOptions& options = {}, Where w = Where::here());

}  // namespace shardarray::checkpoints
