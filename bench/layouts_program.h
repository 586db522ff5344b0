// matmul_layouts as a program: its name, what it ends with and says then.
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

/// What a program ends with, and what it says on stderr then.
struct End {
  int status = 0;
  std::string said = {};
};
/// Of the program whose argv[0] is `path`. Lines of the library's caller, which are the program's own, are left out.
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

/// False: --help was asked for, and is written. Throws CLI::ParseError.
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
