#include "cuda/sort_launches.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/ceil_div.h"
#include "cuda/step_launches.h"
#include "runtime/lines.h"

namespace shardarray::cuda {
namespace {

class SortLaunches {
 public:
  /// For the columns of `x`, or for the entries alone.
  SortLaunches(const Step& step, const LibraryCall& x, std::int64_t (*dimension)(const LibraryCall::Item&),
               bool columns)
      : step_(step), x_(x), columns_(columns) {
    if (is_complex(x.in_types[0])) refuse_dtype("sort", x.in_types[0], "bool, integers and floats");
    for (const LibraryCall::Item& item : x.items) {
      const Lines l = lines_along(item.in_shapes[0], dimension(item));
      lines_.push_back(l);
      elements_ = std::max(elements_, l.count * l.length);
      length_ = std::max(length_, l.length);
      all_ += l.count * l.length;
      runs_ = std::max(runs_, l.count * ceil_div(l.length, device::sort_run));
    }
  }

  SortedEntries add_to(std::vector<KernelLaunch>& to) {
    const std::size_t first = to.size();
    if (elements_ > 0) {
      if (columns_ && sorts_as_pairs(length_, all_)) add_pairs(to);
      else add_merges(to);
    }
    for (std::size_t k = first; k < to.size(); k++) to[k].scratch_bytes = scratch_;
    SortedEntries sorted;
    for (const device::SortItem& s : items_) sorted.entries.push_back(s.entries[side_]);
    sorted.scratch_bytes = scratch_;
    return sorted;
  }

 private:
  /// The table begins with a T, followed by its items.
  template <class T> T reserved(LaunchTable& table) {
    table.reserve<T>();
    for (std::size_t k = 0; k < lines_.size(); k++) items_.push_back(sort_item(k, table));
    T head{};
    head.key = x_.in_types[0];
    head.items = table.add(items_);
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
    if (pairs_) {
      s.first = pairs_->first(number);
      s.first_line = pairs_->first_line(number);
    } else {
      for (auto& entries : s.entries) entries = take_scratch(elements, sizeof(device::SortEntry));
    }
    std::vector<device::SortColumn> columns;
    for (std::size_t c = 0; c < (columns_ ? x_.in_types.size() : 1); c++) {
      const std::size_t bytes = itemsize(x_.in_types[c]);
      const Ref out = columns_ ? item.out[c] : Ref{};
      const std::uint64_t staged = columns_ && !are_elements() ? take_scratch(elements, bytes) : 0;
      columns.push_back(
          {device_address(item.in[c]), device_address(out), staged, static_cast<std::uint32_t>(bytes), 0});
    }
    s.columns = table.add(columns);
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
    auto head = reserved<device::SortTable>(table);
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

  /// Values of pairs are elements if the keys are the only column.
  bool are_elements() const { return pairs_ && x_.in_types.size() == 1 && itemsize(x_.in_types[0]) <= 4; }

  void add_pairs(std::vector<KernelLaunch>& to) {
    pairs_.emplace(step_, lines_, static_cast<std::uint32_t>(8 * itemsize(x_.in_types[0])));
    scratch_ = pairs_->scratch_bytes();
    LaunchTable table;
    auto head = reserved<device::PairTable>(table);
    head.are_elements = are_elements();
    const auto add = [&](const char* kernel, const device::Pairs& pairs) {
      head.pairs = pairs;
      table.put(0, head);
      to.push_back(launch(kernel, elements_, table));
    };
    add("shardarray_pair_keys", pairs_->unsorted());
    pairs_->add_sort(to);
    if (are_elements()) return add("shardarray_pair_put", pairs_->sorted());
    // The columns are permuted as after a merge sort.
    LaunchTable last;
    items_.clear();
    scratch_ = pairs_->scratch_bytes();
    auto sorted = reserved<device::SortTable>(last);
    sorted.has_order = true;
    sorted.order = pairs_->sorted().values;
    add_columns(to, last, sorted);
  }

  const Step& step_;
  const LibraryCall& x_;
  const bool columns_;
  std::optional<PairLines> pairs_;       // none: merges
  std::vector<Lines> lines_;             // by item
  std::vector<device::SortItem> items_;  // by item
  std::uint32_t side_ = 0;               // which of `entries` is sorted in the end
  std::uint64_t scratch_ = 0;
  std::int64_t elements_ = 0, length_ = 0, runs_ = 0;  // of the largest item
  std::int64_t all_ = 0;                               // elements
};

}  // namespace

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
