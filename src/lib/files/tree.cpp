// Trees as safetensors files: arrays by their paths, numbers and texts in the metadata.
#include <fmt/format.h>

#include <utility>

#include "execute/evaluate.h"
#include "lib/files/file_reader.h"
#include "lib/files/safetensors.h"
#include "lib/files/saved_tree.h"
#include "shardarray/files.h"

namespace shardarray {

namespace files {

namespace {

using detail::SavedTree;

void save_leaves(const std::string& path, const SavedTree& tree) {
  check_paths("save", tree);
  computed("save", tree);
  std::map<std::string, Array> arrays;
  for (const auto& [name, array] : tree.arrays) arrays.emplace(name, *array);
  FileWriter file("save", path);
  write_safetensors(file, "save", path, arrays, texts_of(tree));
  file.commit(true);
}

/// The tree with the file's names in place of paths.
SavedTree renamed(SavedTree tree, std::map<std::string, std::string> names) {
  const auto rename = [&](auto& leaves) {
    for (auto& [name, leaf] : leaves) {
      const auto other = names.find(name);
      if (other == names.end()) continue;
      name = std::move(other->second);
      names.erase(other);
    }
  };
  rename(tree.arrays);
  rename(tree.statics);
  if (!names.empty())
    throw TreeError(fmt::format(
        "load: `names` has `{}`, and the tree has no array, number or text there. Its keys are the paths of "
        "these, as save() writes them. Check it.",
        shown(names.begin()->first)));
  return tree;
}

void load_leaves(const std::string& path, const SavedTree& paths, const LoadTreeOptions& options) {
  const SavedTree tree = renamed(paths, options.names);
  const FileReader file("load", path);
  const SafetensorsHeader header = read_safetensors_header(file);
  std::map<std::string, Type> stored;
  std::map<std::string, const TensorEntry*> entries;
  for (const TensorEntry& e : header.tensors) {
    stored.emplace(e.name, e.type);
    entries.emplace(e.name, &e);
  }
  check_arrays("load", path, std::move(stored), tree);
  std::vector<std::string> values;
  if (header.metadata.contains(tree_mark)) values = values_of("load", path, header.metadata, tree);
  const std::vector<Home> homes = homes_of("load", paths, options.sharding, options.shardings);
  std::vector<Array> loaded;
  for (std::size_t k = 0; k < homes.size(); k++) {
    const auto& [name, like] = tree.arrays[k];
    TensorEntry entry = *entries.at(name);
    entry.type.weak = type_of(*like).weak;  // so that a function jitted for `like` is not traced again
    loaded.push_back(load_tensor(file, header, entry, homes[k]));
  }
  set_leaves(tree, std::move(loaded), values);
}

}  // namespace

}  // namespace files

namespace detail {

void save_tree(const std::string& path, const SavedTree& tree, Where w) {
  const Site site(w, "save");
  with_memory("save", 0, [&] { files::save_leaves(path, tree); });
}
void load_tree(const std::string& path, const SavedTree& tree, const LoadTreeOptions& options, Where w) {
  const Site site(w, "load");
  with_memory("load", 0, [&] { files::load_leaves(path, tree, options); });
}

}  // namespace detail
}  // namespace shardarray
