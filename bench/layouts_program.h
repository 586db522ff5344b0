// matmul_layouts as a program: its name, exit status and last message.
#pragma once
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>

#include "layouts_output.h"
#include "shardarray/error.h"

namespace bench {

constexpr int kSlower = 1;  ///< of `compare --fail-above`
constexpr int kFailed = 2;
constexpr char kStatuses[] =
    "It ends with status 0, with 1 where compare --fail-above finds a slower layout, with 2 after an error.";

/// A program's exit status, and its last message to stderr.
struct End {
  int status = 0;
  std::string said = {};
};
/// Runs the program whose argv[0] is `path`. Its messages leave out the caller's line, which is in the program itself.
inline End run_program(const char* path, const std::function<int()>& program) {
  const auto failed = [&](const std::string& why) {
    const std::string name = std::filesystem::path(path == nullptr ? "" : path).filename();
    return End{kFailed, fmt::format("{}: {}\n", name.empty() ? "matmul_layouts" : name, why)};
  };
  try {
    return {program()};
  } catch (const CLI::ParseError& e) {
    return failed(std::string(e.what()) + "\nRun with --help for more information.");
  } catch (const shardarray::Error& e) { return failed(e.text()); } catch (const std::exception& e) {
    return failed(e.what());
  }
}

/// False: --help was given and its text written. Throws CLI::ParseError.
inline bool parse(CLI::App& app, int argc, const char* const* argv, std::FILE* out = stdout) {
  app.footer(kStatuses);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    std::ostringstream help, none;
    app.exit(e, help, none);
    write_stdout(help.str(), out);
    return false;
  }
  return true;
}

}  // namespace bench
