// Trees as files have them: arrays by their paths, numbers and texts as texts.
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

/// Throws TreeError where two leaves have one path.
void check_paths(const char* function, const detail::SavedTree& tree);
/// Its arrays, computed.
std::vector<Array> computed(const char* function, const detail::SavedTree& tree);
/// Where they go: as options of loading say it, else where they lie. Computes those whose place has to be found. Throws TreeError for
/// a path in `by_path` where there is no array.
std::vector<Home> homes_of(const char* function, const detail::SavedTree& tree,
                           const std::optional<Sharding>& all,
                           const std::map<std::string, Sharding>& by_path);
/// Numbers, bools, enums and strings by path, and the mark.
std::map<std::string, std::string> texts_of(const detail::SavedTree& tree);

/// Throws TreeError, ShapeError or DTypeError for the first array that what is stored at `path` lacks, has besides or has otherwise.
void check_arrays(const char* function, const std::string& path, std::map<std::string, Type> stored,
                  const detail::SavedTree& tree);
/// What the places of numbers and texts get, in the order of the tree. Throws TreeError where the texts are not those of it,
/// IoError for an enum's value that there is not.
std::vector<std::string> values_of(const char* function, const std::string& path,
                                   std::map<std::string, std::string> texts, const detail::SavedTree& tree);
/// Puts all in their places; nothing throws.
void set_leaves(const detail::SavedTree& tree, std::vector<Array> arrays,
                const std::vector<std::string>& values);

}  // namespace shardarray::files
