// sharding_table: who holds what, device by device.
#include "layout/pictures/text.h"
#include "shardarray/visualize.h"

namespace shardarray {

std::string sharding_table(const Shape& shape, const Sharding& sharding, Where w) {
  const Site site(w);
  std::vector<std::vector<std::string>> rows = {{"device", "index", "shard shape", "replica"}};
  const auto replicas = sharding.replica_ids(shape);
  for (const auto& [device, index] : sharding.devices_indices_map(shape))
    rows.push_back({to_string(device), to_string(index), to_string(sharding.shard_shape(shape, device)),
                    std::to_string(replicas[rows.size() - 1])});
  return table_text(rows);
}

}  // namespace shardarray
