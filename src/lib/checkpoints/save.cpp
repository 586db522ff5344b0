// Saving: every process writes the pieces whose first device is its own, then the first process makes them a checkpoint.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "execute/constraint.h"
#include "lib/checkpoints/attempt.h"
#include "lib/checkpoints/folder.h"
#include "lib/checkpoints/index.h"
#include "lib/checkpoints/pace.h"
#include "lib/files/named.h"
#include "lib/files/safetensors.h"
#include "lib/files/saved_tree.h"
#include "runtime/processes.h"
#include "shardarray/checkpoints.h"
#include "shardarray/complex.h"
#include "shardarray/filter_shard.h"
#include "shardarray/ops.h"

namespace shardarray {

namespace checkpoints {

using nlohmann::json;
class CheckpointSave;

namespace {

using shardarray::detail::SavedTree;

Shape shape_of(const json& j) {
  const auto v = j.get<std::vector<std::int64_t>>();
  return Shape(v.begin(), v.end());
}

/// CRC-32 of every block of a stream.
class Checksums {
 public:
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (in_block_ == 0) sums.push_back(static_cast<std::uint32_t>(crc32_z(0, nullptr, 0)));
      const auto part = bytes.first(std::min(bytes.size(), block_bytes - in_block_));
      sums.back() = static_cast<std::uint32_t>(
          crc32_z(sums.back(), reinterpret_cast<const Bytef*>(part.data()), part.size()));
      in_block_ = (in_block_ + part.size()) % block_bytes;
      bytes = bytes.subspan(part.size());
    }
  }
  std::vector<std::uint32_t> sums;

 private:
  std::size_t in_block_ = 0;
};

}  // namespace

/// The pieces of a tree that this process writes, and their entries in the index.
struct OwnPieces {
  std::map<std::string, Array> arrays;                          ///< by key
  std::map<std::string, std::pair<std::string, Piece>> places;  ///< key -> path, piece
};

namespace {

Device host_device() {
  const std::vector<Device> all = devices("cpu");
  return *std::find_if(all.begin(), all.end(),
                       [](const Device& d) { return d.process_index == process_index(); });
}

/// `global`: per array, whether it is one array of all processes; otherwise each has its own, and that of the first is saved. `on_host`:
/// copied to host memory, so that no GPU waits for the writer.
OwnPieces own_pieces(const SavedTree& tree, const std::vector<bool>& global, int process,
                     const std::string& file, bool on_host) {
  OwnPieces r;
  for (std::size_t k = 0; k < tree.arrays.size(); k++) {
    if (!global[k] && process != 0) continue;
    const auto& [path, array] = tree.arrays[k];
    const Array whole = core::added_up(*array, "save");
    for (const Shard& s : whole.addressable_shards()) {
      Piece p{file, path + "@", {}, s.data.shape(), {}};
      if (s.replica_id != 0 || num_elements(p.shape) == 0) continue;
      for (std::size_t d = 0; d < s.index.size(); d++) {
        p.start.push_back(s.index[d].start);
        p.key += fmt::format("{}{}", d == 0 ? "" : ",", s.index[d].start);
      }
      const Array data =
          on_host && array->devices()[0].platform != "cpu" ? device_put(s.data, host_device()) : s.data;
      const bool parts = is_complex(data.dtype());  // the format has no complex numbers
      r.arrays.emplace(p.key, parts ? stack({real(data), imag(data)}, -1) : data);
      const std::string key = p.key;
      r.places.emplace(key, std::pair(path, std::move(p)));
    }
  }
  return r;
}

/// Writes the pieces and returns their entries in the index. `pace`: of this thread; null: it hurries.
json write_pieces(const char* function, const OwnPieces& own, const std::string& folder,
                  const std::string& name, Pace* pace) {
  json said = json::array();
  if (own.arrays.empty()) return said;
  std::map<std::string, Checksums> sums;
  const std::string path = folder + "/" + name;
  files::FileWriter file(function, path);
  const auto watch = [&](const std::string& key, std::span<const std::byte> bytes) {
    if (pace != nullptr) pace->rest();
    sums[key].add(bytes);
  };
  const files::Watch watching = watch;
  files::write_safetensors(file, function, path, own.arrays, {}, &watching);
  file.commit(true);
  for (const auto& [key, place] : own.places)
    said.push_back(json::array(
        {place.first, key, list_of(place.second.start), list_of(place.second.shape), sums[key].sums}));
  return said;
}

/// Per array: its path, its type, its first device and that device's process, as this process sees it.
json arrays_of(const SavedTree& tree) {
  json r = json::array();
  for (const auto& [path, array] : tree.arrays)
    r.push_back({path, to_string(Type{array->shape(), array->dtype()}), array->devices()[0].id,
                 array->devices()[0].process_index});
  return r;
}

/// The saves under way, and the lock that guards them.
std::mutex& naming() {
  static std::mutex& m = *new std::mutex;
  return m;
}
std::set<CheckpointSave*>& under_way() {
  static auto& all = *new std::set<CheckpointSave*>;
  return all;
}

}  // namespace

