// Restoring: an array is read in row-major order from the pieces that hold it, however it was sharded.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <system_error>

#include "base/complex_parts.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/host_stream.h"
#include "lib/checkpoints/attempt.h"
#include "lib/checkpoints/folder.h"
#include "lib/checkpoints/index.h"
#include "lib/files/safetensors.h"
#include "lib/files/saved_tree.h"
#include "runtime/devices.h"
#include "runtime/modes.h"
#include "shardarray/checkpoints.h"

namespace shardarray {

namespace checkpoints {

namespace {

using shardarray::detail::SavedTree;

/// The files of a checkpoint, opened when they are needed.
class Files {
 public:
  Files(const char* function, std::string folder) : function_(function), folder_(std::move(folder)) {}
  struct Place {
    const files::FileReader* file;
    std::uint64_t begin;
  };
  /// Where the bytes of a piece are. Throws IoError if they are missing.
  Place place_of(const Piece& p, DType dtype) {
    auto& opened = files_[p.file];
    if (!opened) opened = std::make_unique<Opened>(function_, folder_ + "/" + p.file);
    Type expected{p.shape, part_type(dtype)};
    if (is_complex(dtype)) expected.shape.push_back(2);
    const auto entry = opened->entries.find(p.key);
    if (entry == opened->entries.end())
      opened->file.fail(fmt::format("lacks `{}`, which the index names", files::shown(p.key)), damage_advice);
    const Type& there = entry->second->type;
    if (there.shape != expected.shape || there.dtype != expected.dtype)
      opened->file.fail(fmt::format("has `{}` as {}, by the index it is {}", files::shown(p.key),
                                    to_string(there), to_string(expected)),
                        damage_advice);
    return {&opened->file, opened->header.bytes + entry->second->begin};
  }

 private:
  struct Opened {
    Opened(const char* function, const std::string& path)
        : file(function, path), header(files::read_safetensors_header(file)) {
      for (const files::TensorEntry& e : header.tensors) entries.emplace(e.name, &e);
    }
    files::FileReader file;
    files::SafetensorsHeader header;
    std::map<std::string, const files::TensorEntry*> entries;
  };
  const char* function_;
  std::string folder_;
  std::map<std::string, std::unique_ptr<Opened>> files_;
};

/// The bytes of one piece, read in order: each block is read once, as a whole, and checked.
class PieceReader {
 public:
  PieceReader(const Piece& piece, DType dtype, Files& files)
      : piece_(&piece),
        bytes_(static_cast<std::uint64_t>(bytes_of(piece.shape, dtype))),
        dtype_(dtype),
        files_(&files) {}
  void read(std::uint64_t at, std::span<std::byte> to) {
    while (!to.empty()) {
      need(at / block_bytes);
      const std::uint64_t in_block = at % block_bytes;
      const std::size_t n = std::min(to.size(), block_.size() - in_block);
      std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(in_block), n, to.begin());
      to = to.subspan(n);
      at += n;
    }
  }

 private:
  void need(std::uint64_t block) {
    if (block == held_) return;
    if (place_.file == nullptr) place_ = files_->place_of(*piece_, dtype_);
    const std::uint64_t begin = block * block_bytes;
    block_.resize(std::min<std::uint64_t>(block_bytes, bytes_ - begin));
    place_.file->read(place_.begin + begin, block_.data(), block_.size());
    held_ = block;
    const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(block_.data()), block_.size());
    if (sum != piece_->checksums[block])
      place_.file->fail(fmt::format("`{}` is damaged between bytes {} and {}", files::shown(piece_->key),
                                    place_.begin + begin, place_.begin + begin + block_.size()),
                        damage_advice);
  }
  const Piece* piece_;
  std::uint64_t bytes_;
  DType dtype_;
  Files* files_;
  Files::Place place_{nullptr, 0};
  std::vector<std::byte> block_;
  std::uint64_t held_ = ~std::uint64_t{0};
};

/// The bytes of an array in row-major order. The last dimension is counted in bytes; dimensions that no piece splits are merged with the
/// one before.
class ArrayReader {
 public:
  ArrayReader(const StoredArray& a, Files& files) {
    shape_ = counted_in_bytes(a.type.shape, a.type.dtype, true);
    for (const Piece& p : a.pieces)
      boxes_.push_back({counted_in_bytes(p.start, a.type.dtype, false),
                        counted_in_bytes(p.shape, a.type.dtype, true), PieceReader(p, a.type.dtype, files)});
    while (shape_.size() > 1 && std::all_of(boxes_.begin(), boxes_.end(),
                                            [&](const Box& b) { return b.shape.back() == shape_.back(); })) {
      const std::int64_t line = shape_.back();
      for (Box& b : boxes_) {
        join(b.shape, line);
        b.start.pop_back();
        b.start.back() *= line;
      }
      join(shape_, line);
    }
  }
  void pass(std::size_t bytes) { at_ += static_cast<std::int64_t>(bytes); }
  void read(std::span<std::byte> to) {
    const std::int64_t line = shape_.back();
    while (!to.empty()) {
      const std::int64_t first = at_ % line;
      const auto n = std::min<std::int64_t>(line - first, static_cast<std::int64_t>(to.size()));
      for (Box& b : boxes_) read_line(b, at_ / line, first, to.first(static_cast<std::size_t>(n)));
      to = to.subspan(static_cast<std::size_t>(n));
      at_ += n;
    }
  }

