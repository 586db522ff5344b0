// Library calls: scatters, updates and convolutions; sorts and scans are in sort_launches.cpp and scan_launches.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/complex_parts.h"
#include "cuda/scan_launches.h"
#include "cuda/sort_launches.h"
#include "cuda/step_launches.h"
#include "kernels/conv.cuh"
#include "kernels/scatter.cuh"
#include "kernels/update.cuh"
#include "runtime/contraction.h"
#include "runtime/evaluate_instruction.h"

namespace shardarray::cuda {

void refuse_dtype(const char* what, DType t, const char* takes) {
  throw CompileError(fmt::format("{}: CUDA has no kernel for {}. It takes {}. Convert the operand first.",
                                 what, name(t), takes));
}

namespace {

// A guess, to be measured: going through so many updates in one thread takes as long as sorting them.
constexpr std::int64_t many_updates = 256;

device::ScatterItem scatter_item(const LibraryCall::Item& item) {
  const Shape& table = item.out_shapes[0];
  device::ScatterItem s{};
  s.rows = device_address(item.in[0]);
  s.updates = device_address(item.in[1]);
  s.out = device_address(item.out[0]);
  s.batch = table[0];
  s.table_rows = table[1];
  s.columns = table[2];
  s.updates_each = item.in_shapes[0][1];
  s.first_row = item.params[0];
  return s;
}

/// Sorts the updates by row; then one thread combines those of a row: for each element of the table, or into x for each of the updates.
class SegmentLaunches {
 public:
  SegmentLaunches(const Step& step, const LibraryCall& x, const device::ScatterTable& t,
                  const std::vector<device::ScatterItem>& scatters, const char* into_x = nullptr)
      : step_(step), x_(x), into_x_(into_x) {
    head_.combine = t.combine;
    head_.identity = t.identity;
    head_.index = t.index;
    head_.half = t.half;
    head_.index_bytes = t.index_bytes;
    head_.bytes = t.bytes;
    for (const device::ScatterItem& s : scatters) items_.push_back({s, 0, 0, 0, 0});
  }
  void add_to(std::vector<KernelLaunch>& to) {
    const std::size_t first = to.size();
    std::int64_t updates = 0, length = 0, all = 0, most_rows = 0, most = 0, written = 0;
    for (const device::SegmentItem& i : items_) {
      all += i.scatter.batch * i.scatter.updates_each;
      updates = std::max(updates, i.scatter.batch * i.scatter.updates_each);
      length = std::max(length, i.scatter.updates_each);
      most_rows = std::max(most_rows, i.scatter.batch * i.scatter.table_rows);
      most = std::max(most, i.scatter.batch * i.scatter.table_rows * i.scatter.columns);
      written = std::max(written, i.scatter.batch * i.scatter.updates_each * i.scatter.columns);
    }
    if (most == 0) return;  // nothing is written
    std::uint64_t scratch = sorts_as_pairs(length, all) ? add_pairs(updates, to) : add_merges(to);
    if (into_x_ == nullptr) {
      for (device::SegmentItem& i : items_) {
        i.segments = (scratch + 63) / 64 * 64;
        scratch = i.segments + static_cast<std::uint64_t>(i.scatter.batch * i.scatter.table_rows) *
                                   sizeof(device::Segment);
      }
      add("shardarray_scatter_starts", most_rows, to);
      add(SHARDARRAY_COMBINING("shardarray_scatter_segments", head_.combine), most, to);
    } else {
      add(into_x_, written, to);
    }
    for (std::size_t k = first; k < to.size(); k++) to[k].scratch_bytes = scratch;
  }

 private:
  std::uint64_t add_merges(std::vector<KernelLaunch>& to) {
    const SortedEntries sorted = add_sort_of_entries(step_, x_, to);
    for (std::size_t k = 0; k < items_.size(); k++) items_[k].entries = sorted.entries[k];
    return sorted.scratch_bytes;
  }
  std::uint64_t add_pairs(std::int64_t updates, std::vector<KernelLaunch>& to) {
    std::vector<Lines> lines;
    std::int64_t rows = 0;
    for (const device::SegmentItem& i : items_) {
      lines.push_back({i.scatter.batch, i.scatter.updates_each, 1});
      rows = std::max(rows, i.scatter.table_rows);
    }
    PairLines pairs(step_, lines,
                    static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint64_t>(rows))));
    for (std::size_t k = 0; k < items_.size(); k++) {
      items_[k].first = pairs.first(k);
      items_[k].first_line = pairs.first_line(k);
    }
    head_.pairs = pairs.unsorted();
    add("shardarray_scatter_keys", updates, to);
    pairs.add_sort(to);
    head_.pairs = pairs.sorted();
    return pairs.scratch_bytes();
  }
  void add(const char* kernel, std::int64_t points, std::vector<KernelLaunch>& to) const {
    LaunchTable table;
    table.reserve<device::SegmentTable>();
    add_launch(step_, kernel, head_, items_, points, std::move(table), to);
  }

