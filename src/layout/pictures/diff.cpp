// render_diff and visualize_diff: what devices hold under two shardings of one shape, and what they have to receive.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

#include "base/bytes_text.h"
#include "base/sizes.h"
#include "layout/pictures/device_ids.h"
#include "layout/pictures/text.h"
#include "layout/spelling.h"
#include "layout/transfer.h"
#include "shardarray/visualize.h"

namespace shardarray {
namespace {

Box index_box(const ShardIndex& index, const Shape& shape) {
  Box box = whole_box(shape);
  for (std::size_t d = 0; d < index.size(); d++)
    if (!index[d].whole) {
      box.lo[d] = index[d].start;
      box.size[d] = index[d].stop - index[d].start;
    }
  return box;
}

// What one device holds; nullopt if the sharding does not include it.
struct Holding {
  Device device;
  std::optional<ShardIndex> before, after;
};

std::vector<Holding> holdings(const Shape& shape, const Sharding& a, const Sharding& b) {
  std::map<std::pair<std::string, int>, Holding> all;
  const auto of = [&](const Device& d) -> Holding& {
    Holding& h = all[{d.platform, d.id}];
    h.device = d;
    return h;
  };
  for (const auto& [device, index] : a.devices_indices_map(shape)) of(device).before = index;
  for (const auto& [device, index] : b.devices_indices_map(shape)) of(device).after = index;
  std::vector<Holding> out;
  out.reserve(all.size());
  for (auto& [key, h] : all) out.push_back(std::move(h));
  return out;
}

// Devices with the same tiles under both shardings.
struct DiffRow {
  std::vector<Device> devices;
  std::string before, after;
  bool same = false;
  std::int64_t keeps = 0, receives = 0;  ///< elements per device
};

std::vector<DiffRow> diff_rows(const Shape& shape, const Sharding& a, const Sharding& b) {
  std::vector<DiffRow> rows;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
  for (const Holding& h : holdings(shape, a, b)) {
    const std::string before = h.before ? to_string(*h.before) : "-",
                      after = h.after ? to_string(*h.after) : "-";
    const auto [at, fresh] = known.try_emplace({h.device.platform, before, after}, rows.size());
    if (fresh) {
      DiffRow row{{}, before, after};
      if (h.after) {
        const Box wanted = index_box(*h.after, shape);
        if (h.before) {
          const Box there = index_box(*h.before, shape);
          row.keeps = intersect(there, wanted).elements();
          row.same = there == wanted;
        }
        row.receives = wanted.elements() - row.keeps;
      }
      rows.push_back(std::move(row));
    }
    rows[at->second].devices.push_back(h.device);
  }
  return rows;
}

// ` (all_to_all {x})`: how the library would move it; empty if the devices differ.
std::string transfer_text(const Shape& shape, const Sharding& a, const Sharding& b) {
  const int rank = static_cast<int>(shape.size());
  const Layout &from = *layout_of(added_up(a), rank), &to = *layout_of(added_up(b), rank);
  if (from.order() != to.order()) return "";
  const TransferCost cost = transfer_cost(from, to, shape, 1);
  const Mesh* mesh = mesh_of(b) ? mesh_of(b) : mesh_of(a);
  return fmt::format(" ({}{})", name(cost.kind), mesh ? " " + axis_names(cost.axes, to.order(), mesh) : "");
}

std::string elements_text(std::int64_t n) { return fmt::format("{} element{}", n, n == 1 ? "" : "s"); }

// How summands change: one line for those that are combined, one for those that are created. `is_all`: nothing else moves.
std::string summands_text(const Shape& shape, const Sharding& a, const Sharding& b,
                          std::optional<DType> dtype, bool& is_all) {
  const std::int64_t item = dtype ? static_cast<std::int64_t>(itemsize(*dtype)) : 1;
  const int rank = static_cast<int>(shape.size());
  const Layout &from = *layout_of(a, rank), &to = *layout_of(b, rank);
  const bool one_order = from.order() == to.order();
  const AxisList added = one_order ? reduced_axes(from, to) : from.unreduced();
  const AxisList made = one_order ? made_axes(from, to) : to.unreduced();
  std::string out;
  if (!added.empty()) {
    TransferCost cost = transfer_cost(from, *without_partial_sums(from, added, from.dims()), shape, item);
    if (one_order) {
      const TransferCost direct = transfer_cost(from, *before_summands(from, to), shape, item);
      is_all = direct.kind != TransferKind::exchange;
      if (is_all) cost = direct;
    }
    out += fmt::format("Summands over {} are added up ({}): devices receive at most {} each.\n",
                       axis_names(added, from.order(), mesh_of(a)), name(cost.kind),
                       dtype ? bytes_text(cost.bytes) : elements_text(cost.bytes));
  }
  if (!made.empty())
    out += fmt::format("One of the devices over {} keeps what it holds, the others hold zeros.\n",
                       axis_names(made, to.order(), mesh_of(b)));
  return out;
}

// The devices whose data does not change, and the total received.
std::string diff_summary(const std::vector<DiffRow>& rows, const std::string& transfer,
                         const std::function<std::string(std::int64_t)>& amount) {
  std::map<std::string, std::vector<Device>> same;  // by platform
  std::int64_t total = 0, most = 0;
  for (const DiffRow& row : rows) {
    if (row.same)
      for (const Device& d : row.devices) same[d.platform].push_back(d);
    for (std::size_t k = 0; k < row.devices.size(); k++) total = add_sizes(total, row.receives);
    most = std::max(most, row.receives);
  }
  std::string out;
  for (const auto& [platform, devices] : same)
    out += fmt::format("{} {} the same in both.\n", device_runs(devices),
                       devices.size() == 1 ? "holds" : "hold");
  if (total == 0) return out + "No device receives anything.\n";
  return out + fmt::format("Devices receive {} in all, at most {} each{}.\n", amount(total), amount(most),
                           transfer);
}

}  // namespace

std::string render_diff(const Shape& shape, const Sharding& from, const Sharding& to,
                        std::optional<DType> dtype, Where w) {
  const Site site(w, "render_diff");
  const char* const function = detail::call_site.function;  // the one the user called
  check_size(function, shape, dtype.value_or(DType::bool_));
  for (const Sharding& s : {from, to}) layout_of(s, static_cast<int>(shape.size()), function);
  const auto amount = [&](std::int64_t elements) {
    return dtype ? bytes_text(mul_sizes(elements, static_cast<std::int64_t>(itemsize(*dtype))))
                 : elements_text(elements);
  };
  bool is_all = false;
  std::string summands = summands_text(shape, from, to, dtype, is_all);
  if (is_all) return summands;
  const std::vector<DiffRow> rows = diff_rows(shape, from, to);
  std::vector<std::vector<std::string>> table = {{"devices", "from", "to", "keep", "receive"}};
  for (const DiffRow& row : rows)
    if (!row.same)
      table.push_back(
          {device_runs(row.devices), row.before, row.after, amount(row.keeps), amount(row.receives)});
  const std::string summary = summands + diff_summary(rows, transfer_text(shape, from, to), amount);
  return table.size() > 1 ? table_text(table) + summary : summary;
}

void visualize_diff(const Shape& shape, const Sharding& from, const Sharding& to, std::optional<DType> dtype,
                    Where w) {
  const Site site(w, "visualize_diff");
  print_text(render_diff(shape, from, to, dtype));
}

}  // namespace shardarray
