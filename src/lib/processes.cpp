// Sends trees from process to process, as byte strings.
#include "shardarray/processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string_view>

#include "base/count_text.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "execute/launch.h"
#include "graph/trace_state.h"
#include "lib/attempt.h"
#include "runtime/devices.h"
#include "runtime/processes.h"
#include "shardarray/filter_shard.h"
#include "shardarray/sharding.h"

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

/// Whether an array spans several processes and is not replicated in all of them; the same answer in each of these.
bool is_of_several(const Array& a, const char* function) {
  (void)type_of(a, function);
  const Sharding s = a.sharding();
  if (!in_several_processes(s.device_assignment())) return false;
  std::set<int> processes;
  for (const Device& d : s.device_assignment()) processes.insert(d.process_index);
  const bool is_everywhere = processes.size() == static_cast<std::size_t>(process_count());
  return !(is_everywhere && s.is_fully_replicated(a.ndim()));
}
Array whole_everywhere(const Array& a) {
  const auto all = devices(a.sharding().device_assignment()[0].platform);
  return device_put(a, PositionalSharding(all).replicate());
}

/// What one process sends: for each leaf whether it spans several processes, what else the tree has, then types and row-major elements of
/// the other leaves. All processes run the same build, hence the same format.
struct Given {
  std::vector<bool> is_shared = {};
  std::string text = {};
  std::size_t values = 0;  ///< where they begin in the text, the same in every process
};
Given given(std::span<const Array> leaves, const std::vector<std::string>& parts, const char* function,
            bool has_values) {
  Given g;
  evaluate(leaves, function);
  for (const Array& a : leaves) g.is_shared.push_back(is_of_several(a, function));
  append(g.text, leaves.size());
  for (const bool shared : g.is_shared) g.text += shared ? 's' : 'o';
  append(g.text, parts.size());
  for (const std::string& part : parts) {
    append(g.text, part.size());
    g.text += part;
  }
  g.values = g.text.size();
  for (std::size_t k = 0; has_values && k < leaves.size(); k++) {
    if (g.is_shared[k]) continue;
    const Type& t = type_of(leaves[k], function);
    append(g.text, t.dtype);
    append(g.text, t.weak);
    append(g.text, t.shape.size());
    for (const std::int64_t n : t.shape) append(g.text, n);
    const std::vector<std::byte> bytes = host_elements(leaves[k], function);
    g.text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return g;
}

void compare(const std::string& theirs, int p, const Given& mine, int index, const std::string& function) {
  constexpr const char* rule =
      "All give trees of one type with the same absent leaves, and arrays of several processes in the same "
      "places. Compare their programs.";
  std::size_t at = 0, here = 0;
  const auto count = read_next<std::size_t>(theirs, at);
  if (count != mine.is_shared.size())
    throw TreeError(fmt::format("{}: process {} gives a tree of {}, process {} one of {}. {}", function, p,
                                count_text(count, "array"), index, mine.is_shared.size(), rule));
  for (std::size_t k = 0; k < count; k++)
    if ((theirs[at + k] == 's') != mine.is_shared[k])
      throw TreeError(fmt::format(
          "{}: array {} of the tree is of several processes in process {} and of one in process {}. {}",
          function, k, mine.is_shared[k] ? index : p, mine.is_shared[k] ? p : index, rule));
  at += count;
  here = at;
  const auto next = [](const std::string& text, std::size_t& from) {
    const auto size = read_next<std::size_t>(text, from);
    from += size;
    return text.substr(from - size, size);
  };
  const auto parts = read_next<std::size_t>(theirs, at), own = read_next<std::size_t>(mine.text, here);
  for (std::size_t k = 0; k < std::min(parts, own); k++)
    if (const std::string a = next(theirs, at), b = next(mine.text, here); a != b)
      throw TreeError(
          fmt::format("{}: what is `{}` in process {} is `{}` in process {}. Processes give each other "
                      "values of arrays; all else of the trees is the same. Make what differs an array.",
                      function, a, p, b, index));
  if (parts != own)
    throw TreeError(
        fmt::format("{}: the tree has {} numbers, texts and arrays in process {} and {} in process {}. {}",
                    function, parts, p, own, index, rule));
}

/// What all processes send, in their order.
struct Agreed {
  Given mine;
  std::vector<std::string> texts;
};
Agreed agreed(Processes& all, const char* function, const std::string& what, std::span<const Array> leaves,
              const std::vector<std::string>& parts, bool has_values) {
  Agreed r;
  const Attempt attempt(function, [&] {
    r.mine = given(leaves, parts, function, has_values);
    return r.mine.text;
  });
  r.texts = attempt.agreed<TransportError>(what, &all);
  for (int p = 0; p < all.count(); p++)
    compare(r.texts[static_cast<std::size_t>(p)], p, r.mine, all.index(), what);
  return r;
}

/// Fills in the leaves that another process sent; `tree` has those that span several processes.
void put_in(Arrays& tree, const std::string& text, const Given& mine) {
  std::size_t at = mine.values;
  for (std::size_t k = 0; k < tree.size(); k++) {
    if (mine.is_shared[k]) continue;
    Type t;
    t.dtype = read_next<DType>(text, at);
    t.weak = read_next<bool>(text, at);
    const auto rank = read_next<std::size_t>(text, at);
    for (std::size_t d = 0; d < rank; d++) t.shape.push_back(read_next<std::int64_t>(text, at));
    tree[k] = leaf_array(t, host_value(text.data() + at, t, current_default_device()), {});
    at += static_cast<std::size_t>(bytes_of(t.shape, t.dtype));
  }
}

}  // namespace

void sync_devices(const std::string& name, Where w) {
  const Site site(w);
  if (Processes* const all = other_processes()) try {
      (void)all->all_gather("sync_devices: " + name, "");
    } catch (Error& e) {
      e.add_place(w);  // thrown by another thread, without a place
      throw;
    }
}

namespace core {

std::vector<Arrays> gather_from_processes(std::span<const Array> leaves,
                                          const std::vector<std::string>& parts) {
  const char* const function = current_function("gather_from_processes");
  Processes* const all = other_processes();
  Arrays here(leaves.begin(), leaves.end());
  if (all == nullptr) {
    evaluate(leaves, function);
    return {here};
  }
  const auto [mine, texts] = agreed(*all, function, function, leaves, parts, true);
  for (std::size_t k = 0; k < here.size(); k++)
    if (mine.is_shared[k]) here[k] = whole_everywhere(here[k]);
  evaluate(here, function);
  std::vector<Arrays> r(texts.size(), here);
  for (int p = 0; p < all->count(); p++)
    if (p != all->index()) put_in(r[static_cast<std::size_t>(p)], texts[static_cast<std::size_t>(p)], mine);
  return r;
}

Arrays broadcast_one_to_all(std::span<const Array> leaves, const std::vector<std::string>& parts,
                            int source) {
  const char* const function = current_function("broadcast_one_to_all");
  Processes* const all = other_processes();
  const int count = all == nullptr ? 1 : all->count();
  if (source < 0 || source >= count)
    throw DeviceError(
        fmt::format("{}: there is no process {}. There are {}, numbered from 0. Use one of them.", function,
                    source, count));
  Arrays here(leaves.begin(), leaves.end());
  if (all == nullptr) {
    evaluate(leaves, function);
    return here;
  }
  const auto [mine, texts] = agreed(*all, function, fmt::format("{}: from process {}", function, source),
                                    leaves, parts, all->index() == source);
  if (all->index() != source) put_in(here, texts[static_cast<std::size_t>(source)], mine);
  return here;
}

}  // namespace core
}  // namespace shardarray
