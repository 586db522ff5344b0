// Saving: every process writes the pieces whose first device is one of its own, the first process says that they are a checkpoint.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>

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

constexpr const char* function = "checkpoints::save";

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

/// The pieces of a tree that this process writes, and what the index says of them.
struct OwnPieces {
  std::map<std::string, Array> arrays;                          ///< by key
  std::map<std::string, std::pair<std::string, Piece>> places;  ///< key -> path, piece
};

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
json write_pieces(OwnPieces own, const std::string& folder, const std::string& name) {
  json said = json::array();
  if (own.arrays.empty()) return said;
  std::map<std::string, Checksums> sums;
  const std::string path = folder + "/" + name;
  files::FileWriter file(function, path);
  const auto watch = [&](const std::string& key, std::span<const std::byte> bytes) { sums[key].add(bytes); };
  const files::Watch watching = watch;
  files::evaluate_named(function, own.arrays);
  files::write_safetensors(file, function, path, own.arrays, {}, &watching);
  file.commit(true);
  for (const auto& [key, place] : own.places)
    said.push_back(json::array(
        {place.first, key, list_of(place.second.start), list_of(place.second.shape), sums[key].sums}));
  return said;
}

/// What all processes say: errors of one are thrown in all.
std::vector<json> agreed(Processes* all, const char* what, const json& mine) {
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
template <class Work> json attempt(Work work) {
  try {
    return {{"done", work()}};
  } catch (const Error& e) { return {{"error", e.text()}}; } catch (const std::exception& e) {
    return {{"error", fmt::format("{}: {}", function, e.what())}};  // the others would wait for this process
  }
}

void save_leaves(const std::string& folder, std::int64_t step, const SavedTree& tree, const SaveOptions& o) {
  if (step < 0)
    throw Error(fmt::format("{}: step {}. Steps are numbered from 0. Give a number that is none too small.",
                            function, step));
  if (o.keep < 0)
    throw Error(fmt::format("{}: keep = {}. So many checkpoints stay; 0 means all. Give 0 or more.", function,
                            o.keep));
  files::check_paths(function, tree);
  files::computed(function, tree);
  Processes* const all = other_processes();
  const int index = all == nullptr ? 0 : all->index(), count = all == nullptr ? 1 : all->count();
  const bool first = index == 0;
  const std::vector<json> begun =
      agreed(all, "a folder is made", attempt([&] {
               return json{{"folder", first ? begin_unfinished(function, folder, step) : ""},
                           {"places", places_of(tree)}};
             }));
  const std::string unfinished = begun[0]["done"]["folder"];
  try {
    std::vector<bool> global(tree.arrays.size(), true);
    for (const json& b : begun) {
      const json& places = b["done"]["places"];
      if (places.size() != global.size())
        throw TreeError(
            fmt::format("{}: a tree of {} arrays, in another process one of {}. All save the same tree. "
                        "Compare their programs.",
                        function, global.size(), places.size()));
      for (std::size_t k = 0; k < global.size(); k++)
        global[k] = global[k] && places[k] == begun[0]["done"]["places"][k];
    }
    const std::string name = fmt::format("process_{}_of_{}.safetensors", index, count);
    const std::vector<json> said = agreed(
        all, "pieces are written",
        attempt([&] { return write_pieces(own_pieces(tree, global, index, name), unfinished, name); }));
    (void)agreed(all, "the checkpoint is named", attempt([&] {
                   if (!first) return true;
                   Index all_pieces{step, {}, files::texts_of(tree)};
                   for (const auto& [path, array] : tree.arrays)
                     all_pieces.arrays[path].type = {array->shape(), array->dtype()};
                   for (std::size_t p = 0; p < said.size(); p++)
                     for (const json& s : said[p]["done"])
                       all_pieces.arrays.at(s[0]).pieces.push_back(
                           {fmt::format("process_{}_of_{}.safetensors", p, count), s[1], shape_of(s[2]),
                            shape_of(s[3]), s[4].get<std::vector<std::uint32_t>>()});
                   const std::string path = unfinished + "/" + index_name;
                   const std::string text = text_of(function, path, all_pieces);
                   files::FileWriter file(function, path);
                   file.write(text);
                   file.commit(true);
                   finish(function, unfinished, folder, step, o.keep);
                   return true;
                 }));
  } catch (...) {
    if (first) give_up(unfinished);
    throw;
  }
}

}  // namespace

namespace detail {

void save_tree(const std::string& folder, std::int64_t step, const SavedTree& tree,
               const SaveOptions& options, Where w) {
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] { save_leaves(folder, step, tree, options); });
}

}  // namespace detail
}  // namespace checkpoints
}  // namespace shardarray
