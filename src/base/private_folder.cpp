#include "base/private_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <deque>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/descriptor.h"

namespace shardarray {
namespace {

bool is_ours(const struct stat& s) { return s.st_uid == geteuid() && (s.st_mode & (S_IWGRP | S_IWOTH)) == 0; }

/// Walks to a folder, component by component.
class FolderWalk {
 public:
  FolderWalk(const std::string& path, PrivateFolder::Missing missing) : missing_(missing), at_(-1) {
    std::error_code failed;
    const std::filesystem::path whole = std::filesystem::absolute(path, failed);
    if (!failed) push(whole.string());
  }

  /// The folder, opened for reading; invalid if missing or refused.
  Descriptor run() {
    if (rest_.empty() || !from_root()) return Descriptor(-1);
    while (!rest_.empty()) {
      const std::string part = std::move(rest_.front());
      rest_.pop_front();
      if (!step(part)) return Descriptor(-1);
    }
    Descriptor folder(openat(at_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    struct stat s {};
    if (!folder || fstat(folder.get(), &s) != 0) return Descriptor(-1);
    if (s.st_uid != geteuid()) refusal = fmt::format("'{}' belongs to another user", shown_);
    else if (!is_ours(s)) refusal = fmt::format("others can write to '{}'", shown_);
    return refusal.empty() ? std::move(folder) : Descriptor(-1);
  }
  std::string refusal;

 private:
  void push(const std::string& path) {
    std::deque<std::string> parts;
    for (std::size_t from = 0; from < path.size();) {
      const std::size_t to = std::min(path.find('/', from), path.size());
      if (to > from) parts.push_back(path.substr(from, to - from));
      from = to + 1;
    }
    if (parts.empty()) parts.emplace_back(".");
    rest_.insert(rest_.begin(), parts.begin(), parts.end());
  }

  bool from_root() {
    at_ = Descriptor(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    shown_.clear();
    struct stat s {};
    return at_ && fstat(at_.get(), &s) == 0 && trusted(s, "/");
  }

  /// Whether nobody else can change the entries of a folder, or the target of a link.
  bool trusted(const struct stat& s, const std::string& shown) {
    const bool link = S_ISLNK(s.st_mode);
    if (s.st_uid != 0 && s.st_uid != geteuid()) refusal = fmt::format("'{}' belongs to another user", shown);
    else if (!link && (s.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (s.st_mode & S_ISVTX) == 0)
      refusal = fmt::format("others can write to '{}'", shown);
    return refusal.empty();
  }

  bool step(const std::string& part) {
    constexpr int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    Descriptor next(openat(at_.get(), part.c_str(), flags));
    if (!next && errno == ENOENT && missing_ == PrivateFolder::Missing::make) {
      mkdirat(at_.get(), part.c_str(), 0700);  // another process may create it first
      next = Descriptor(openat(at_.get(), part.c_str(), flags));
    }
    struct stat s {};
    if (!next || fstat(next.get(), &s) != 0) return false;
    const std::string shown = shown_ + "/" + part;
    if (!trusted(s, shown)) return false;
    if (S_ISLNK(s.st_mode)) return follow(next.get());
    at_ = std::move(next);
    shown_ = shown;
    return S_ISDIR(s.st_mode);
  }

  bool follow(int link) {
    constexpr int most_links = 40;
    char target[PATH_MAX];
    const ssize_t n = readlinkat(link, "", target, sizeof target);
    if (n <= 0 || n == static_cast<ssize_t>(sizeof target) || ++links_ > most_links) return false;
    const std::string to(target, static_cast<std::size_t>(n));
    push(to);
    return to[0] != '/' || from_root();
  }

  PrivateFolder::Missing missing_;
  Descriptor at_;
  std::string shown_;  // path of `at_`
  std::deque<std::string> rest_;
  int links_ = 0;
};

}  // namespace

PrivateFolder::PrivateFolder(const std::string& path, Missing missing) {
  if (path.empty()) return;
  FolderWalk walk(path, missing);
  Descriptor folder = walk.run();
  if (!walk.refusal.empty()) refusal_ = fmt::format("the folder '{}' is not used: {}", path, walk.refusal);
  struct stat s {};
  if (!folder || fstat(folder.get(), &s) != 0) return;
  device_ = s.st_dev;
  node_ = s.st_ino;
  descriptor_ = folder.release();
}

PrivateFolder::~PrivateFolder() {
  struct stat s {};
  if (is_open(s)) ::close(descriptor_);  // otherwise the number may have been reused
}

bool PrivateFolder::is_open(struct stat& s) const {
  return descriptor_ >= 0 && fstat(descriptor_, &s) == 0 && s.st_dev == device_ && s.st_ino == node_;
}

bool PrivateFolder::usable() const {
  struct stat s {};
  return is_open(s) && is_ours(s);
}

std::optional<std::vector<char>> PrivateFolder::read(const std::string& name, std::uint64_t most) const {
  if (!usable()) return std::nullopt;
  const Descriptor file(
      openat(descriptor_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat s {};
  if (!file || fstat(file.get(), &s) != 0 || !S_ISREG(s.st_mode) || !is_ours(s) ||
      static_cast<std::uint64_t>(s.st_size) > most)
    return std::nullopt;
  std::vector<char> all(static_cast<std::size_t>(s.st_size));
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t n = ::read(file.get(), all.data() + done, all.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return std::nullopt;
    done += static_cast<std::size_t>(n);
  }
  return all;
}

bool PrivateFolder::write(const std::string& name, std::span<const std::span<const char>> parts) const {
  if (!usable()) return false;
  const std::string fresh = unfinished_name(name);
  Descriptor file(openat(descriptor_, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                         S_IRUSR | S_IWUSR));
  if (!file) return false;
  bool whole = fchmod(file.get(), S_IRUSR | S_IWUSR) == 0;  // the umask may have cleared bits
  {
    const NoSizeSignal quiet;
    for (const std::span<const char> part : parts) whole = whole && write_all(file.get(), part);
  }
  if (file.close() && whole && renameat(descriptor_, fresh.c_str(), descriptor_, name.c_str()) == 0)
    return true;
  unlinkat(descriptor_, fresh.c_str(), 0);
  return false;
}

void PrivateFolder::remove(const std::string& name) const {
  if (usable()) unlinkat(descriptor_, name.c_str(), 0);
}

void PrivateFolder::touch(const std::string& name) const {
  if (usable()) utimensat(descriptor_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

std::vector<PrivateFolder::File> PrivateFolder::files() const {
  std::vector<File> all;
  if (!usable()) return all;
  Descriptor again(openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* const entries = again ? fdopendir(again.get()) : nullptr;
  if (entries == nullptr) return all;
  again.release();  // closedir closes it
  while (const dirent* const e = readdir(entries)) {
    struct stat s {};
    if (fstatat(descriptor_, e->d_name, &s, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(s.st_mode)) continue;
    all.push_back({e->d_name, static_cast<std::uint64_t>(s.st_size),
                   std::int64_t{s.st_mtim.tv_sec} * 1'000'000'000 + s.st_mtim.tv_nsec});
  }
  closedir(entries);
  return all;
}

}  // namespace shardarray
