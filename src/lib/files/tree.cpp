// Trees as safetensors files: arrays by their paths, numbers and texts in the metadata.
#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <set>

#include "execute/evaluate.h"
#include "lib/files/safetensors.h"
#include "shardarray/files.h"

namespace shardarray {

namespace files {

namespace {

using detail::SavedTree;
using detail::StaticValue;
using Held = StaticValue::Held;

constexpr const char* mark = "__tree__";  // a metadata entry of files that save() has written

std::string text_of(const StaticValue& v) {
  switch (v.held) {
    case Held::boolean: return v.word ? "true" : "false";
    case Held::signed_integer: return fmt::format("{}", static_cast<std::int64_t>(v.word));
    case Held::unsigned_integer: return fmt::format("{}", v.word);
    case Held::real: {
      const double value =
          std::bit_cast<double>(v.word);  // the shortest text that is read as the same number
      return v.bytes == 4 ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
    }
    default: return std::string(v.text);
  }
}

std::string kind_of(const StaticValue& v) {
  switch (v.held) {
    case Held::boolean: return "a bool";
    case Held::signed_integer: return fmt::format("an integer of {} bits", 8 * v.bytes);
    case Held::unsigned_integer: return fmt::format("an unsigned integer of {} bits", 8 * v.bytes);
    default: return fmt::format("a float of {} bits", 8 * v.bytes);
  }
}

// The bytes of the number that `text` is, for a place that holds such as `v`; none where it is no such number.
template <class N> std::optional<std::string> bytes_of_number(std::string_view text, std::size_t bytes) {
  N value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if constexpr (std::is_integral_v<N>) {
    const int unused = 64 - 8 * static_cast<int>(bytes);
    if (static_cast<N>(static_cast<N>(static_cast<std::uint64_t>(value) << unused) >> unused) != value)
      return std::nullopt;
  }
  return std::string(reinterpret_cast<const char*>(&value), bytes);  // little-endian
}
std::optional<std::string> bytes_of_text(const StaticValue& v, const std::string& text) {
  switch (v.held) {
    case Held::boolean:
      if (text != "true" && text != "false") return std::nullopt;
      return std::string(1, text == "true" ? '\1' : '\0');
    case Held::signed_integer: return bytes_of_number<std::int64_t>(text, v.bytes);
    case Held::unsigned_integer: return bytes_of_number<std::uint64_t>(text, v.bytes);
    case Held::real: return v.bytes == 4 ? bytes_of_number<float>(text, 4) : bytes_of_number<double>(text, 8);
    default: return text;
  }
}

// Of an enum that has the values 0, 1, .. alone.
bool is_value_of(const StaticValue& v, std::string_view text) {
  std::uint64_t n = v.values;  // a negative one is no number here
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && n < v.values;
}

[[noreturn]] void differs(const FileReader& file, const std::string& what) {
  throw TreeError(fmt::format(
      "load: {}: {}. The file has exactly the leaves of the tree that it is loaded into. Make that as it was "
      "when it was saved.",
      file.path(), what));
}

void check_paths(const SavedTree& tree) {
  std::set<std::string> paths{mark};
  const auto add = [&](const std::string& path, std::set<std::string>& known) {
    if (!known.insert(path).second)
      throw TreeError(fmt::format(
          "save: two leaves have the path `{}`. A file has its leaves by path. Rename one.", shown(path)));
  };
  std::set<std::string> arrays{"__metadata__"};
  for (const auto& [path, array] : tree.arrays) add(path, arrays);
  for (const auto& [path, value] : tree.statics) add(path, paths);
}

/// The file's entries of the arrays of a tree, in its order.
std::vector<const TensorEntry*> entries_of(const FileReader& file, const SafetensorsHeader& header,
                                           const SavedTree& tree) {
  std::map<std::string, const TensorEntry*> by_name;
  for (const TensorEntry& e : header.tensors) by_name.emplace(e.name, &e);
  std::vector<const TensorEntry*> r;
  for (const auto& [path, array] : tree.arrays) {
    const auto entry = by_name.find(path);
    if (entry == by_name.end())
      differs(file, fmt::format("`{}` {} is missing", shown(path), to_string(type_of(*array))));
    r.push_back(entry->second);
    by_name.erase(entry);
    const Type &there = r.back()->type, &here = type_of(*array);
    const std::string text = fmt::format(
        "load: {}: `{}` is {} in the file and {} in the tree. Every leaf keeps its shape and dtype. ",
        file.path(), shown(path), to_string(there), to_string(here));
    if (there.shape != here.shape) throw ShapeError(text + "Give the tree an array of that shape.");
    if (there.dtype != here.dtype)
      throw DTypeError(text + "Give the tree an array of that dtype, and cast it then.");
  }
  for (const TensorEntry& e : header.tensors)
    if (by_name.contains(e.name))
      differs(file,
              fmt::format("`{}` {} is in the file and not in the tree", shown(e.name), to_string(e.type)));
  return r;
}

/// What the places of numbers and texts get, in the order of the tree.
std::vector<std::string> values_of(const FileReader& file, std::map<std::string, std::string> metadata,
                                   const SavedTree& tree) {
  std::vector<std::string> r;
  for (const auto& [path, value] : tree.statics) {
    const auto text = metadata.find(path);
    if (text == metadata.end())
      differs(file, fmt::format("`{}`, {}, is missing", shown(path), to_string(value)));
    const auto bytes = bytes_of_text(value, text->second);
    if (!bytes)
      differs(file, fmt::format("`{}` is `{}` in the file and {} in the tree", shown(path),
                                shown(text->second), kind_of(value)));
    if (value.values > 0 && !is_value_of(value, text->second))
      throw IoError(
          fmt::format("load: {}: `{}` is {} in the file, and its enum has the values 0 to {}. Code relies on "
                      "one of these. Check where the file comes from.",
                      file.path(), shown(path), shown(text->second), value.values - 1));
    r.push_back(*bytes);
    metadata.erase(text);
  }
  metadata.erase(mark);
  if (!metadata.empty())
    differs(file, fmt::format("`{}`, `{}`, is in the file and not in the tree",
                              shown(metadata.begin()->first), shown(metadata.begin()->second)));
  return r;
}

std::vector<Array> computed(const char* function, const SavedTree& tree) {
  std::vector<Array> r;
  for (const auto& [path, array] : tree.arrays) {
    type_of(*array, function);
    r.push_back(*array);
  }
  evaluate(r, function);
  return r;
}

void save_leaves(const std::string& path, const SavedTree& tree) {
  check_paths(tree);
  computed("save", tree);
  std::map<std::string, Array> arrays;
  for (const auto& [name, array] : tree.arrays) arrays.emplace(name, *array);
  std::map<std::string, std::string> metadata{{mark, "1"}};
  for (const auto& [name, value] : tree.statics) metadata.emplace(name, text_of(value));
  FileWriter file("save", path);
  write_safetensors(file, "save", path, arrays, metadata);
  file.commit(true);
}

void load_leaves(const std::string& path, const SavedTree& tree) {
  const FileReader file("load", path);
  const SafetensorsHeader header = read_safetensors_header(file);
  const std::vector<const TensorEntry*> entries = entries_of(file, header, tree);
  const bool is_tree = header.metadata.contains(mark);
  std::vector<std::string> values;
  if (is_tree) values = values_of(file, header.metadata, tree);
  const std::vector<Array> like = computed("load", tree);
  std::vector<Array> loaded;
  for (std::size_t k = 0; k < entries.size(); k++) {
    const ValueRef home = value_of(like[k]);
    TensorEntry entry = *entries[k];
    entry.type.weak = type_of(like[k]).weak;  // a jitted function that knows `like` is not traced again
    loaded.push_back(load_tensor(file, header, entry, {home->sharding, home->committed}));
  }
  for (std::size_t k = 0; k < loaded.size(); k++) *tree.arrays[k].second = std::move(loaded[k]);
  for (std::size_t k = 0; k < values.size(); k++) {
    const StaticValue& to = tree.statics[k].second;
    void* const object = const_cast<void*>(to.object);
    if (to.held == Held::string) *static_cast<std::string*>(object) = values[k];
    else std::memcpy(object, values[k].data(), to.bytes);
  }
}

}  // namespace

}  // namespace files

namespace detail {

void save_tree(const std::string& path, const SavedTree& tree, Where w) {
  const Site site(w, "save");
  with_memory("save", 0, [&] { files::save_leaves(path, tree); });
}
void load_tree(const std::string& path, const SavedTree& tree, Where w) {
  const Site site(w, "load");
  with_memory("load", 0, [&] { files::load_leaves(path, tree); });
}

}  // namespace detail
}  // namespace shardarray
