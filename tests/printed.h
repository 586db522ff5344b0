// What is written to standard output.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

namespace shardarray::testing {

/// Keeps what is written to standard output, from here on until text().
class Printed {
 public:
  Printed() : file_(std::tmpfile()) {
    std::fflush(stdout);
    saved_ = dup(STDOUT_FILENO);
    dup2(fileno(file_), STDOUT_FILENO);
  }
  ~Printed() {
    if (saved_ >= 0) text();
    std::fclose(file_);
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;
  std::string text() {
    std::fflush(stdout);
    dup2(saved_, STDOUT_FILENO);
    close(std::exchange(saved_, -1));
    std::string t(1 << 20, '\0');
    t.resize(static_cast<std::size_t>(std::max<ssize_t>(pread(fileno(file_), t.data(), t.size(), 0), 0)));
    return t;
  }

 private:
  FILE* file_;
  int saved_;
};

}  // namespace shardarray::testing
