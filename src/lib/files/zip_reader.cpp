// Reading zip archives.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <optional>
#include <set>

#include "base/count_text.h"
#include "lib/files/zip.h"

namespace shardarray::files {

namespace {

constexpr std::uint64_t end_bytes = 22, end64_bytes = 56, locator_bytes = 20, entry_bytes = 46,
                        header_bytes = 30;
constexpr std::uint64_t most_comment = 65535, most_directory = 256 << 20;
// A deflated byte expands to at most 1032 (zlib.net/zlib_tech.html).
constexpr std::uint64_t most_ratio = 1032;
constexpr const char* whole_archive = "An archive is expected, all of it. Fetch or write the file again.";

/// Consecutive little-endian numbers; the caller has checked that they are there.
class Numbers {
 public:
  explicit Numbers(std::string_view bytes) : bytes_(bytes) {}
  std::uint64_t next(std::size_t size) {
    std::uint64_t r = 0;
    std::memcpy(&r, bytes_.data() + at_, size);
    at_ += size;
    return r;
  }
  void skip(std::size_t size) { at_ += size; }
  std::size_t left() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

std::string part_of(const FileReader& file, std::uint64_t at, std::uint64_t bytes) {
  std::string r(bytes, '\0');
  file.read(at, r.data(), bytes);
  return r;
}

struct Directory {
  std::uint64_t at = 0, bytes = 0, entries = 0;
};

// The directory, from the end record, or from the Zip64 end record before it.
Directory find_directory(const FileReader& file) {
  const std::uint64_t size = file.size(), tail_bytes = std::min(size, end_bytes + most_comment);
  const std::string tail = part_of(file, size - tail_bytes, tail_bytes);
  std::size_t p = tail.size() < end_bytes ? tail.npos : tail.rfind("PK\5\6", tail.size() - end_bytes);
  while (p != tail.npos &&
         Numbers(std::string_view(tail).substr(p + 20)).next(2) != tail.size() - p - end_bytes)
    p = p == 0 ? tail.npos : tail.rfind("PK\5\6", p - 1);
  if (p == tail.npos) {
    file.refuse_other_kind(".npz archive", "A .npz file is an archive of .npy files.");
    file.fail("has no directory at its end", whole_archive);
  }
  Numbers n(std::string_view(tail).substr(p + 4));
  std::uint64_t disks = n.next(2) + n.next(2), here = n.next(2);
  Directory d;
  d.entries = n.next(2);
  d.bytes = n.next(4);
  d.at = n.next(4);
  std::uint64_t end = size - tail.size() + p;
  if (end >= locator_bytes + end64_bytes) {
    const std::string locator = part_of(file, end - locator_bytes, locator_bytes);
    if (locator.starts_with("PK\6\7")) {
      end -= locator_bytes + end64_bytes;
      const std::string end64 = part_of(file, end, end64_bytes);
      if (!end64.starts_with("PK\6\6")) file.fail("has no directory where its end says", whole_archive);
      Numbers m(std::string_view(end64).substr(16));
      disks = m.next(4) + m.next(4);
      here = m.next(8);
      d.entries = m.next(8);
      d.bytes = m.next(8);
      d.at = m.next(8);
    }
  }
  if (disks != 0 || here != d.entries) file.fail("is a part of an archive", whole_archive);
  if (d.bytes > most_directory || d.bytes > end || d.at != end - d.bytes || d.entries > d.bytes / entry_bytes)
    file.fail(fmt::format("has a directory of {} entries and {} at byte {}, which ends at byte {}", d.entries,
                          count_text(d.bytes, "byte"), d.at, end),
              whole_archive);
  return d;
}

// Reads from the Zip64 field the numbers that do not fit into their own fields.
void read_large(const FileReader& file, std::string_view extra, ZipMember& m) {
  constexpr std::uint64_t elsewhere = 0xffffffff;
  for (Numbers n(extra); n.left() >= 4;) {
    const std::uint64_t id = n.next(2), bytes = n.next(2);
    if (bytes > n.left()) break;
    if (id != 1) {
      n.skip(bytes);
      continue;
    }
    Numbers fields(extra.substr(extra.size() - n.left(), bytes));
    for (std::uint64_t* const value : {&m.bytes, &m.packed, &m.header})
      if (*value == elsewhere && fields.left() >= 8) *value = fields.next(8);
    return;
  }
  if (m.bytes == elsewhere || m.packed == elsewhere || m.header == elsewhere)
    file.fail(fmt::format("does not say how long `{}` is", shown(m.name)), whole_archive);
}

/// The next entry of the directory, from `at` on.
ZipMember read_entry(const FileReader& file, std::string_view directory, std::size_t& at) {
  const std::string_view rest = directory.substr(at);
  if (rest.size() < entry_bytes || !rest.starts_with("PK\1\2"))
    file.fail("has a directory with fewer entries than it says", whole_archive);
  Numbers n(rest.substr(8));
  const std::uint64_t flags = n.next(2), method = n.next(2);
  n.skip(4);
  ZipMember m;
  m.crc = static_cast<std::uint32_t>(n.next(4));
  m.packed = n.next(4);
  m.bytes = n.next(4);
  const std::uint64_t name = n.next(2), extra = n.next(2), comment = n.next(2);
  n.skip(8);
  m.header = n.next(4);
  if (rest.size() - entry_bytes < name + extra + comment)
    file.fail("has a directory with fewer entries than it says", whole_archive);
  m.name = rest.substr(entry_bytes, name);
  read_large(file, rest.substr(entry_bytes + name, extra), m);
  at += entry_bytes + name + extra + comment;
  if ((flags & 1) != 0 || (method != 0 && method != 8))
    file.fail(fmt::format("`{}` is {}", shown(m.name), flags & 1 ? "encrypted" : "packed in another way"),
              "Members are stored or deflated. Write the file again with numpy.savez.");
  m.deflated = method == 8;
  const bool possible = m.deflated ? m.bytes / most_ratio <= m.packed : m.bytes == m.packed;
  if (!possible)
    file.fail(fmt::format("`{}` is said to be {}, {} in the file", shown(m.name), count_text(m.bytes, "byte"),
                          m.packed),
              "No packing does that. Fetch the file again.");
  return m;
}

/// Finds the bytes of a member after its local header. Throws unless all of it ends before `end`.
void find_bytes(const FileReader& file, ZipMember& m, std::uint64_t end) {
  const auto bad = [&] {
    file.fail(
        fmt::format("`{}` does not stand at byte {}, where the directory says", shown(m.name), m.header),
        whole_archive);
  };
  if (m.header > end || end - m.header < header_bytes) bad();
  const std::string header = part_of(file, m.header, header_bytes);
  if (!header.starts_with("PK\3\4")) bad();
  Numbers n(std::string_view(header).substr(8));
  const bool same_method = n.next(2) == (m.deflated ? 8 : 0);
  n.skip(16);
  const std::uint64_t name = n.next(2), extra = n.next(2), room = end - m.header - header_bytes;
  if (!same_method || name != m.name.size() || room < name + extra || room - name - extra < m.packed ||
      part_of(file, m.header + header_bytes, name) != m.name)
    bad();
  m.begin = m.header + header_bytes + name + extra;
}

}  // namespace

std::vector<ZipMember> zip_members(const FileReader& file) {
  const Directory d = find_directory(file);
  const std::string text = part_of(file, d.at, d.bytes);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  std::size_t at = 0;
  for (std::uint64_t k = 0; k < d.entries; k++) {
    members.push_back(read_entry(file, text, at));
    if (!names.insert(members.back().name).second)
      file.fail(fmt::format("has two members `{}`", shown(members.back().name)),
                "Every array has a name of its own. Write the file again.");
  }
  if (at != text.size()) file.fail("has a directory with more entries than it says", whole_archive);
  std::stable_sort(members.begin(), members.end(),
                   [](const auto& a, const auto& b) { return a.header < b.header; });
  for (std::size_t k = 0; k < members.size(); k++)
    find_bytes(file, members[k], k + 1 < members.size() ? members[k + 1].header : d.at);
  return members;
}

ZipMemberReader::ZipMemberReader(const FileReader& file, const ZipMember& member)
    : file_(file), member_(member) {
  if (!member.deflated) return;
  packed_.resize(1 << 16);
  if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
}
ZipMemberReader::~ZipMemberReader() {
  if (member_.deflated) inflateEnd(&stream_);
}

void ZipMemberReader::bad(const std::string& what) const {
  file_.fail(fmt::format("`{}` {}", shown(member_.name), what),
             "Its bytes are not those that were written. Fetch the file again.");
}

void ZipMemberReader::read(std::span<std::byte> to) {
  if (to.size() > member_.bytes - done_)
    bad(fmt::format("ends at byte {}, where {} more are to be read", member_.bytes, to.size()));
  if (member_.deflated) inflate_next(to);
  else file_.read(member_.begin + done_, to.data(), to.size());
  done_ += to.size();
  crc_ =
      static_cast<std::uint32_t>(crc32_z(crc_, reinterpret_cast<const unsigned char*>(to.data()), to.size()));
  if (done_ == member_.bytes && crc_ != member_.crc)
    bad(fmt::format("has the checksum {:08x} instead of {:08x}", crc_, member_.crc));
}

// Inflates as much as fits into the stream's output; returns whether the stream has ended.
bool ZipMemberReader::inflate_some() {
  if (stream_.avail_in == 0) {
    const auto n =
        static_cast<std::size_t>(std::min<std::uint64_t>(packed_.size(), member_.packed - packed_done_));
    file_.read(member_.begin + packed_done_, packed_.data(), n);
    packed_done_ += n;
    stream_.next_in = reinterpret_cast<unsigned char*>(packed_.data());
    stream_.avail_in = static_cast<unsigned>(n);
  }
  const int code = inflate(&stream_, Z_NO_FLUSH);
  if (code == Z_MEM_ERROR) throw std::bad_alloc();
  if (code == Z_BUF_ERROR) bad("is cut off");
  if (code != Z_OK && code != Z_STREAM_END)
    bad(fmt::format("is damaged ({})", stream_.msg ? stream_.msg : "no deflated bytes"));
  return code == Z_STREAM_END;
}

void ZipMemberReader::inflate_next(std::span<std::byte> to) {
  stream_.next_out = reinterpret_cast<unsigned char*>(to.data());
  stream_.avail_out = static_cast<unsigned>(to.size());
  bool at_end = false;
  while (stream_.avail_out > 0) {
    if (at_end) bad("unpacks to fewer bytes than the directory says");
    at_end = inflate_some();
  }
  if (done_ + to.size() < member_.bytes) return;
  unsigned char beyond = 0;
  stream_.next_out = &beyond;
  stream_.avail_out = 1;
  while (!at_end) {
    at_end = inflate_some();
    if (stream_.avail_out == 0) bad("unpacks to more bytes than the directory says");
  }
  if (stream_.avail_in > 0 || packed_done_ < member_.packed) bad("has bytes behind its end");
}

}  // namespace shardarray::files
