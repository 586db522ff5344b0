// Layouts of a product C[m,n] = A[m,k] B[k,n], or of two, C[m,k] = A[m,k] B[k,n] V[n,k], on a mesh: their spelling, and the list of
// all of them. No data, no devices.
//
// A layout is spelled `A,B,C`, each matrix as its rows and its columns: `.` not sharded, `x` sharded over axis x, `x+y` over both (x
// major). `x.,.y,xy`: A's rows over x, B's columns over y, C's rows over x and its columns over y. `any` is every cut (sharding of a
// matrix); C may be `auto`, which the library picks. `any` for C includes `auto`, and `A,B` means `A,B,any`: which C? Two products are
// `A,B,V,C`; the library picks the layout of what is between them.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace bench {

struct MeshAxis {
  char name;
  int size;
};
struct Product {
  std::vector<MeshAxis> mesh;
  std::int64_t m = 0, k = 0, n = 0, itemsize = 4;
  std::int64_t sum_itemsize = 4;  ///< of the type that products are computed and summed in
  bool chain = false;             ///< two products
  int devices() const {
    int count = 1;
    for (const MeshAxis& a : mesh) count *= a.size;
    return count;
  }
  double flops() const {
    return (chain ? 4.0 : 2.0) * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n);
  }
  std::int64_t columns() const { return chain ? k : n; }  ///< of C
};
/// The axes (positions in the mesh) that shard a matrix, major first.
struct Cut {
  std::vector<int> rows, columns;
  friend bool operator==(const Cut&, const Cut&) = default;
};
struct ProductLayout {
  Cut a, b, c;
  bool picked = false;        ///< the library picks C; c means nothing until that is known
  std::optional<Cut> v = {};  ///< of two products
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
    if (digits.empty() || part[1] != '=' || digits.find_first_not_of("0123456789") != digits.npos)
      fail(fmt::format("'{}' is no axis with a size", part));
    if (digits.size() > 3) fail(fmt::format("'{}' is too large: a mesh has 1 to 256 devices", part));
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
  return to_text(l.a, mesh) + "," + to_text(l.b, mesh) + "," + (l.v ? to_text(*l.v, mesh) + "," : "") +
         (l.picked ? "auto" : to_text(l.c, mesh));
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

/// Every axis on the rows, on the columns or unused: 3 cuts for one axis, 9 for two. An axis of size 1 is never used.
inline std::vector<Cut> all_cuts(const std::vector<MeshAxis>& mesh) {
  std::vector<Cut> cuts{{}};
  for (std::size_t axis = 0; axis < mesh.size(); axis++) {
    if (mesh[axis].size == 1) continue;
    const std::size_t before = cuts.size();
    for (std::size_t k = 0; k < 2 * before; k++) {
      Cut c = cuts[k % before];
      (k < before ? c.rows : c.columns).push_back(static_cast<int>(axis));
      cuts.push_back(std::move(c));
    }
  }
  return cuts;
}
/// The same, with the axes in every order.
inline std::vector<Cut> ordered_cuts(const std::vector<MeshAxis>& mesh) {
  std::vector<Cut> out;
  for (Cut c : all_cuts(mesh)) {
    do {
      do { out.push_back(c); } while (std::next_permutation(c.columns.begin(), c.columns.end()));
    } while (std::next_permutation(c.rows.begin(), c.rows.end()));
  }
  return out;
}
/// 27 for one axis, 729 for two; for two products 81 and 6,561.
inline std::vector<ProductLayout> all_layouts(const std::vector<MeshAxis>& mesh, bool chain = false) {
  const std::vector<Cut> cuts = all_cuts(mesh);
  std::vector<ProductLayout> out;
  for (const Cut& a : cuts)
    for (const Cut& b : cuts)
      for (const Cut& c : cuts) {
        if (!chain) out.push_back({a, b, c});
        for (std::size_t v = 0; chain && v < cuts.size(); v++) out.push_back({a, b, c, false, cuts[v]});
      }
  return out;
}

/// `random:20`: that many of all layouts.
inline std::vector<ProductLayout> random_layouts(const std::string& word, const std::vector<MeshAxis>& mesh,
                                                 bool chain) {
  const std::string digits = word.substr(word.find(':') + 1);
  if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != digits.npos ||
      std::stoi(digits) == 0)
    throw std::invalid_argument(
        fmt::format("--layouts: '{}' names no number of layouts from 1 to 999999. Write random:20.", word));
  std::vector<ProductLayout> layouts = all_layouts(mesh, chain);
  std::mt19937 random(1);
  std::shuffle(layouts.begin(), layouts.end(), random);
  layouts.resize(std::min(layouts.size(), static_cast<std::size_t>(std::stoi(digits))));
  return layouts;
}

