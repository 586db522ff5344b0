// The costs of the known strategies for a product on a mesh: flops and bytes of the busiest device. No data, no devices.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "layouts.h"

namespace bench {

/// One way to run a layout: every mesh axis, or factor of one, splits m, n or k (partial sums), or replicates the work. Missing parts of A
/// and B are fetched, partial sums are combined on the way to C.
struct Strategy {
  std::string where;  ///< `m/4 k/2`: into how many parts each size is split; empty: none is
  double flops = 0;   ///< of the busiest device
  double bytes = 0;   ///< received by the busiest device, transfer by transfer
};

namespace detail {

struct Range {
  std::int64_t start, stop;
};
struct Tile {
  Range rows, columns;
  double size() const {
    return static_cast<double>(rows.stop - rows.start) * static_cast<double>(columns.stop - columns.start);
  }
};
inline Range range_of(const Product& p, const std::vector<int>& axes, int device, std::int64_t size) {
  std::int64_t tiles = 1, index = 0;
  for (int axis : axes) {
    int below = 1;  // devices are numbered row-major
    for (std::size_t k = static_cast<std::size_t>(axis) + 1; k < p.mesh.size(); k++) below *= p.mesh[k].size;
    const int n = p.mesh[static_cast<std::size_t>(axis)].size;
    tiles *= n;
    index = index * n + device / below % n;
  }
  const std::int64_t tile = (size + tiles - 1) / tiles;
  return {std::min(size, index * tile), std::min(size, (index + 1) * tile)};
}
inline Tile tile_of(const Product& p, const Cut& c, int device, std::int64_t rows, std::int64_t columns) {
  return {range_of(p, c.rows, device, rows), range_of(p, c.columns, device, columns)};
}
/// The number of elements in both.
inline double common(const Tile& a, const Tile& b) {
  auto length = [](Range x, Range y) {
    return static_cast<double>(
        std::max<std::int64_t>(0, std::min(x.stop, y.stop) - std::max(x.start, y.start)));
  };
  return length(a.rows, b.rows) * length(a.columns, b.columns);
}
/// The largest over all devices of `f(device)`.
template <class F> double busiest(const Product& p, const F& f) {
  double most = 0;
  for (int d = 0; d < p.devices(); d++) most = std::max(most, f(d));
  return most;
}
/// Elements of `to` that the busiest device lacks if it has `from`.
inline double lacking(const Product& p, const Cut& from, const Cut& to, std::int64_t rows,
                      std::int64_t columns) {
  return busiest(p, [&](int d) {
    const Tile t = tile_of(p, to, d, rows, columns);
    return t.size() - common(t, tile_of(p, from, d, rows, columns));
  });
}
inline double group_size(const Product& p, const std::vector<int>& axes) {
  double count = 1;
  for (int axis : axes) count *= p.mesh[static_cast<std::size_t>(axis)].size;
  return count;
}
inline double tile_size(const Product& p, const Cut& c) {
  return busiest(p, [&](int d) { return tile_of(p, c, d, p.m, p.n).size(); });
}
/// Bytes received if C may stay as it is computed: partial sums over `summed` are reduce-scattered.
inline double scattering(const Product& p, const Cut& made, const std::vector<int>& summed) {
  const double group = group_size(p, summed);
  return static_cast<double>(p.sum_itemsize) * (group - 1) / group * tile_size(p, made);
}
/// Bytes received on the way from tiles `made`, partial sums over `summed`, to `wanted`: the least of an all-reduce and a reshard, of every
/// reduce-scatter and a reshard, and of every device fetching all summands of its tile. Complete sums are rounded to the elements' type, so
/// what is gathered after that has its size.
inline double combining(const Product& p, const Cut& made, const std::vector<int>& summed,
                        const Cut& wanted) {
  const auto item = static_cast<double>(p.itemsize), sum = static_cast<double>(p.sum_itemsize);
  if (summed.empty()) return item * lacking(p, made, wanted, p.m, p.n);
  const double group = group_size(p, summed), tile = tile_size(p, made);
  const double others = (group - 1) / group * tile;  // of the group's devices, of one tile
  double least = (sum + item) * others + item * lacking(p, made, wanted, p.m, p.n);
  for (std::size_t way = 0; way < std::size_t{1} << summed.size(); way++) {
    Cut scattered = made;
    for (std::size_t k = 0; k < summed.size(); k++)
      (way >> k & 1 ? scattered.columns : scattered.rows).push_back(summed[k]);
    least = std::min(least, sum * others + item * lacking(p, scattered, wanted, p.m, p.n));
  }
  const double direct = busiest(p, [&](int d) {
    const Tile t = tile_of(p, wanted, d, p.m, p.n);
    return group * t.size() - common(t, tile_of(p, made, d, p.m, p.n));
  });
  return std::min(least, sum * direct);
}
/// The axes that split m, k and n.
using Assignment = std::array<std::vector<int>, 3>;
inline Strategy strategy(const Product& p, const ProductLayout& l, const Assignment& cuts) {
  const auto& [m, k, n] = cuts;
  Strategy s;
  for (std::size_t f = 0; f < 3; f++) {
    int parts = 1;
    for (int axis : cuts[f]) parts *= p.mesh[static_cast<std::size_t>(axis)].size;
    if (parts > 1) s.where += fmt::format("{}{}/{}", s.where.empty() ? "" : " ", "mkn"[f], parts);
  }
  s.flops = busiest(p, [&](int d) {
    const Range depth = range_of(p, cuts[1], d, p.k);
    return 2 * tile_of(p, {cuts[0], cuts[2]}, d, p.m, p.n).size() *
           static_cast<double>(depth.stop - depth.start);
  });
  s.bytes = static_cast<double>(p.itemsize) *
                (lacking(p, l.a, {m, k}, p.m, p.k) + lacking(p, l.b, {k, n}, p.k, p.n)) +
            (l.picked ? scattering(p, {m, n}, k) : combining(p, {m, n}, k, l.c));
  return s;
}
/// Splits the axes into their prime factors. With more than `most`, the smallest neighbours of one axis are merged, as the list of
/// strategies grows factorially.
inline void split_axes(Product& p, ProductLayout& l, std::size_t most) {
  std::vector<std::vector<int>> primes;  // of each axis
  std::size_t count = 0;
  for (const MeshAxis& a : p.mesh) {
    primes.emplace_back();
    int rest = a.size;
    for (int prime = 2; rest > 1; prime++)
      for (; rest % prime == 0; rest /= prime, count++) primes.back().push_back(prime);
  }
  for (; count > most; count--) {
    std::vector<int>* of = nullptr;
    std::size_t at = 0;
    int least = std::numeric_limits<int>::max();
    for (std::vector<int>& f : primes)
      for (std::size_t k = 0; k + 1 < f.size(); k++)
        if (f[k] * f[k + 1] <= least) of = &f, at = k, least = f[k] * f[k + 1];
    if (of == nullptr) break;  // an axis is at least one
    (*of)[at] = least;
    of->erase(of->begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
  std::vector<MeshAxis> factors;
  std::vector<std::vector<int>> of_axis;
  for (std::size_t axis = 0; axis < p.mesh.size(); axis++) {
    of_axis.emplace_back();
    for (const int size : primes[axis]) {
      of_axis.back().push_back(static_cast<int>(factors.size()));
      factors.push_back({p.mesh[axis].name, size});
    }
  }
  p.mesh = factors;
  for (Cut* c : {&l.a, &l.b, &l.c})
    for (std::vector<int>* dim : {&c->rows, &c->columns}) {
      std::vector<int> split;
      for (int axis : *dim)
        split.insert(split.end(), of_axis[static_cast<std::size_t>(axis)].begin(),
                     of_axis[static_cast<std::size_t>(axis)].end());
      *dim = split;
    }
}

}  // namespace detail

/// For two products: every strategy of the first one to any cut of the intermediate, with every one of the second from there. Those that
/// compute and receive more than another one are left out.
inline std::vector<Strategy> chain_strategies(const Product& p, const ProductLayout& l);

/// All strategies, with the axes of a dimension in every order. If C is picked by the library, those to any C.
inline std::vector<Strategy> strategies(Product p, ProductLayout l) {
  if (l.v) return chain_strategies(p, l);
  constexpr std::size_t most_factors = 3;  // 106 strategies
  detail::split_axes(p, l, most_factors);
  std::set<detail::Assignment> seen;
  std::vector<Strategy> out;
  std::vector<int> order(p.mesh.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    for (int choice = 0; choice < 1 << (2 * p.mesh.size()); choice++) {  // two bits for each axis
      detail::Assignment cuts;
      for (int axis : order)
        if (const int c = choice >> (2 * axis) & 3; c < 3) cuts[static_cast<std::size_t>(c)].push_back(axis);
      if (seen.insert(cuts).second) out.push_back(detail::strategy(p, l, cuts));
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return out;
}
namespace detail {
/// The Pareto-optimal ones in flops and bytes, sorted by flops.
inline std::vector<Strategy> best_of(std::vector<Strategy> all) {
  std::ranges::sort(all, [](const Strategy& a, const Strategy& b) {
    return std::pair(a.flops, a.bytes) < std::pair(b.flops, b.bytes);
  });
  std::vector<Strategy> out;
  for (Strategy& s : all)
    if (out.empty() || s.bytes < out.back().bytes) out.push_back(std::move(s));
  return out;
}
}  // namespace detail

inline std::vector<Strategy> chain_strategies(const Product& p, const ProductLayout& l) {
  Product first = p, second = p;
  first.chain = second.chain = false;
  second.k = p.n, second.n = p.k;
  std::vector<Strategy> all;
  for (const Cut& between : all_cuts(p.mesh)) {
    const std::vector<Strategy> ends = detail::best_of(strategies(second, {between, *l.v, l.c, l.picked}));
    for (const Strategy& a : detail::best_of(strategies(first, {l.a, l.b, between})))
      for (const Strategy& b : ends)
        all.push_back({fmt::format("{}, then {}", a.where, b.where), a.flops + b.flops, a.bytes + b.bytes});
  }
  return detail::best_of(std::move(all));
}

/// The one that receives least among those with at most `flops` (plus 1 %).
inline Strategy least_bytes(const std::vector<Strategy>& all, double flops) {
  Strategy best{"", 0, std::numeric_limits<double>::infinity()};
  for (const Strategy& s : all)
    if (s.flops <= 1.01 * flops && s.bytes < best.bytes) best = s;
  return best;
}

/// Seconds of arithmetic and of transfers; all devices share one machine.
struct Rates {
  double flops = 0, bytes = 0;  ///< per second, of the whole machine; 0: not measured
};
inline double predicted_seconds(const Rates& r, double flops, double bytes) {
  return flops / r.flops + bytes / r.bytes;
}
inline double predicted_seconds(const Rates& r, const Strategy& s, int devices) {
  return predicted_seconds(r, s.flops * devices, s.bytes * devices);
}
/// The least time of the best strategy: the longer of its arithmetic and its transfers, as if they overlapped.
inline double floor_seconds(const std::vector<Strategy>& all, const Rates& r, int devices) {
  double least = std::numeric_limits<double>::infinity();
  for (const Strategy& s : all)
    least = std::min(least, std::max(s.flops * devices / r.flops, s.bytes * devices / r.bytes));
  return least;
}
/// The strategy that is fastest by these rates.
inline Strategy fastest(const std::vector<Strategy>& all, const Rates& r, int devices) {
  return *std::min_element(all.begin(), all.end(), [&](const Strategy& x, const Strategy& y) {
    return predicted_seconds(r, x, devices) < predicted_seconds(r, y, devices);
  });
}

/// B sharded along k, A and C replicated: from which m on is it faster to gather B and let every device compute all of C than to all-reduce
/// partial products? `rates` of 0 counts bytes only. Infinite: never.
inline double crossover_m(const Product& p, const Rates& rates) {
  const double k = static_cast<double>(p.k), item = static_cast<double>(p.itemsize),
               both =
                   item + static_cast<double>(p.sum_itemsize);  // to reduce-scatter sums and gather results
  // (g-1) 2mkn / F + (g-1) k n item / B < (g-1) m n both / B
  const double repeated = rates.flops > 0 ? 2 * k / rates.flops * rates.bytes : 0;
  return both > repeated ? k * item / (both - repeated) : std::numeric_limits<double>::infinity();
}

}  // namespace bench
