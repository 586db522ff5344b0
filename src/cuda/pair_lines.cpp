// The lines of a step as pairs: their scratch memory, and the launches that sort them.
#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "cuda/sort_launches.h"
#include "cuda/step_launches.h"

namespace shardarray::cuda {
namespace {

std::uint32_t bits_of(std::int64_t most) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(most)));
}

}  // namespace

bool sorts_as_pairs(std::int64_t length, std::int64_t elements) {
  constexpr std::int64_t least = 2048;  // a guess, to be measured: shorter lines take few merge launches
  return length >= least && std::max(length, elements) <= std::numeric_limits<std::uint32_t>::max();
}

PairLines::PairLines(const Step& step, const std::vector<Lines>& lines, std::uint32_t key_bits)
    : step_(step), items_(lines) {
  for (const Lines& l : lines) {
    first_.push_back(count_);
    first_line_.push_back(lines_);
    count_ += l.count * l.length;
    lines_ += l.count;
  }
  const std::uint32_t line_bits = key_bits < 64 ? bits_of(lines_ - 1) : 0;
  const std::uint32_t key_bytes = key_bits + line_bits <= 32 ? 4 : 8;
  const auto pairs = static_cast<std::uint64_t>(count_);
  unsorted_ = {take_scratch(pairs * key_bytes), take_scratch(pairs * 4), key_bytes, key_bits};
  sorted_ = {take_scratch(pairs * key_bytes), take_scratch(pairs * 4), key_bytes, key_bits};
}

std::uint64_t PairLines::take_scratch(std::uint64_t bytes) {
  return std::exchange(scratch_, scratch_ + (bytes + 255) / 256 * 256);
}

void PairLines::add(const PairSort& sort, std::vector<KernelLaunch>& to) const {
  to.push_back(make_launch(step_, "", 1, 1, {}));
  to.back().sort = sort;
}

void PairLines::add_sort(std::vector<KernelLaunch>& to) {
  const std::uint32_t line_bits = bits_of(lines_ - 1), key_bits = unsorted_.key_bits;
  PairSort sort{count_,           unsorted_.key_bytes, key_bits,      unsorted_.keys,
                unsorted_.values, sorted_.keys,        sorted_.values};
  if (key_bits < 64) sort.bits += line_bits;
  add(sort, to);
  if (key_bits < 64 || lines_ == 1) return;
  // Sorted by line number, the elements of each line keep their order. The unsorted keys' memory holds the line numbers twice.
  LaunchTable table;
  std::vector<device::SortItem> items;
  for (std::size_t k = 0; k < items_.size(); k++) {
    device::SortItem s{};
    s.length = items_[k].length;
    s.first = first_[k];
    s.first_line = first_line_[k];
    if (s.length > 0) items.push_back(s);  // others have no elements
  }
  table.reserve<device::PairLinesTable>();
  table.put(0, device::PairLinesTable{table.add(items), count_, sorted_.values, unsorted_.keys});
  to.push_back(make_launch(step_, "shardarray_pair_lines", 1, count_, std::move(table)));
  const std::uint64_t behind = unsorted_.keys + 4 * static_cast<std::uint64_t>(count_);
  add({count_, 4, line_bits, unsorted_.keys, sorted_.values, behind, unsorted_.values}, to);
  sorted_ = {behind, unsorted_.values, 4, line_bits};
}

}  // namespace shardarray::cuda
