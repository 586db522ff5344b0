#include "cpu/object_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/hash.h"

namespace shardarray {
namespace {

namespace fs = std::filesystem;

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

/// Made if it is missing; only if nobody else may write there.
bool usable(const std::string& folder) {
  if (folder.empty()) return false;
  std::error_code failed;
  fs::create_directories(fs::path(folder).parent_path(), failed);
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat s {};
  return stat(folder.c_str(), &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() &&
         (s.st_mode & 022) == 0 && access(folder.c_str(), W_OK | X_OK) == 0;
}

/// Whether a file of this name was written here: a hash, `.o`, and while it is being written what makes it unique.
bool is_object(const std::string& name) {
  constexpr std::size_t hash = 32, all = hash + 2;
  const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return name.size() >= all && std::all_of(name.begin(), name.begin() + hash, is_digit) &&
         name.compare(hash, 2, ".o") == 0 && (name.size() == all || name[all] == '.');
}

/// The object in a file that fits its key exactly.
std::optional<std::vector<char>> read(const std::string& path, std::span<const char> key) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return std::nullopt;
  std::vector<char> all(static_cast<std::size_t>(std::max<std::streamoff>(in.tellg(), 0)));
  in.seekg(0);
  Header header, expected;
  if (all.size() < sizeof header || !in.read(all.data(), static_cast<std::streamsize>(all.size())))
    return std::nullopt;
  std::memcpy(&header, all.data(), sizeof header);
  const std::span<const char> rest = std::span<const char>(all).subspan(sizeof header);
  if (std::memcmp(header.magic, expected.magic, sizeof header.magic) != 0 || header.key_bytes != key.size() ||
      rest.size() < key.size() || rest.size() - key.size() != header.object_bytes)
    return std::nullopt;
  const auto object = rest.subspan(key.size());
  if (!std::equal(key.begin(), key.end(), rest.begin()) || checksum_of(key, object) != header.checksum)
    return std::nullopt;
  return std::vector<char>(object.begin(), object.end());
}

}  // namespace

ObjectCache::ObjectCache(std::string folder, std::uint64_t most_bytes)
    : folder_(usable(folder) ? std::move(folder) : std::string()), most_bytes_(most_bytes) {}

std::string ObjectCache::path(std::span<const char> key) const {
  return fmt::format("{}/{:016x}{:016x}.o", folder_, hash_of(key, 1), hash_of(key, 2));
}

std::optional<std::vector<char>> ObjectCache::find(std::span<const char> key) {
  if (folder_.empty()) return std::nullopt;
  const std::string file = path(key);
  auto object = read(file, key);
  if (object) utimensat(AT_FDCWD, file.c_str(), nullptr, 0);  // the oldest go first
  else ::unlink(file.c_str());
  return object;
}

void ObjectCache::put(std::span<const char> key, std::span<const char> object) {
  if (folder_.empty()) return;
  static std::atomic<unsigned> number{0};
  const std::string name = path(key), partial = fmt::format("{}.{}.{}", name, getpid(), number++);
  Header header;
  header.key_bytes = key.size();
  header.object_bytes = object.size();
  header.checksum = checksum_of(key, object);
  bool written = false;
  {
    std::ofstream out(partial, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&header), sizeof header);
    out.write(key.data(), static_cast<std::streamsize>(key.size()));
    out.write(object.data(), static_cast<std::streamsize>(object.size()));
    out.close();
    written = out.good();
  }
  if (!written || ::rename(partial.c_str(), name.c_str()) != 0) {
    ::unlink(partial.c_str());
    return;
  }
  const std::lock_guard lock(mutex_);
  const std::uint64_t bytes = sizeof header + key.size() + object.size();
  if (bytes >= until_trim_) trim();
  else until_trim_ -= bytes;
}

/// Removes the oldest objects where all of them are too large. Another process may do the same. Other files stay.
void ObjectCache::trim() {
  struct File {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  std::uint64_t total = 0;
  std::error_code failed;
  for (fs::directory_iterator it(folder_, failed), end; !failed && it != end; it.increment(failed)) {
    if (!is_object(it->path().filename().string())) continue;
    std::error_code gone;
    const File f{it->last_write_time(gone), it->file_size(gone), it->path()};
    if (gone) continue;
    files.push_back(f);
    total += f.bytes;
  }
  if (total > most_bytes_) {
    std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.used < b.used; });
    for (const File& f : files) {
      if (total <= most_bytes_ / 4 * 3) break;
      fs::remove(f.path, failed);
      total -= f.bytes;
    }
  }
  until_trim_ = std::max<std::uint64_t>(1, (most_bytes_ - std::min(total, most_bytes_)) / 4);
}

std::string object_cache_folder() {
  const auto variable = [](const char* name) {
    const char* text = std::getenv(name);
    return std::string(text ? text : "");
  };
  if (const char* own = std::getenv("SHARDARRAY_CACHE_DIR")) return own;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) return cache + "/shardarray";
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/shardarray";
  return "";
}

}  // namespace shardarray
