// What a test does with the message of an exception.
#pragma once
#include <string>

namespace shardarray::testing {

template <class E, class F> std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) { return e.what(); }
  return "nothing was thrown";
}
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace shardarray::testing
