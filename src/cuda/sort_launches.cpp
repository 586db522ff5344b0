#include "cuda/sort_launches.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/ceil_div.h"
#include "cuda/step_launches.h"
#include "kernels/radix.cuh"
#include "runtime/lines.h"

namespace shardarray::cuda {
namespace {

class SortLaunches {
 public:
  /// Of the columns of `x`, or of the entries alone.
  SortLaunches(const Step& step, const LibraryCall& x, std::int64_t (*dimension)(const LibraryCall::Item&),
               bool columns)
      : step_(step), x_(x), columns_(columns) {
    if (is_complex(x.in_types[0])) refuse_dtype("sort", x.in_types[0], "bool, integers and floats");
    for (const LibraryCall::Item& item : x.items) {
      const Lines l = lines_along(item.in_shapes[0], dimension(item));
      lines_.push_back(l);
      elements_ = std::max(elements_, l.count * l.length);
      length_ = std::max(length_, l.length);
      runs_ = std::max(runs_, l.count * ceil_div(l.length, device::sort_run));
    }
    by_bits_ = sorts_by_bits(x.in_types[0], length_);
  }

  SortedEntries add_to(std::vector<KernelLaunch>& to) {
    const std::size_t first = to.size();
    if (elements_ > 0) {
      if (by_bits_) add_radix(to);
      else add_merges(to);
    }
    for (std::size_t k = first; k < to.size(); k++) to[k].scratch_bytes = scratch_;
    SortedEntries sorted;
    for (const device::SortItem& s : items_) sorted.entries.push_back(s.entries[side_]);
    sorted.scratch_bytes = scratch_;
    return sorted;
  }

 private:
  /// Table: begins with a T.
  template <class T, class Item> T reserved(LaunchTable& table, std::vector<Item>& items) {
    table.reserve<T>();
    for (std::size_t k = 0; k < lines_.size(); k++) {
      Item& item = items.emplace_back();
      if constexpr (std::is_same_v<Item, device::SortItem>) item = sort_item(k, table);
      else item.lines = sort_item(k, table);
    }
    T head{};
    head.key = x_.in_types[0];
    return head;
  }
  device::SortItem sort_item(std::size_t number, LaunchTable& table) {
    const LibraryCall::Item& item = x_.items[number];
    const auto [lines, length, inner] = lines_[number];
    const std::int64_t elements = lines * length;
    device::SortItem s{};
    s.lines = lines;
    s.length = length;
    s.inner = inner;
    for (auto& entries : s.entries) entries = take_scratch(elements, sizeof(device::SortEntry));
    std::vector<device::SortColumn> columns;
    for (std::size_t c = 0; c < (columns_ ? x_.in_types.size() : 1); c++) {
      const std::size_t bytes = itemsize(x_.in_types[c]);
      const Ref out = columns_ ? item.out[c] : Ref{};
      const std::uint64_t staged = columns_ ? take_scratch(elements, bytes) : 0;
      columns.push_back(
          {device_address(item.in[c]), device_address(out), staged, static_cast<std::uint32_t>(bytes), 0});
    }
    s.columns = table.add(columns);
    items_.push_back(s);
    return s;
  }
  std::uint64_t take_scratch(std::int64_t elements, std::size_t bytes) {
    const std::uint64_t at = scratch_;
    scratch_ += (static_cast<std::uint64_t>(elements) * bytes + 63) / 64 * 64;
    return at;
  }
  KernelLaunch launch(const char* kernel, std::int64_t points, LaunchTable table) const {
    return make_launch(step_, kernel, x_.items.size(), points, std::move(table));
  }