 private:
  using Sizes = std::vector<std::int64_t>;
  struct Box {
    Sizes start, shape;
    PieceReader reader;
  };
  static Sizes counted_in_bytes(const Shape& s, DType t, bool is_shape) {
    Sizes r = s.empty() ? Sizes{is_shape ? 1 : 0} : Sizes(s.begin(), s.end());
    r.back() *= static_cast<std::int64_t>(itemsize(t));
    return r;
  }
  static void join(Sizes& s, std::int64_t line) {
    s.pop_back();
    s.back() *= line;
  }
  /// Reads the part of line number `line` from byte `first` on that is in the box.
  void read_line(Box& b, std::int64_t line, std::int64_t first, std::span<std::byte> to) const {
    std::int64_t row = 0, scale = 1;  // of the line within the box
    for (std::size_t d = shape_.size() - 1; d-- > 0;) {
      const std::int64_t k = line % shape_[d] - b.start[d];
      line /= shape_[d];
      if (k < 0 || k >= b.shape[d]) return;
      row += k * scale;
      scale *= b.shape[d];
    }
    const std::int64_t from = std::max(first, b.start.back()),
                       end = std::min(first + static_cast<std::int64_t>(to.size()),
                                      b.start.back() + b.shape.back());
    if (from >= end) return;
    b.reader.read(static_cast<std::uint64_t>(row * b.shape.back() + from - b.start.back()),
                  to.subspan(static_cast<std::size_t>(from - first), static_cast<std::size_t>(end - from)));
  }

