// What matmul_layouts compares layouts with: the peak of multiply-adds, the same product on one device, copies. All are cases of the
// same run, in the type in which products of these elements are computed.
#pragma once
#include <shardarray/shardarray.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "layouts_results.h"
#include "machine.h"

namespace bench {

inline std::int64_t largest_matrix(const LayoutOptions& o) {
  return std::max({o.m * o.k, o.k * o.n, o.m * o.n});
}

template <class T> void add_blas_case(LayoutResults& x) {
  const shardarray::Blas* blas = shardarray::blas();
  if (blas == nullptr) return;
  x.blas = x.cases.size();
  x.blas_library = blas_library(blas->config);
  auto product = std::make_shared<BlasProduct<T>>(static_cast<int>(x.o.m), static_cast<int>(x.o.k),
                                                  static_cast<int>(x.o.n));
  x.cases.push_back(
      {x.o.type().half() ? "BLAS in f32, one device" : "BLAS, one device",
       [=] { (*product)(*blas); },
       {.flops = 2 * static_cast<double>(x.o.m) * static_cast<double>(x.o.k) * static_cast<double>(x.o.n)}});
}

inline std::size_t add_product(LayoutResults& x, const std::string& name, std::int64_t m, std::int64_t k,
                               std::int64_t n) {
  namespace sa = shardarray;
  const sa::DType dtype = x.o.type().dtype;
  const sa::Array a = sa::random::normal(sa::random::key(1), {m, k}, dtype),
                  b = sa::random::normal(sa::random::key(2), {k, n}, dtype);
  const auto f = sa::jit([](const sa::Array& p, const sa::Array& q) { return sa::matmul(p, q); });
  x.cases.push_back(
      {name,
       [=] { f(a, b).block_until_ready(); },
       {.flops = 2 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n)}});
  return x.cases.size() - 1;
}

inline void add_cpu_limits(LayoutResults& x) {
  constexpr long turns = 20'000;
  for (const FmaLoop& loop : fma_loops(static_cast<int>(x.product.sum_itemsize))) {
    x.peaks.push_back(x.cases.size());
    const int parts = 4 * x.workers;
    x.cases.push_back({loop.name,
                       [=] { on_all_workers(parts, [&](int) { loop.run(turns); }); },
                       {.flops = loop.flops * static_cast<double>(turns) * parts}});
  }
  x.one_device = add_product(x, "one device", x.o.m, x.o.k, x.o.n);
  if (x.o.type().f32()) add_blas_case<float>(x);
  else add_blas_case<double>(x);
  auto copies = std::make_shared<Copies>(largest_matrix(x.o) * x.product.itemsize, x.product.devices());
  x.copied = copies->bytes();
  x.copies = x.cases.size();
  x.cases.push_back({"copies", [=] { (*copies)(); }, {}});
}

inline void add_gpu_limits(LayoutResults& x, const shardarray::Mesh& mesh) {
  namespace sa = shardarray;
  const std::int64_t side = x.o.peak_size;
  x.peaks.push_back(
      add_product(x, fmt::format("a product of {0} x {0} on one device", side), side, side, side));
  x.one_device = add_product(x, "one device", x.o.m, x.o.k, x.o.n);
  const sa::Array v = sa::device_put(sa::ones({x.product.devices(), largest_matrix(x.o)}, x.o.type().dtype),
                                     sa::NamedSharding(mesh, sa::P(sa::AxisNames{mesh.axis_names()})));
  const auto doubled = sa::jit([](const sa::Array& w) { return w * 2; });
  x.copied = static_cast<double>(x.product.devices() * largest_matrix(x.o) * x.product.itemsize);
  x.copies = x.cases.size();
  x.cases.push_back({"copies", [=] { doubled(v).block_until_ready(); }, {}});
}

}  // namespace bench
