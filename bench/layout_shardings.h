// Meshes and shardings of the layouts in layouts.h.
#pragma once
#include <shardarray/shardarray.h>

#include <string>
#include <utility>
#include <vector>

#include "layouts.h"

namespace bench {

inline shardarray::Mesh mesh_of(const Product& p) {
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (const MeshAxis& a : p.mesh) axes.emplace_back(std::string(1, a.name), a.size);
  return shardarray::make_mesh(axes);
}

inline shardarray::Sharding sharding_of(const Product& p, const shardarray::Mesh& mesh, const Cut& c) {
  const auto entry = [&](const std::vector<int>& axes) -> shardarray::SpecEntry {
    if (axes.empty()) return shardarray::none;
    shardarray::AxisNames names;
    for (const int a : axes) names.names.emplace_back(1, p.mesh[static_cast<std::size_t>(a)].name);
    return names;
  };
  return shardarray::NamedSharding(mesh, shardarray::P(entry(c.rows), entry(c.columns)));
}

}  // namespace bench