  Sizes shape_;
  std::vector<Box> boxes_;
  std::int64_t at_ = 0;
};

Array read_array(const StoredArray& a, bool weak, Files& files, const files::Home& home) {
  ArrayReader reader(a, files);
  const auto fill = [&](std::span<std::byte> to) { reader.read(to); };
  const auto pass = [&](std::size_t bytes) { reader.pass(bytes); };
  const Pass passing = pass;
  Type t = a.type;
  t.weak = weak;
  return files::load_array(t, home, {}, fill, &passing);
}

std::int64_t chosen(const char* function, const std::string& folder, const RestoreOptions& o) {
  if (o.step && *o.step < 0)
    throw Error(
        fmt::format("{}: step {}. Steps are numbered from 0. Give one of steps().", function, *o.step));
  return existing(function, folder, o.step.value_or(-1));
}
std::string path_of_chosen(const char* function, const std::string& folder, const RestoreOptions& o) {
  return path_of(folder, chosen(function, folder, o));
}
/// The first process chooses the step for all, as another program may save meanwhile. All tell which one they were asked for.
std::int64_t chosen_by_all(const char* function, const std::string& folder, const RestoreOptions& o,
                           Processes* all) {
  const Attempt found(function, [&] {
    const bool asks = o.step || all == nullptr || all->index() == 0;
    const std::int64_t step = asks ? chosen(function, folder, o) : -1;
    return nlohmann::json{{"step", step},
                          {"asked", o.step ? fmt::format("step {}", step) : "the latest step"},
                          {"part", o.part}};
  });
  const auto said = found.agreed(function, all, "a checkpoint is chosen");
  for (std::size_t p = 1; p < said.size(); p++) {
    const bool are_parts = said[p]["part"] != said[0]["part"];
    if (!are_parts && said[p]["asked"] == said[0]["asked"]) continue;
    const auto told = [&](std::size_t q) {
      auto text = said[q]["asked"].get<std::string>();
      if (!are_parts) return text;
      const auto part = said[q]["part"].get<std::string>();
      return text + (part.empty() ? ", all of it" : fmt::format(", its part `{}`", files::shown(part)));
    };
    throw Error(
        fmt::format("{}: process 0 restores {}, process {} restores {}. All restore the same. Compare their "
                    "programs.",
                    function, told(0), p, told(p)));
  }
  return said[0]["step"].get<std::int64_t>();
}
Index index_of(const char* function, const std::string& path) {
  return read_index(files::FileReader(function, path + "/" + index_name));
}

/// Reads on a thread, so that no process is silent for longer than the others wait, however long reading takes.
Attempt beside_the_others(const char* function, Processes& all,
                          shardarray::detail::FunctionRef<Attempt()> read) {
  std::future<Attempt> reading;
  try {
    reading = std::async(std::launch::async, [&] { return read(); });
  } catch (const std::system_error&) {  // no thread is available
    std::promise<Attempt> done;
    done.set_value(read());
    reading = done.get_future();
  }
  const auto is_read = [&] {
    return reading.wait_for(std::chrono::milliseconds(500)) == std::future_status::ready;
  };
  while (!all_say(is_read(), function, &all, "arrays are being restored")) {}
  return reading.get();
}

/// What will be read, and where it goes; known before anything is read.
struct Restored {
  std::string path;
  Index index;
  std::vector<std::string> values;
  std::vector<files::Home> homes;
};
/// The entries below `part`, by their paths relative to it; if it is a leaf, that alone.
template <class Stored>
std::map<std::string, Stored> below(const std::string& part, const std::map<std::string, Stored>& all) {
  if (const auto leaf = all.find(part); leaf != all.end()) return {{"", leaf->second}};
  std::map<std::string, Stored> r;
  for (const auto& [path, stored] : all) {
    if (!path.starts_with(part)) continue;
    const std::string rest = path.substr(part.size());
    if (rest[0] == '[') r.emplace(rest, stored);
    else if (rest[0] == '.') r.emplace(rest.substr(1), stored);
  }
  return r;
}
/// `may_be_nowhere`: the part may be absent, as the tree has no leaves.
void take_part(const char* function, const std::string& path, Index& index, const std::string& part,
               bool may_be_nowhere) {
  if (part.empty()) return;
  const std::map<std::string, StoredArray> all = std::move(index.arrays);
  std::map<std::string, std::string> values = std::move(index.values);
  const bool is_leaf = all.contains(part) || values.contains(part);
  index.arrays = is_leaf && !all.contains(part) ? decltype(index.arrays)() : below(part, all);
  index.values = is_leaf && !values.contains(part) ? decltype(index.values)() : below(part, values);
  const bool is_there = !index.arrays.empty() || !index.values.empty();
  index.values.insert(values.extract(files::tree_mark));
  if (is_there || may_be_nowhere) return;
  std::string list;
  for (const auto& [name, array] : all)
    if (list.size() < 60) list += fmt::format("{}`{}`", list.empty() ? "" : ", ", files::shown(name));
  throw TreeError(
      fmt::format("{}: {}: it has nothing at `{}`. The option `part` is the path of a part of the tree that "
                  "was saved, as `[0]` or `model.layers`; arrays are {}. Check it.",
                  function, path, files::shown(part), list.empty() ? "nowhere" : "at " + list));
}
/// The part whose leaves are those of this tree, if the whole has other ones; empty: there is none.
std::string part_of(const Index& index, const SavedTree& tree) {
  if (tree.arrays.empty()) return "";
  const auto& [first, leaf] = tree.arrays[0];
  for (const auto& [path, stored] : index.arrays) {
    if (!path.ends_with(first) || path.size() == first.size()) continue;
    std::string part = path.substr(0, path.size() - first.size());
    if (part.ends_with('.')) part.pop_back();
    const auto leaves = below(part, index.arrays);
    if (leaves.size() == tree.arrays.size() &&
        std::ranges::all_of(tree.arrays, [&](const auto& a) { return leaves.contains(a.first); }))
      return part;
  }
  return "";
}
Restored what_is_restored(const char* function, const std::string& path, const SavedTree& tree,
                          const RestoreOptions& o) {
  Restored r{path, index_of(function, path), {}, {}};
  take_part(function, path, r.index, o.part, tree.arrays.empty() && tree.statics.empty());
  std::map<std::string, Type> stored;
  for (const auto& [name, a] : r.index.arrays) stored.emplace(name, a.type);
  const std::string place = o.part.empty() ? path : fmt::format("{}, its `{}`", path, files::shown(o.part));
  try {
    files::check_arrays(function, place, std::move(stored), tree);
    r.values = files::values_of(function, place, r.index.values, tree);
  } catch (const TreeError& e) {
    const std::string part = o.part.empty() ? part_of(r.index, tree) : "";
    if (part.empty()) throw;
    throw TreeError(fmt::format("{} The part `{}` of it has these leaves: say {{.part = \"{}\"}}.", e.text(),
                                files::shown(part), files::shown(part)));
  }
  r.homes = files::homes_of(function, tree, o.sharding, o.shardings);
  return r;
}
/// Communicates with no other process.
std::vector<Array> read_arrays(const char* function, const Restored& r, const SavedTree& tree) {
  Files opened(function, r.path);
  std::vector<Array> loaded;
  for (std::size_t k = 0; k < r.homes.size(); k++) {
    const auto& [name, like] = tree.arrays[k];
    loaded.push_back(read_array(r.index.arrays.at(name), type_of(*like).weak, opened, r.homes[k]));
  }
  return loaded;
}

}  // namespace

