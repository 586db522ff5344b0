// The cold paths of trees: path texts, comparison of structures, errors.
#include "shardarray/tree.h"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <mutex>

#include "base/count_text.h"
#include "base/intern_table.h"
#include "layout/sharding_impl.h"

namespace shardarray {

std::string Path::text() const {
  if (!up) return count ? fmt::format("{}", ordinal) : "";
  const std::string parent = up->text();
  if (name.empty()) return fmt::format("{}[{}]", parent, ordinal);
  return parent.empty() ? std::string(name) : fmt::format("{}.{}", parent, name);
}

namespace detail {

namespace {

using Kind = StaticValue::Kind;

std::string place(const Path& path) {
  const std::string text = path.text();
  return text.empty() ? "at its root" : fmt::format("at `{}`", text);
}
std::shared_ptr<const NumberedText> numbered(const std::string& text) {
  static auto& texts = *new InternTable<std::string, NumberedText>;
  static std::atomic<std::uint64_t> numbers{1};
  return texts.get(text, [](const std::string& s) {
    return std::make_shared<const NumberedText>(NumberedText{numbers++, s});
  });
}
// The text with its device ids: spellings name only axes and sizes.
template <class T>
NumberedSpelling with_ids(const T& x, const std::vector<Device>& devices, const SpelledOnce& spelled) {
  std::call_once(spelled.once, [&] {
    std::string text = x.to_string();
    for (const Device& d : devices) text += fmt::format(" {}:{}", d.platform, d.id);
    spelled.text = numbered(text);
  });
  return {spelled.text->number, spelled.text->text};
}

}  // namespace

std::string spelling(const std::vector<bool>& v) {
  std::string s;
  for (const bool b : v) s += b ? '1' : '0';
  return s;
}
std::string spelling(const Shape& s) { return to_string(s); }
std::string spelling(const Device& d) { return to_string(d); }
std::string spelling(const PartitionSpec& p) { return p.to_string(); }
NumberedSpelling spelling(const Mesh& m) { return with_ids(m, m.devices(), m.state().spelling); }
NumberedSpelling spelling(const Sharding& s) { return with_ids(s, s.device_assignment(), s.impl()->text); }

std::string to_string(const StaticValue& v) {
  switch (v.kind) {
    case Kind::real: return fmt::format("{}", std::bit_cast<double>(v.word));
    case Kind::address: return fmt::format("function at {:#x}", v.word);
    case Kind::text:
    case Kind::key: return fmt::format("\"{}\"", v.text);
    case Kind::size:
    case Kind::integer: break;
  }
  return fmt::format("{}", static_cast<std::int64_t>(v.word));
}

bool Structure::counts(const StaticValue& v) const {
  return with_values_ || v.kind == Kind::size || v.kind == Kind::key;
}
void Structure::add(const StaticValue& v) {
  if (counts(v)) entries_.push_back({v.word, std::string(v.text)});
}
bool Structure::next_is(const StaticValue& v) {
  if (!counts(v)) return true;
  if (at_ == entries_.size()) return false;
  const Entry& e = entries_[at_++];
  return v.text.empty() ? e.word == v.word && e.text.empty() : e.text == v.text;
}
void Structure::demand(const StaticValue& v, const Path& path, std::size_t k, const char* function) {
  if (next_is(v)) return;
  const Entry& e = entries_[at_ - 1];
  const bool key = v.kind == Kind::key;
  throw TreeError(
      fmt::format("{}: tree {} has {} {}, the first tree has {}. All trees must have the same sizes and "
                  "keys. Make one from the other, with tree_map() or with_leaves().",
                  function, k, key ? fmt::format("key \"{}\"", v.text) : count_text(v.word, "entry"),
                  place(path), key ? fmt::format("\"{}\"", e.text) : fmt::format("{}", e.word)));
}

void throw_missing_leaf(const Path& path, std::size_t k, const char* function) {
  throw TreeError(fmt::format(
      "{}: tree {} has no array {}, the first tree has one. Every array of the first tree needs a "
      "partner in the others. Leave it out of the first tree too, with filter().",
      function, k, place(path)));
}
void throw_leaf_count(std::size_t given, std::size_t wanted, const char* function) {
  throw TreeError(
      fmt::format("{}: {} for a tree of {}. There must be one array for each present leaf, in the order of "
                  "tree_leaves(). tree_paths() lists the leaves.",
                  function, count_text(given, "array"), count_text(wanted, "leaf", "leaves")));
}
void check_leaf_shape(const Array& leaf, const Array& partner, const char* word, bool broadcast,
                      const Path& path, const char* function) {
  const Shape &mine = leaf.shape(), &other = partner.shape();
  bool fits = broadcast ? other.size() <= mine.size() : other.size() == mine.size();
  for (std::size_t k = 1; fits && k <= other.size(); k++) {
    const std::int64_t n = other[other.size() - k];
    fits = n == mine[mine.size() - k] || (broadcast && n == 1);
  }
  if (!fits)
    throw ShapeError(fmt::format("{}: {} {} for the array {} {}. {}. Give one of that shape.", function, word,
                                 to_string(other), to_string(mine), place(path),
                                 broadcast ? "It is broadcast to the array's shape" : "Both have one shape"));
}

bool same_array(const Array& a, const Array& b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() == b.has_value();
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  return static_cast<bool>((a == b).all());
}

}  // namespace detail
}  // namespace shardarray
