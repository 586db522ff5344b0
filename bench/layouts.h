// Layouts of a product C[m,n] = A[m,k] B[k,n] on a mesh: their spelling, the list of all, and what the known strategies
// cost. No data, no devices.
//
// A layout is spelled `A,B,C`, each matrix as its rows and its columns: `.` whole, `x` cut by axis x, `x+y` cut by both (x
// major). `x.,.y,xy`: A cut in rows by x, B in columns by y, C in rows by x and columns by y.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

struct MeshAxis {
  char name;
  int size;
};
struct Product {
  std::vector<MeshAxis> mesh;
  std::int64_t m = 0, k = 0, n = 0, itemsize = 4;
  int devices() const {
    int count = 1;
    for (const MeshAxis& a : mesh) count *= a.size;
    return count;
  }
  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
};
/// The axes (positions in the mesh) that cut a matrix, major first.
struct Cut {
  std::vector<int> rows, columns;
  friend bool operator==(const Cut&, const Cut&) = default;
};
struct ProductLayout {
  Cut a, b, c;
  friend bool operator==(const ProductLayout&, const ProductLayout&) = default;
};

// ---------------------------------------------------------------- spelling

/// `x=2,y=4`: one to three axes of one lower-case letter each. Throws std::invalid_argument.
inline std::vector<MeshAxis> parse_mesh(const std::string& text) {
  auto fail = [&](const std::string& why) {
    throw std::invalid_argument(
        fmt::format("--mesh {}: {}. Write axes of one letter with their sizes: x=8 or x=2,y=4.", text, why));
  };
  std::vector<MeshAxis> mesh;
  int devices = 1;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at), digits = part.size() > 2 ? part.substr(2) : "";
    if (digits.empty() || digits.size() > 3 || part[1] != '=' ||
        digits.find_first_not_of("0123456789") != digits.npos)
      fail(fmt::format("'{}' is no axis with a size", part));
    if (part[0] < 'a' || part[0] > 'z') fail(fmt::format("'{}' is no name of an axis", part[0]));
    for (const MeshAxis& a : mesh)
      if (a.name == part[0]) fail(fmt::format("axis {} stands twice", a.name));
    mesh.push_back({part[0], std::stoi(digits)});
    devices *= mesh.back().size;
    if (devices < 1 || devices > 256) fail("a mesh has 1 to 256 devices");
    at = end + 1;
  }
  if (mesh.size() > 3) fail(fmt::format("{} axes are too many, three can be listed", mesh.size()));
  return mesh;
}

inline std::string to_text(const std::vector<int>& axes, const std::vector<MeshAxis>& mesh) {
  std::string text;
  for (int a : axes)
    text += (text.empty() ? "" : "+") + std::string(1, mesh[static_cast<std::size_t>(a)].name);
  return text.empty() ? "." : text;
}
inline std::string to_text(const Cut& c, const std::vector<MeshAxis>& mesh) {
  return to_text(c.rows, mesh) + to_text(c.columns, mesh);
}
inline std::string to_text(const ProductLayout& l, const std::vector<MeshAxis>& mesh) {
  return to_text(l.a, mesh) + "," + to_text(l.b, mesh) + "," + to_text(l.c, mesh);
}

/// `x.`, `.x+y`. Throws std::invalid_argument.
inline Cut parse_cut(const std::string& text, const std::vector<MeshAxis>& mesh) {
  auto fail = [&](const std::string& why) {
    std::string names;
    for (const MeshAxis& a : mesh) names += fmt::format("{}{}", names.empty() ? "" : ", ", a.name);
    throw std::invalid_argument(
        fmt::format("--layouts: '{}': {}. A matrix is spelled as rows and columns, each '.', an axis of "
                    "the mesh ({}) or several joined by '+': x. or .x",
                    text, why, names));
  };
  std::vector<std::vector<int>> dims;
  std::vector<int> used;
  for (std::size_t at = 0; at < text.size(); at++) {
    const bool joined = text[at] == '+' && at > 0 && !dims.back().empty();
    if (joined) at++;
    else dims.emplace_back();
    if (at < text.size() && text[at] == '.' && !joined) continue;
    const auto axis = at == text.size() ? mesh.end()
                                        : std::find_if(mesh.begin(), mesh.end(),
                                                       [&](const MeshAxis& a) { return a.name == text[at]; });
    if (axis == mesh.end())
      fail(at == text.size() ? "an axis is missing at the end" : fmt::format("'{}' is no axis", text[at]));
    const int index = static_cast<int>(axis - mesh.begin());
    if (std::find(used.begin(), used.end(), index) != used.end())
      fail(fmt::format("axis {} stands twice", axis->name));
    used.push_back(index);
    dims.back().push_back(index);
  }
  if (dims.size() != 2) fail(fmt::format("it has {} dimension{}", dims.size(), dims.size() == 1 ? "" : "s"));
  return {dims[0], dims[1]};
}

