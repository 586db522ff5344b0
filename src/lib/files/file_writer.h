// Writes a file as a whole or not at all: under a temporary name in the same folder, renamed when it is complete.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace shardarray::files {

class FileWriter {
 public:
  /// Begins a file. Links are followed: their target is replaced. Throws IoError in the name of `function`, which outlives the object, if
  /// the path is a folder or a device, or nothing can be written beside it.
  FileWriter(const char* function, std::string path);
  /// Removes what was written, unless it was committed.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  /// Appends. Throws IoError, also if the disk is full.
  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  /// Overwrites what was written at `at`.
  void write_at(std::uint64_t at, const std::string& text);
  std::uint64_t position() const { return position_; }
  /// Renames the file to its place, with the mode of the one that it replaces. `durable`: it is on the disk (fsync) when this returns.
  void commit(bool durable);

 private:
  [[noreturn]] void fail_by_errno(const char* what) const;
  const char* function_;
  std::string path_;                 ///< as it was given
  std::string target_, unfinished_;  ///< links resolved, and the temporary file; empty: nothing to remove
  Descriptor file_;
  std::uint64_t position_ = 0;
};

}  // namespace shardarray::files
