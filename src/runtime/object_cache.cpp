#include "runtime/object_cache.h"

#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/hash.h"

namespace shardarray {
namespace {

struct Header {
  char magic[8] = {'s', 'a', 'o', 'b', 'j', '0', '0', '1'};
  std::uint64_t key_bytes = 0, object_bytes = 0, checksum = 0;
};

std::uint64_t hash_of(std::span<const char> bytes, std::uint64_t h) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::size_t n = std::min<std::size_t>(8, bytes.size() - i);
    word = 0;
    std::memcpy(&word, bytes.data() + i, n);
    h = hash_mix(h, word);
  }
  return hash_mix(h, bytes.size());
}
std::uint64_t checksum_of(std::span<const char> key, std::span<const char> object) {
  return hash_of(object, hash_of(key, 7));
}

/// Whether this cache wrote a file of this name: a hash, `.o`, and a unique suffix while it is being written.
bool is_object(const std::string& name) {
  constexpr std::size_t hash = 32, all = hash + 2;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() >= all && std::all_of(name.begin(), name.begin() + hash, is_digit) &&
         name.compare(hash, 2, ".o") == 0 && (name.size() == all || name[all] == '.');
}

/// The object in a file, if its key matches exactly.
std::optional<std::vector<char>> object_in(const std::vector<char>& file, std::span<const char> key) {
  Header header, expected;
  if (file.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof header);
  const std::span<const char> rest = std::span<const char>(file).subspan(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.key_bytes != key.size() ||
      rest.size() < key.size() || rest.size() - key.size() != header.object_bytes)
    return std::nullopt;
  const auto object = rest.subspan(key.size());
  if (!std::equal(key.begin(), key.end(), rest.begin()) || checksum_of(key, object) != header.checksum)
    return std::nullopt;
  return std::vector<char>(object.begin(), object.end());
}

std::string file_name(std::span<const char> key) {
  return fmt::format("{:016x}{:016x}.o", hash_of(key, 1), hash_of(key, 2));
}

}  // namespace

ObjectCache::ObjectCache(const std::string& folder, std::uint64_t most_bytes)
    : folder_(folder, PrivateFolder::Missing::make),
      path_(folder_.usable() ? folder : std::string()),
      most_bytes_(most_bytes) {}

std::string ObjectCache::path(std::span<const char> key) const { return path_ + "/" + file_name(key); }

bool ObjectCache::has(std::span<const char> key) const {
  return !path_.empty() && access(path(key).c_str(), R_OK) == 0;
}

std::optional<std::vector<char>> ObjectCache::find(std::span<const char> key) {
  const std::string name = file_name(key);
  std::optional<std::vector<char>> object;
  if (const auto file = folder_.read(name, most_file_bytes)) object = object_in(*file, key);
  if (object) folder_.touch(name);  // for least-recently-used eviction
  else folder_.remove(name);
  return object;
}

void ObjectCache::put(std::span<const char> key, std::span<const char> object) {
  Header header;
  header.key_bytes = key.size();
  header.object_bytes = object.size();
  header.checksum = checksum_of(key, object);
  const std::uint64_t bytes = sizeof header + key.size() + object.size();
  const std::span<const char> parts[] = {
      {reinterpret_cast<const char*>(&header), sizeof header}, key, object};
  if (bytes > most_file_bytes || !folder_.write(file_name(key), parts)) return;
  const std::lock_guard lock(mutex_);
  if (bytes >= until_trim_) trim();
  else until_trim_ -= bytes;
}

/// Evicts the least recently used objects if the total is too large. Other processes may do the same. Other files are left alone.
void ObjectCache::trim() {
  std::vector<PrivateFolder::File> files = folder_.files();
  std::erase_if(files, [](const auto& f) { return !is_object(f.name); });
  std::uint64_t total = 0;
  for (const auto& f : files) total += f.bytes;
  if (total > most_bytes_) {
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used_ns < b.used_ns; });
    for (const auto& f : files) {
      if (total <= most_bytes_ / 4 * 3) break;
      folder_.remove(f.name);
      total -= f.bytes;
    }
  }
  until_trim_ = std::max<std::uint64_t>(1, (most_bytes_ - std::min(total, most_bytes_)) / 4);
}

std::string object_cache_folder() {
  const auto variable = [](const char* name) {
    const char* text = secure_getenv(name);
    return std::string(text ? text : "");
  };
  if (const char* own = secure_getenv("SHARDARRAY_CACHE_DIR")) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/shardarray";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/shardarray";
  return "";
}

}  // namespace shardarray
