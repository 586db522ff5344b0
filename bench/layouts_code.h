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
    return axes.empty() ? "sa::none" : axes.size() == 1 ? names : "sa::axes(" + names + ")";
  };
  if (c.columns.empty()) return c.rows.empty() ? "sa::P()" : fmt::format("sa::P({})", entry(c.rows));
  return fmt::format("sa::P({}, {})", entry(c.rows), entry(c.columns));
}

/// The body of a function, after #include <shardarray/shardarray.h>: shards x[m,k], w[k,n] and, for two products, v[n,k] like this
/// layout, and multiplies them.
inline std::string code(const LayoutResults& x, const LayoutRow& r) {
  std::string axes;
  for (const MeshAxis& a : x.product.mesh)
    axes += fmt::format("{}{{\"{}\", {}}}", axes.empty() ? "" : ", ", a.name, a.size);
  const auto sharding = [&](const char* name, const Cut& c) {
    return fmt::format("  const sa::NamedSharding {}(mesh, {});\n", name, spec_text(c, x.product.mesh));
  };
  const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return fmt::format("  const sa::Array {} = sa::ones({{{}, {}}}, sa::{});\n", name, rows, columns,
                       shardarray::name(x.o.type().dtype));
  };
  std::string text = "  namespace sa = shardarray;\n";
  if (x.o.dtype == "tf32") text += "  const sa::tf32 products(true);\n";
  text += fmt::format("  const sa::Mesh mesh = sa::make_mesh({{{}}});\n", axes);
  text += sharding("a", r.layout.a) + sharding("b", r.layout.b);
  if (r.layout.v) text += sharding("v_cut", *r.layout.v);
  const bool asked = r.c_spelling.empty() && !r.layout.picked;
  if (asked) text += sharding("c", r.layout.c);
  text += matrix("x", x.product.m, x.product.k) + matrix("w", x.product.k, x.product.n);
  if (r.layout.v) text += matrix("v", x.product.n, x.product.k);
  text += fmt::format("  const auto product = sa::jit({}{});\n",
                      r.layout.v ? "[](const sa::Array& p, const sa::Array& q, const sa::Array& r) { return "
                                   "sa::matmul(sa::matmul(p, q), r); }"
                                 : "sa::matmul",
                      asked ? ", {.out_shardings = c}" : "");
  return text + fmt::format("  const sa::Array y = product(sa::device_put(x, a), sa::device_put(w, b){});\n",
                            r.layout.v ? ", sa::device_put(v, v_cut)" : "");
}

}  // namespace bench
