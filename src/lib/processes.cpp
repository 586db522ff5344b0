// Trees as texts from process to process.
#include "shardarray/processes.h"

#include <fmt/format.h>

#include <cstring>

#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/launch.h"
#include "runtime/devices.h"
#include "runtime/processes.h"

namespace shardarray {

namespace {

template <class N> void append(std::string& to, N value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class N> N read_next(const std::string& from, std::size_t& at) {
  N value{};
  std::memcpy(&value, from.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

// Of one build, hence of one meaning: types and row-major elements.
std::string text_of(std::span<const Array> leaves, const char* function) {
  std::string text;
  append(text, leaves.size());
  for (const Array& a : leaves) {
    const Type& t = type_of(a, function);
    append(text, t.dtype);
    append(text, t.weak);
    append(text, t.shape.size());
    for (const std::int64_t n : t.shape) append(text, n);
    const std::vector<std::byte> bytes = host_elements(a, function);
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return text;
}

Arrays leaves_of(const std::string& text, std::size_t expected, int process, const char* function) {
  std::size_t at = 0;
  const auto count = read_next<std::size_t>(text, at);
  if (count != expected)
    throw TreeError(
        fmt::format("{}: process {} gives a tree of {} arrays, process {} one of {}. All give trees of one "
                    "type with the same "
                    "absent leaves. Compare their programs.",
                    function, process, count, process_index(), expected));
  Arrays leaves;
  for (std::size_t k = 0; k < count; k++) {
    Type t;
    t.dtype = read_next<DType>(text, at);
    t.weak = read_next<bool>(text, at);
    const auto rank = read_next<std::size_t>(text, at);
    for (std::size_t d = 0; d < rank; d++) t.shape.push_back(read_next<std::int64_t>(text, at));
    leaves.push_back(leaf_array(t, host_value(text.data() + at, t, current_default_device()), {}));
    at += static_cast<std::size_t>(bytes_of(t.shape, t.dtype));
  }
  return leaves;
}

}  // namespace

void sync_devices(const std::string& name, Where w) {
  const Site site(w);
  if (Processes* const all = other_processes()) (void)all->all_gather("sync_devices: " + name, "");
}

namespace core {

std::vector<Arrays> gather_from_processes(std::span<const Array> leaves) {
  constexpr const char* function = "gather_from_processes";
  evaluate(leaves, function);
  Processes* const all = other_processes();
  std::vector<Arrays> r;
  if (all == nullptr) return {Arrays(leaves.begin(), leaves.end())};
  const std::vector<std::string> texts = gather_texts(*all, function, text_of(leaves, function));
  r.reserve(texts.size());
  for (int p = 0; p < all->count(); p++)
    r.push_back(p == all->index()
                    ? Arrays(leaves.begin(), leaves.end())
                    : leaves_of(texts[static_cast<std::size_t>(p)], leaves.size(), p, function));
  return r;
}

Arrays broadcast_one_to_all(std::span<const Array> leaves, int source) {
  constexpr const char* function = "broadcast_one_to_all";
  Processes* const all = other_processes();
  const int count = all == nullptr ? 1 : all->count();
  if (source < 0 || source >= count)
    throw DeviceError(
        fmt::format("{}: there is no process {}. There are {}, numbered from 0. Use one of them.", function,
                    source, count));
  evaluate(leaves, function);
  if (all == nullptr) return {leaves.begin(), leaves.end()};
  const bool is_source = all->index() == source;
  const std::vector<std::string> texts =
      gather_texts(*all, function, is_source ? text_of(leaves, function) : std::string());
  if (is_source) return {leaves.begin(), leaves.end()};
  return leaves_of(texts[static_cast<std::size_t>(source)], leaves.size(), source, function);
}

}  // namespace core
}  // namespace shardarray
