// Arrays and trees in files: NumPy's .npy and .npz, and safetensors.
//
// A file is written whole or not at all: beside its place, with a name of its own (`.shardarray.<number>`), which it changes
// when it is complete. What fails leaves what stood there, and nothing else.
//
// A file is read once, from its beginning to its end, and what is read goes straight to the devices that hold it: beside
// the array itself 1 MiB of the host's memory is needed, however it is cut (one in Fortran order stands there twice). Of an array over several
// processes each reads what its own devices hold, in parts of 1 MiB (not of .npz). Files may come from anywhere: what is
// not as it should be is an IoError that names the path, before memory is taken for what the file says it holds.
//
// Saving computes the arrays; inside of a trace it throws TraceError. What is loaded inside of a trace is a constant of it.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/tree.h"

namespace shardarray {

/// The array of a .npy file, as numpy.save writes it: of any version of the format, in C or Fortran order, big-endian ones
/// too. It has the file's shape and dtype; 2 bytes without a kind (`<V2`, which NumPy writes for ml_dtypes.bfloat16)
/// are bfloat16. With a sharding it is committed there, else it lies uncommitted on the default device. Throws
/// IoError for a file that cannot be read, is no .npy file, shorter or longer than its header says, or of a dtype that arrays do
/// not have (text, objects, structs), ShardingError and DeviceError as device_put does, OutOfMemory.
[[nodiscard]] SHARDARRAY_API Array load_npy(const std::string& path,
                                            const std::optional<Sharding>& sharding = std::nullopt,
                                            Where w = Where::here());
/// Writes the array as numpy.save does, in C order, little-endian. bfloat16 is written as `<V2`: in Python
/// `numpy.load(path).view(ml_dtypes.bfloat16)`. Throws IoError where the file cannot be written or the disk is full.
SHARDARRAY_API void save_npy(const std::string& path, const Array& x, Where w = Where::here());

/// Where arrays of a file go: none of these: uncommitted on the default device.
struct LoadOptions {
  std::optional<Sharding> sharding = std::nullopt;  ///< of every array, which has to fit it
  std::map<std::string, Sharding> shardings = {};   ///< of arrays by name, instead of the one above
};
/// Options of load_npz().
struct NpzOptions {
  std::optional<Sharding> sharding = std::nullopt;  ///< as those of LoadOptions
  std::map<std::string, Sharding> shardings = {};
  /// Of all that is deflated, unpacked. A file that has more is refused before it fills the memory: 3 MB may hold 3 GB. The
  /// default is 4 GiB. What is only stored counts nothing: it is as long as the file.
  std::int64_t max_bytes = std::int64_t{1} << 32;
};
/// The arrays of a .npz file by their names (without `.npy`), each as load_npy gives it: `load_npz(path).at("x")` (a map's `[]` makes
/// an absent array where the file has none of that name). Members are stored or
/// deflated, checksums are checked. Throws IoError also for what is no archive of .npy files, and for archives that are
/// damaged, encrypted, of several parts, have two members of one name or bytes that two members share; TreeError when
/// `shardings` names an array that the file does not have.
[[nodiscard]] SHARDARRAY_API std::map<std::string, Array> load_npz(const std::string& path,
                                                                   const NpzOptions& options = {},
                                                                   Where w = Where::here());
/// Options of save_npz().
struct SaveNpzOptions {
  bool compressed = false;  ///< deflated, as numpy.savez_compressed does it; else stored, as numpy.savez
};
/// Writes the arrays with their names, as numpy.savez does: `save_npz("a.npz", {{"x", x}, {"y", y}})`. Equal arrays give equal
/// files. Throws as save_npy, and IoError for a name of more than 65,000 bytes.
SHARDARRAY_API void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
                             const SaveNpzOptions& options = {}, Where w = Where::here());

/// What a safetensors file holds.
struct Safetensors {
  std::map<std::string, Array> arrays;  ///< by name
  std::map<std::string, std::string> metadata = {};
};
/// Reads a safetensors file, dtype for dtype. The whole header is checked before any array is made. Throws IoError for a file
/// that cannot be read or is no safetensors file: a header that is no such JSON or longer than 100 MB, names that stand twice,
/// dtypes that arrays do not have (8-bit floats, complex), bytes that belong to two arrays or to none; TreeError when
/// `shardings` names an array that the file does not have; ShardingError, DeviceError, OutOfMemory as load_npy.
[[nodiscard]] SHARDARRAY_API Safetensors load_safetensors(const std::string& path,
                                                          const LoadOptions& options = {},
                                                          Where w = Where::here());
