// Writing zip archives.
#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "lib/files/zip.h"

namespace shardarray::files {

namespace {

constexpr std::uint64_t most_short = 0xfffffffe;  // larger numbers go to the Zip64 field
constexpr unsigned version = 45;                  // the first with that field
constexpr unsigned first_of_1980 = 0x21;          // no timestamps: equal arrays give equal files

void put_number(std::string& to, std::uint64_t value, std::size_t bytes) {
  for (std::size_t k = 0; k < bytes; k++) to += static_cast<char>(value >> 8 * k & 255);
}
std::uint64_t short_or_all(std::uint64_t value) { return value > most_short ? 0xffffffff : value; }

// What both headers of a member share, after the versions: flags, method, time, checksum, sizes, length of the name.
void put_member(std::string& to, const ZipMember& m, std::uint64_t packed, std::uint64_t bytes) {
  const bool is_ascii = std::all_of(m.name.begin(), m.name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
  put_number(to, is_ascii ? 0 : 0x800, 2);  // else UTF-8
  put_number(to, m.deflated ? 8 : 0, 2);
  put_number(to, 0, 2);
  put_number(to, first_of_1980, 2);
  put_number(to, m.crc, 4);
  put_number(to, packed, 4);
  put_number(to, bytes, 4);
  put_number(to, m.name.size(), 2);
}

// The Zip64 field of a local header, for sizes that are known only at the member's end.
std::string size_field(const ZipMember& m) {
  std::string r;
  put_number(r, 1, 2);
  put_number(r, 16, 2);
  put_number(r, m.bytes, 8);
  put_number(r, m.packed, 8);
  return r;
}

std::string directory_entry(const ZipMember& m) {
  std::string large;
  for (const std::uint64_t value : {m.bytes, m.packed, m.header})
    if (value > most_short) put_number(large, value, 8);
  if (!large.empty()) {
    std::string field;
    put_number(field, 1, 2);
    put_number(field, large.size(), 2);
    large = field + large;
  }
  std::string r = "PK\1\2";
  put_number(r, 3 << 8 | version, 2);  // made on Unix
  put_number(r, version, 2);
  put_member(r, m, short_or_all(m.packed), short_or_all(m.bytes));
  put_number(r, large.size(), 2);
  put_number(r, 0, 2 + 2 + 2);       // no comment, disk 0, no internal attributes
  put_number(r, 0100644u << 16, 4);  // a regular file
  put_number(r, short_or_all(m.header), 4);
  return r + m.name + large;
}

}  // namespace

ZipWriter::~ZipWriter() {
  if (deflating_) deflateEnd(&stream_);
}

void ZipWriter::begin(const std::string& name, bool deflated) {
  ZipMember m{.name = name, .deflated = deflated, .header = file_.position()};
  std::string header = "PK\3\4";
  put_number(header, version, 2);
  put_member(header, m, 0xffffffff, 0xffffffff);
  const std::string sizes = size_field(m);
  put_number(header, sizes.size(), 2);
  file_.write(header + m.name + sizes);
  m.begin = file_.position();
  members_.push_back(std::move(m));
  if (!deflated) return;
  packed_.resize(1 << 16);
  stream_ = {};
  if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::bad_alloc();
  deflating_ = true;
}

void ZipWriter::deflate_next(std::span<const std::byte> bytes, int flush) {
  stream_.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
  stream_.avail_in = static_cast<unsigned>(bytes.size());
  do {
    stream_.next_out = reinterpret_cast<unsigned char*>(packed_.data());
    stream_.avail_out = static_cast<unsigned>(packed_.size());
    deflate(&stream_, flush);
    file_.write({packed_.data(), packed_.size() - stream_.avail_out});
  } while (stream_.avail_out == 0);
}

void ZipWriter::write(std::span<const std::byte> bytes) {
  ZipMember& m = members_.back();
  m.bytes += bytes.size();
  m.crc = static_cast<std::uint32_t>(
      crc32_z(m.crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  if (m.deflated) deflate_next(bytes, Z_NO_FLUSH);
  else file_.write(bytes);
}

void ZipWriter::end() {
  ZipMember& m = members_.back();
  if (m.deflated) {
    deflate_next({}, Z_FINISH);
    deflateEnd(&stream_);
    deflating_ = false;
  }
  m.packed = file_.position() - m.begin;
  std::string crc;
  put_number(crc, m.crc, 4);
  file_.write_at(m.header + 14, crc);
  const std::string sizes = size_field(m);
  file_.write_at(m.begin - sizes.size(), sizes);
}

void ZipWriter::finish() {
  const std::uint64_t at = file_.position();
  for (const ZipMember& m : members_) file_.write(directory_entry(m));
  const std::uint64_t bytes = file_.position() - at, count = members_.size();
  std::string end;
  const bool large = count >= 0xffff || bytes > most_short || at > most_short;
  if (large) {
    end = "PK\6\6";
    put_number(end, 44, 8);  // the size of the rest of this record
    put_number(end, 3 << 8 | version, 2);
    put_number(end, version, 2);
    put_number(end, 0, 4 + 4);  // disk numbers
    put_number(end, count, 8);
    put_number(end, count, 8);
    put_number(end, bytes, 8);
    put_number(end, at, 8);
    end += "PK\6\7";
    put_number(end, 0, 4);
    put_number(end, at + bytes, 8);
    put_number(end, 1, 4);
  }
  end += "PK\5\6";
  put_number(end, 0, 2 + 2);
  put_number(end, std::min<std::uint64_t>(count, 0xffff), 2);
  put_number(end, std::min<std::uint64_t>(count, 0xffff), 2);
  put_number(end, short_or_all(bytes), 4);
  put_number(end, short_or_all(at), 4);
  put_number(end, 0, 2);
  file_.write(end);
}

}  // namespace shardarray::files
