// A layout as a program.
#pragma once
#include <string>

#include "layouts_results.h"

namespace bench {

inline std::string spec_text(const Cut& c, const std::vector<MeshAxis>& mesh) {
  const auto entry = [&](const std::vector<int>& axes) {
    std::string names;
    for (const int a : axes)
      names += fmt::format("{}\"{}\"", names.empty() ? "" : ", ", mesh[static_cast<std::size_t>(a)].name);
    return axes.empty() ? "none" : axes.size() == 1 ? names : "axes(" + names + ")";
  };
  if (c.columns.empty()) return c.rows.empty() ? "P()" : fmt::format("P({})", entry(c.rows));
  return fmt::format("P({}, {})", entry(c.rows), entry(c.columns));
}

/// Lines that place x[m,k], w[k,n] and, of two products, v[n,k] so and multiply them.
inline std::string code(const LayoutResults& x, const LayoutRow& r) {
  std::string axes;
  for (const MeshAxis& a : x.product.mesh)
    axes += fmt::format("{}{{\"{}\", {}}}", axes.empty() ? "" : ", ", a.name, a.size);
  const auto sharding = [&](const char* name, const Cut& c) {
    return fmt::format("  const NamedSharding {}(mesh, {});\n", name, spec_text(c, x.product.mesh));
  };
  std::string text = fmt::format("  const Mesh mesh = make_mesh({{{}}});\n", axes);
  text += sharding("a", r.layout.a) + sharding("b", r.layout.b);
  if (r.layout.v) text += sharding("v_cut", *r.layout.v);
  const bool asked = r.c_spelling.empty() && !r.layout.picked;
  if (asked) text += sharding("c", r.layout.c);
  text += fmt::format(
      "  const auto product = jit({}{});\n",
      r.layout.v ? "[](const Array& x, const Array& w, const Array& v) { return matmul(matmul(x, w), v); }"
                 : "matmul",
      asked ? ", {.out_shardings = c}" : "");
  return text + fmt::format("  const Array y = product(device_put(x, a), device_put(w, b){});\n",
                            r.layout.v ? ", device_put(v, v_cut)" : "");
}

}  // namespace bench
