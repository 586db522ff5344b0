// Discarding the result of a pure function is a mistake: all of them are [[nodiscard]]. Reads the headers' text.
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

#include "source_text.h"
#include "sources.h"

namespace nodiscard_test {

namespace fs = std::filesystem;

using shardarray::testing::text_of;

namespace {

/// Functions with a result that may be called for their effect.
const std::map<std::string, std::string> exceptions = {
    {"ShardedArray::block_until_ready", "waits"},
    {"block_until_ready", "waits"},
    {"id_print", "prints"},
    {"PlacedCall::operator()", "calls the user's function, which may print or call the host"},
    {"MappedOverDevices::operator()", "calls the user's function"},
    {"MappedWhole::operator()", "calls the user's function"},
    {"FunctionRef::operator()", "calls the user's function"},
};

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Code with spaces in place of comments, strings, characters and preprocessor lines.
std::string without_texts(const std::string& code) {
  std::string out = code;
  const auto blank = [&](std::size_t from, std::size_t to) {
    for (std::size_t k = from; k < to && k < out.size(); k++)
      if (out[k] != '\n') out[k] = ' ';
  };
  bool first = true;  // on its line
  for (std::size_t k = 0; k < code.size(); k++) {
    const std::size_t start = k;
    if (code.compare(k, 2, "//") == 0) {
      k = std::min(code.find('\n', k), code.size());
      blank(start, k);
    } else if (first && code[k] == '#') {
      while (k < code.size() && (code[k] != '\n' || code[k - 1] == '\\')) k++;
      blank(start, k);
    } else if (code[k] == '"' ||
               (code[k] == '\'' && (k == 0 || std::isalnum(static_cast<unsigned char>(code[k - 1])) == 0))) {
      while (++k < code.size() && code[k] != code[start]) k += code[k] == '\\';
      blank(start, k + 1);
    }
    if (k < code.size()) first = code[k] == '\n' || (first && is_space(code[k]));
  }
  return out;
}

/// Behind the bracket that closes the one at k; of `<`, brackets of other kinds hide what stands in them.
std::size_t behind(const std::string& t, std::size_t k) {
  const char open = t[k], close = open == '(' ? ')' : open == '[' ? ']' : open == '{' ? '}' : '>';
  int depth = 0;
  for (; k < t.size(); k++) {
    if (open == '<' && t[k] == '(') k = behind(t, k) - 1;
    depth += t[k] == open;
    depth -= t[k] == close;
    if (depth == 0) return k + 1;
  }
  return k;
}

/// A declaration without what stands in front of its attributes: labels, template parameters, conditions.
std::string head(std::string d) {
  static const std::regex label("^\\s*(?:public|private|protected)\\s*:(?!:)"),
      parameters("^\\s*template\\s*<"), condition("^\\s*requires\\s*(?:\\(|[\\w:]+<)"),
      fold("^\\s*&&\\s*\\.\\.\\.");
  for (std::smatch m;;) {
    if (std::regex_search(d, m, label) || std::regex_search(d, m, fold)) d = m.suffix();
    else if (std::regex_search(d, m, parameters) || std::regex_search(d, m, condition))
      d = d.substr(behind(d, static_cast<std::size_t>(m.length()) - 1));
    else return d.substr(std::min(d.find_first_not_of(" \n"), d.size()));
  }
}

struct Scope {
  std::string kind, name;
  bool is_public = true;
};

/// The name of a function that a declaration (from its head) makes [[nodiscard]] needful for; "" where none is needed.
std::string name_without(const std::string& d, bool has_body) {
  static const std::regex other(
      "^(?:using|typedef|concept|enum|namespace|struct|class|static_assert|extern)\\b"),
      op("\\boperator\\s*(\\(\\)|[^\\s\\w(]+|[\\w:&*<> ]+?)\\s*\\("), last("([~\\w:]+)\\s*$"),
      before_type(
          "(?:\\b(?:explicit|constexpr|inline|static|friend|virtual|SHARDARRAY_API)\\b|\\s|"
          "\\[\\[noreturn\\]\\])+"),
      changes("operator(?:=|(?:[-+*/%&|^]|<<|>>)=|\\+\\+|--)"), deleted("=\\s*delete\\s*$"),
      defaulted("=\\s*default\\s*$");
  if (std::regex_search(d, other) || d.find("[[nodiscard]]") != d.npos || std::regex_search(d, deleted))
    return "";
  std::smatch m;
  std::string before, name;
  if (std::regex_search(d, m, op)) {
    before = m.prefix();
    name = "operator" + m[1].str();
  } else {
    std::size_t k = 0;
    while (k < d.size() && d[k] != '(' && d[k] != '=') k = d[k] == '<' ? behind(d, k) : k + 1;
    if (k >= d.size() || d[k] == '=') return "";  // a variable
    before = d.substr(0, k);
    if (!std::regex_search(before, m, last)) return "";
    name = m[1];
    before = m.prefix();
  }
  if (name.find("::") != name.npos) return "";  // its declaration has it
  if (before.find("friend") != before.npos && !has_body && !std::regex_search(d, defaulted))
    return "";  // may not have attributes
  const std::string type = std::regex_replace(before, before_type, " ");
  const std::size_t first = type.find_first_not_of(' ');
  if (first == type.npos || type.substr(first) == "void ") return "";  // a constructor, or nothing given
  if (type.find("ostream") != type.npos) return "";                    // prints
  return std::regex_match(name, changes) || name.starts_with("operator ") ? "" : name;
}

/// The public functions of a header that give something, may be ignored, and of details the call operators. Each as Class::name.
std::vector<std::string> functions_without(const std::string& code) {
  static const std::regex opens(
      "^(?:inline\\s+)?(?:constexpr\\s+)?(namespace|struct|class|union)\\b(?:\\s+SHARDARRAY_API\\b)?\\s*(["
      "\\w:]*)"),
      label("\\b(public|private|protected)\\s*:(?!:)"), internal("(?:^|::)(?:detail|core)\\b"),
      goes_on("^\\s*(?:[,{;]|catch\\b)"), has_value("(?:^|[^-+*/%&|^<>=!])=(?!=)[^()]*(?:requires[^=]*)?$");
  const std::string t = without_texts(code);
  std::vector<std::string> names;
  std::vector<Scope> scopes;
  std::size_t start = 0;
  const auto see = [&](std::size_t end, bool has_body) {
    const std::string name = name_without(head(t.substr(start, end - start)), has_body);
    std::string full;
    bool seen = !name.empty();
    for (const Scope& s : scopes) {
      seen = seen && s.is_public && (name == "operator()" || !std::regex_search(s.name, internal));
      if (s.kind != "namespace") full += s.name + "::";
    }
    if (seen) names.push_back(full + name);
  };
  const auto read_labels = [&](std::size_t end) {
    const std::string part = t.substr(start, end - start);
    if (scopes.empty()) return;
    for (std::sregex_iterator m(part.begin(), part.end(), label), last; m != last; ++m)
      scopes.back().is_public = (*m)[1] == "public";
  };
  for (std::size_t k = 0; k < t.size();) {
    if (t[k] == '(' || t[k] == '[') k = behind(t, k);
    else if (t[k] == ';') {
      read_labels(k);
      see(k, false);
      start = ++k;
    } else if (t[k] == '}') {
      if (!scopes.empty()) scopes.pop_back();
      start = ++k;
    } else if (t[k] == '{') {
      read_labels(k);
      const std::string d = head(t.substr(start, k - start));
      std::smatch m;
      if (std::regex_search(d, m, opens)) {
        scopes.push_back({m[1], m[2], m[1] != "class"});
        start = ++k;
        continue;
      }
      k = behind(t, k);
      const std::string rest = t.substr(k, 40);
      if (std::regex_search(rest, goes_on) || std::regex_search(d, has_value) || d.find('(') == d.npos)
        continue;
      see(k, true);
      start = k;
    } else k++;
  }
  return names;
}

}  // namespace

TEST_CASE("nodiscard: every public function that gives something and does nothing else") {
  std::set<std::string> used;
  std::size_t headers = 0;
  for (const auto& file :
       fs::recursive_directory_iterator(fs::path(shardarray::testing::source_folder()) / "include")) {
    if (file.path().extension() != ".h") continue;
    headers++;
    for (const std::string& name : functions_without(text_of(file.path())))
      if (exceptions.contains(name)) used.insert(name);
      else CHECK_MESSAGE(false, file.path().filename().string() << ": " << name << " is not [[nodiscard]]");
  }
  CHECK(headers > 70);
  for (const auto& exception : exceptions)
    CHECK_MESSAGE(used.contains(exception.first),
                  exception.first << ", an exception, is no function without [[nodiscard]]");
}

TEST_CASE("nodiscard: which functions count") {
  const auto names = [](const std::string& code) {
    return functions_without("namespace shardarray {\n" + code + "}\n");
  };
  using Names = std::vector<std::string>;
  CHECK(names("SHARDARRAY_API Array f(int a = {});\n[[nodiscard]] Array g();\nvoid h(int);\n") == Names{"f"});
  CHECK(names("/// Array f();\n#define F Array f();\n[[nodiscard]] std::string g(char c = '(');\nint h(A a = "
              "\"(\");\n") == Names{"h"});
  CHECK(names("template <class T, class U = decltype(f(1 > 2))>\nrequires(sizeof(T) > 8) T f(T t) { return "
              "{t}; }\n"
              "template <class... A> requires(is<A> && ...)&&... [[nodiscard]] int g();\n"
              "template <class A> requires std::same_as<A, int> auto h(const A& a);\n") == Names{"f", "h"});
  CHECK(names("class C {\n  int hidden();\n\n public:\n  C() : a{1}, b(2) {}\n  explicit C(int);\n  ~C();\n  "
              "C(const C&) = delete;\n"
              "  C& operator=(const C&);\n  C& operator++();\n  operator int() const;\n  int operator*() "
              "const;\n  int all() const&;\n"
              "  friend bool operator==(const C&, const C&);\n  friend bool operator!=(const C&, const C&) = "
              "default;\n"
              "  bool operator<(int) const { return false; }\n  auto tried() const try { return 1; } catch "
              "(int) { throw; }\n"
              "  std::function<int(int)> f = nullptr;\n  static constexpr bool is = (1 < 2);\n  C& "
              "operator+=(int);\n\n private:\n"
              "  int hidden_too();\n};\nint behind();\n") ==
        Names{"C::operator*", "C::all", "C::operator!=", "C::operator<", "C::tried", "behind"});
  CHECK(names("namespace detail {\nint f();\nstruct S {\n  int operator()(int) const;\n  int g();\n};\n}\n"
              "int C::f() { return 1; }\nstd::ostream& operator<<(std::ostream&, int);\ninline constexpr "
              "struct is_fn {\n"
              "  bool operator()(int) const { return true; }\n} is{};\nenum class E { a, b = f(2) };\n"
              "template <class T> concept Is = requires(T t) {\n  t.f();\n};\nusing F = int(int);\n") ==
        Names{"S::operator()", "is_fn::operator()"});
}

}  // namespace nodiscard_test
