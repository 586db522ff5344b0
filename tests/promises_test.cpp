// tests/PROMISES.md names a test for every promise that the documents make: this checks its lines, and that every public
// name stands in one.
#include <doctest/doctest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "public_names.h"
#include "scale.h"
#include "sources.h"

namespace promises_test {

namespace fs = std::filesystem;

namespace {

using shardarray::testing::public_names;

const fs::path root = shardarray::testing::source_folder();

struct Promise {
  int line;
  std::string text;
  std::vector<std::string> tests;
};

std::vector<std::string> parts_of(const std::string& line) {
  std::vector<std::string> r;
  for (std::size_t at = 0;;) {
    const std::size_t end = line.find(" | ", at);
    r.push_back(line.substr(at, end - at));
    if (end == line.npos) return r;
    at = end + 3;
  }
}

/// `- what is promised | test | another test`: the lines below the first `## `. Others than headings are mistakes.
std::vector<Promise> promises(std::istream& in, std::string& mistakes) {
  std::vector<Promise> all;
  bool begun = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    number++;
    begun = begun || line.starts_with("## ");
    if (!begun || line.empty() || line.starts_with("#")) continue;
    const std::vector<std::string> parts = parts_of(line);
    const bool whole = line.starts_with("- ") && parts.size() > 1 && parts[0].size() > 2;
    if (!whole) mistakes += "line " + std::to_string(number) + " names no test: " + line + "\n";
    all.push_back({number, parts[0], {parts.begin() + 1, parts.end()}});
  }
  return all;
}

/// The names of all tests of this program.
std::set<std::string> test_cases() {
  const std::string command = fs::canonical("/proc/self/exe").string() + " --list-test-cases --no-skip";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (char piece[4096]; std::fgets(piece, sizeof piece, pipe) != nullptr;) text += piece;
  pclose(pipe);
  std::set<std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) names.insert(line);
  return names;
}
/// A test, or the path of a script, an example or a program that a script compiles.
bool exists(const std::string& name, const std::set<std::string>& tests) {
  const bool is_path = name.find(' ') == name.npos && name.find('/') != name.npos;
  return is_path ? fs::is_regular_file(root / name) : tests.contains(name);
}

}  // namespace

TEST_CASE("promises: every line names tests that there are") {
  if (shardarray::testing::is_sanitized()) return;  // their binaries leave tests of the heap out
  std::ifstream in(root / "tests/PROMISES.md");
  REQUIRE(in.good());
  std::string mistakes;
  const std::vector<Promise> all = promises(in, mistakes);
  CHECK(mistakes == "");
  const std::set<std::string> tests = test_cases();
  REQUIRE(tests.contains("promises: every line names tests that there are"));
  for (const Promise& p : all)
    for (const std::string& test : p.tests)
      CHECK_MESSAGE(exists(test, tests), "line " << p.line << ": there is no test `" << test << "`");
  CHECK(all.size() > 150);
}

TEST_CASE("promises: every public name stands in a line") {
  std::ifstream in(root / "tests/PROMISES.md");
  std::string mistakes;
  std::set<std::string> words;
  const std::regex quoted("`[^`]*`"), word("\\w+");
  for (const Promise& p : promises(in, mistakes))
    for (std::sregex_iterator q(p.text.begin(), p.text.end(), quoted), end; q != end; ++q) {
      const std::string code = q->str();
      for (std::sregex_iterator w(code.begin(), code.end(), word); w != end; ++w) words.insert(w->str());
    }
  std::size_t names = 0;
  for (const auto& header : fs::recursive_directory_iterator(root / "include/shardarray")) {
    if (header.path().extension() != ".h" || header.path().parent_path().filename() == "detail") continue;
    std::ifstream text(header.path());
    for (const std::string& name : public_names(text)) {
      CHECK_MESSAGE(words.contains(name), header.path().filename().string() << ": no line mentions " << name);
      names++;
    }
  }
  CHECK(names > 300);
}

TEST_CASE("promises: the rules themselves") {
  std::istringstream list(
      "# T\nabout\n## A\n- one | a test | tests/x\n- two\nthree | a test\n\n-  | a test\n");
  std::string mistakes;
  const std::vector<Promise> all = promises(list, mistakes);
  CHECK(mistakes ==
        "line 5 names no test: - two\nline 6 names no test: three | a test\nline 8 names no test: -  | a "
        "test\n");
  REQUIRE(all.size() == 4);
  CHECK(all[0].tests == std::vector<std::string>{"a test", "tests/x"});
  CHECK(exists("a test", {"a test"}));
  CHECK_FALSE(exists("a tes", {"a test"}));
  CHECK(exists("tests/promises_test.cpp", {}));
  CHECK_FALSE(exists("tests/no_such_script", {}));
  std::istringstream header(
      "namespace shardarray {\n/// Not(this).\nclass Early;\nnamespace detail {\nvoid hidden(int);\n}  // "
      "namespace detail\n"
      "inline constexpr struct SHARDARRAY_API add_fn {\n  Array operator()(int) const;\n} add{};\n"
      "inline constexpr add_fn plus{};\ninline constexpr detail::PlacedFunction<detail::run_fn> run{};\n"
      "[[nodiscard]] SHARDARRAY_API Array pure(int a);\ninline constexpr UnaryFunction<\"exp\"> "
      "exp{};\nstruct "
      "SHARDARRAY_API Options {\n  int a = f(3);\n};\n"
      "template <std::size_t N> std::array<Array, N> split(const Array& key) {\n"
      "requires(!std::same_as<T, int>) T stop(const T& tree,\n                int more);\n"
      "SHARDARRAY_API Array operator+(const Operand& a);\n}  // namespace shardarray\n");
  CHECK(public_names(header) ==
        std::set<std::string>{"Options", "add", "exp", "plus", "pure", "run", "split", "stop"});
  std::istringstream open("namespace a {\nnamespace detail {\nint f();\n}\nint g();\n}  // namespace a\n");
  CHECK_THROWS_WITH_AS(public_names(open), "namespace a is not closed by a line `}  // namespace`",
                       std::logic_error);
}

}  // namespace promises_test
