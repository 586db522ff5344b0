#include "lib/files/file_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "lib/files/file_reader.h"

namespace shardarray::files {

namespace {

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

// The file that a path names, with links resolved.
std::string target_of(const std::string& path) {
  std::error_code failed;
  std::string target = std::filesystem::weakly_canonical(path, failed);
  return failed ? path : target;
}

}  // namespace

void FileWriter::fail_by_errno(const char* what) const {
  fail(function_, path_, fmt::format("{} ({})", what, std::strerror(errno)),
       "A file is written whole or not at all, and what stood there is as it was. Free space, or name a "
       "folder that exists and is yours.");
}

FileWriter::FileWriter(const char* function, std::string path)
    : function_(function), path_(std::move(path)), target_(target_of(path_)), file_(-1) {
  struct stat s {};
  const bool exists = stat(target_.c_str(), &s) == 0;
  if (exists && !S_ISREG(s.st_mode))
    fail(function_, path_, "is no regular file",
         "A file takes the place of what stands there. Name a file in a folder, not the folder or a device.");
  std::string unfinished = unfinished_name(folder_of(target_) + "/.shardarray");
  file_ = Descriptor(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file_) fail_by_errno("cannot be written");
  unfinished_ = std::move(unfinished);
  if (exists) (void)fchmod(file_.get(), s.st_mode & 0777);
}

FileWriter::~FileWriter() {
  if (!unfinished_.empty()) unlink(unfinished_.c_str());
}

void FileWriter::write(std::span<const std::byte> bytes) {
  const NoSizeSignal quiet;
  if (!write_all(file_.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()}))
    fail_by_errno(fmt::format("cannot be written beyond byte {}", position_).c_str());
  position_ += bytes.size();
}

void FileWriter::write_at(std::uint64_t at, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n =
        pwrite(file_.get(), text.data() + done, text.size() - done, static_cast<off_t>(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_by_errno("cannot be written");
    done += static_cast<std::size_t>(n);
  }
}

void FileWriter::commit(bool durable) {
  if (durable && fsync(file_.get()) != 0) fail_by_errno("cannot be written");
  if (!file_.close() || std::rename(unfinished_.c_str(), target_.c_str()) != 0)
    fail_by_errno("cannot be written");
  unfinished_.clear();
  if (durable && !sync_folder(folder_of(target_)))
    fail(function_, path_,
         fmt::format("is written, but the disk may not have its name ({})", std::strerror(errno)),
         "Look at the disk, and write it again.");
}

}  // namespace shardarray::files
