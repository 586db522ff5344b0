// Arrays and trees in files: NumPy's .npy and .npz, and safetensors.
//
// Files are written atomically: into a temporary file beside the target (`.shardarray.<number>`), which is renamed when it is complete. A
// failure leaves the previous file and nothing else.
//
// Files are read once, front to back, directly to the devices that hold the data: besides the array itself, 1 MiB of host memory is
// needed, whatever the sharding (arrays in Fortran order are held twice). For an array over several processes, each reads what its own
// devices hold, in parts of 1 MiB (except .npz). Files may be untrusted: malformed ones throw an IoError that names the path, before
// memory is allocated for the size they claim.
//
// Saving computes the arrays; inside a trace it throws TraceError. Arrays loaded inside a trace are constants.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/tree.h"

namespace shardarray {

/// Loads a .npy file as written by numpy.save: any version of the format, C or Fortran order, also big-endian. The array has the file's
/// shape and dtype; 2-byte elements without a kind (`<V2`, which NumPy writes for ml_dtypes.bfloat16) are bfloat16. It is committed to
/// the sharding if given, else uncommitted on the default device. Throws IoError for a file that cannot be read, is not a .npy file, is
/// shorter or longer than its header says, or has an unsupported dtype (text, objects, structs), ShardingError and DeviceError as
/// device_put, OutOfMemory.
[[nodiscard]] SHARDARRAY_API Array load_npy(const std::string& path,
                                            const std::optional<Sharding>& sharding = std::nullopt,
                                            Where w = Where::here());
/// Writes the array as numpy.save does, in C order, little-endian. bfloat16 is written as `<V2`: in Python
/// `numpy.load(path).view(ml_dtypes.bfloat16)`. Throws IoError if the file cannot be written or the disk is full.
SHARDARRAY_API void save_npy(const std::string& path, const Array& x, Where w = Where::here());

/// Where loaded arrays are placed; by default uncommitted on the default device.
struct LoadOptions {
  std::optional<Sharding> sharding = std::nullopt;  ///< of every array; must fit all of them
  std::map<std::string, Sharding> shardings = {};   ///< of arrays by name, overriding the above
};
/// Options of load_npz().
struct NpzOptions {
  std::optional<Sharding> sharding = std::nullopt;  ///< as in LoadOptions
  std::map<std::string, Sharding> shardings = {};
  /// Limit for the unpacked size of all compressed members. A larger file is rejected before it fills memory: 3 MB may hold 3 GB. The
  /// default is 4 GiB. Uncompressed members do not count: they are as long as the file.
  std::int64_t max_bytes = std::int64_t{1} << 32;
};
/// Loads the arrays of a .npz file by name (without `.npy`), each as by load_npy: `load_npz(path).at("x")` (a map's `[]` would insert an
/// absent array for a missing name). Members may be stored or deflated; checksums are verified. Also throws IoError for files that are no
/// archive of .npy files, and for archives that are damaged, encrypted, split, or have duplicate names or overlapping members; TreeError
/// if `shardings` names an array that the file lacks.
[[nodiscard]] SHARDARRAY_API std::map<std::string, Array> load_npz(const std::string& path,
                                                                   const NpzOptions& options = {},
                                                                   Where w = Where::here());
/// Options of save_npz().
struct SaveNpzOptions {
  bool compressed = false;  ///< deflated, as numpy.savez_compressed; otherwise stored, as numpy.savez
};
/// Writes the arrays under their names, as numpy.savez does: `save_npz("a.npz", {{"x", x}, {"y", y}})`. Equal arrays give equal files.
/// Throws as save_npy, and IoError for a name of more than 65,000 bytes.
SHARDARRAY_API void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
                             const SaveNpzOptions& options = {}, Where w = Where::here());

