// The names that a public header declares, read from its text.
#pragma once
#include <istream>
#include <regex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace shardarray::testing {

/// What a public header declares outside of `detail` and `core`: function objects, functions and, `with_types`, classes.
inline std::set<std::string> public_names(std::istream& in, bool with_types = true) {
  const std::regex opens("namespace ([\\w:]+) \\{.*"), closes("\\}  // namespace.*"),
      object(
          "(?:\\} |inline constexpr (?:\\w+_fn|\\w+Function<\"\\w+\">|detail::PlacedFunction<.*>|"
          "detail::(?:Axes)?Transform<\"\\w+\">) "
          ")(\\w+)\\{\\};.*"),
      type("(?:template <.*> )?(?:struct|class|enum class) (?:SHARDARRAY_API )?(\\w+).*[^;]"),
      function("[A-Za-z].*?\\b(?!requires|sizeof|decltype|void)(\\w+)\\(.*");
  std::set<std::string> names;
  std::vector<std::string> scopes;
  for (std::string line; std::getline(in, line);) {
    std::smatch m;
    if (const std::string attribute = "[[nodiscard]] "; line.starts_with(attribute))
      line.erase(0, attribute.size());
    if (const auto comment = line.find("  //"); comment != line.npos && line[0] != '}') line.resize(comment);
    if (std::regex_match(line, m, opens)) scopes.push_back(m[1]);
    else if (std::regex_match(line, closes)) scopes.pop_back();
    else if (scopes.empty() || scopes.back() == "detail" || scopes.back() == "core" || line.starts_with("//"))
      continue;
    else if (std::regex_match(line, m, type)) {
      if (with_types) names.insert(m[1]);
    } else if (std::regex_match(line, m, object) || std::regex_match(line, m, function)) names.insert(m[1]);
  }
  if (!scopes.empty())  // the names behind one that seems to be open would be overlooked
    throw std::logic_error("namespace " + scopes.back() + " is not closed by a line `}  // namespace`");
  return names;
}

}  // namespace shardarray::testing
