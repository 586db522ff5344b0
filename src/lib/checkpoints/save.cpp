// Saving: every process writes the pieces whose first device is one of its own, the first process says that they are a checkpoint.
#include <fmt/format.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <utility>

#include "base/descriptor.h"
#include "lib/checkpoints/folder.h"
#include "lib/checkpoints/index.h"
#include "lib/files/named.h"
#include "lib/files/safetensors.h"
#include "lib/files/saved_tree.h"
#include "runtime/processes.h"
#include "shardarray/checkpoints.h"
#include "shardarray/complex.h"
#include "shardarray/ops.h"

namespace shardarray {

namespace checkpoints {

namespace {

using nlohmann::json;
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

/// The pieces of a tree that this process writes, and what the index says of them.
struct OwnPieces {
  std::map<std::string, Array> arrays;                          ///< by key
  std::map<std::string, std::pair<std::string, Piece>> places;  ///< key -> path, piece
};

namespace {

/// `global`: of every array, whether it is one array of all processes; else each has one of its own, and that of the first counts.
OwnPieces own_pieces(const SavedTree& tree, const std::vector<bool>& global, int process,
                     const std::string& file) {
  OwnPieces r;
  for (std::size_t k = 0; k < tree.arrays.size(); k++) {
    if (!global[k] && process != 0) continue;
    const auto& [path, array] = tree.arrays[k];
    for (const Shard& s : array->addressable_shards()) {
      Piece p{file, path + "@", {}, s.data.shape(), {}};
      if (s.replica_id != 0 || num_elements(p.shape) == 0) continue;
      for (std::size_t d = 0; d < s.index.size(); d++) {
        p.start.push_back(s.index[d].start);
        p.key += fmt::format("{}{}", d == 0 ? "" : ",", s.index[d].start);
      }
      const bool parts = is_complex(s.data.dtype());  // the format has no complex numbers
      r.arrays.emplace(p.key, parts ? stack({real(s.data), imag(s.data)}, -1) : s.data);
      const std::string key = p.key;
      r.places.emplace(key, std::pair(path, std::move(p)));
    }
  }
  return r;
}

/// Writes them, and gives what the index says of them.
json write_pieces(const char* function, const OwnPieces& own, const std::string& folder,
                  const std::string& name) {
  json said = json::array();
  if (own.arrays.empty()) return said;
  std::map<std::string, Checksums> sums;
  const std::string path = folder + "/" + name;
  files::FileWriter file(function, path);
  const auto watch = [&](const std::string& key, std::span<const std::byte> bytes) { sums[key].add(bytes); };
  const files::Watch watching = watch;
  files::write_safetensors(file, function, path, own.arrays, {}, &watching);
  file.commit(true);
  for (const auto& [key, place] : own.places)
    said.push_back(json::array(
        {place.first, key, list_of(place.second.start), list_of(place.second.shape), sums[key].sums}));
  return said;
}

/// What all processes say: errors of one are thrown in all.
std::vector<json> agreed(const char* function, Processes* all, const char* what, const json& mine) {
  std::vector<json> r{mine};
  if (all != nullptr) {
    r.clear();
    const std::string text_of_mine = mine.dump(-1, ' ', false, json::error_handler_t::replace);
    for (const std::string& text : all->all_gather(fmt::format("{}: {}", function, what), text_of_mine))
      r.push_back(json::parse(text));
  }
  for (std::size_t p = 0; p < r.size(); p++)
    if (r[p].contains("error")) {
      const std::string text = r[p]["error"];
      throw IoError(all == nullptr || static_cast<int>(p) == all->index()
                        ? text
                        : fmt::format("{} (in process {})", text, p));
    }
  return r;
}
/// Of every array: the first device that holds it, as this process sees it.
std::vector<int> places_of(const SavedTree& tree) {
  std::vector<int> r;
  for (const auto& [path, array] : tree.arrays) r.push_back(array->devices()[0].id);
  return r;
}
/// What `work` gives, or what went wrong in it.
template <class Work> json attempt(const char* function, Work work) {
  try {
    return {{"done", work()}};
  } catch (const Error& e) { return {{"error", e.text()}}; } catch (const std::exception& e) {
    return {{"error", fmt::format("{}: {}", function, e.what())}};  // the others would wait for this process
  }
}

}  // namespace

/// An unfinished checkpoint, which is removed unless it is named.
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

/// One save: what it writes is known when it is constructed, by all processes together.
class CheckpointSave {
 public:
  CheckpointSave(const char* function, std::string folder, std::int64_t step, const SavedTree& tree,
                 const SaveOptions& o)
      : function_(function), folder_(std::move(folder)), step_(step), keep_(o.keep) {
    check(tree);
    const std::vector<json> begun =
        agreed(function, all_, "a folder is made", attempt(function, [&] {
                 if (index_ == 0) unfinished_.emplace(begin_unfinished(function, folder_, step));
                 return json{{"folder", index_ == 0 ? unfinished_->path() : ""}, {"places", places_of(tree)}};
               }));
    at_ = begun[0]["done"]["folder"];
    const std::vector<bool> global = global_arrays(tree, begun);
    written_ = attempt(function, [&] {
      own_ = own_pieces(tree, global, index_, file_of(index_));
      files::evaluate_named(function, own_.arrays);
      return false;
    });
    pieces_of_all_.values = files::texts_of(tree);
    pieces_of_all_.step = step;
    for (const auto& [path, array] : tree.arrays)
      pieces_of_all_.arrays[path].type = {array->shape(), array->dtype()};
  }

