// PrivateFolder: files that nobody but this user, and root, can have written.
//
// What stands in it may be executed, so its name is trusted once and never again:
// - The path is walked from the root, every part below the descriptor of the part before. Each, links too, must belong to this
//   user or to root, and others may not write there; where the sticky bit is set (/tmp) they may, since they can neither remove
//   nor rename what is not theirs. The folder itself is this user's, and nobody else's to write.
// - All later work goes through the folder's descriptor, which is looked at again before each use: who renames a parent,
//   changes a link or the folder's mode, or closes the descriptor, makes nothing foreign readable.
// - A file is read if it is a regular one, this user's, not writable by others and no longer than asked for: looked at on
//   the opened descriptor. Links are not followed; FIFOs and devices do not block.
// - A file is written whole or not at all, under a name of its own until it is, with mode 0600 whatever the umask. A full disk,
//   a limit on the size of files (no SIGXFSZ comes) and interruptions are failures, not errors.
// Names have no slashes. Threads and processes may work in one folder at once.
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
  /// Makes missing parts with mode 0700, or not. An empty path is no folder; a relative one counts from the current folder.
  PrivateFolder(const std::string& path, Missing missing);
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  /// Whether files can be read there. False once the folder is not what it was.
  bool usable() const;
  /// Why a folder that is there was not taken, with the part of the path that others can change; empty if it was, or is not there.
  const std::string& refusal() const { return refusal_; }

  /// All of a file of at most `most` bytes.
  std::optional<std::vector<char>> read(const std::string& name, std::uint64_t most) const;
  /// A file of these parts, in place of the one of that name. False: it stays as it was.
  bool write(const std::string& name, std::span<const std::span<const char>> parts) const;
  void remove(const std::string& name) const;
  /// Sets when the file was used to now.
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
