#include "layout/relabel.h"

#include <algorithm>
#include <limits>

namespace shardarray {
namespace {

// gain[tile][device] >= 0 -> tile -> device, maximizing the sum. Tiles are assigned one after the other, each along the shortest augmenting
// path; the duals `of_tile`, `of_device` keep reduced costs non-negative.
std::vector<std::size_t> assign(const std::vector<std::vector<std::int64_t>>& gain) {
  constexpr auto far = std::numeric_limits<std::int64_t>::max();
  const std::size_t n = gain.size(), none = n;
  std::vector<std::int64_t> of_tile(n, 0), of_device(n, 0);
  std::vector<std::size_t> tile_of(n, none), device_of(n, none);
  for (std::size_t first = 0; first < n; first++) {
    std::vector<std::int64_t> distance(n, far);
    std::vector<std::size_t> before(n, none);  // device -> tile from which it was reached
    std::vector<bool> done(n, false);
    std::size_t tile = first, reached = none;
    std::int64_t walked = 0;
    while (reached == none) {
      for (std::size_t d = 0; d < n; d++) {
        if (done[d]) continue;
        const std::int64_t length = walked - gain[tile][d] - of_tile[tile] - of_device[d];
        if (length < distance[d]) distance[d] = length, before[d] = tile;
      }
      std::size_t next = none;
      for (std::size_t d = 0; d < n; d++)
        if (!done[d] && (next == none || distance[d] < distance[next])) next = d;
      done[next] = true;
      walked = distance[next];
      if (tile_of[next] == none) reached = next;
      else tile = tile_of[next];
    }
    of_tile[first] += walked;
    for (std::size_t d = 0; d < n; d++) {
      if (!done[d] || d == reached) continue;
      of_tile[tile_of[d]] += walked - distance[d];
      of_device[d] -= walked - distance[d];
    }
    for (std::size_t d = reached; d != none;) {
      tile_of[d] = before[d];
      std::swap(device_of[before[d]], d);
    }
  }
  return device_of;
}

}  // namespace

std::vector<Device> nearest_devices(const Layout& from, const Layout& to, const Shape& shape) {
  std::vector<Device> devices = to.order()->devices();
  const std::size_t n = devices.size();
  std::vector<Box> tiles;
  for (std::size_t t = 0; t < n; t++) tiles.push_back(tile_of(to, shape, static_cast<int>(t)));
  const bool both_partial = !from.unreduced().empty() && !to.unreduced().empty();
  std::vector<std::vector<std::int64_t>> gain(n, std::vector<std::int64_t>(n, 0));
  for (std::size_t d = 0; d < n; d++) {
    const int p = from.order()->position(devices[d]);
    if (p < 0) continue;  // holds nothing of the array
    const Box held = tile_of(from, shape, p);
    for (std::size_t t = 0; t < n; t++)
      if (!both_partial || summand_index(from, p) == summand_index(to, static_cast<int>(t)))
        gain[t][d] = intersect(tiles[t], held).elements();
  }
  std::int64_t now = 0, most = 0;
  for (std::size_t t = 0; t < n; t++) now += gain[t][t];
  const std::vector<std::size_t> device_of = assign(gain);
  for (std::size_t t = 0; t < n; t++) most += gain[t][device_of[t]];
  if (most == now) return devices;
  std::vector<Device> sorted;
  sorted.reserve(n);
  for (const std::size_t d : device_of) sorted.push_back(devices[d]);
  return sorted;
}

}  // namespace shardarray
