// Objects on disk: damaged, foreign or half-written ones are never used.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "runtime/object_cache.h"

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

const std::vector<char> kernel_key = text("a kernel"), good = bytes_of(1, 1000), evil = bytes_of(2, 1000);

/// What `f` returns in a process of its own; -1 when it is killed, or not done after half a minute.
int in_child(const std::function<int()>& f) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    _exit(f());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

mode_t mode_of(const std::string& path) {
  struct stat s {};
  REQUIRE((lstat(path.c_str(), &s) == 0));
  return s.st_mode & 07777;
}

constexpr uid_t nobody = 65534;
/// Whether files can be given away here, as to another user. Says what is not tested where they cannot.
bool can_give_away() {
  const bool can = geteuid() == 0;
  if (!can) MESSAGE("skipped: files of other users, which only root can make");
  return can;
}

/// A file that fits `kernel_key` in every byte and holds the object of an attacker.
std::string evil_file(const std::string& folder) {
  ObjectCache other(folder + "/evil");
  other.put(kernel_key, evil);
  return other.path(kernel_key);
}

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

TEST_CASE("object cache: what others can have written is not used, whatever it is") {
  const Folder folder;
  const std::string forged = evil_file(folder.path);
  struct Attack {
    const char* name;
    std::function<void(const std::string& file)> plant;
    bool needs_root = false;
  };
  const auto copied = [&](mode_t mode, uid_t owner) {
    return [=](const std::string& file) {
      fs::copy_file(forged, file);
      chmod(file.c_str(), mode);
      REQUIRE((owner == geteuid() || chown(file.c_str(), owner, static_cast<gid_t>(-1)) == 0));
    };
  };
  const Attack attacks[] = {
      {"all may write", copied(0606, geteuid())},
      {"the group may write", copied(0620, geteuid())},
      {"of another user", copied(0600, nobody), true},
      {"of another user, readable", copied(0644, nobody), true},
      {"a link", [&](const std::string& file) { fs::create_symlink(forged, file); }},
      {"a link to another user's file",
       [&](const std::string& file) {
         copied(0644, nobody)(folder.path + "/theirs");
         fs::create_symlink(folder.path + "/theirs", file);
       },
       true},
      {"a link to an endless file", [](const std::string& file) { fs::create_symlink("/dev/zero", file); }},
      {"a link to nothing", [](const std::string& file) { fs::create_symlink("/nowhere", file); }},
      {"a FIFO", [](const std::string& file) { REQUIRE((mkfifo(file.c_str(), 0600) == 0)); }},
      {"a folder", [](const std::string& file) { fs::create_directory(file); }},
      {"a huge file with nothing in it",
       [&](const std::string& file) {
         copied(0600, geteuid())(file);
         std::error_code too_large;
         fs::resize_file(file, 200'000'000'000, too_large);
         if (too_large) fs::resize_file(file, 4'000'000'000);
       }},
  };
  for (const Attack& a : attacks) {
    if (a.needs_root && !can_give_away()) continue;
    CAPTURE(std::string(a.name));
    ObjectCache cache(folder.path + "/cache");
    a.plant(cache.path(kernel_key));
    // 0: nothing was found, what is put is found afterwards. 1: the same, but nothing can be put in its place.
    const int seen = in_child([&] {
      if (cache.find(kernel_key)) return 2;
      cache.put(kernel_key, good);
      const auto found = cache.find(kernel_key);
      return found == good ? 0 : found ? 2 : 1;
    });
    CHECK(seen == (fs::is_directory(fs::symlink_status(cache.path(kernel_key))) ? 1 : 0));
    fs::remove_all(folder.path + "/cache");
    std::error_code none;
    fs::remove(folder.path + "/theirs", none);
  }
}

TEST_CASE("object cache: files and folders are the user's alone, whatever the umask") {
  for (const mode_t mask : {mode_t{0}, mode_t{022}, mode_t{077}}) {
    const Folder folder;
    const mode_t before = umask(mask);
    ObjectCache cache(folder.path + "/new/cache");
    cache.put(kernel_key, good);
    umask(before);
    CHECK(mode_of(folder.path + "/new") == 0700);
    CHECK(mode_of(folder.path + "/new/cache") == 0700);
    CHECK(mode_of(cache.path(kernel_key)) == 0600);
    CHECK((cache.find(kernel_key) == good));
  }
}

TEST_CASE("object cache: nobody else may be able to put another folder in its place") {
  const Folder folder;
  const std::string parent = folder.path + "/parent", inner = parent + "/inner", cache = inner + "/cache";
  fs::create_directories(cache);
  for (const std::string& p : {folder.path, parent, inner, cache}) chmod(p.c_str(), 0700);
  const auto refusal = [&](const std::string& path) {
    const ObjectCache c(path);
    CHECK(c.folder().empty() == !c.refusal().empty());
    return c.refusal();
  };
  CHECK(refusal(cache).empty());
  const auto others_can_write = [&](const std::string& part) {
    return "the folder '" + cache + "' is not used: others can write to '" + part + "'";
  };
  const auto of_another = [&](const std::string& part) {
    return "the folder '" + cache + "' is not used: '" + part + "' belongs to another user";
  };
  for (const std::string& part : {parent, inner, cache}) {
    for (const mode_t mode : {0777, 0770, 0702}) {
      chmod(part.c_str(), mode);
      CHECK(refusal(cache) == others_can_write(part));
    }
    // As in /tmp: others make files there, but cannot rename ours.
    chmod(part.c_str(), 01777);
    CHECK(refusal(cache) == (part == cache ? others_can_write(part) : ""));
    chmod(part.c_str(), 0755);
    CHECK(refusal(cache).empty());
    if (!can_give_away()) continue;
    REQUIRE((chown(part.c_str(), nobody, static_cast<gid_t>(-1)) == 0));
    CHECK(refusal(cache) == of_another(part));
    REQUIRE((chown(part.c_str(), geteuid(), static_cast<gid_t>(-1)) == 0));
  }
  // By links, of which all is true as well.
  const std::string link = folder.path + "/link";
  fs::create_symlink("parent/./inner/../inner", link);
  CHECK(refusal(link + "/cache").empty());
  CHECK(ObjectCache(link + "/cache").path(kernel_key).starts_with(link));
  chmod(parent.c_str(), 0777);
  CHECK(refusal(link + "/cache") ==
        "the folder '" + link + "/cache' is not used: others can write to '" + parent + "'");
  chmod(parent.c_str(), 0700);
  if (can_give_away()) {
    REQUIRE((lchown(link.c_str(), nobody, static_cast<gid_t>(-1)) == 0));
    CHECK(refusal(link + "/cache") ==
          "the folder '" + link + "/cache' is not used: '" + link + "' belongs to another user");
  }
  fs::create_symlink("round", folder.path + "/round");
  CHECK(ObjectCache(folder.path + "/round/cache").folder().empty());
  // A missing part is made only where it will be ours.
  chmod(parent.c_str(), 0777);
  CHECK(ObjectCache(parent + "/fresh/cache").folder().empty());
  CHECK(!fs::exists(parent + "/fresh"));
}

TEST_CASE("object cache: the folder that was looked at is used, not one that takes its name") {
  for (const bool whole_parent : {false, true}) {
    const Folder folder;
    const std::string forged = evil_file(folder.path), path = folder.path + "/parent/cache",
                      moved = folder.path + (whole_parent ? "/parent" : "/parent/cache");
    ObjectCache cache(path);
    const std::string file = cache.path(kernel_key);
    fs::rename(moved, moved + ".old");
    fs::create_directories(path);
    fs::copy_file(forged, file);
    CHECK(!cache.find(kernel_key));
    cache.put(kernel_key, good);
    CHECK((cache.find(kernel_key) == good));
    CHECK((ObjectCache(path).find(kernel_key) == evil));  // nothing was written there
  }
}

TEST_CASE("object cache: a folder that goes, or changes hands, while it is in use") {
  {
    const Folder folder;
    ObjectCache cache(folder.path + "/cache");
    cache.put(kernel_key, good);
    fs::remove_all(folder.path + "/cache");
    CHECK(!cache.find(kernel_key));
    cache.put(kernel_key, good);
    CHECK(!cache.find(kernel_key));
    CHECK(!fs::exists(folder.path + "/cache"));
  }
  const Folder folder;
  ObjectCache cache(folder.path + "/cache");
  cache.put(kernel_key, good);
  chmod(cache.folder().c_str(), 0777);
  CHECK(!cache.find(kernel_key));
  chmod(cache.folder().c_str(), 0700);
  CHECK((cache.find(kernel_key) == good));
  // A program that closes what it has not opened, as daemons do, and then opens something of its own.
  const std::string other = folder.path + "/other";
  fs::create_directory(other);
  CHECK(in_child([&] {
          for (int fd = 3; fd < 256; fd++) close(fd);
          for (int fd = 3; fd < 256; fd++) (void)open(other.c_str(), O_RDONLY | O_DIRECTORY);
          cache.put(kernel_key, evil);
          return cache.find(kernel_key) ? 1 : 0;
        }) == 0);
  CHECK(fs::is_empty(other));
}

TEST_CASE("object cache: a write that does not fit leaves nothing behind and ends nothing") {
  const Folder folder;
  ObjectCache cache(folder.path + "/cache");
  const auto files = [&] {
    return std::distance(fs::directory_iterator(cache.folder()), fs::directory_iterator());
  };
  // Below the header, in the key, in the object, at its end.
  for (const rlim_t limit : {rlim_t{0}, rlim_t{10}, rlim_t{35}, rlim_t{600}, rlim_t{1039}}) {
    CAPTURE(limit);
    CHECK(in_child([&] {
            const rlimit most{limit, limit};
            setrlimit(RLIMIT_FSIZE, &most);
            sigset_t before, after;
            pthread_sigmask(SIG_SETMASK, nullptr, &before);
            cache.put(kernel_key, good);
            pthread_sigmask(SIG_SETMASK, nullptr, &after);
            struct sigaction action {};
            sigaction(SIGXFSZ, nullptr, &action);
            sigset_t pending;
            sigpending(&pending);
            return !cache.find(kernel_key) && !sigismember(&after, SIGXFSZ) &&
                           !sigismember(&pending, SIGXFSZ) && action.sa_handler == SIG_DFL
                       ? 0
                       : 1;
          }) == 0);
    CHECK(files() == 0);
  }
  CHECK(in_child([&] {
          const rlimit most{1040, 1040};  // header, key and object
          setrlimit(RLIMIT_FSIZE, &most);
          cache.put(kernel_key, good);
          return cache.find(kernel_key) == good ? 0 : 1;
        }) == 0);
  CHECK(files() == 1);
}

TEST_CASE("object cache: a full disk") {
  const Folder folder;
  constexpr int no_disk = 3;
  const int seen = in_child([&] {
    const std::string disk = folder.path + "/disk";
    mkdir(disk.c_str(), 0700);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", disk.c_str(), "tmpfs", 0, "size=64k,mode=700") != 0)
      return no_disk;
    ObjectCache cache(disk);
    for (int k = 0; k < 100; k++) cache.put(text("key " + std::to_string(k)), bytes_of(k, 6000));
    int right = 0;
    for (int k = 0; k < 100; k++) {
      const auto found = cache.find(text("key " + std::to_string(k)));
      if (found && *found != bytes_of(k, 6000)) return 1;
      right += found.has_value();
    }
    const auto files = std::distance(fs::directory_iterator(disk), fs::directory_iterator());
    return right > 3 && right < 20 && files == right ? 0 : 2;
  });
  if (seen == no_disk) MESSAGE("skipped: this process cannot mount a small disk");
  else CHECK(seen == 0);
}

}  // namespace object_cache_test
