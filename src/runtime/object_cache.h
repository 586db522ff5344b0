// ObjectCache: compiled objects on disk, shared by processes.
//
// Files are named by a hash of their key and contain the key itself and a checksum; on any mismatch the file is removed and compiled again.
// Files with other names are left alone. The contents are executed: PrivateFolder ensures who wrote them.
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

  /// An empty or unusable folder: nothing is stored.
  explicit ObjectCache(const std::string& folder, std::uint64_t most_bytes = default_bytes);

  std::optional<std::vector<char>> find(std::span<const char> key);
  /// Whether it has a file, which find() may still reject.
  bool has(std::span<const char> key) const;
  /// Failures (such as a full disk) are ignored.
  void put(std::span<const char> key, std::span<const char> object);

  /// Empty: nothing is stored. Then `refusal` is the reason if the folder exists and others can change it.
  const std::string& folder() const { return path_; }
  const std::string& refusal() const { return folder_.refusal(); }
  /// The path of a key's file.
  std::string path(std::span<const char> key) const;

 private:
  void trim();

  PrivateFolder folder_;
  std::string path_;
  std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::uint64_t until_trim_ = 0;  // bytes that may still be written before the next trim
};

/// SHARDARRAY_CACHE_DIR, else `shardarray` in the user's cache folder; empty if there is none, or if the program runs with other privileges
/// than its user.
std::string object_cache_folder();

}  // namespace shardarray