// ---------------------------------------------------------------- lists

/// Every axis on the rows, on the columns or on nothing: 3 cuts on one axis, 9 on two.
inline std::vector<Cut> all_cuts(const std::vector<MeshAxis>& mesh) {
  std::vector<Cut> cuts{{}};
  for (int axis = 0; axis < static_cast<int>(mesh.size()); axis++) {
    const std::size_t before = cuts.size();
    for (std::size_t k = 0; k < 2 * before; k++) {
      Cut c = cuts[k % before];
      (k < before ? c.rows : c.columns).push_back(axis);
      cuts.push_back(std::move(c));
    }
  }
  return cuts;
}
/// 27 on one axis, 729 on two.
inline std::vector<ProductLayout> all_layouts(const std::vector<MeshAxis>& mesh) {
  const std::vector<Cut> cuts = all_cuts(mesh);
  std::vector<ProductLayout> out;
  for (const Cut& a : cuts)
    for (const Cut& b : cuts)
      for (const Cut& c : cuts) out.push_back({a, b, c});
  return out;
}

/// The layouts that `words` select: `all`, `random:N`, or spellings in which `any` stands for every cut. None twice.
/// Throws std::invalid_argument.
inline std::vector<ProductLayout> select_layouts(const std::vector<std::string>& words,
                                                 const std::vector<MeshAxis>& mesh) {
  std::vector<ProductLayout> out;
  auto cuts = [&](const std::string& s) {
    return s == "any" ? all_cuts(mesh) : std::vector<Cut>{parse_cut(s, mesh)};
  };
  for (const std::string& word : words) {
    std::vector<ProductLayout> chosen;
    if (word == "all" || word.starts_with("random:")) {
      chosen = all_layouts(mesh);
      if (word != "all") {
        const std::string digits = word.substr(7);
        if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != digits.npos ||
            std::stoi(digits) == 0)
          throw std::invalid_argument(
              fmt::format("--layouts: '{}' names no number of layouts. Write random:20.", word));
        std::mt19937 random(1);
        std::shuffle(chosen.begin(), chosen.end(), random);
        chosen.resize(std::min(chosen.size(), static_cast<std::size_t>(std::stoi(digits))));
      }
    } else {
      const std::size_t one = word.find(','), two = word.find(',', one + 1);
      if (one == word.npos || two == word.npos || word.find(',', two + 1) != word.npos)
        throw std::invalid_argument(fmt::format(
            "--layouts: '{}' is no layout. Write all, random:N, or A,B,C as in x.,.x,.. or x.,any,x.", word));
      for (const Cut& a : cuts(word.substr(0, one)))
        for (const Cut& b : cuts(word.substr(one + 1, two - one - 1)))
          for (const Cut& c : cuts(word.substr(two + 1))) chosen.push_back({a, b, c});
    }
    for (ProductLayout& l : chosen)
      if (std::find(out.begin(), out.end(), l) == out.end()) out.push_back(std::move(l));
  }
  return out;
}

// ---------------------------------------------------------------- what strategies cost

