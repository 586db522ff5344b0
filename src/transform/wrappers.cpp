// The cold paths of the function wrappers: keys and storage of jit's calls, axes of vmap, misuse that only shows at run time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/per_thread.h"
#include "runtime/modes.h"
#include "shardarray/grad.h"
#include "shardarray/jit.h"
#include "shardarray/shard_map.h"
#include "shardarray/vmap.h"

namespace shardarray {

namespace core {

void JitCall::text(std::string_view s) {
  word(s.size());
  for (std::size_t i = 0; i < s.size(); i += 8) {
    std::uint64_t w = 0;
    std::memcpy(&w, s.data() + i, std::min<std::size_t>(8, s.size() - i));
    word(w);
  }
}
void JitCall::clear() {
  key.clear();
  leaves.clear();
  results.clear();
  moved.clear();
  dies.clear();
  paths.clear();
  statics.clear();
}

namespace {
// Calls nest (a jit inside a jit's trace), so the thread keeps several.
struct SpareCalls : std::vector<std::unique_ptr<JitCall>> {};
SpareCalls& spare_calls() { return PerThread<SpareCalls>::get(); }
}  // namespace

ReusedCall::ReusedCall(const char* function) {
  auto& spare = spare_calls();
  if (spare.empty()) call_ = std::make_unique<JitCall>();
  else {
    call_ = std::move(spare.back());
    spare.pop_back();
  }
  call_->function = function;
  call_->word(reinterpret_cast<std::uintptr_t>(&current_modes()));
}
ReusedCall::~ReusedCall() {
  call_->clear();
  spare_calls().push_back(std::move(call_));
}

}  // namespace core

namespace detail {

void check_static_args(const core::JitOptions& options, std::size_t arguments,
                       std::span<const std::string> paths) {
  for (const int position : options.donate_args)
    if (position < 0 || static_cast<std::size_t>(position) >= arguments)
      throw TreeError(
          fmt::format("{}: donate_args names argument {}, the call has {} arguments. Positions count from "
                      "0. Correct donate_args.",
                      options.name, position, arguments));
  for (const int position : options.static_args) {
    if (position < 0 || static_cast<std::size_t>(position) >= arguments)
      throw TreeError(
          fmt::format("{}: static_args names argument {}, the call has {} arguments. Positions count from 0. "
                      "Correct static_args.",
                      options.name, position, arguments));
    const std::string root = std::to_string(position);
    for (const std::string& path : paths)
      if (path.substr(0, path.find_first_of(".[")) == root)
        throw TreeError(fmt::format(
            "{}: argument {} is static and holds an array at `{}`. Static arguments are part of the "
            "program. Remove {} from static_args, or pass a number.",
            options.name, position, path, position));
  }
}

void check_argnums(std::span<const int> argnums, std::span<const void* const> tags,
                   std::span<const void* const> wanted, const char* function) {
  for (std::size_t k = 0; k < argnums.size(); k++) {
    const int a = argnums[k];
    if (a < 0 || static_cast<std::size_t>(a) >= tags.size())
      throw TreeError(
          fmt::format("{}: argnums names argument {}, the call has {} arguments. Positions count "
                      "from 0. Correct argnums.",
                      function, a, tags.size()));
    if (std::count(argnums.begin(), argnums.end(), a) > 1)
      throw TreeError(fmt::format(
          "{}: argnums names argument {} twice. Every argument has one gradient. Correct argnums.", function,
          a));
    if (tags[static_cast<std::size_t>(a)] != wanted[k])
      throw TreeError(
          fmt::format("{0}: argnums names argument {1} in place {2}, and its type is not that of "
                      "argument {2}. The type of the result is fixed at compile time. Write "
                      "{0}<{3}>(f) instead of argnums.",
                      function, a, k, fmt::join(argnums, ", ")));
  }
}

void check_aux(bool has_aux, bool returns_aux, const char* function) {
  if (has_aux == returns_aux) return;
  throw TreeError(
      has_aux ? fmt::format("{}: has_aux is set and the function returns one Array. With has_aux it returns "
                            "(loss, aux). Return a std::pair, or leave has_aux out.",
                            function)
              : fmt::format("{}: the function returns (loss, aux) and has_aux is not set. Without has_aux it "
                            "returns one Array. Say {{.has_aux = true}}.",
                            function));
}

void check_tangent(const Array& primal, const Array& tangent, const Path& path, const char* function) {
  if (!tangent.has_value()) return;
  if (!is_inexact_array(primal))
    throw DTypeError(fmt::format(
        "{}: there is a tangent for `{}`, which is {}. Only floating-point arrays have tangents. Leave "
        "it absent (Array()).",
        function, path.text(), primal.has_value() ? primal.type_string() : "absent"));
  if (primal.dtype() != tangent.dtype())
    throw DTypeError(
        fmt::format("{}: the tangent of `{}` is {}, the value {}. Both must have the same dtype. "
                    "Convert it with astype().",
                    function, path.text(), name(tangent.dtype()), name(primal.dtype())));
  if (primal.shape() != tangent.shape())
    throw ShapeError(
        fmt::format("{}: the tangent of `{}` has shape {}, the value {}. Both must have the same "
                    "shape. Broadcast it first.",
                    function, path.text(), shardarray::to_string(tangent.shape()),
                    shardarray::to_string(primal.shape())));
}

}  // namespace detail

namespace {
// `[0][1]`: the place in a list of axes that belongs to a path.
std::string list_place(const Path& path) {
  if (!path.up) return path.count ? fmt::format("[{}]", path.ordinal) : "";
  return list_place(*path.up) + fmt::format("[{}]", path.ordinal);
}
}  // namespace

// The entry of nested lists for a path. `Tree` has is_list and entries.
template <class Tree, class List>
static const Tree& entry_at(const Tree& root, const Path& path, const List& list, const char* function,
                            const char* option, const char* entry) {
  if (!path.up && !path.count) return root;
  const Tree& parent = path.up ? entry_at(root, *path.up, list, function, option, entry) : root;
  const std::vector<Tree>* entries = list(parent);
  if (!entries) return parent;
  if (entries->size() == path.count) return (*entries)[path.ordinal];
  const std::string of = path.up ? list_place(*path.up) : "";
  throw TreeError(fmt::format(
      "{}: {}{} has {} entries for {} parts. A list needs one entry for each argument, element or "
      "field. Write one {} for all of them, or one for each.",
      function, option, of, entries->size(), path.count, entry));
}

std::optional<std::int64_t> Axes::at(const Path& path, const char* function, const char* option) const {
  const auto list = [](const Axes& a) { return a.is_list_ ? &a.entries_ : nullptr; };
  const Axes& e = entry_at(*this, path, list, function, option, "number or none");
  if (e.is_list_)
    throw TreeError(fmt::format(
        "{}: {}{} is a list of {} entries for one array. An array has one axis. Write a number or "
        "none there.",
        function, option, list_place(path), e.entries_.size()));
  return e.axis_;
}

const PartitionSpec& Specs::at(const Path& path, const char* option) const {
  const auto list = [](const Specs& s) { return s.is_list_ ? &s.entries_ : nullptr; };
  const Specs& e = entry_at(*this, path, list, "shard_map", option, "spec");
  if (e.is_list_)
    throw TreeError(
        fmt::format("shard_map: {}{} is a list of {} entries for one array. An array has one spec.", option,
                    list_place(path), e.entries_.size()));
  return e.spec_;
}

}  // namespace shardarray
