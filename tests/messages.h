// Messages without their places, which errors_test.cpp pins.
#pragma once
#include <doctest/doctest.h>

#include <string>

#include "shardarray/error.h"

namespace shardarray::testing {

/// The text of the E that f throws, without a place.
template <class E, class F> std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    const auto* const own = dynamic_cast<const Error*>(&e);
    return own ? own->text() : e.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace shardarray::testing

/// As CHECK_THROWS_WITH_AS of doctest, without the place.
#define CHECK_SAYS(expression, text, type) \
  CHECK(shardarray::testing::message_of<type>([&] { static_cast<void>(expression); }) == (text))
