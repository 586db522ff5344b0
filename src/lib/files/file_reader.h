// Reads regular files at any offset, with pread() instead of mmap(): if another program truncates the file meanwhile, that is an error
// and no SIGBUS. A map would gain little: pread() also copies directly from the page cache into a device's memory.
#pragma once
#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace shardarray::files {

/// Throws IoError `<function>: <path>: <what>. <rule and remedy>`.
[[noreturn]] void fail(const char* function, const std::string& path, const std::string& what,
                       const char* rule_and_remedy);
/// Text of a file for a message: non-printable bytes as \xNN, shortened if long.
std::string shown(std::string_view text);

class FileReader {
 public:
  /// Opens it. Throws IoError in the name of `function`, which outlives the object, unless it is a regular file.
  FileReader(const char* function, std::string path);
  std::uint64_t size() const { return size_; }
  /// Reads `bytes` bytes from `at` on. Throws IoError if the file ends before.
  void read(std::uint64_t at, void* to, std::size_t bytes) const;
  [[noreturn]] void fail(const std::string& what, const char* rule_and_remedy) const {
    files::fail(function_, path_, what, rule_and_remedy);
  }
  /// Throws IoError if the file begins like one that another function reads: `own` is the kind that is wanted (`.npy file`), `rule` what
  /// such a file is.
  void refuse_other_kind(const char* own, const char* rule) const;
  const char* function() const { return function_; }
  const std::string& path() const { return path_; }

 private:
  const char* function_;
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
};

}  // namespace shardarray::files