/// Writes the arrays with their names, and texts by keys: `save_safetensors("m.safetensors", {{"w", w}}, {{"step", "3"}})`. Throws as
/// save_npy, and IoError for names and texts that are not UTF-8, for the name `__metadata__`, and for complex arrays, of which the
/// format has none.
SHARDARRAY_API void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                                     const std::map<std::string, std::string>& metadata = {},
                                     Where w = Where::here());

namespace detail {
/// What a file has of a tree, by paths.
struct SHARDARRAY_API SavedTree {
  std::vector<std::pair<std::string, Array*>> arrays;  ///< present ones
  std::vector<std::pair<std::string, StaticValue>> statics;
};
/// The places in `t` of what is saved.
template <class T> SavedTree saved_tree(T& t) {
  SavedTree r;
  walk(
      t, Path{},
      [&](Array& a, const Path& p) {
        if (a.has_value()) r.arrays.emplace_back(p.text(), &a);
      },
      [&](const StaticValue& v, const Path& p) {
        if (v.held != StaticValue::Held::nothing) r.statics.emplace_back(p.text(), v);
      });
  return r;
}
SHARDARRAY_API void save_tree(const std::string& path, const SavedTree& tree, Where w);
}  // namespace detail

/// Writes a tree: a model, the state of an optimizer, a tuple of both. The file is a safetensors file that every reader of the
/// format opens: arrays have their paths as names (`layers[0].weight`, those of tree_paths()), numbers, bools, enums and strings
/// stand in the metadata as texts, beside a mark `__tree__`. Absent arrays, functions, shardings, meshes, devices, shapes and
/// vectors of bools are not written. When save() returns, the disk has the file, whatever happens to the machine; until then
/// it has the one that stood there before. Throws TreeError where two leaves have one path, IoError as save_safetensors.
template <class T> void save(const std::string& path, const T& tree, Where w = Where::here()) {
  if constexpr (detail::TreeCheck<T>::ok())
    detail::save_tree(path, detail::saved_tree(const_cast<T&>(tree)), w);
}
/// Options of load().
struct LoadTreeOptions {
  /// The names that arrays have in a file of another program, by their paths in the tree (those of tree_paths()):
  /// `{{"layers[0].weight", "layers.0.weight"}}`. Numbers and texts of a tree whose fields have other names by now, too. What is not
  /// here has its path as name. Two may have one name.
  std::map<std::string, std::string> names = {};
  /// Where arrays go, in place of where those of `like` lie: all of them, or those at these paths of the tree.
  std::optional<Sharding> sharding = std::nullopt;
  std::map<std::string, Sharding> shardings = {};
};

namespace detail {
/// Replaces all that `tree` names, once everything has been read.
SHARDARRAY_API void load_tree(const std::string& path, const SavedTree& tree, const LoadTreeOptions& options,
                              Where w);
}  // namespace detail

/// `like` with the arrays, numbers, bools, enums and strings of the file that save() wrote. `like` says what there must be: every
/// array keeps its shape, its dtype and its sharding, however it was cut when it was saved, unless the options give another one (the
/// arrays of `like` are computed, to know where they lie). Arrays without values (eval_shape()) will do: without a sharding they lie on the
/// default device, uncommitted. What save() does not write stays as it is in `like`. A safetensors file of another program, which has no
/// mark `__tree__`, has to have the arrays only. Throws TreeError for the first leaf of `like` that the file lacks, else for one
/// that it has besides, ShapeError and DTypeError for the first that differs, with its path; IoError as load_safetensors, and for a
/// number that is none of the values 0, 1, .. of an enum of one byte; TreeError where `names` or `shardings` has a path that the tree does
/// not; ShardingError and DeviceError for a sharding that does not fit.
/// All leaves are compared before anything is read.
template <class T>
[[nodiscard]] T load(const std::string& path, T like, const LoadTreeOptions& options = {},
                     Where w = Where::here()) {
  if constexpr (detail::TreeCheck<T>::ok()) detail::load_tree(path, detail::saved_tree(like), options, w);
  return like;
}

}  // namespace shardarray