  bool is_of_several_processes() const { return all_ != nullptr; }
  /// What goes wrong is thrown by name().
  void write() {
    if (!written_.contains("error"))
      written_ = attempt(function_, [&] { return write_pieces(function_, own_, at_, file_of(index_)); });
    own_.arrays.clear();  // their memory
  }
  /// All processes together, when each has written.
  void name() {
    try {
      const std::vector<json> said = agreed(function_, all_, "pieces are written", written_);
      (void)agreed(function_, all_, "the checkpoint is named", attempt(function_, [&] {
                     if (index_ == 0) name_as_first(said);
                     return true;
                   }));
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
  /// Of every array, whether it is one array of all processes.
  std::vector<bool> global_arrays(const SavedTree& tree, const std::vector<json>& begun) const {
    std::vector<bool> global(tree.arrays.size(), true);
    for (const json& b : begun) {
      const json& places = b["done"]["places"];
      if (places.size() != global.size())
        throw TreeError(
            fmt::format("{}: a tree of {} arrays, in another process one of {}. All save the same tree. "
                        "Compare their programs.",
                        function_, global.size(), places.size()));
      for (std::size_t k = 0; k < global.size(); k++)
        global[k] = global[k] && places[k] == begun[0]["done"]["places"][k];
    }
    return global;
  }
  std::string file_of(int process) const {
    return fmt::format("process_{}_of_{}.safetensors", process, all_ == nullptr ? 1 : all_->count());
  }
  void name_as_first(const std::vector<json>& said) {
    for (std::size_t p = 0; p < said.size(); p++)
      for (const json& s : said[p]["done"])
        pieces_of_all_.arrays.at(s[0]).pieces.push_back({file_of(static_cast<int>(p)), s[1], shape_of(s[2]),
                                                         shape_of(s[3]),
                                                         s[4].get<std::vector<std::uint32_t>>()});
    const std::string path = at_ + "/" + index_name;
    const std::string text = text_of(function_, path, pieces_of_all_);
    files::FileWriter file(function_, path);
    file.write(text);
    file.commit(true);
    finish(function_, at_, folder_, step_, keep_);
    unfinished_->is_named();
  }

  const char* const function_;
  const std::string folder_;
  const std::int64_t step_;
  const int keep_;
  Processes* const all_ = other_processes();
  const int index_ = all_ == nullptr ? 0 : all_->index();
  std::optional<UnfinishedCheckpoint> unfinished_;  // of the first process
  std::string at_;                                  // its path
  OwnPieces own_;
  Index pieces_of_all_;
  json written_;
};

namespace detail {

void save_tree(const std::string& folder, std::int64_t step, const SavedTree& tree,
               const SaveOptions& options, Where w) {
  constexpr const char* function = "checkpoints::save";
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] {
    CheckpointSave save(function, folder, step, tree, options);
    save.write();
    save.name();
  });
}

}  // namespace detail

class Saving::State {
 public:
  static constexpr const char* function = "checkpoints::async_save";
  State(const std::string& folder, std::int64_t step, const SavedTree& tree, const SaveOptions& o, Where w)
      : where_(w), save_(function, folder, step, tree, o), thread_([this] { work(); }) {}
  ~State() {
    thread_.join();
    try {
      if (!save_.is_of_several_processes()) wait();
      else if (!waited_)
        fmt::print(stderr, "shardarray: {}: a checkpoint was given up, as wait() was not called. ({}:{})\n",
                   function, where_.file, where_.line);
    } catch (const std::exception& e) { fmt::print(stderr, "shardarray: {}\n", e.what()); }
  }
  bool is_written() const { return written_; }
  void wait() {
    if (waited_) return;
    waited_ = true;
    written_.wait(false);
    if (failed_) std::rethrow_exception(failed_);
    if (save_.is_of_several_processes()) guarded([&] { save_.name(); });
  }

 private:
  template <class Work> void guarded(const Work& work) const {
    const Site site(where_, function);
    shardarray::detail::with_memory(function, 0, work);
  }
  void work() {
    // The program comes first: on Linux this is the priority of this thread alone, which beside busy ones gets 1.5 % of a core.
    (void)setpriority(PRIO_PROCESS, 0, 19);
    try {
      guarded([&] {
        save_.write();
        if (!save_.is_of_several_processes()) save_.name();
      });
    } catch (...) { failed_ = std::current_exception(); }
    written_ = true;
    written_.notify_all();
  }

  const Where where_;
  CheckpointSave save_;
  bool waited_ = false;
  std::exception_ptr failed_;
  std::atomic<bool> written_ = false;
  std::thread thread_;  // the last: it uses the others
};

Saving::Saving() noexcept = default;
Saving::Saving(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Saving::Saving(Saving&&) noexcept = default;
Saving& Saving::operator=(Saving&&) noexcept = default;
Saving::~Saving() = default;
bool Saving::is_written() const { return state_ == nullptr || state_->is_written(); }
void Saving::wait() {
  if (state_ != nullptr) state_->wait();
}

namespace detail {

Saving async_save_tree(const std::string& folder, std::int64_t step, const SavedTree& tree,
                       const SaveOptions& options, Where w) {
  constexpr const char* function = Saving::State::function;
  const Site site(w, function);
  return Saving(shardarray::detail::with_memory(
      function, 0, [&] { return std::make_unique<Saving::State>(folder, step, tree, options, w); }));
}

}  // namespace detail
}  // namespace checkpoints
}  // namespace shardarray