/// `A,B,C` or `A,B`, for two products `A,B,V,C` or `A,B,V`, with `any` and `auto`.
inline std::vector<ProductLayout> spelled_layouts(const std::string& word, const std::vector<MeshAxis>& mesh,
                                                  bool chain) {
  std::vector<std::string> parts{""};
  for (const char c : word)
    if (c == ',') parts.emplace_back();
    else parts.back() += c;
  const std::string matrices = chain ? "ABV" : "AB";
  if (parts.size() == matrices.size()) parts.emplace_back("any");
  if (parts.size() != matrices.size() + 1)
    throw std::invalid_argument(
        fmt::format("--layouts: '{}' is no layout. It names {}. Write all, random:20, {}", word,
                    chain ? "A, B and V, or A, B, V and C" : "A and B, or A, B and C",
                    chain ? "x.,..,..,x. or ..,.x,x. (which C?)" : "x.,.x (which C?) or x.,any,.."));
  std::vector<std::vector<Cut>> cuts;
  for (std::size_t k = 0; k < matrices.size(); k++) {
    if (parts[k] == "auto")
      throw std::invalid_argument(
          fmt::format("--layouts: '{}': {} is auto. {} are placed before the call, the library picks C "
                      "alone. Write any to "
                      "measure every {}.",
                      word, matrices[k], chain ? "A, B and V" : "A and B", matrices[k]));
    cuts.push_back(parts[k] == "any" ? all_cuts(mesh) : std::vector<Cut>{parse_cut(parts[k], mesh)});
  }
  const std::string& c = parts.back();
  std::vector<ProductLayout> out;
  const auto add = [&](const Cut& a_cut, const Cut& b_cut, const std::optional<Cut>& v_cut) {
    if (c != "auto")
      for (const Cut& c_cut : c == "any" ? all_cuts(mesh) : std::vector<Cut>{parse_cut(c, mesh)})
        out.push_back({a_cut, b_cut, c_cut, false, v_cut});
    if (c == "auto" || c == "any") out.push_back({a_cut, b_cut, {}, true, v_cut});
  };
  for (const Cut& a_cut : cuts[0])
    for (const Cut& b_cut : cuts[1]) {
      if (!chain) add(a_cut, b_cut, {});
      for (std::size_t v = 0; chain && v < cuts[2].size(); v++) add(a_cut, b_cut, cuts[2][v]);
    }
  return out;
}

/// The layouts that `words` select: `all` (any,any,any), `random:N`, or spellings. None twice; those whose C the library picks come last.
/// Throws std::invalid_argument.
inline std::vector<ProductLayout> select_layouts(const std::vector<std::string>& words,
                                                 const std::vector<MeshAxis>& mesh, bool chain = false) {
  std::vector<ProductLayout> out;
  for (const std::string& word : words)
    for (ProductLayout& l : word.starts_with("random:") ? random_layouts(word, mesh, chain)
                            : word == "all"
                                ? spelled_layouts(chain ? "any,any,any,any" : "any,any,any", mesh, chain)
                                : spelled_layouts(word, mesh, chain))
      if (std::find(out.begin(), out.end(), l) == out.end()) out.push_back(std::move(l));
  std::stable_partition(out.begin(), out.end(), [](const ProductLayout& l) { return !l.picked; });
  return out;
}

}  // namespace bench