/// An unfinished checkpoint, removed unless it gets its name.
class UnfinishedCheckpoint {
 public:
  explicit UnfinishedCheckpoint(std::string path) : path_(std::move(path)) {}
  ~UnfinishedCheckpoint() {
    if (!path_.empty()) give_up(path_);
  }
  UnfinishedCheckpoint(const UnfinishedCheckpoint&) = delete;
  UnfinishedCheckpoint& operator=(const UnfinishedCheckpoint&) = delete;
  const std::string& path() const { return path_; }
  void is_named() { path_.clear(); }

 private:
  std::string path_;
};

/// One save. All processes construct it together, which fixes what it writes.
class CheckpointSave {
 public:
  CheckpointSave(const char* function, const std::string& folder, std::int64_t step, const SavedTree& tree,
                 const SaveOptions& o, bool beside)
      : function_(function), folder_(folder), step_(step), keep_(o.keep) {
    const Attempt begun(function, [&] {
      check(tree);
      if (index_ == 0) unfinished_.emplace(begin_unfinished(function, folder_, step));
      return json{{"folder", index_ == 0 ? unfinished_->path() : ""},
                  {"arrays", arrays_of(tree)},
                  {"asked", fmt::format("step {} in `{}`{}", step, folder,
                                        o.keep > 0 ? fmt::format(" and keeps {}", o.keep) : "")}};
    });
    const std::vector<json> all = begun.agreed(function, all_, "a folder is made");
    for (std::size_t p = 1; p < all.size(); p++)
      if (all[p]["asked"] != all[0]["asked"])
        throw IoError(
            fmt::format("{}: process 0 saves {}, process {} saves {}. All save one checkpoint in one "
                        "folder, which all can reach. Give the same step and folder in all of them.",
                        function, all[0]["asked"].get<std::string>(), p, all[p]["asked"].get<std::string>()));
    at_ = all[0]["folder"];
    const std::vector<bool> global = global_arrays(tree, all);
    written_ = Attempt(function, [&] {
      own_ = own_pieces(tree, global, index_, file_of(index_), beside);
      files::evaluate_named(function, own_.arrays);
      return nullptr;
    });
    pieces_of_all_.values = files::texts_of(tree);
    pieces_of_all_.step = step;
    for (const auto& [path, array] : tree.arrays)
      pieces_of_all_.arrays[path].type = {array->shape(), array->dtype()};
    const std::lock_guard lock(naming());
    static std::uint64_t begun_ever = 0;
    number_ = begun_ever++;
    under_way().insert(this);
  }
  ~CheckpointSave() {
    const std::lock_guard lock(naming());
    under_way().erase(this);
  }
  CheckpointSave(const CheckpointSave&) = delete;
  CheckpointSave& operator=(const CheckpointSave&) = delete;

