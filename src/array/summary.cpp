#include "shardarray/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/bytes_text.h"
#include "base/count_text.h"
#include "base/sizes.h"
#include "graph/node.h"

namespace shardarray::detail {

namespace {

constexpr std::size_t summary_columns = 5;
using SummaryRow = std::array<std::string, summary_columns>;

std::string grouped(std::int64_t n) {
  std::string s = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(s.size()) - 3; at > 0; at -= 3)
    s.insert(static_cast<std::size_t>(at), ",");
  return s;
}

/// By platform and id.
using BytesOfDevices = std::map<std::pair<std::string, int>, std::int64_t>;

// Bytes on the device that holds most of it; -1 if it has no value (any more). Adds each device's bytes to `all`.
std::int64_t bytes_on_device(const Array& x, BytesOfDevices& all) {
  if (x.is_deleted()) return -1;
  const std::lock_guard lock(graph_mutex());
  const Node& n = *x.node();
  const Value* const v = n.evaluated() ? n.out()[x.index()].value.get() : nullptr;
  if (v == nullptr) return -1;
  const Type& t = n.type(x.index());
  std::int64_t most = 0;
  for (int p = 0; p < v->layout->order()->size(); p++) {
    const Device& d = v->layout->order()->devices()[static_cast<std::size_t>(p)];
    const std::int64_t here = bytes_of(tile_of(*v->layout, t.shape, p).size, t.dtype);
    std::int64_t& there = all[{d.platform, d.id}];
    there = add_sizes(there, here);
    most = std::max(most, here);
  }
  return most;
}

}  // namespace

std::string summary_text(const std::vector<std::pair<std::string, Array>>& leaves, Where w) {
  const Site site(w, "summary");
  std::vector<SummaryRow> rows{{"path", "type", "elements", "bytes", "on a device"}};
  std::int64_t elements = 0, bytes = 0, on_device = 0;
  BytesOfDevices of_devices;
  for (const auto& [path, x] : leaves) {
    const Type& t = type_of(x, "summary");
    const std::int64_t n = num_elements(t.shape), size = bytes_of(t.shape, t.dtype),
                       here = bytes_on_device(x, of_devices);
    elements = add_sizes(elements, n);
    bytes = add_sizes(bytes, size);
    rows.push_back({path, x.type_string(), grouped(n), bytes_text(size), here < 0 ? "" : bytes_text(here)});
  }
  for (const auto& [device, held] : of_devices) on_device = std::max(on_device, held);
  rows.push_back({"all", count_text(leaves.size(), "array"), grouped(elements), bytes_text(bytes),
                  bytes_text(on_device)});
  std::array<std::size_t, summary_columns> width{};
  for (const SummaryRow& r : rows)
    for (std::size_t k = 0; k < summary_columns; k++) width[k] = std::max(width[k], r[k].size());
  std::string text;
  for (const SummaryRow& r : rows) {
    std::string line;
    for (std::size_t k = 0; k < summary_columns; k++)
      line += k < 2 ? fmt::format("{:<{}}  ", r[k], width[k])
                    : fmt::format("{:>{}}{}", r[k], width[k], k + 1 < summary_columns ? "  " : "");
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace shardarray::detail
