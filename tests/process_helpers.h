// What tests of processes, folders and hostile arguments share.
#pragma once
#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "shardarray/error.h"

namespace shardarray::testing {

/// A new folder that goes with the object.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::filesystem::path& in = std::filesystem::temp_directory_path()) {
    std::string pattern = (in / "shardarray-XXXXXX").string();
    REQUIRE((mkdtemp(pattern.data()) != nullptr));
    path = std::filesystem::canonical(pattern).string();
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path + "/" + name; }
  std::size_t count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path), {}));
  }
  std::string path;
};

inline std::filesystem::path own_program() { return std::filesystem::read_symlink("/proc/self/exe"); }

struct Ended {
  int status;
  std::string text;
};
/// A process of this program, or of a copy or a link to it, that runs one test case; `settings` as env takes them.
inline Ended run_case(const std::string& name, const std::string& settings,
                      const std::string& program = own_program()) {
  const std::string command =
      "env " + settings + " '" + program + "' --no-intro --no-skip --test-case='" + name + "' 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  for (char line[512]; std::fgets(line, sizeof line, pipe) != nullptr;) text += line;
  return {pclose(pipe), text};
}

/// The message of what f throws; empty when it returns. Everything that is no Error, or an InternalError, fails the test.
template <class F> std::string thrown(const F& f) {
  try {
    f();
  } catch (const InternalError& e) {
    FAIL_CHECK("InternalError: ", e.what());
    return e.what();
  } catch (const Error& e) { return e.text(); } catch (const std::exception& e) {
    FAIL_CHECK("no sa::Error: ", e.what());
  }
  return "";
}

}  // namespace shardarray::testing
