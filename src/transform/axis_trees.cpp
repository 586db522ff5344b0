// Nested lists of axes and specs: finds the entry for an argument's path.
#include <fmt/core.h>

#include "shardarray/shard_map.h"
#include "shardarray/vmap.h"

#include "base/count_text.h"

namespace shardarray {

namespace {
// `[0][1]`: the index path of a path in a list of axes.
std::string list_place(const Path& path) {
  if (!path.up) return path.count ? fmt::format("[{}]", path.ordinal) : "";
  return list_place(*path.up) + fmt::format("[{}]", path.ordinal);
}
}  // namespace

// The entry of nested lists for a path. `Tree` has is_list and entries.
template <class Tree, class List>
static const Tree& entry_at(const Tree& root, const Path& path, const List& list, const char* function,
                            const char* option, const char* entry) {
  if (!path.up && !path.count) return root;
  const Tree& parent = path.up ? entry_at(root, *path.up, list, function, option, entry) : root;
  const std::vector<Tree>* entries = list(parent);
  if (!entries) return parent;
  if (entries->size() == path.count) return (*entries)[path.ordinal];
  if (path.tree_count && entries->size() == path.tree_count) return (*entries)[path.tree_ordinal];
  const std::string of = path.up ? list_place(*path.up) : "";
  throw TreeError(fmt::format(
      "{}: {}{} has {} for {}. A list needs one entry for each argument, element or field. Write one {} for "
      "all of them, or one for each.",
      function, option, of, count_text(entries->size(), "entry"), count_text(path.count, "part"), entry));
}

std::optional<std::int64_t> Axes::at(const Path& path, const char* function, const char* option) const {
  const auto list = [](const Axes& a) { return a.is_list_ ? &a.entries_ : nullptr; };
  const Axes& e = entry_at(*this, path, list, function, option, "number or none");
  if (e.is_list_)
    throw TreeError(fmt::format(
        "{}: {}{} is a list of {} for one array. An array has one axis. Write a number or none there.",
        function, option, list_place(path), count_text(e.entries_.size(), "entry")));
  return e.axis_;
}

const PartitionSpec& Specs::at(const Path& path, const char* option) const {
  const auto list = [](const Specs& s) { return s.is_list_ ? &s.entries_ : nullptr; };
  const Specs& e = entry_at(*this, path, list, "shard_map", option, "spec");
  if (e.is_list_)
    throw TreeError(fmt::format("shard_map: {}{} is a list of {} for one array. An array has one spec.",
                                option, list_place(path), count_text(e.entries_.size(), "entry")));
  return e.spec_;
}

}  // namespace shardarray
