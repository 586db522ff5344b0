#include "base/env.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

#include "shardarray/error.h"

namespace shardarray {

std::int64_t env_int(const char* name, std::int64_t fallback, std::int64_t lo, std::int64_t hi) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  const std::string_view s = text;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size() || value < lo || value > hi)
    throw Error(
        fmt::format("environment: {}={} is not understood. It must be an integer from {} to {}. "
                    "Correct the variable or unset it.",
                    name, s, lo, hi));
  return value;
}

bool env_flag(const char* name, bool fallback) {
  const char* text = std::getenv(name);
  if (!text || !*text) return fallback;
  const std::string_view s = text;
  for (std::string_view yes : {"1", "true", "on", "yes"})
    if (s == yes) return true;
  for (std::string_view no : {"0", "false", "off", "no"})
    if (s == no) return false;
  throw Error(fmt::format(
      "environment: {}={} is not understood. It must be 1 or 0 (true, on, yes or false, off, no). "
      "Correct the variable or unset it.",
      name, s));
}

std::int64_t comm_timeout() { return 1000 * env_int("SHARDARRAY_COMM_TIMEOUT", 300, 0, 1'000'000); }

// Returns a constant: the variable's text may change later, and nothing may need destruction at exit.
static const char* debug_word() {
  const char* const text = std::getenv("SHARDARRAY_DEBUG");
  const std::string_view word = text ? text : "";
  for (const char* known : {"", "2", "time", "0"})
    if (word == known) return known;
  fmt::print(stderr,
             "shardarray: environment: SHARDARRAY_DEBUG={} is not understood. It is 2 or time. Correct the "
             "variable or unset it.\n",
             word);
  return "";
}

bool debug_is(const char* word) {
  static const char* const said = debug_word();  // static: warns once
  return std::string_view(said) == word;
}

}  // namespace shardarray
