// Objects on disk: what is damaged, foreign or being written by another process is never used.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cpu/object_cache.h"

namespace object_cache_test {

namespace fs = std::filesystem;
using shardarray::ObjectCache;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "shardarray-cache-XXXXXX").string();
    REQUIRE((mkdtemp(pattern.data()) != nullptr));
    path = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string path;
};

std::vector<char> bytes_of(int seed, std::size_t n) {
  std::vector<char> v(n);
  for (std::size_t i = 0; i < n; i++) v[i] = static_cast<char>(seed * 31 + static_cast<int>(i * i));
  return v;
}
std::vector<char> text(const std::string& s) { return {s.begin(), s.end()}; }

}  // namespace

TEST_CASE("object cache: what was put is found, by exactly its key") {
  const Folder folder;
  ObjectCache cache(folder.path + "/new/cache");
  const auto key = text("a kernel"), object = bytes_of(1, 1000);
  CHECK(!cache.find(key));
  cache.put(key, object);
  CHECK((cache.find(key) == object));
  CHECK((ObjectCache(folder.path + "/new/cache").find(key) == object));
  CHECK(!cache.find(text("another kernel")));
  cache.put(key, bytes_of(2, 10));
  CHECK((cache.find(key) == bytes_of(2, 10)));
  // A file under the right name with another key: two keys of one hash.
  const auto other = text("a cernel");
  fs::copy_file(cache.path(key), cache.path(other));
  CHECK(!cache.find(other));
}

TEST_CASE("object cache: damaged files are not used, and go") {
  const Folder folder;
  ObjectCache cache(folder.path);
  const auto key = text("key"), object = bytes_of(3, 100);
  cache.put(key, object);
  std::ifstream in(cache.path(key), std::ios::binary);
  const std::vector<char> whole((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto write = [&](const std::vector<char>& v) {
    std::ofstream(cache.path(key), std::ios::binary).write(v.data(), static_cast<std::streamsize>(v.size()));
  };
  for (std::size_t at = 0; at < whole.size(); at++) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    write(damaged);
    CHECK(!cache.find(key));
    CHECK(!fs::exists(cache.path(key)));
  }
  for (std::size_t n = 0; n < whole.size(); n += 7) {
    write({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)});
    CHECK(!cache.find(key));
  }
  cache.put(key, object);
  CHECK((cache.find(key) == object));
}

TEST_CASE("object cache: a folder that others may write to, or none, is not used") {
  const Folder folder;
  chmod(folder.path.c_str(), 0777);
  ObjectCache open(folder.path);
  CHECK(open.folder().empty());
  open.put(text("k"), text("o"));
  CHECK(!open.find(text("k")));
  CHECK(fs::is_empty(folder.path));
  CHECK(ObjectCache("").folder().empty());
  CHECK(ObjectCache("/proc/nowhere/cache").folder().empty());
  CHECK(ObjectCache("/dev/null").folder().empty());
}

TEST_CASE("object cache: stays below its limit, the oldest go first") {
  const Folder folder;
  // What else lies there is older, larger and nobody's business. What was left half written is not.
  const std::string hash(32, 'a');
  const std::vector<std::string> others = {"blas_core", "letters.tar", hash, hash + ".obj",
                                           "A" + hash + ".o"};
  const auto write = [&](const std::string& name) {
    std::ofstream(folder.path + "/" + name) << std::string(30'000, 'x');
  };
  for (const std::string& name : others) write(name);
  write(hash + ".o.17.3");
  ObjectCache cache(folder.path, 20'000);
  for (int k = 0; k < 100; k++) cache.put(text("key " + std::to_string(k)), bytes_of(k, 1000));
  CHECK(!fs::exists(folder.path + "/" + hash + ".o.17.3"));
  for (const std::string& name : others) {
    CHECK(fs::file_size(folder.path + "/" + name) == 30'000);
    fs::remove(folder.path + "/" + name);
  }
  std::uintmax_t total = 0;
  for (const auto& f : fs::directory_iterator(folder.path)) total += f.file_size();
  CHECK(total <= 26'000);
  CHECK(total >= 10'000);
  CHECK(cache.find(text("key 99")));
  CHECK(!cache.find(text("key 0")));
}

TEST_CASE("object cache: many processes and threads at once") {
  const Folder folder;
  // Every process writes and reads the same keys; what is found must be whole.
  const auto work = [&](int seed) {
    ObjectCache cache(folder.path, 60'000);
    bool right = true;
    for (int round = 0; round < 300; round++) {
      const int k = (round * 7 + seed) % 20;
      const auto key = text("key " + std::to_string(k));
      if (const auto found = cache.find(key))
        right = right && *found == bytes_of(k, 500 + 300 * static_cast<std::size_t>(k));
      else cache.put(key, bytes_of(k, 500 + 300 * static_cast<std::size_t>(k)));
    }
    return right;
  };
  std::vector<pid_t> children;
  for (int p = 0; p < 3; p++) {
    const pid_t child = fork();
    if (child == 0) _exit(work(p) ? 0 : 1);
    children.push_back(child);
  }
  bool right[2] = {};
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; t++) threads.emplace_back([&, t] { right[t] = work(10 + t); });
    for (auto& t : threads) t.join();
  }
  CHECK(right[0]);
  CHECK(right[1]);
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}

}  // namespace object_cache_test