/// The contents of a safetensors file.
struct Safetensors {
  std::map<std::string, Array> arrays;  ///< by name
  std::map<std::string, std::string> metadata = {};
};
/// Reads a safetensors file, preserving dtypes. The full header is validated before any array is created. Throws IoError for a file that
/// cannot be read or is not a safetensors file: a malformed header or one longer than 100 MB, duplicate names, unsupported dtypes (8-bit
/// floats, complex), overlapping or unused bytes; TreeError if `shardings` names an array that the file lacks; ShardingError,
/// DeviceError, OutOfMemory as load_npy.
[[nodiscard]] SHARDARRAY_API Safetensors load_safetensors(const std::string& path,
                                                          const LoadOptions& options = {},
                                                          Where w = Where::here());
/// Writes named arrays and text metadata: `save_safetensors("m.safetensors", {{"w", w}}, {{"step", "3"}})`. Throws as save_npy, and
/// IoError for names and texts that are not UTF-8, for the name `__metadata__`, and for complex arrays, which the format lacks.
SHARDARRAY_API void save_safetensors(const std::string& path, const std::map<std::string, Array>& arrays,
                                     const std::map<std::string, std::string>& metadata = {},
                                     Where w = Where::here());

namespace detail {
/// The saved parts of a tree, by path.
struct SHARDARRAY_API SavedTree {
  std::vector<std::pair<std::string, Array*>> arrays;  ///< present ones
  std::vector<std::pair<std::string, StaticValue>> statics;
};
/// The saved parts of `t`.
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

/// Writes a tree: a model, an optimizer state, a tuple of both. The file is a regular safetensors file: arrays are named by their paths
/// (`layers[0].weight`, as in tree_paths()); numbers, bools, enums and strings are metadata texts, beside a marker `__tree__`. Absent
/// arrays, functions, shardings, meshes, devices, shapes and vectors of bools are not written. When save() returns, the file is on disk,
/// even if the machine fails; until then, the previous file is. Throws TreeError if two leaves have the same path, IoError as
/// save_safetensors.
template <class T> void save(const std::string& path, const T& tree, Where w = Where::here()) {
  if constexpr (detail::TreeCheck<T>::ok())
    detail::save_tree(path, detail::saved_tree(const_cast<T&>(tree)), w);
}
/// Options of load().
struct LoadTreeOptions {
  /// Names of arrays in another program's file, by path in the tree (as in tree_paths()): `{{"layers[0].weight", "layers.0.weight"}}`.
  /// Also for numbers and strings of a tree whose fields were renamed. Others are named by their paths. Two paths may share a name.
  std::map<std::string, std::string> names = {};
  /// Where arrays are placed, instead of as in `like`: all of them, or those at these paths of the tree.
  std::optional<Sharding> sharding = std::nullopt;
  std::map<std::string, Sharding> shardings = {};
};

namespace detail {
/// Replaces everything that `tree` names, after reading all of it.
SHARDARRAY_API void load_tree(const std::string& path, const SavedTree& tree, const LoadTreeOptions& options,
                              Where w);
}  // namespace detail

/// Returns `like` with the arrays, numbers, bools, enums and strings of a file written by save(). `like` determines what must be there:
/// every array keeps its shape, dtype and sharding, however it was sharded when saved, unless the options give another one (the arrays of
/// `like` are computed, to determine their placement). Arrays without values (eval_shape()) are allowed; without a sharding they are
/// placed uncommitted on the default device. Parts that save() does not write are taken from `like`. Another program's safetensors file,
/// without the marker `__tree__`, only needs to have the arrays. Throws TreeError for the first leaf of `like` missing in the file, else
/// for one in excess, ShapeError and DTypeError for the first that differs, with its path; IoError as load_safetensors, and for a number
/// that is no value of a one-byte enum with values 0, 1, ..; TreeError if `names` or `shardings` has a path that the tree lacks;
/// ShardingError and DeviceError for a sharding that does not fit. All leaves are checked before anything is read.
template <class T>
[[nodiscard]] T load(const std::string& path, T like, const LoadTreeOptions& options = {},
                     Where w = Where::here()) {
  if constexpr (detail::TreeCheck<T>::ok()) detail::load_tree(path, detail::saved_tree(like), options, w);
  return like;
}

}  // namespace shardarray
