// Texts of the project's files, for tests that read them.
#pragma once
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace shardarray::testing {

/// All of a file.
inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace shardarray::testing