  const Step& step_;
  const LibraryCall& x_;
  const char* const into_x_;  // the kernel that does so
  device::SegmentTable head_{};
  std::vector<device::SegmentItem> items_;
};

/// The table and items of a scatter, or of an update without x among the operands. Pairs of complex numbers are two columns.
struct Scatters {
  device::ScatterTable table{};
  std::vector<device::ScatterItem> items;
  std::int64_t columns = 0, written = 0, updates = 0;  ///< of the largest item
};
Scatters scatters_of(const LibraryCall& x, bool overwrites, bool has_x) {
  const DType index = x.in_types[0], t = x.in_types[1];
  const bool is_half = has_x && (t == float16 || t == bfloat16);
  const DType values = has_x && t == bool_ ? uint8 : is_half && !overwrites ? float32 : part_type(t);
  if (!is_integer(index)) refuse_dtype(x.name.c_str(), index, "rows of an integer dtype");
  if (!overwrites && !is_integer(values) && values != float32 && values != float64)
    refuse_dtype(x.name.c_str(), values, "integers, float32 or float64");
  const auto reducer = static_cast<Reducer>(x.items[0].params[1]);
  Scatters s;
  s.table.combine.code = overwrites ? Code::constant : combining_code(reducer);
  s.table.combine.type = s.table.combine.from = values;
  s.table.identity = overwrites ? 0 : identity_bits(reducer, values);
  s.table.index = index;
  s.table.index_bytes = static_cast<std::uint32_t>(itemsize(index));
  s.table.bytes = static_cast<std::uint32_t>(itemsize(is_half ? t : values));
  s.table.half = is_half ? t : bool_;
  for (const LibraryCall::Item& item : x.items) {
    s.items.push_back(scatter_item(item));
    device::ScatterItem& one = s.items.back();
    if (is_complex(t)) one.columns *= 2;
    s.columns = std::max(s.columns, one.batch * one.columns);
    s.written = std::max(s.written, one.batch * one.updates_each * one.columns);
    s.updates = std::max(s.updates, one.updates_each);
  }
  return s;
}

void add_scatter(const Step& step, const LibraryCall& x, std::uint64_t, std::vector<KernelLaunch>& to) {
  const Scatters s = scatters_of(x, false, false);
  if (s.updates >= many_updates) return SegmentLaunches(step, x, s.table, s.items).add_to(to);
  LaunchTable table;
  table.reserve<device::ScatterTable>();
  add_launch(step, SHARDARRAY_COMBINING("shardarray_scatter", s.table.combine), s.table, s.items, s.columns,
             std::move(table), to);
}

/// The dimensions of x and of the part after the batch.
std::vector<device::UpdateDim> update_dims(const LibraryCall& x, const LibraryCall::Item& item) {
  std::vector<device::UpdateDim> dims;
  std::size_t start = 2;
  for (std::size_t k = 1; k < item.params.size(); k++) {
    device::UpdateDim d{};
    d.n = item.in_shapes[0][k];
    d.m = item.in_shapes[1][k];
    d.varies = item.params[k] >= 0;
    if (d.varies) {
      d.first = item.params[k];
      d.type = x.in_types[start];
      d.start = device_address(item.in[start++]);
    }
    dims.push_back(d);
  }
  return dims;
}

/// Copies x, for the elements that are not written.
Exchange copy_of_x(const LibraryCall& x) {
  Exchange e;
  e.dtype = x.in_types[0];
  for (const LibraryCall::Item& item : x.items) {
    const Ref &to = item.out[0], &from = item.in[0];
    if (to.base == from.base && to.offset == from.offset) continue;
    const std::int64_t n = num_elements(item.in_shapes[0]);
    const std::uint64_t bytes = static_cast<std::uint64_t>(n) * itemsize(e.dtype);
    Exchange::Source source{from, item.device, bytes, 0};
    e.items.push_back({item.device, to, bytes, false, {{{n}, {1}, {1}, to, {source}}}});
  }
  return e;
}

void add_update(const Step& step, const LibraryCall& x, std::uint64_t alignment,
                std::vector<KernelLaunch>& to) {
  if (const Exchange e = copy_of_x(x); !e.items.empty()) add_exchange_launches(step, e, alignment, to);
  const auto reducer = static_cast<Reducer>(x.items[0].params[0]);
  LaunchTable table;
  table.reserve<device::UpdateTable>();
  device::UpdateTable t{};
  t.bytes = static_cast<std::uint32_t>(itemsize(x.in_types[0]));
  t.combine.code = reducer == Reducer::none ? Code::constant : combining_code(reducer);
  t.combine.type = t.combine.from = x.in_types[0] == DType::bool_ ? uint8 : x.in_types[0];
  std::vector<device::UpdateItem> items;
  std::int64_t most = 0;
  for (const LibraryCall::Item& item : x.items) {
    const Shape& part = item.in_shapes[1];
    device::UpdateItem u{};
    u.part = device_address(item.in[1]);
    u.out = device_address(item.out[0]);
    u.dims = table.add(update_dims(x, item));
    u.elements = num_elements(part);
    u.each = u.elements / std::max<std::int64_t>(1, part[0]);
    items.push_back(u);
    most = std::max(most, u.elements);
  }
  const char* const kernel = reducer == Reducer::none
                                 ? "shardarray_update"
                                 : SHARDARRAY_COMBINING("shardarray_update_combine", t.combine);
  add_launch(step, kernel, t, items, most, std::move(table), to);
}