/// One way to run a layout: every axis of the mesh, or factor of one, cuts m, n, k (partial sums) or repeats the work. What A
/// and B lack is fetched, partial sums are combined on the way to C.
struct Strategy {
  std::string where;  ///< `m/4 k/2`: how often each size is cut; empty: not at all
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
/// Elements of `a` that are in `b` too.
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
/// Elements that the busiest device lacks of `to` when it has `from`.
inline double lacking(const Product& p, const Cut& from, const Cut& to, std::int64_t rows,
                      std::int64_t columns) {
  return busiest(p, [&](int d) {
    const Tile t = tile_of(p, to, d, rows, columns);
    return t.size() - common(t, tile_of(p, from, d, rows, columns));
  });
}
/// Elements received on the way from tiles `made`, partial sums over `summed`, to `wanted`: the least of an all-reduce and the
/// rest; every reduce-scatter and the rest; every device fetching all summands of what it keeps.
inline double combining(const Product& p, const Cut& made, const std::vector<int>& summed,
                        const Cut& wanted) {
  if (summed.empty()) return lacking(p, made, wanted, p.m, p.n);
  double group = 1;
  for (int axis : summed) group *= p.mesh[static_cast<std::size_t>(axis)].size;
  const double tile = busiest(p, [&](int d) { return tile_of(p, made, d, p.m, p.n).size(); });
  double least = 2 * (group - 1) / group * tile + lacking(p, made, wanted, p.m, p.n);
  for (std::size_t way = 0; way < std::size_t{1} << summed.size(); way++) {
    Cut scattered = made;
    for (std::size_t k = 0; k < summed.size(); k++)
      (way >> k & 1 ? scattered.columns : scattered.rows).push_back(summed[k]);
    least = std::min(least, (group - 1) / group * tile + lacking(p, scattered, wanted, p.m, p.n));
  }
  const double direct = busiest(p, [&](int d) {
    const Tile t = tile_of(p, wanted, d, p.m, p.n);
    return group * t.size() - common(t, tile_of(p, made, d, p.m, p.n));
  });
  return std::min(least, direct);
}
/// Which axes cut m, k and n.
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
  s.bytes =
      static_cast<double>(p.itemsize) *
      (lacking(p, l.a, {m, k}, p.m, p.k) + lacking(p, l.b, {k, n}, p.k, p.n) + combining(p, {m, n}, k, l.c));
  return s;
}
/// The axes' prime factors as axes of their own, while there are at most three (the list grows as their factorial).
inline void split_axes(Product& p, ProductLayout& l) {
  std::vector<MeshAxis> factors;
  std::vector<std::vector<int>> of_axis;
  for (const MeshAxis& a : p.mesh) {
    of_axis.emplace_back();
    int rest = a.size;
    for (int prime = 2; rest > 1; prime++)
      for (; rest % prime == 0; rest /= prime) {
        of_axis.back().push_back(static_cast<int>(factors.size()));
        factors.push_back({a.name, prime});
      }
  }
  if (factors.size() > 3) return;
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

/// All of them, with the axes of a dimension in every order.
inline std::vector<Strategy> strategies(Product p, ProductLayout l) {
  detail::split_axes(p, l);
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
/// The one that receives least among those with no more arithmetic than `flops` (a hundredth is forgiven).
inline Strategy least_bytes(const std::vector<Strategy>& all, double flops) {
  Strategy best{"", 0, std::numeric_limits<double>::infinity()};
  for (const Strategy& s : all)
    if (s.flops <= 1.01 * flops && s.bytes < best.bytes) best = s;
  return best;
}

/// Seconds of arithmetic and of transfers; all devices share one machine.
struct Rates {
  double flops = 0, bytes = 0;  ///< a second, of the whole machine; 0: not measured
};
inline double predicted_seconds(const Rates& r, double flops, double bytes) {
  return flops / r.flops + bytes / r.bytes;
}
inline double predicted_seconds(const Rates& r, const Strategy& s, int devices) {
  return predicted_seconds(r, s.flops * devices, s.bytes * devices);
}
/// The one that these rates predict to be fastest.
inline Strategy fastest(const std::vector<Strategy>& all, const Rates& r, int devices) {
  return *std::min_element(all.begin(), all.end(), [&](const Strategy& x, const Strategy& y) {
    return predicted_seconds(r, x, devices) < predicted_seconds(r, y, devices);
  });
}

/// B cut along k, A and C whole: from which m on is it faster to gather B and let every device make all of C than to
/// all-reduce partial products? `rates` of 0 counts bytes only. Infinite: never.
inline double crossover_m(const Product& p, const Rates& rates) {
  const double k = static_cast<double>(p.k), s = static_cast<double>(p.itemsize);
  // (g-1) 2mkn / F + (g-1) k n s / B < 2 (g-1) m n s / B
  const double repeated = rates.flops > 0 ? 2 * k / rates.flops * rates.bytes : 0;
  return 2 * s > repeated ? k * s / (2 * s - repeated) : std::numeric_limits<double>::infinity();
}

}  // namespace bench
