// ObjectCache: compiled objects on disk, shared by processes.
//
// A file is named after the hash of its key and holds the key itself and a checksum; what does not fit exactly
// is removed and compiled again. Files appear by renaming, so readers see whole ones only; files with other names
// are left alone. The folder must belong to the user alone, since what stands there is executed.
#pragma once
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace shardarray {

class ObjectCache {
 public:
  static constexpr std::uint64_t default_bytes = 256ull << 20;

  /// An empty folder name, or one that cannot be used: nothing is kept.
  explicit ObjectCache(std::string folder, std::uint64_t most_bytes = default_bytes);

  std::optional<std::vector<char>> find(std::span<const char> key);
  /// Failures (a full disk) are no errors.
  void put(std::span<const char> key, std::span<const char> object);

  const std::string& folder() const { return folder_; }
  /// The file of a key.
  std::string path(std::span<const char> key) const;

 private:
  void trim();

  std::string folder_;
  std::uint64_t most_bytes_;
  std::mutex mutex_;
  std::uint64_t until_trim_ = 0;  // bytes that may be written before the folder is looked through again
};

/// SHARDARRAY_CACHE_DIR, else `shardarray` in the user's cache folder; empty where there is none.
std::string object_cache_folder();

}  // namespace shardarray
