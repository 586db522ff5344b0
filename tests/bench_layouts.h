// What tests of bench/matmul_layouts share.
#pragma once
#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "../bench/layouts_options.h"

namespace bench_layouts_test {

using namespace bench;

// Throws its message away unless it contains `text`.
template <class F> void check_message(const F& f, const std::string& text) {
  std::string message;
  try {
    f();
  } catch (const std::invalid_argument& e) { message = e.what(); }
  CHECK_MESSAGE(message.find(text) != message.npos, "'" << message << "' lacks '" << text << "'");
}

inline LayoutOptions parsed(const std::string& line) {
  LayoutOptions o;
  CLI::App app;
  add_options(app, o);
  app.parse(line);
  check(o);
  return o;
}
// What the program says of these options.
inline std::string refusal(const std::string& line) {
  try {
    parsed(line);
  } catch (const CLI::ParseError& e) { return e.what(); } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline ProductLayout layout(const std::string& text, const Product& p) {
  return select_layouts({text}, p.mesh).at(0);
}

}  // namespace bench_layouts_test
