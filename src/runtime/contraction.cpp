#include "runtime/contraction.h"

#include <cstddef>

namespace shardarray {

std::vector<std::int64_t> Contraction::params() const {
  std::vector<std::int64_t> p;
  for (const auto* dims : {&groups, &points, &features, &summed}) {
    p.push_back(static_cast<std::int64_t>(dims->size()));
    for (const ContractionDim& d : *dims) p.insert(p.end(), {d.size, d.lhs, d.rhs, d.out});
  }
  return p;
}

Contraction Contraction::of(std::span<const std::int64_t> params) {
  Contraction c;
  std::size_t at = 0;
  for (auto* dims : {&c.groups, &c.points, &c.features, &c.summed}) {
    const auto count = static_cast<std::size_t>(params[at++]);
    for (std::size_t k = 0; k < count; k++, at += 4)
      dims->push_back({params[at], params[at + 1], params[at + 2], params[at + 3]});
  }
  return c;
}

std::int64_t size_of(std::span<const ContractionDim> dims) {
  std::int64_t n = 1;
  for (const ContractionDim& d : dims) n *= d.size;
  return n;
}

double products_of(const Contraction& c) {
  double n = 1;
  for (const auto* dims : {&c.groups, &c.points, &c.features, &c.summed})
    n *= static_cast<double>(size_of(*dims));
  return n;
}

std::vector<ContractionDim> merged(std::span<const ContractionDim> dims) {
  std::vector<ContractionDim> r;
  for (const ContractionDim& d : dims) {
    if (d.size == 1) continue;
    const auto walks_on = [&](std::int64_t outer, std::int64_t inner) { return outer == inner * d.size; };
    if (!r.empty() && walks_on(r.back().lhs, d.lhs) && walks_on(r.back().rhs, d.rhs) &&
        walks_on(r.back().out, d.out))
      r.back() = {r.back().size * d.size, d.lhs, d.rhs, d.out};
    else r.push_back(d);
  }
  return r;
}

}  // namespace shardarray
