// Plain reference arithmetic on double arrays, for op_cases.h. Slow and obvious.
#pragma once
#include <cmath>
#include <vector>

#include "shardarray/detail/path.h"
#include "shardarray/shape.h"

namespace shardarray::testing {

struct HostArray {
  Shape shape;
  std::vector<double> data;  ///< row-major
};
using Hosts = std::vector<HostArray>;

inline std::size_t offset(const Shape& shape, const Shape& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < shape.size(); d++) at = at * shape[d] + index[d];
  return static_cast<std::size_t>(at);
}
/// Calls f(index) for all indices, row-major.
inline void each_index(const Shape& shape, detail::FunctionRef<void(const Shape&)> f) {
  Shape index = Shape::filled(shape.size(), 0);
  for (std::int64_t left = num_elements(shape); left > 0; left--) {
    f(index);
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) break;
      index[d] = 0;
    }
  }
}
inline double read(const HostArray& x, const Shape& index) { return x.data[offset(x.shape, index)]; }
/// Element `index` of x broadcast to a shape of that rank.
inline double read_broadcast(const HostArray& x, const Shape& index) {
  Shape mine;
  for (std::size_t d = 0; d < x.shape.size(); d++) {
    const std::int64_t i = index[index.size() - x.shape.size() + d];
    mine.push_back(x.shape[d] == 1 ? 0 : i);
  }
  return read(x, mine);
}
/// The array of `shape` with f(index) everywhere.
inline std::vector<double> build(const Shape& shape, detail::FunctionRef<double(const Shape&)> f) {
  std::vector<double> v;
  each_index(shape, [&](const Shape& i) { v.push_back(f(i)); });
  return v;
}

/// The values along `axes` for every index of the other dimensions, combined.
inline std::vector<double> fold(const HostArray& x, const std::vector<std::size_t>& axes,
                                detail::FunctionRef<double(const std::vector<double>&)> combine) {
  Shape kept = x.shape;
  for (std::size_t a : axes) kept[a] = 1;
  return build(kept, [&](const Shape& at) {
    Shape inner = Shape::filled(x.shape.size(), 1);
    for (std::size_t a : axes) inner[a] = x.shape[a];
    std::vector<double> values;
    each_index(inner, [&](const Shape& i) {
      Shape index = at;
      for (std::size_t a : axes) index[a] = i[a];
      values.push_back(read(x, index));
    });
    return combine(values);
  });
}
/// Every line along `axis` replaced by f(line), of the same length.
inline std::vector<double> along(const HostArray& x, std::size_t axis,
                                 detail::FunctionRef<std::vector<double>(const std::vector<double>&)> f) {
  HostArray r = x;
  Shape lines = x.shape;
  lines[axis] = 1;
  each_index(lines, [&](const Shape& start) {
    Shape i = start;
    std::vector<double> line;
    for (i[axis] = 0; i[axis] < x.shape[axis]; i[axis]++) line.push_back(read(x, i));
    line = f(line);
    for (i[axis] = 0; i[axis] < x.shape[axis]; i[axis]++)
      r.data[offset(x.shape, i)] = line[static_cast<std::size_t>(i[axis])];
  });
  return r.data;
}

/// Sum over all letters that the result lacks, of the product of the operands: "ij,jk->ik".
inline std::vector<double> sum_of_products(const std::string& letters, const Hosts& x) {
  std::vector<std::string> terms(1);
  const std::size_t arrow = letters.find("->");
  for (char c : letters.substr(0, arrow)) {
    if (c == ',') terms.emplace_back();
    else terms.back() += c;
  }
  const std::string out = letters.substr(arrow + 2);
  std::string names;
  Shape sizes, out_shape;
  for (std::size_t k = 0; k < terms.size(); k++)
    for (std::size_t d = 0; d < terms[k].size(); d++)
      if (names.find(terms[k][d]) == std::string::npos) {
        names += terms[k][d];
        sizes.push_back(x[k].shape[d]);
      }
  auto pick = [&](const std::string& term, const Shape& of) {
    Shape s;
    for (char c : term) s.push_back(of[names.find(c)]);
    return s;
  };
  out_shape = pick(out, sizes);
  std::vector<double> r(static_cast<std::size_t>(num_elements(out_shape)), 0.0);
  each_index(sizes, [&](const Shape& i) {
    double p = 1;
    for (std::size_t k = 0; k < terms.size(); k++) p *= read(x[k], pick(terms[k], i));
    r[offset(out_shape, pick(out, i))] += p;
  });
  return r;
}

/// Salmon et al. 2011, 20 rounds.
inline void threefry2x32(const std::uint32_t key[2], std::uint32_t x[2]) {
  const std::uint32_t ks[3] = {key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDAu};
  const int rotation[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  x[0] += ks[0];
  x[1] += ks[1];
  for (unsigned r = 0; r < 20; r++) {
    x[0] += x[1];
    const int n = rotation[r % 8];
    x[1] = (x[1] << n | x[1] >> (32 - n)) ^ x[0];
    if (r % 4 != 3) continue;
    const unsigned s = r / 4 + 1;
    x[0] += ks[s % 3];
    x[1] += ks[(s + 1) % 3] + s;
  }
}

/// Salmon et al. 2011, 10 rounds.
inline void philox4x32(std::uint32_t k0, std::uint32_t k1, std::uint32_t x[4]) {
  for (int r = 0; r < 10; r++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * x[0], b = std::uint64_t{0xCD9E8D57u} * x[2];
    const std::uint32_t next[4] = {
        static_cast<std::uint32_t>(b >> 32) ^ x[1] ^ k0, static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ x[3] ^ k1, static_cast<std::uint32_t>(a)};
    std::copy_n(next, 4, x);
  }
}

}  // namespace shardarray::testing