  bool is_of_several_processes() const { return all_ != nullptr; }
  /// Failures are thrown by name().
  void write(Pace* pace) {
    if (!written_.has_failed())
      written_ =
          Attempt(function_, [&] { return write_pieces(function_, own_, at_, file_of(index_), pace); });
    own_.arrays.clear();  // frees their memory
  }
  /// Whether it is true in all processes; called by all together, repeatedly, so that none is silent for long.
  bool are_all_done(bool mine) const { return all_say(mine, function_, all_, "pieces are being written"); }
  /// Makes it a checkpoint. Called by all processes together, when each has written.
  void name() {
    try {
      const std::vector<json> said = written_.agreed(function_, all_, "pieces are written");
      const Attempt named(function_, [&] {
        if (index_ == 0) name_as_first(said);
        return nullptr;
      });
      (void)named.agreed(function_, all_, "the checkpoint is named");
      if (index_ == 0) remove_older(function_, folder_, step_, keep_);
    } catch (...) {
      unfinished_.reset();
      throw;
    }
  }

 private:
  void check(const SavedTree& tree) const {
    if (step_ < 0)
      throw Error(fmt::format("{}: step {}. Steps are numbered from 0. Give a number that is none too small.",
                              function_, step_));
    if (keep_ < 0)
      throw Error(fmt::format("{}: keep = {}. So many checkpoints stay; 0 means all. Give 0 or more.",
                              function_, keep_));
    files::check_paths(function_, tree);
    files::computed(function_, tree);
  }
  /// Per array, whether it is one array of all processes.
  std::vector<bool> global_arrays(const SavedTree& tree, const std::vector<json>& begun) const {
    std::vector<bool> global(tree.arrays.size(), true);
    const json& mine = begun[static_cast<std::size_t>(index_)]["arrays"];
    for (std::size_t p = 0; p < begun.size(); p++) {
      const json& other = begun[p]["arrays"];
      for (std::size_t k = 0; k < std::max(mine.size(), other.size()); k++) {
        const auto shown = [&](const json& all) {
          return k < all.size()
                     ? fmt::format("`{}` {}", all[k][0].get<std::string>(), all[k][1].get<std::string>())
                     : "nothing";
        };
        if (shown(mine) != shown(other))
          throw TreeError(fmt::format(
              "{}: array {} of the tree is {} in process {} and {} in process {}. All save the same "
              "tree. Compare their programs.",
              function_, k, shown(mine), index_, shown(other), p));
        global[k] = global[k] && other[k][2] == mine[k][2] && other[k][3] == mine[k][3];
      }
    }
    return global;
  }
  std::string file_of(int process) const {
    return fmt::format("process_{}_of_{}.safetensors", process, all_ == nullptr ? 1 : all_->count());
  }
  void name_as_first(const std::vector<json>& said) {
    for (std::size_t p = 0; p < said.size(); p++)
      for (const json& s : said[p])
        pieces_of_all_.arrays.at(s[0]).pieces.push_back({file_of(static_cast<int>(p)), s[1], shape_of(s[2]),
                                                         shape_of(s[3]),
                                                         s[4].get<std::vector<std::uint32_t>>()});
    const std::string path = at_ + "/" + index_name;
    const std::string text = text_of(function_, path, pieces_of_all_);
    files::FileWriter file(function_, path);
    file.write(text);
    file.commit(true);
    const std::lock_guard lock(naming());
    if (is_replaced_) return unfinished_.reset();  // by a save that began later
    const std::string replaced = finish(function_, at_, folder_, step_);
    unfinished_->is_named();
    settle(function_, folder_, replaced);
    for (CheckpointSave* const other : under_way())
      if (other->number_ < number_ && other->step_ == step_ && is_one_folder(other->folder_, folder_))
        other->is_replaced_ = true;
  }

  const char* const function_;
  const std::string folder_;
  const std::int64_t step_;
  const int keep_;
  Processes* const all_ = other_processes();
  const int index_ = all_ == nullptr ? 0 : all_->index();
  std::optional<UnfinishedCheckpoint> unfinished_;  // in the first process
  std::string at_;                                  // its path
  OwnPieces own_;
  Index pieces_of_all_;
  Attempt written_;
  std::uint64_t number_ = 0;
  bool is_replaced_ = false;  // guarded by naming()
};

