// sharding_table: what each device holds.
#include "base/sizes.h"
#include "layout/pictures/device_ids.h"
#include "layout/pictures/text.h"
#include "layout/spelling.h"
#include "shardarray/visualize.h"

namespace shardarray {

std::string sharding_table(const Shape& shape, const Sharding& sharding, Where w) {
  const Site site(w, "sharding_table");
  check_size(detail::call_site.function, shape, DType::bool_);
  std::vector<std::vector<std::string>> rows = {{"device", "index", "shard shape", "replica"}};
  const Layout& layout = *layout_of(sharding, static_cast<int>(shape.size()), detail::call_site.function);
  const auto replicas = sharding.replica_ids(shape);
  const bool has_summands = !layout.unreduced().empty();
  const bool has_processes = devices_by_process(layout.order()->devices()).size() > 1;
  if (has_summands) rows[0].push_back("summand");
  if (has_processes) rows[0].push_back("process");
  for (const auto& [device, index] : sharding.devices_indices_map(shape)) {
    const Shape piece = sharding.shard_shape(shape, device);
    rows.push_back({to_string(device), to_string(index), to_string(piece),
                    num_elements(piece) == 0 ? "empty" : std::to_string(replicas[rows.size() - 1])});
    if (has_summands)
      rows.back().push_back(std::to_string(summand_index(layout, layout.order()->position(device))));
    if (has_processes) rows.back().push_back(std::to_string(device.process_index));
  }
  return table_text(rows);
}

}  // namespace shardarray
