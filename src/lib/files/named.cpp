#include "lib/files/named.h"

#include <fmt/format.h>

#include <vector>

#include "execute/evaluate.h"
#include "graph/node.h"

namespace shardarray::files {

std::optional<Sharding> chosen(const std::optional<Sharding>& all,
                               const std::map<std::string, Sharding>& by_name, const std::string& name) {
  const auto own = by_name.find(name);
  return own == by_name.end() ? all : own->second;
}

void check_names(const FileReader& file, const std::map<std::string, Sharding>& by_name,
                 detail::FunctionRef<bool(const std::string&)> exists) {
  for (const auto& [name, sharding] : by_name)
    if (!exists(name))
      throw TreeError(fmt::format(
          "{}: {} has no array `{}`, for which `shardings` has a sharding. Every name is one of the file's. "
          "Correct it.",
          file.function(), file.path(), shown(name)));
}

void evaluate_named(const char* function, const std::map<std::string, Array>& arrays) {
  std::vector<Array> all;
  for (const auto& [name, x] : arrays) {
    if (!x.has_value())
      throw Error(
          fmt::format("{}: `{}` is absent. Only arrays are written. Leave it out.", function, shown(name)));
    type_of(x, function);
    all.push_back(x);
  }
  evaluate(all, function);
}

}  // namespace shardarray::files
