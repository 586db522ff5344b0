// Zip archives, with the extension to more than 4 GB (Zip64): the container of .npz.
// Source: pkware.com/documents/casestudies/APPNOTE.TXT.
#pragma once
#include <zlib.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/files/file_reader.h"
#include "lib/files/file_writer.h"

namespace shardarray::files {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t packed = 0, bytes = 0;  ///< compressed and uncompressed size
  std::uint64_t header = 0, begin = 0;  ///< offsets of its local header and of its bytes
};

/// All members. Throws IoError unless they are within the file, do not overlap, are stored or deflated, not encrypted, and have distinct
/// names; the sizes of deflated ones are plausible.
std::vector<ZipMember> zip_members(const FileReader& file);

/// Reads a member from its beginning to its end.
class ZipMemberReader {
 public:
  ZipMemberReader(const FileReader& file, const ZipMember& member);
  ~ZipMemberReader();
  ZipMemberReader(const ZipMemberReader&) = delete;
  ZipMemberReader& operator=(const ZipMemberReader&) = delete;
  /// Reads the next bytes. Throws IoError if there are not as many, and with the last ones if the checksum differs.
  void read(std::span<std::byte> to);

 private:
  bool inflate_some();
  void inflate_next(std::span<std::byte> to);
  [[noreturn]] void bad(const std::string& what) const;
  const FileReader& file_;
  const ZipMember& member_;
  std::uint64_t packed_done_ = 0, done_ = 0;
  std::uint32_t crc_ = 0;
  z_stream stream_{};
  std::vector<std::byte> packed_;
};

/// Writes members one after the other, then the directory.
class ZipWriter {
 public:
  explicit ZipWriter(FileWriter& file) : file_(file) {}
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;
  /// Begins a member, which end() closes.
  void begin(const std::string& name, bool deflated);
  void write(std::span<const std::byte> bytes);
  void end();
  /// Writes the directory, after the last member.
  void finish();

 private:
  void deflate_next(std::span<const std::byte> bytes, int flush);
  FileWriter& file_;
  std::vector<ZipMember> members_;
  z_stream stream_{};
  bool deflating_ = false;
  std::vector<std::byte> packed_;
};

}  // namespace shardarray::files
