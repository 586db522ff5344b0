// A file that is written whole or not at all: under a name of its own beside its place, which it takes when it is complete.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/descriptor.h"

namespace shardarray::files {

class FileWriter {
 public:
  /// Begins it. A link is followed: what it names is replaced. Throws IoError in the name of `function`, which outlives the
  /// object, where the path is that of a folder or a device, or nothing can be written beside it.
  FileWriter(const char* function, std::string path);
  /// Removes what was written, unless it was committed.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  /// Appends. Throws IoError, where the disk is full too.
  void write(std::span<const std::byte> bytes);
  void write(const std::string& text) { write(std::as_bytes(std::span(text))); }
  /// Writes over what stands at `at`, which was written before.
  void write_at(std::uint64_t at, const std::string& text);
  std::uint64_t position() const { return position_; }
  /// The file takes its place, with the mode of the one that stood there. `durable`: when this returns the disk has it, whatever
  /// happens to the machine.
  void commit(bool durable);

 private:
  [[noreturn]] void fail_by_errno(const char* what) const;
  const char* function_;
  std::string path_;                 ///< as it was given
  std::string target_, unfinished_;  ///< the file behind links, and what becomes it; empty: nothing to remove
  Descriptor file_;
  std::uint64_t position_ = 0;
};

}  // namespace shardarray::files
