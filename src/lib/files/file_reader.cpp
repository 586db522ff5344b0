#include "lib/files/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "shardarray/error.h"

namespace shardarray::files {

void fail(const char* function, const std::string& path, const std::string& what,
          const char* rule_and_remedy) {
  throw IoError(fmt::format("{}: {}: {}. {}", function, path, what, rule_and_remedy));
}

std::string shown(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string r;
  for (const char c : text.substr(0, most))
    if (c >= ' ' && c <= '~') r += c;
    else r += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text.size() > most ? r + "..." : r;
}

FileReader::FileReader(const char* function, std::string path)
    : function_(function),
      path_(std::move(path)),
      file_(open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {  // a FIFO does not block
  struct stat s {};
  if (!file_ || fstat(file_.get(), &s) != 0)
    fail(fmt::format("cannot be opened ({})", std::strerror(errno)),
         "The file must exist and be readable. Check the path.");
  if (!S_ISREG(s.st_mode))
    fail("is no regular file", "Folders, devices and pipes have no size and no end. Name a file.");
  size_ = static_cast<std::uint64_t>(s.st_size);
  posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
}

void FileReader::read(std::uint64_t at, void* to, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n =
        pread(file_.get(), static_cast<char*>(to) + done, bytes - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      fail(fmt::format("cannot be read at byte {} ({})", at + done, std::strerror(errno)),
           "All of it must be readable. Copy it to another disk.");
    if (n == 0)
      fail(fmt::format("ends at byte {}, where {} more are to be read", at + done, bytes - done),
           "A file must not be shortened while it is read. Read it when it is complete.");
    done += static_cast<std::size_t>(n);
  }
}

namespace {

struct FileKind {
  const char* name;  // null: not a known kind
  const char* read_it;
};

// The kind of a file of `size` bytes that begins with `start`.
FileKind kind_of(std::string_view start, std::uint64_t size) {
  constexpr std::size_t length_bytes = 8;
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), std::min(start.size(), length_bytes));
  const bool is_text = std::all_of(start.begin(), start.end(), [](char c) {
    return (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
  });
  if (start.starts_with("PK\3\4") || start.starts_with("PK\5\6"))
    return start.find(".npy") == start.npos
               ? FileKind{"zip archive", "If PyTorch wrote it, let it save safetensors."}
               : FileKind{".npz archive", "Read it with load_npz()."};
  if (start.starts_with("\x93NUMPY")) return {".npy file", "Read it with load_npy()."};
  if (start.size() > length_bytes && start[length_bytes] == '{' && length <= size - length_bytes)
    return {"safetensors file", "Read it with load_safetensors(), a tree with load()."};
  if (is_text && !start.empty()) return {"text file", "If it is a table, read it with data::load_csv()."};
  return {nullptr, nullptr};
}

}  // namespace

void FileReader::refuse_other_kind(const char* own, const char* rule) const {
  std::string start(std::min<std::uint64_t>(size_, 512), '\0');
  read(0, start.data(), start.size());
  const FileKind kind = kind_of(start, size_);
  const std::string_view name = kind.name ? kind.name : own, wanted = own;
  const bool are_archives = name.ends_with("archive") && wanted.ends_with("archive");
  if (name != wanted && !are_archives)
    fail(fmt::format("looks like a {}", kind.name), fmt::format("{} {}", rule, kind.read_it).c_str());
}

}  // namespace shardarray::files