/// A save whose pieces are written by a thread.
class Saving::State {
 public:
  /// `beside`: in the background, at low priority.
  State(const char* function, const std::string& folder, std::int64_t step, const SavedTree& tree,
        const SaveOptions& o, bool beside, Where w)
      : function_(function), where_(w), is_beside_(beside), save_(function, folder, step, tree, o, beside) {
    try {
      thread_ = std::thread([this] {
        if (is_beside_) (void)setpriority(PRIO_PROCESS, 0, 15);  // on Linux that of this thread alone
        writing_();
      });
    } catch (const std::system_error&) {  // no thread is available
      pace_.hurry();
      writing_();
    }
  }
  ~State() {
    pace_.hurry();
    if (thread_.joinable()) thread_.join();
    try {
      if (!save_.is_of_several_processes()) wait();
      else if (!waited_)
        fmt::print(stderr, "shardarray: {}: a checkpoint was given up, as wait() was not called. ({}:{})\n",
                   function_, where_.file, where_.line);
    } catch (const std::exception& e) { fmt::print(stderr, "shardarray: {}\n", e.what()); }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  bool is_written() const { return written_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  /// Whether this process was forked from the one that saves: then it has no such thread, and the files are the other's.
  bool is_forked() const { return getpid() != process_; }
  void wait() {
    if (waited_) return;
    if (is_forked())
      throw Error(
          fmt::format("{}: wait() in a process that was forked from the one that saves. The checkpoint is "
                      "the other one's. Wait there.",
                      function_));
    waited_ = true;
    pace_.hurry();
    if (save_.is_of_several_processes()) {
      guarded([&] {
        while (!save_.are_all_done(is_written_soon())) {}
        save_.name();
      });
    }
    written_.get();
  }

 private:
  // No longer than the others wait for an answer.
  bool is_written_soon() const {
    return written_.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
  }
  template <class Work> void guarded(const Work& work) const {
    const Site site(where_, function_);
    shardarray::detail::with_memory(function_, 0, work);
  }

  const char* const function_;
  const Where where_;
  const bool is_beside_;
  Pace pace_;
  const pid_t process_ = getpid();
  CheckpointSave save_;
  bool waited_ = false;
  std::packaged_task<void()> writing_{[this] {
    guarded([&] {
      save_.write(is_beside_ ? &pace_ : nullptr);
      if (!save_.is_of_several_processes()) save_.name();
    });
  }};
  std::shared_future<void> written_ = writing_.get_future().share();
  std::thread thread_;
};

Saving::Saving() noexcept = default;
Saving::Saving(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Saving::Saving(Saving&&) noexcept = default;
Saving& Saving::operator=(Saving&& other) noexcept {
  const Saving before(std::exchange(state_, std::move(other.state_)));
  return *this;
}
Saving::~Saving() {
  if (state_ != nullptr && state_->is_forked()) (void)state_.release();
}
bool Saving::is_written() const { return state_ == nullptr || state_->is_written(); }
void Saving::wait() {
  if (state_ != nullptr) state_->wait();
}

namespace detail {

Saving begin_save(const char* function, const std::string& folder, std::int64_t step, const SavedTree& tree,
                  const SaveOptions& options, bool beside, Where w) {
  const Site site(w, function);
  return Saving(shardarray::detail::with_memory(function, 0, [&] {
    return std::make_unique<Saving::State>(function, folder, step, tree, options, beside, w);
  }));
}

void save_tree(const std::string& folder, std::int64_t step, const SavedTree& tree,
               const SaveOptions& options, Where w) {
  begin_save("checkpoints::save", folder, step, tree, options, false, w).wait();
}

Saving async_save_tree(const std::string& folder, std::int64_t step, const SavedTree& tree,
                       const SaveOptions& options, Where w) {
  return begin_save("checkpoints::async_save", folder, step, tree, options, true, w);
}

}  // namespace detail
}  // namespace checkpoints
}  // namespace shardarray
