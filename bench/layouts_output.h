// Writes the output of matmul_layouts to stdout and to files: all of it, or an exception says what is missing.
#pragma once
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace bench {

constexpr std::size_t kUsualWidth = 112;  ///< characters in a line

namespace detail {
/// 0, or the errno of what went wrong.
inline int write_all(std::FILE* to, const std::string& text) {
  errno = 0;
  if (std::fwrite(text.data(), 1, text.size(), to) == text.size() && std::fflush(to) == 0) return 0;
  return errno == 0 ? EIO : errno;
}
}  // namespace detail

/// Throws std::runtime_error.
inline void write_stdout(const std::string& text, std::FILE* to = stdout) {
  if (const int error = detail::write_all(to, text))
    throw std::runtime_error(
        fmt::format("standard output: it cannot be written ({}). Make room there, or send it elsewhere.",
                    std::strerror(error)));
}
/// The file of `option`. Throws std::runtime_error.
inline void write_file(const char* option, const std::string& path, const std::string& text) {
  int error = 0;
  if (std::FILE* const file = std::fopen(path.c_str(), "w")) {
    error = detail::write_all(file, text);
    if (std::fclose(file) != 0 && error == 0) error = errno;
  } else {
    error = errno;
  }
  if (error != 0)
    throw std::runtime_error(
        fmt::format("{}: '{}' cannot be written ({}). Make room there, or name a file elsewhere.", option,
                    path, std::strerror(error)));
}

/// Characters in a line of `to`: the terminal's width, but at least the usual one.
inline std::size_t line_width(std::FILE* to) {
  winsize size{};
  const bool known = isatty(fileno(to)) == 1 && ioctl(fileno(to), TIOCGWINSZ, &size) == 0;
  return known ? std::max<std::size_t>(kUsualWidth, size.ws_col) : kUsualWidth;
}

/// Runs all of `steps`, even after one that throws. Throws std::runtime_error with all their messages.
inline void run_all(std::initializer_list<std::function<void()>> steps) {
  std::string said;
  for (const std::function<void()>& step : steps) try {
      step();
    } catch (const std::exception& e) { said += (said.empty() ? "" : "\n") + std::string(e.what()); }
  if (!said.empty()) throw std::runtime_error(said);
}

}  // namespace bench
