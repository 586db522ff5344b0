// Functions that messages tell users to call exist: names in the sources' string literals, compared with the public headers.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "public_names.h"
#include "source_text.h"
#include "sources.h"

namespace message_names_test {

namespace fs = std::filesystem;

using shardarray::testing::text_of;

namespace {

const fs::path root = shardarray::testing::source_folder();

/// Files whose string literals are source text of kernels, which users do not read.
const std::set<std::string> programs = {"cuda/known_items.cpp", "cuda/printer.cpp", "cuda/program_text.cpp"};

/// Names in messages that no header declares.
const std::map<std::string, std::string> other_names = {
    {"layer", "the user's own layer, which is called"},
    {"model", "the user's own model, which is called"},
};

/// The string literals of C++ code; adjacent ones are joined.
std::vector<std::string> quoted_texts(const std::string& code) {
  std::vector<std::string> texts;
  bool joins = false;
  for (std::size_t k = 0; k < code.size(); k++) {
    const char c = code[k];
    if (code.compare(k, 2, "//") == 0) {
      while (k < code.size() && code[k] != '\n') k++;
    } else if (code.compare(k, 3, "R\"(") == 0) {
      const std::size_t end = code.find(")\"", k);
      texts.push_back(code.substr(k + 3, end - k - 3));
      k = end + 1;
      joins = false;
    } else if (c == '"') {
      if (!joins) texts.emplace_back();
      joins = true;
      while (++k < code.size() && code[k] != '"')
        if (code[k] != '\\') texts.back() += code[k];
        else texts.back() += code[++k] == 'n' ? ' ' : code[k];
    } else if (c == '\'' && (k == 0 || std::isalnum(static_cast<unsigned char>(code[k - 1])) == 0)) {
      while (++k < code.size() && code[k] != '\'') k += code[k] == '\\';
      joins = false;
    } else joins = joins && std::isspace(static_cast<unsigned char>(c)) != 0;
  }
  return texts;
}

/// f and random::key of "Give f(x), sa::random::key", without `sa::`.
std::vector<std::string> names_in(const std::string& message) {
  static const std::regex name("\\bsa::((?:\\w+::)*\\w+)|\\b((?:[A-Za-z_]\\w*::)*[A-Za-z_]\\w*)\\(");
  std::vector<std::string> names;
  for (std::sregex_iterator m(message.begin(), message.end(), name), end; m != end; ++m)
    names.push_back((*m)[1].matched ? (*m)[1] : (*m)[2]);
  return names;
}

/// What a public header declares, members, namespaces and other names of types too.
std::set<std::string> declared_names(const std::string& header) {
  static const std::regex member(
      "  (?!return|if|else|for|while|switch|throw|static_assert)(?:\\[\\[nodiscard\\]\\] )?\\w.*?[ "
      "&*>](\\w+)\\(.*"),
      alias("using (\\w+) = .*"), space("namespace ([\\w:]+) \\{.*");
  std::istringstream whole(header), lines(header);
  std::set<std::string> names = shardarray::testing::public_names(whole);
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_match(line, m, member) || std::regex_match(line, m, alias)) names.insert(m[1]);
    else if (std::regex_match(line, m, space)) {
      std::istringstream parts(std::regex_replace(m[1].str(), std::regex("::"), " "));
      for (std::string part; parts >> part;) names.insert(part);
    }
  }
  return names;
}

/// Whether each part of random::key is declared; the standard library's names are.
bool is_declared(const std::string& name, const std::set<std::string>& declared) {
  if (name.starts_with("std::")) return true;
  std::istringstream parts(std::regex_replace(name, std::regex("::"), " "));
  for (std::string part; parts >> part;)
    if (!declared.contains(part)) return false;
  return true;
}

bool is_source(const fs::path& path) { return path.extension() == ".h" || path.extension() == ".cpp"; }

}  // namespace

TEST_CASE("messages: the functions that they name exist") {
  const fs::path headers = root / "include/shardarray";
  std::set<std::string> declared, used;
  for (const auto& file : fs::recursive_directory_iterator(headers))
    if (is_source(file.path()) && file.path().parent_path().filename() != "detail")
      declared.merge(declared_names(text_of(file.path())));
  std::size_t calls = 0;
  for (const fs::path& folder : {root / "src", headers})
    for (const auto& file : fs::recursive_directory_iterator(folder)) {
      const std::string path = fs::relative(file.path(), folder).string();
      if (!is_source(file.path()) || programs.contains(path)) continue;
      for (const std::string& text : quoted_texts(text_of(file.path()))) {
        if (text.find(' ') == text.npos) continue;  // a word is no message
        for (const std::string& name : names_in(text)) {
          calls++;
          if (other_names.contains(name)) used.insert(name);
          else
            CHECK_MESSAGE(is_declared(name, declared),
                          path << " names " << name << ", which no public header declares: " << text);
        }
      }
    }
  CHECK(calls > 100);
  for (const auto& other : other_names)
    CHECK_MESSAGE(used.contains(other.first), "no message names " << other.first);
  for (const std::string& path : programs) CHECK(fs::exists(root / "src" / path));
}

TEST_CASE("messages: which names in them count") {
  CHECK(quoted_texts("f(\"a \"  // \"no\"\n  \"b\", 1'0, '\"', \"c\\\"d\\ne\")") ==
        std::vector<std::string>{"a b", "c\"d e"});
  CHECK(quoted_texts("\"a\" R\"(b \"c\")\";") == std::vector<std::string>{"a", "b \"c\""});
  CHECK(names_in("f: {} is none (2). Give g(x), nn::mlp() or sa::random::key; x.h({})") ==
        std::vector<std::string>{"g", "nn::mlp", "random::key", "h"});
  const std::set<std::string> declared = declared_names(
      "namespace shardarray::nn {\nstruct Linear {\n  [[nodiscard]] static Linear init(int n);\n  bool has() "
      "const {\n"
      "    return other(1);\n  }\n};\n/// not(this).\nusing P = Linear;\nArray mlp(int n);\n}  // "
      "namespace\n");
  CHECK(declared == std::set<std::string>{"shardarray", "nn", "Linear", "init", "has", "P", "mlp"});
  CHECK(is_declared("nn::mlp", declared));
  CHECK_FALSE(is_declared("nn::mpl", declared));
  CHECK_FALSE(is_declared("nm::mlp", declared));
}

}  // namespace message_names_test