void add_update_rows(const Step& step, const LibraryCall& x, std::uint64_t alignment,
                     std::vector<KernelLaunch>& to) {
  if (const Exchange e = copy_of_x(x); !e.items.empty()) add_exchange_launches(step, e, alignment, to);
  LibraryCall updates = x;
  updates.in_types.erase(updates.in_types.begin());
  for (LibraryCall::Item& item : updates.items) {
    item.in.erase(item.in.begin());
    item.in_shapes.erase(item.in_shapes.begin());
  }
  const bool overwrites = static_cast<Reducer>(x.items[0].params[1]) == Reducer::none;
  const Scatters s = scatters_of(updates, overwrites, true);
  const bool many = s.updates >= many_updates;
  const char* const kernel =
      overwrites ? many ? "shardarray_update_row_segments" : "shardarray_update_rows"
      : many     ? SHARDARRAY_COMBINING("shardarray_update_row_segments_combine", s.table.combine)
                 : SHARDARRAY_COMBINING("shardarray_update_rows_combine", s.table.combine);
  if (many) return SegmentLaunches(step, updates, s.table, s.items, kernel).add_to(to);
  LaunchTable table;
  table.reserve<device::ScatterTable>();
  add_launch(step, kernel, s.table, s.items, s.written, std::move(table), to);
}

/// The kernel for a dtype: integers by width, since they wrap.
const char* conv_kernel(DType t) {
  if (t == float32) return "shardarray_conv_f32";
  if (t == float64) return "shardarray_conv_f64";
  if (!is_integer(t)) refuse_dtype("conv", t, "integers, float32 or float64");
  switch (itemsize(t)) {
    case 1: return "shardarray_conv_u8";
    case 2: return "shardarray_conv_u16";
    case 4: return "shardarray_conv_u32";
    default: return "shardarray_conv_u64";
  }
}

void add_conv(const Step& step, const LibraryCall& x, std::uint64_t, std::vector<KernelLaunch>& to) {
  LaunchTable table;
  table.reserve<device::ConvTable>();
  const auto listed = [&](const std::vector<ContractionDim>& dims) {
    std::vector<device::ConvDim> entries;
    entries.reserve(dims.size());
    for (const ContractionDim& d : dims) entries.push_back({d.size, d.lhs, d.rhs, d.out});
    return table.add(entries);
  };
  std::vector<device::ConvItem> items;
  std::int64_t most = 0;
  for (const LibraryCall::Item& item : x.items) {
    const Contraction c = Contraction::of(item.params);
    const std::int64_t elements = size_of(c.groups) * size_of(c.points) * size_of(c.features);
    items.push_back({device_address(item.in[0]), device_address(item.in[1]), device_address(item.out[0]),
                     listed(c.groups), listed(c.points), listed(c.features), listed(c.summed), elements,
                     size_of(c.summed), chain_of(size_of(c.summed))});
    most = std::max(most, elements);
  }
  add_launch(step, conv_kernel(x.in_types[0]), device::ConvTable{}, items, most, std::move(table), to);
}

struct Entry {
  const char* name;
  void (*add)(const Step& step, const LibraryCall& call, std::uint64_t alignment,
              std::vector<KernelLaunch>& to);
};
constexpr Entry table[] = {{"sort", add_sort},     {"scatter", add_scatter},
                           {"update", add_update}, {"update_rows", add_update_rows},
                           {"scan", add_scan},     {"conv", add_conv}};

const Entry* entry_of(const LibraryCall& call) {
  for (const Entry& e : table)
    if (call.name == e.name) return &e;
  return nullptr;
}

}  // namespace

bool has_kernels(const Step& step) {
  const auto* const call = std::get_if<LibraryCall>(&step.body);
  return call == nullptr || entry_of(*call) != nullptr;
}

void add_library_launches(const Step& step, const LibraryCall& call, std::uint64_t alignment,
                          std::vector<KernelLaunch>& to) {
  const Entry* const entry = entry_of(call);
  if (entry == nullptr)
    throw InternalError(
        fmt::format("cuda: {} is no launch: the host does it. Please report this.", call.name));
  entry->add(step, call, alignment, to);
}

}  // namespace shardarray::cuda
