// PrivateFolder: files that only this user or root can have written.
//
// Their contents may be executed, so a path is trusted only once, when it is opened:
// - The path is walked from the root, each component relative to the descriptor of the previous one. Each, including links, must belong to
//   this user or root and must not be writable by others, except with the sticky bit (/tmp), under which they can neither remove nor rename
//   what is not theirs. The folder itself must belong to this user and be writable by nobody else.
// - All later operations use the folder's descriptor, which is checked again before each use: renaming a parent, changing a link or the
//   folder's mode, or closing the descriptor never leads to reading foreign files.
// - A file is read if it is a regular one, owned by this user, not writable by others and no longer than requested; this is checked on the
//   opened descriptor. Links are not followed; FIFOs and devices do not block.
// - Writes are atomic, through a temporary name, with mode 0600 whatever the umask. A full disk, a file size limit (no SIGXFSZ is raised)
//   and interruptions make them return false, they do not throw.
// Names have no slashes. Threads and processes may use one folder concurrently.
#pragma once
#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardarray {

class PrivateFolder {
 public:
  enum class Missing : std::uint8_t { make, leave };
  /// `make` creates missing components with mode 0700. An empty path is no folder; a relative one starts at the current folder.
  PrivateFolder(const std::string& path, Missing missing);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  /// Whether files can be read there. False once the folder has been changed.
  bool usable() const;
  /// Why an existing folder was refused, with the component that others can change; otherwise empty.
  const std::string& refusal() const { return refusal_; }

  /// The whole file, if it has at most `most` bytes.
  std::optional<std::vector<char>> read(const std::string& name, std::uint64_t most) const;
  /// Replaces the file of this name by the concatenated parts. False: the old one is unchanged.
  bool write(const std::string& name, std::span<const std::span<const char>> parts) const;
  void remove(const std::string& name) const;
  /// Sets the file's time of last use to now.
  void touch(const std::string& name) const;

  struct File {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used_ns = 0;  ///< since 1970
  };
  std::vector<File> files() const;

 private:
  bool is_open(struct stat& s) const;

  int descriptor_ = -1;
  dev_t device_ = 0;
  ino_t node_ = 0;
  std::string refusal_;
};

}  // namespace shardarray
