// Operands for the rows of op_cases.h, their values on the host, and how results are compared.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "everywhere.h"
#include "op_cases.h"
#include "ops/windows.h"
#include "scale.h"
#include "shardarray/filter_shard.h"

namespace shardarray::testing {

using Rng = std::mt19937_64;

inline double uniform_between(Rng& rng, double lo, double hi) {
  return lo + (hi - lo) * std::uniform_real_distribution<double>(0, 1)(rng);
}
inline std::int64_t whole_between(Rng& rng, std::int64_t lo, std::int64_t hi) {
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(rng);
}

/// Values as `in` asks for them, not yet rounded to its dtype.
inline std::vector<double> draw(const OpInput& in, Rng& rng) {
  std::vector<double> v(static_cast<std::size_t>(num_elements(in.shape)));
  for (std::size_t k = 0; k < v.size(); k++) {
    if (!is_floating(in.dtype))
      v[k] = static_cast<double>(whole_between(rng, std::llround(in.lo), std::llround(in.hi)));
    else if (in.distinct)
      v[k] = in.lo + (in.hi - in.lo) * (static_cast<double>(k) + 0.5) / static_cast<double>(v.size());
    else v[k] = uniform_between(rng, in.lo, in.hi);
    if (in.avoid_integers && std::abs(v[k] - std::round(v[k])) < 0.1)
      v[k] += v[k] < std::round(v[k]) ? -0.15 : 0.15;
  }
  if (in.distinct) std::shuffle(v.begin(), v.end(), rng);
  return v;
}

template <class T> Array make(const std::vector<double>& v, const Shape& shape) {
  std::vector<T> typed;
  for (double x : v) typed.push_back(static_cast<T>(x));
  return array(typed, shape);
}
/// An array on the default device.
inline Array to_array(const std::vector<double>& v, const Shape& shape, DType t) {
  switch (t) {
    case DType::bool_: return make<std::uint8_t>(v, shape).astype(DType::bool_);
    case DType::int8: return make<std::int8_t>(v, shape);
    case DType::int32: return make<std::int32_t>(v, shape);
    case DType::uint8: return make<std::uint8_t>(v, shape);
    case DType::uint32: return make<std::uint32_t>(v, shape);
    case DType::float64: return make<double>(v, shape);
    default: return make<float>(v, shape).astype(t);
  }
}
inline Array draw_array(const OpInput& in, Rng& rng) { return to_array(draw(in, rng), in.shape, in.dtype); }
inline Arrays draw_operands(const OpCase& row, Rng& rng) {
  Arrays r;
  for (const OpInput& in : row.inputs) r.push_back(draw_array(in, rng));
  return r;
}

/// The values as double, which holds those of all dtypes in use exactly; the sign of zero included.
inline HostArray host(const Array& x) { return {x.shape(), everywhere(x).to_vector<double>()}; }
inline Hosts hosts(const Arrays& x) {
  Hosts r;
  for (const Array& a : x) r.push_back(host(a));
  return r;
}

inline double largest(const std::vector<double>& v) {
  double m = 0;
  for (double x : v)
    if (std::isfinite(x)) m = std::max(m, std::abs(x));
  return m;
}
/// Empty when equal. Tolerance 0 asks for equal bits (any NaN equals any NaN); otherwise differences may be up to
/// tolerance * max(1, largest wanted).
inline std::string difference(const HostArray& got, const HostArray& want, double tolerance) {
  auto text = [](double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.9g", x);
    return std::string(buffer);
  };
  if (!(got.shape == want.shape))
    return "shape " + to_string(got.shape) + ", wanted " + to_string(want.shape);
  const double allowed = tolerance * std::max(1.0, largest(want.data));
  for (std::size_t k = 0; k < want.data.size(); k++) {
    const double g = got.data[k], w = want.data[k];
    if ((std::isnan(g) && std::isnan(w)) ||
        std::bit_cast<std::uint64_t>(g) == std::bit_cast<std::uint64_t>(w))
      continue;
    if (tolerance > 0 && (g == w || std::abs(g - w) <= allowed)) continue;
    return "element " + std::to_string(k) + " of " + to_string(want.shape) + " is " + text(g) + ", wanted " +
           text(w);
  }
  return "";
}

// ---------------------------------------------------------------- what was recorded
/// Calls f for every node below `roots`, operands first, and for those of the graphs that they hold.
inline void each_node(std::span<const Array> roots, const std::function<void(Node&)>& f) {
  for (Node* n : topological(roots, [](Node*) { return true; })) {
    f(*n);
    for (const auto& g : n->attrs().graphs) each_node(g->out, f);
  }
}
/// Adds floating numbers up, in an order that the sharding decides.
inline bool adds_up(const Node& n) {
  if (!is_inexact(n.type().dtype)) return false;
  const bool sums = n.attrs().reducer == Reducer::sum || n.attrs().reducer == Reducer::prod;
  return ((n.op == &op_reduce || n.op == &op_scan) && sums) || n.op == &op_dot || n.op == &op_conv ||
         n.op == &op_scatter || n.op == &op_triangular_solve || n.op == &op_lu_solve;
}

// ---------------------------------------------------------------- placements
/// All shardings of a value of this rank on a mesh: every dimension on no axis, one, or both in either order.
inline std::vector<Sharding> every_sharding(const Mesh& mesh, std::size_t rank) {
  const auto& names = mesh.axis_names();
  std::vector<PartitionSpec> specs;
  auto add = [&](const std::vector<std::vector<std::string>>& dims) {
    std::vector<SpecEntry> entries;
    for (const auto& d : dims)
      entries.push_back(d.empty()       ? SpecEntry(none)
                        : d.size() == 1 ? SpecEntry(d[0])
                                        : SpecEntry(AxisNames{d}));
    specs.emplace_back(std::move(entries));
  };
  for (std::size_t a = 0; a <= rank; a++)
    for (std::size_t b = 0; b <= (names.size() == 2 ? rank : 0); b++) {
      std::vector<std::vector<std::string>> dims(rank);
      if (a < rank) dims[a].push_back(names[0]);
      if (names.size() == 2 && b < rank) dims[b].push_back(names[1]);
      add(dims);
      if (a < rank && dims[a].size() == 2) {
        std::swap(dims[a][0], dims[a][1]);
        add(dims);
      }
    }
  std::vector<Sharding> r;
  for (const PartitionSpec& s : specs) r.push_back(NamedSharding(mesh, s));
  return r;
}

}  // namespace shardarray::testing
