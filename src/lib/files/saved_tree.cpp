#include "lib/files/saved_tree.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <set>

#include "execute/evaluate.h"
#include "execute/without_value.h"
#include "graph/op.h"
#include "lib/files/file_reader.h"
#include "lib/files/named.h"

namespace shardarray::files {

using detail::SavedTree;
using detail::StaticValue;
using Held = StaticValue::Held;

namespace {

std::string text_of(const StaticValue& v) {
  switch (v.held) {
    case Held::boolean: return v.word ? "true" : "false";
    case Held::signed_integer: return fmt::format("{}", static_cast<std::int64_t>(v.word));
    case Held::unsigned_integer: return fmt::format("{}", v.word);
    case Held::real: {
      const double value =
          std::bit_cast<double>(v.word);  // the shortest text that reads back as the same number
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

// The bytes of the number in `text`, little-endian; none if it is no number of type N that fits into `bytes`.
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

// For an enum whose values are exactly 0, 1, ..
bool is_value_of(const StaticValue& v, std::string_view text) {
  std::uint64_t n = v.values;  // stays if from_chars fails, as for negative ones
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() && n < v.values;
}

[[noreturn]] void differs(const char* function, const std::string& path, const std::string& what) {
  throw TreeError(fmt::format(
      "{}: {}: {}. The file has exactly the leaves of the tree that it is loaded into. Make that as it was "
      "when it was saved.",
      function, path, what));
}

// The first stored entries without a place in the tree: what is missing may be there under another name.
template <class Stored, class Leaves, class Text>
std::string instead_of_it(const Stored& stored, const Leaves& leaves, const Text& text) {
  std::set<std::string> wanted{tree_mark};
  for (const auto& [path, leaf] : leaves) wanted.insert(path);
  constexpr std::size_t most = 4;
  std::string list;
  std::size_t count = 0;
  for (const auto& [name, value] : stored)
    if (!wanted.contains(name) && count++ < most)
      list +=
          fmt::format("{}`{}` {}", count == 1 ? "; instead the file has " : ", ", shown(name), text(value));
  return count > most ? fmt::format("{} and {} more", list, count - most) : list;
}

}  // namespace

void check_paths(const char* function, const SavedTree& tree) {
  std::set<std::string> paths{tree_mark};
  const auto add = [&](const std::string& path, std::set<std::string>& known) {
    if (!known.insert(path).second)
      throw TreeError(
          fmt::format("{}: two leaves have the path `{}`. A file has its leaves by path. Rename one.",
                      function, shown(path)));
  };
  std::set<std::string> arrays{"__metadata__"};
  for (const auto& [path, array] : tree.arrays) add(path, arrays);
  for (const auto& [path, value] : tree.statics) add(path, paths);
}

void check_arrays(const char* function, const std::string& path, std::map<std::string, Type> stored,
                  const SavedTree& tree) {
  std::set<std::string> used;
  for (const auto& [name, array] : tree.arrays) {
    const auto entry = stored.find(name);
    if (entry == stored.end())
      differs(function, path,
              fmt::format("`{}` {} is missing{}", shown(name), to_string(type_of(*array)),
                          instead_of_it(stored, tree.arrays, [](const Type& t) { return to_string(t); })));
    const Type &there = entry->second, &here = type_of(*array);
    const std::string text = fmt::format(
        "{}: {}: `{}` is {} in the file and {} in the tree. Every leaf keeps its shape and dtype. ", function,
        path, shown(name), to_string(there), to_string(here));
    if (there.shape != here.shape) throw ShapeError(text + "Give the tree an array of that shape.");
    if (there.dtype != here.dtype)
      throw DTypeError(text + "Give the tree an array of that dtype, and cast it then.");
    used.insert(name);
  }
  for (const std::string& name : used) stored.erase(name);
  if (!stored.empty())
    differs(function, path,
            fmt::format("`{}` {} is in the file and not in the tree", shown(stored.begin()->first),
                        to_string(stored.begin()->second)));
}

std::map<std::string, std::string> texts_of(const SavedTree& tree) {
  std::map<std::string, std::string> r{{tree_mark, "1"}};
  for (const auto& [name, value] : tree.statics) r.emplace(name, text_of(value));
  return r;
}

std::vector<std::string> values_of(const char* function, const std::string& file,
                                   std::map<std::string, std::string> metadata, const SavedTree& tree) {
  std::vector<std::string> r;
  for (const auto& [path, value] : tree.statics) {
    const auto text = metadata.find(path);
    if (text == metadata.end())
      differs(
          function, file,
          fmt::format("`{}`, {}, is missing{}", shown(path), to_string(value),
                      instead_of_it(metadata, tree.statics, [](const std::string& t) { return shown(t); })));
    const auto bytes = bytes_of_text(value, text->second);
    if (!bytes)
      differs(function, file,
              fmt::format("`{}` is `{}` in the file and {} in the tree", shown(path), shown(text->second),
                          kind_of(value)));
    if (value.values > 0 && !is_value_of(value, text->second))
      throw IoError(
          fmt::format("{}: {}: `{}` is {} in the file, and its enum has the values 0 to {}. Code relies on "
                      "one of these. Check where the file comes from.",
                      function, file, shown(path), shown(text->second), value.values - 1));
    r.push_back(*bytes);
    metadata.erase(text);
  }
  metadata.erase(tree_mark);
  if (!metadata.empty())
    differs(function, file,
            fmt::format("`{}`, `{}`, is in the file and not in the tree", shown(metadata.begin()->first),
                        shown(metadata.begin()->second)));
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

std::vector<Home> homes_of(const char* function, const SavedTree& tree, const std::optional<Sharding>& all,
                           const std::map<std::string, Sharding>& by_path) {
  std::map<std::string, Sharding> not_found = by_path;
  std::vector<std::optional<Sharding>> asked;
  const auto stays = [&](std::size_t k) {
    const Array& like = *tree.arrays[k].second;
    return !asked[k] && (!is_without_value(like) || like.node()->out()[like.index()].value);
  };
  std::vector<Array> where_they_lie;
  for (const auto& [path, array] : tree.arrays) {
    type_of(*array, function);
    not_found.erase(path);
    asked.push_back(chosen(all, by_path, path));
    if (stays(asked.size() - 1) && !is_without_value(*array)) where_they_lie.push_back(*array);
  }
  if (!not_found.empty())
    throw TreeError(fmt::format(
        "{}: `shardings` has `{}`, and the tree has no array there. Its keys are the paths of arrays, as "
        "tree_paths() has them. Check it.",
        function, shown(not_found.begin()->first)));
  evaluate(where_they_lie, function);
  std::vector<Home> homes;
  for (std::size_t k = 0; k < asked.size(); k++) {
    const auto& [path, array] = tree.arrays[k];
    if (stays(k)) {
      const ValueRef value = placed(*array, function);
      homes.push_back({value->sharding, value->committed});
    } else {
      homes.push_back(home_of(function, asked[k], type_of(*array), path));
    }
  }
  return homes;
}

void set_leaves(const SavedTree& tree, std::vector<Array> arrays, const std::vector<std::string>& values) {
  for (std::size_t k = 0; k < arrays.size(); k++) *tree.arrays[k].second = std::move(arrays[k]);
  for (std::size_t k = 0; k < values.size(); k++) {
    const StaticValue& to = tree.statics[k].second;
    void* const object = const_cast<void*>(to.object);
    if (to.held == Held::string) *static_cast<std::string*>(object) = values[k];
    else std::memcpy(object, values[k].data(), to.bytes);
  }
}

}  // namespace shardarray::files
