// Maps by plain loops: rows of vmap, shards of shard_map with their collectives, derivatives by finite differences.
#pragma once
#include "plain_eval.h"

namespace shardarray::testing {

/// A function of one array, for the library and by plain loops.
struct Function {
  std::string text;
  std::function<Array(const Array&)> library;
  std::function<Plain(const Plain&)> plain;
};

namespace plain {

/// x at position k of dimension `dim`, which goes.
inline Plain row(const Plain& x, std::size_t dim, std::int64_t k) {
  Shape shape = x.shape;
  shape.erase(dim);
  return moved(x, shape, [&](const Shape& i, Shape& at) {
    at = i;
    at.insert(dim, k);
    return true;
  });
}
/// A new first dimension.
inline Plain stack(std::vector<Plain> parts) {
  for (Plain& p : parts) p.shape.insert(0, 1);
  return concatenate(parts, 0);
}
inline Plain mapped(const Function& f, const Plain& x, std::size_t dim) {
  std::vector<Plain> parts;
  for (std::int64_t k = 0; k < x.shape[dim]; k++) parts.push_back(f.plain(row(x, dim, k)));
  return stack(std::move(parts));
}

/// d sum(terms(x)) / dx.
inline Plain gradient(const std::function<Plain(const Plain&)>& terms, const Plain& x) {
  const double u = roundoff(x.dtype);
  Plain g = x, near = x;
  for (std::size_t k = 0; k < x.data.size(); k++) {
    const double middle = static_cast<double>(x.data[k].value), step = 1e-4;
    real_numbers() = true;
    near.data[k].value = middle + step;
    const Plain above = terms(near);
    near.data[k].value = middle - step;
    const Plain below = terms(near);
    near.data[k].value = middle;
    real_numbers() = false;
    double total = 0, size = 0;
    for (std::size_t j = 0; j < above.data.size(); j++) {
      const double d = static_cast<double>(above.data[j].value - below.data[j].value) / (2 * step);
      total += d;
      size += std::abs(d);
    }
    g.data[k] = real_element(x.dtype, total, (400 * u + 1e-6) * (size + 0.2), size);
  }
  return g;
}

// ---------------------------------------------------------------- pieces of a grid of positions
struct Pieces {
  Shape grid;                ///< the sizes of the mapped axes
  std::vector<Plain> parts;  ///< one a position, row-major
};

/// Calls f(positions) for every line of positions along an axis, in order.
inline void each_group(const Shape& grid, std::size_t axis,
                       const std::function<void(const std::vector<std::size_t>&)>& f) {
  Shape starts = grid;
  starts[axis] = 1;
  each_index(starts, [&](const Shape& start) {
    std::vector<std::size_t> group;
    Shape at = start;
    for (at[axis] = 0; at[axis] < grid[axis]; at[axis]++) group.push_back(offset(grid, at));
    f(group);
  });
}
/// Every group's values -> its new values.
inline Pieces by_groups(const Pieces& x, std::size_t axis,
                        const std::function<std::vector<Plain>(const std::vector<Plain>&)>& f) {
  Pieces r = x;
  each_group(x.grid, axis, [&](const std::vector<std::size_t>& group) {
    std::vector<Plain> values;
    for (std::size_t p : group) values.push_back(x.parts[p]);
    values = f(values);
    for (std::size_t k = 0; k < group.size(); k++) r.parts[group[k]] = values[k];
  });
  return r;
}
/// Part k of n along `dim`.
inline Plain part(const Plain& x, std::size_t dim, std::int64_t k, std::int64_t n) {
  Shape start = Shape::filled(x.shape.size(), 0), size = x.shape;
  size[dim] /= n;
  start[dim] = k * size[dim];
  return slice(x, start, Shape::filled(x.shape.size(), 1), size);
}
inline std::vector<Plain> all_of(const Plain& x, std::size_t n) { return std::vector<Plain>(n, x); }

inline std::vector<Plain> psum(const std::vector<Plain>& x) {
  return all_of(sum(stack(x), {0}, x[0].dtype), x.size());
}
inline std::vector<Plain> pextremum(const char* name, const std::vector<Plain>& x) {
  return all_of(extremum(name, stack(x), {0}), x.size());
}
inline std::vector<Plain> all_gather(const std::vector<Plain>& x, std::size_t dim) {
  return all_of(concatenate(x, dim), x.size());
}
inline std::vector<Plain> psum_scatter(const std::vector<Plain>& x, std::size_t dim) {
  const Plain total = psum(x)[0];
  std::vector<Plain> r;
  for (std::size_t k = 0; k < x.size(); k++)
    r.push_back(part(total, dim, static_cast<std::int64_t>(k), static_cast<std::int64_t>(x.size())));
  return r;
}
inline std::vector<Plain> all_to_all(const std::vector<Plain>& x, std::size_t split, std::size_t concat) {
  std::vector<Plain> r;
  for (std::size_t k = 0; k < x.size(); k++) {
    std::vector<Plain> pieces;
    for (const Plain& p : x)
      pieces.push_back(part(p, split, static_cast<std::int64_t>(k), static_cast<std::int64_t>(x.size())));
    r.push_back(concatenate(pieces, concat));
  }
  return r;
}
/// source[k]: whose value position k gets; -1: zeros.
inline std::vector<Plain> permuted(const std::vector<Plain>& x, const std::vector<int>& source) {
  const Plain all = rows_from(stack(x), source);
  std::vector<Plain> r;
  for (std::size_t k = 0; k < x.size(); k++) r.push_back(row(all, 0, static_cast<std::int64_t>(k)));
  return r;
}

}  // namespace plain
}  // namespace shardarray::testing