  void add_merges(std::vector<KernelLaunch>& to) {
    LaunchTable table;
    std::vector<device::SortItem> items;
    auto head = reserved<device::SortTable>(table, items);
    head.items = table.add(items);
    const auto add = [&](const char* kernel, std::int64_t points) {
      table.put(0, head);
      to.push_back(launch(kernel, points, table));
    };
    add("shardarray_sort_runs", runs_);
    for (head.width = device::sort_run; head.width < length_; head.width *= 2) {
      add("shardarray_sort_merge", elements_);
      head.side = 1 - head.side;
    }
    side_ = head.side;
    if (columns_) add_columns(to, table, head);
  }
  void add_columns(std::vector<KernelLaunch>& to, LaunchTable& table, const device::SortTable& head) const {
    table.put(0, head);
    to.push_back(launch("shardarray_sort_gather", elements_, table));
    to.push_back(launch("shardarray_sort_put", elements_, table));
  }

  void add_radix(std::vector<KernelLaunch>& to) {
    LaunchTable table;
    std::vector<device::RadixItem> items;
    auto head = reserved<device::RadixTable>(table, items);
    std::int64_t tiles = 0, values = 0;  // of the largest item
    for (device::RadixItem& r : items) {
      r.tiles = ceil_div(r.lines.length, device::radix_tile);
      r.totals = take_scratch(r.lines.lines * device::radix_values, sizeof(std::uint32_t));
      r.counts = take_scratch(r.lines.lines * device::radix_values * r.tiles, sizeof(std::uint32_t));
      tiles = std::max(tiles, r.lines.lines * r.tiles);
      values = std::max(values, r.lines.lines * device::radix_values);
    }
    head.items = table.add(items);
    const auto add = [&](const char* kernel, std::int64_t points) {
      table.put(0, head);
      to.push_back(launch(kernel, points, table));
    };
    add("shardarray_radix_keys", elements_);
    const auto bits = static_cast<std::uint32_t>(8 * itemsize(x_.in_types[0]));
    for (head.shift = 0; head.shift < bits; head.shift += 8) {
      add("shardarray_radix_count", tiles * device::warp_lanes);
      add("shardarray_radix_offsets", values * device::warp_lanes);
      add("shardarray_radix_place", tiles * device::warp_lanes);
      head.side = 1 - head.side;
    }
    side_ = head.side;
    if (!columns_) return;
    // The columns follow the entries as those of a merge do.
    LaunchTable last;
    last.reserve<device::SortTable>();
    device::SortTable sorted{};
    std::vector<device::SortItem> lines;
    for (std::size_t k = 0; k < items.size(); k++) {
      lines.push_back(items[k].lines);
      const device::SortColumn* const columns = device::entries(table.data(), items[k].lines.columns);
      lines.back().columns = last.add(std::vector(columns, columns + items[k].lines.columns.count));
    }
    sorted.items = last.add(lines);
    sorted.side = side_;
    sorted.key = head.key;
    add_columns(to, last, sorted);
  }

  const Step& step_;
  const LibraryCall& x_;
  const bool columns_;
  bool by_bits_ = false;
  std::vector<Lines> lines_;             // by item
  std::vector<device::SortItem> items_;  // by item
  std::uint32_t side_ = 0;               // which `entries` are sorted in the end
  std::uint64_t scratch_ = 0;
  std::int64_t elements_ = 0, length_ = 0, runs_ = 0;  // of the largest item
};

}  // namespace

// Guesses, to be measured: two launches by bits take as long as a merge of all elements, and short lines do not fill a GPU with tiles.
bool sorts_by_bits(DType key, std::int64_t length) {
  if (length < device::radix_tile || length > std::numeric_limits<std::uint32_t>::max()) return false;
  std::int64_t merges = 0;
  for (std::int64_t width = device::sort_run; width < length; width *= 2) merges++;
  return merges > 2 * static_cast<std::int64_t>(itemsize(key));
}

void add_sort(const Step& step, const LibraryCall& call, std::uint64_t, std::vector<KernelLaunch>& to) {
  SortLaunches(
      step, call, [](const LibraryCall::Item& item) { return item.params[0]; }, true)
      .add_to(to);
}

SortedEntries add_sort_of_entries(const Step& step, const LibraryCall& call, std::vector<KernelLaunch>& to) {
  return SortLaunches(
             step, call, [](const LibraryCall::Item&) { return std::int64_t{1}; }, false)
      .add_to(to);
}

}  // namespace shardarray::cuda
