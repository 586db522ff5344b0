// ObjectCache: compiled objects on disk, shared by processes.
//
// A file is named after the hash of its key and holds the key itself and a checksum; what does not fit exactly
// is removed and compiled again. Files with other names are left alone. What stands there is executed: see PrivateFolder
// for who can have written it.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/private_folder.h"

namespace shardarray {

class ObjectCache {
 public:
  static constexpr std::uint64_t default_bytes = 256ull << 20, most_file_bytes = 64ull << 20;

  /// An empty folder name, or one that cannot be used: nothing is kept.
  explicit ObjectCache(const std::string& folder, std::uint64_t most_bytes = default_bytes);

  std::optional<std::vector<char>> find(std::span<const char> key);
  /// Whether there is a file for it, which find() may yet refuse.
  bool has(std::span<const char> key) const;
  /// Failures (a full disk) are no errors.
  void put(std::span<const char> key, std::span<const char> object);

  /// Empty: nothing is kept. Then why, where a folder is there and others can change it.
  const std::string& folder() const { return path_; }
  const std::string& refusal() const { return folder_.refusal(); }
  /// The file of a key.
  std::string path(std::span<const char> key) const;

 private:
  void trim();

  PrivateFolder folder_;
  std::string path_;
  std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::uint64_t until_trim_ = 0;  // bytes that may be written before the folder is looked through again
};

/// SHARDARRAY_CACHE_DIR, else `shardarray` in the user's cache folder; empty where there is none, or where the program runs
/// with other rights than its user.
std::string object_cache_folder();

}  // namespace shardarray
