// What the guides say that no block of theirs can show: every variable of the environment, and links that lead somewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "source_text.h"
#include "sources.h"

namespace guides_test {

namespace fs = std::filesystem;

using shardarray::testing::text_of;

namespace {

const fs::path root = shardarray::testing::source_folder();

std::vector<std::string> all_matches(const std::string& text, const std::regex& pattern) {
  std::vector<std::string> found;
  for (std::sregex_iterator m(text.begin(), text.end(), pattern), end; m != end; ++m)
    found.push_back((*m)[1]);
  return found;
}
std::string without_blocks(const std::string& text) {
  std::istringstream lines(text);
  std::string rest;
  bool inside = false;
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("```")) inside = !inside;
    else if (!inside) rest += line + "\n";
  return rest;
}

/// Names of variables in the sources: all capitals, in quotes, in a file that asks the environment.
std::set<std::string> variables_of_sources() {
  const std::regex asks("getenv|env_int|env_flag|count_from_environment"), name("\"([A-Z][A-Z_]+)\"");
  std::set<std::string> names;
  for (const auto& file : fs::recursive_directory_iterator(root / "src")) {
    if (!file.is_regular_file()) continue;
    const std::string text = text_of(file.path());
    if (!std::regex_search(text, asks)) continue;
    for (const std::string& n : all_matches(text, name)) names.insert(n);
  }
  return names;
}

/// README, llms.txt and the guides.
std::vector<fs::path> pages() {
  std::vector<fs::path> all{root / "README.md", root / "CONTRIBUTING.md", root / "llms.txt"};
  for (const auto& file : fs::directory_iterator(root / "docs"))
    if (file.path().extension() == ".md") all.push_back(file.path());
  std::sort(all.begin(), all.end());
  return all;
}
/// What `#...` may say of a page: its headings in small letters, with - for blanks and without other signs.
std::set<std::string> anchors_of(const std::string& text) {
  std::set<std::string> anchors;
  for (const std::string& heading : all_matches("\n" + text, std::regex("\n#+ ([^\n]*)"))) {
    std::string anchor;
    for (const char c : heading)
      if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_')
        anchor += static_cast<char>(std::tolower(c));
      else if (c == ' ') anchor += '-';
    anchors.insert(anchor);
  }
  return anchors;
}

}  // namespace

TEST_CASE("guides: the page on debugging names every variable of the environment, and no other") {
  const std::string page = text_of(root / "docs/debugging.md");
  const std::size_t begin = page.find("## Environment");
  REQUIRE(begin != page.npos);
  const std::vector<std::string> names = all_matches(page.substr(begin), std::regex("`([A-Z][A-Z_]+)`"));
  const std::set<std::string> said(names.begin(), names.end());
  const std::set<std::string> read = variables_of_sources();
  CHECK(read.size() > 15);
  for (const std::string& name : read) {
    if (name == "SINGLE_THREADED" || name == "USE_OPENMP") continue;  // in OpenBLAS's description of itself
    CHECK_MESSAGE(said.contains(name), "docs/debugging.md does not name " << name);
  }
  for (const std::string& name : said) CHECK_MESSAGE(read.contains(name), "no source reads " << name);
}

TEST_CASE("guides: links lead to files and headings that there are") {
  const std::regex link("\\]\\(([^)\\s]+)\\)");
  std::size_t links = 0;
  for (const fs::path& page : pages())
    for (const std::string& target : all_matches(without_blocks(text_of(page)), link)) {
      if (target.find("://") != target.npos) continue;
      const std::size_t hash = target.find('#');
      const fs::path file = hash == 0 ? page : page.parent_path() / target.substr(0, hash);
      CAPTURE(page.filename().string());
      CAPTURE(target);
      CHECK(fs::exists(file));
      if (hash != target.npos && fs::exists(file))
        CHECK(anchors_of(without_blocks(text_of(file))).contains(target.substr(hash + 1)));
      links++;
    }
  CHECK(links > 30);
}

namespace {

/// The names in the first columns of all tables: `jnp.sort`, `lexsort` -> sort, lexsort.
std::set<std::string> names_in_tables(const std::string& page) {
  static const std::regex span("`([^`]*)`"), word("([A-Za-z_][A-Za-z_0-9]*)");
  std::istringstream lines(page);
  std::set<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("| ")) continue;
    for (const std::string& code : all_matches(line.substr(0, line.find(" | ", 2)), span))
      for (const std::string& name : all_matches(code, word)) names.insert(name);
  }
  return names;
}

}  // namespace

TEST_CASE("guides: of every public name of JAX, Equinox and optax a table says what stands for it") {
  const auto names = nlohmann::json::parse(text_of(shardarray::testing::data_file("names.json")))["names"];
  const std::set<std::string> said = names_in_tables(text_of(root / "docs/jax-and-equinox-names.md"));
  CHECK(names.size() == 34);
  for (const auto& module : names.items())
    for (const auto& name : module.value())
      CHECK_MESSAGE(said.contains(name.get<std::string>()),
                    "docs/jax-and-equinox-names.md does not name " << module.key() << "." << name);
}

TEST_CASE("guides: README and llms.txt name every guide") {
  const std::string readme = text_of(root / "README.md"), llms = text_of(root / "llms.txt");
  for (const fs::path& page : pages()) {
    if (page.parent_path() != root / "docs") continue;
    const std::string name = "docs/" + page.filename().string();
    CHECK_MESSAGE(readme.find("(" + name + ")") != readme.npos, "README.md does not name " << name);
    CHECK_MESSAGE(llms.find(name) != llms.npos, "llms.txt does not name " << name);
  }
}

TEST_CASE("guides: the rules themselves") {
  CHECK(names_in_tables("| `a.b`, `c(d=1)` | `e` |\n`f`\n") == std::set<std::string>{"a", "b", "c", "d"});
  CHECK(anchors_of("# One\n## Two words, `code` and x == 1\n") ==
        std::set<std::string>{"one", "two-words-code-and-x--1"});
  CHECK(without_blocks("a\n```cpp\n[x](y)\n```\nb\n") == "a\nb\n");
}

}  // namespace guides_test
