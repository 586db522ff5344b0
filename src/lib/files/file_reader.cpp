#include "lib/files/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

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

}  // namespace shardarray::files
