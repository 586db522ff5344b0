#include "lib/checkpoints/folder.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/descriptor.h"
#include "lib/checkpoints/index.h"

namespace shardarray::checkpoints {

namespace fs = std::filesystem;

namespace {

constexpr const char* untouched_advice =
    "A checkpoint is written whole or not at all, and the others are as they were. Free space, or name a "
    "folder that is yours.";

bool is_checkpoint(const fs::path& path) {
  std::error_code failed;
  return fs::is_regular_file(path / index_name, failed);
}

// Something that exists and is no checkpoint. Looks repeatedly, as another program may name or remove a checkpoint between two looks.
bool is_foreign(const fs::path& path) {
  std::error_code failed;
  for (int look = 0; look < 100; look++)
    if (is_checkpoint(path) || !fs::exists(path, failed)) return false;
  return true;
}

// Renames a checkpoint, so that it is none any more and may be removed slowly. Empty: that failed.
std::string set_aside(const std::string& folder, const std::string& path) {
  const std::string gone = unfinished_name(folder + "/.step_removed");
  return std::rename(path.c_str(), gone.c_str()) == 0 ? gone : std::string();
}

void synced(const char* function, const std::string& folder) {
  if (!sync_folder(folder))
    files::fail(function, folder, fmt::format("may lack a name on the disk ({})", std::strerror(errno)),
                "A checkpoint is there when the disk has its name. Look at the disk, and save again.");
}

void remove_old_leavings(const std::string& folder) {
  std::error_code failed;
  std::vector<std::string> old;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    const auto written = fs::last_write_time(at->path(), gone);
    if (!gone && at->path().filename().string().starts_with(".step_") &&
        written < fs::file_time_type::clock::now() - std::chrono::hours(24))
      old.push_back(at->path());
  }
  for (const std::string& path : old) give_up(path);
}

// Creates a folder and its parents; when this returns, their names are on the disk.
void make_folder(const char* function, const std::string& folder) {
  std::vector<fs::path> fresh;
  std::error_code failed;
  for (fs::path at = fs::absolute(folder, failed);
       !failed && at.has_relative_path() && !fs::exists(at, failed); at = at.parent_path())
    fresh.push_back(at);
  fs::create_directories(folder, failed);
  if (failed)
    files::fail(function, folder, fmt::format("cannot be made ({})", failed.message()), untouched_advice);
  for (const fs::path& made : fresh) synced(function, made.parent_path());
}

}  // namespace

std::string path_of(const std::string& folder, std::int64_t step) {
  return fmt::format("{}/step_{:08}", folder, step);
}

std::vector<std::int64_t> steps_in(const char* function, const std::string& folder) {
  std::vector<std::int64_t> r;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  if (failed == std::errc::no_such_file_or_directory) return r;
  for (const fs::directory_iterator end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    std::int64_t step = 0;
    if (!name.starts_with("step_")) continue;
    const auto [stop, error] = std::from_chars(name.data() + 5, name.data() + name.size(), step);
    // Only the canonical name counts: step_7 is not checkpoint 7, step_00000007 is.
    if (error == std::errc() && stop == name.data() + name.size() && step >= 0 &&
        path_of(folder, step) == fmt::format("{}/{}", folder, name) && is_checkpoint(at->path()))
      r.push_back(step);
  }
  if (failed)
    files::fail(function, folder, fmt::format("cannot be read ({})", failed.message()),
                "Checkpoints are in a folder. Name one that is yours.");
  std::sort(r.begin(), r.end());
  return r;
}

std::int64_t existing(const char* function, const std::string& folder, std::int64_t step) {
  const std::vector<std::int64_t> all = steps_in(function, folder);
  if (step < 0 && !all.empty()) return all.back();
  if (std::binary_search(all.begin(), all.end(), step)) return step;
  const std::string here = all.empty()
                               ? "There are none."
                               : fmt::format("There are {}: the first of step {}, the last of step {}.",
                                             all.size(), all.front(), all.back());
  files::fail(function, folder,
              step < 0 ? "has no checkpoint" : fmt::format("has no checkpoint of step {}", step),
              (here + " Check the folder, or save one.").c_str());
}

bool is_one_folder(const std::string& a, const std::string& b) {
  std::error_code failed;
  return a == b || fs::equivalent(a, b, failed);
}

std::string begin_unfinished(const char* function, const std::string& folder, std::int64_t step) {
  make_folder(function, folder);
  const std::string target = path_of(folder, step);
  if (is_foreign(target))
    files::fail(function, target, "is no checkpoint, but has the name of one",
                "Only checkpoints are replaced. Move it away.");
  remove_old_leavings(folder);
  std::string name = unfinished_name(fmt::format("{}/.step_{:08}", folder, step));
  std::error_code failed;
  if (!fs::create_directory(name, failed) || failed)
    files::fail(function, name, fmt::format("cannot be made ({})", failed.message()), untouched_advice);
  return name;
}

std::string finish(const char* function, const std::string& unfinished, const std::string& folder,
                   std::int64_t step) {
  const std::string target = path_of(folder, step);
  bool replaces = false;
  int done = -1;
  for (int attempt = 0; attempt < 100; attempt++) {
    replaces = is_checkpoint(target);
    done = renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, target.c_str(),
                     replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE);
    // Another program saves here too, and has just named its checkpoint or removed the one that was there.
    if (done == 0 || errno != (replaces ? ENOENT : EEXIST)) break;
  }
  // Without an atomic exchange (some file systems) there is a moment without a checkpoint, unless there was none.
  std::string before = replaces ? unfinished : "";  // what it was exchanged for
  if (done != 0 && (errno == EINVAL || errno == ENOSYS)) {
    before = replaces ? set_aside(folder, target) : "";
    done = std::rename(unfinished.c_str(), target.c_str());
    if (const int why = errno; done != 0 && !before.empty()) {
      (void)std::rename(before.c_str(), target.c_str());
      errno = why;
    }
  }
  if (done != 0)
    files::fail(function, target, fmt::format("cannot be named so ({})", std::strerror(errno)),
                untouched_advice);
  return before;
}

void settle(const char* function, const std::string& folder, const std::string& replaced) {
  synced(function, folder);
  give_up(replaced);
}

void remove_older(const char* function, const std::string& folder, std::int64_t step, int keep) {
  if (keep == 0) return;
  std::vector<std::int64_t> all;
  try {
    all = steps_in(function, folder);
  } catch (const IoError&) { return; }  // the checkpoint has its name, which is what counts
  std::erase_if(all, [&](std::int64_t s) { return s > step; });
  for (std::size_t k = 0; k + static_cast<std::size_t>(keep) < all.size(); k++)
    give_up(set_aside(folder, path_of(folder, all[k])));
}

void give_up(const std::string& unfinished) {
  std::error_code ignored;
  if (!unfinished.empty()) fs::remove_all(unfinished, ignored);
}

}  // namespace shardarray::checkpoints