namespace detail {

void restore_tree(const std::string& folder, const SavedTree& tree, const RestoreOptions& options, Where w) {
  constexpr const char* function = "checkpoints::restore";
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] {
    Processes* const all = other_processes();
    const std::string path = path_of(folder, chosen_by_all(function, folder, options, all));
    Restored r;
    const Attempt begun(function, [&] {
      r = what_is_restored(function, path, tree, options);
      return r.index.checksum;
    });
    const auto said = begun.agreed(function, all, "a checkpoint is opened");
    for (std::size_t p = 0; p < said.size(); p++)
      if (said[p] != said[0])
        files::fail(
            function, path, fmt::format("is another checkpoint in process {} than in process 0", p),
            "It was replaced meanwhile, or the path is of another disk there. Restore it again from a "
            "folder that all can reach.");
    std::vector<Array> loaded;
    const Modes* const modes = &current_modes();
    const auto read = [&] {
      const ScopedModes same(modes);
      const Site here(w, function);
      return Attempt(function, [&] {
        loaded = shardarray::detail::with_memory(function, 0, [&] { return read_arrays(function, r, tree); });
        return nullptr;
      });
    };
    (void)(all == nullptr ? read() : beside_the_others(function, *all, read))
        .agreed(function, all, "arrays are restored");
    files::set_leaves(tree, std::move(loaded), r.values);
  });
}

}  // namespace detail

std::vector<std::int64_t> steps(const std::string& folder, Where w) {
  const Site site(w, "checkpoints::steps");
  return steps_in("checkpoints::steps", folder);
}

std::optional<std::int64_t> latest(const std::string& folder, Where w) {
  const Site site(w, "checkpoints::latest");
  const std::vector<std::int64_t> all = steps_in("checkpoints::latest", folder);
  return all.empty() ? std::nullopt : std::optional(all.back());
}

Metadata metadata(const std::string& folder, const RestoreOptions& options, Where w) {
  constexpr const char* function = "checkpoints::metadata";
  const Site site(w, function);
  const std::string path = path_of_chosen(function, folder, options);
  Index index = index_of(function, path);
  take_part(function, path, index, options.part, false);
  index.values.erase(files::tree_mark);
  Metadata r{index.step, {}, std::move(index.values)};
  for (const auto& [name, a] : index.arrays) r.arrays[name] = {a.type.shape, a.type.dtype};
  return r;
}

void convert(const std::string& folder, const std::string& path, const RestoreOptions& options, Where w) {
  constexpr const char* function = "checkpoints::convert";
  const Site site(w, function);
  shardarray::detail::with_memory(function, 0, [&] {
    const std::string from = path_of_chosen(function, folder, options);
    Index index = index_of(function, from);
    take_part(function, from, index, options.part, false);
    Files opened(function, from);
    std::map<std::string, Array> arrays;
    for (const auto& [name, a] : index.arrays)
      arrays.emplace(name,
                     read_array(a, false, opened, files::home_of(function, std::nullopt, a.type, name)));
    files::FileWriter file(function, path);
    files::write_safetensors(file, function, path, arrays, index.values);
    file.commit(true);
  });
}

}  // namespace checkpoints
}  // namespace shardarray
