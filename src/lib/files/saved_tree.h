// Trees in files: arrays by their paths, numbers and strings as text.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "lib/files/arrays.h"
#include "shardarray/files.h"

namespace shardarray::files {

constexpr const char* tree_mark = "__tree__";  ///< an entry of texts_of() that no tree has

/// Throws TreeError if two leaves have the same path.
void check_paths(const char* function, const detail::SavedTree& tree);
/// The tree's arrays, computed.
std::vector<Array> computed(const char* function, const detail::SavedTree& tree);
/// Where loaded arrays go: by the options of loading, else where the tree's arrays are, which may compute them. Throws TreeError for a path
/// in `by_path` that has no array.
std::vector<Home> homes_of(const char* function, const detail::SavedTree& tree,
                           const std::optional<Sharding>& all,
                           const std::map<std::string, Sharding>& by_path);
/// Numbers, bools, enums and strings by path, and the mark.
std::map<std::string, std::string> texts_of(const detail::SavedTree& tree);

/// Throws TreeError, ShapeError or DTypeError for the first array that is missing in the file at `path`, is extra there, or differs.
void check_arrays(const char* function, const std::string& path, std::map<std::string, Type> stored,
                  const detail::SavedTree& tree);
/// The values for the tree's numbers and strings, in its order. Throws TreeError if the stored texts do not match the tree, IoError for a
/// value that the enum does not have.
std::vector<std::string> values_of(const char* function, const std::string& path,
                                   std::map<std::string, std::string> texts, const detail::SavedTree& tree);
/// Stores all in the tree; does not throw.
void set_leaves(const detail::SavedTree& tree, std::vector<Array> arrays,
                const std::vector<std::string>& values);

}  // namespace shardarray::files
