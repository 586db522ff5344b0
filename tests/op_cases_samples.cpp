// Rows of op_cases.h: polynomials, covariances, histograms of several dimensions, phases, functions of vectors and of conditions.
#include <numbers>

#include "op_cases.h"
#include "shardarray/apply.h"
#include "shardarray/placement.h"
#include "shardarray/polynomials.h"

namespace shardarray::testing {
namespace sample_rows {

using S = std::span<const Array>;
using H = const Hosts&;
using I = const Shape&;

/// The coefficient of power k.
double coefficient(const HostArray& p, std::int64_t k) {
  const std::int64_t n = p.shape[0];
  return k < n ? read(p, {n - 1 - k}) : 0;
}
/// Of `size` coefficients, from the power.
template <class F> Numbers polynomial(std::int64_t size, const F& f) {
  Numbers r;
  for (std::int64_t k = size; k-- > 0;) r.push_back(f(k));
  return r;
}
/// Covariances of the rows of x with weights.
Numbers covariances(const HostArray& x, const Numbers& weight, double divisor) {
  const std::int64_t n = x.shape[0], m = x.shape[1];
  const double total = std::accumulate(weight.begin(), weight.end(), 0.0);
  const auto w = [&](std::int64_t k) { return weight[static_cast<std::size_t>(k)]; };
  Numbers means;
  for (std::int64_t i = 0; i < n; i++) {
    double s = 0;
    for (std::int64_t k = 0; k < m; k++) s += read(x, {i, k}) * w(k);
    means.push_back(s / total);
  }
  return build({n, n}, [&](I i) {
    double s = 0;
    for (std::int64_t k = 0; k < m; k++)
      s += w(k) * (read(x, {i[0], k}) - means[static_cast<std::size_t>(i[0])]) *
           (read(x, {i[1], k}) - means[static_cast<std::size_t>(i[1])]);
    return s / divisor;
  });
}

}  // namespace sample_rows

using namespace sample_rows;

static void add_polynomials(Cases& c) {
  c.push_back({"polyadd",
               [](S x) { return polyadd(x[0], x[1]); },
               [](H x) {
                 return polynomial(10, [&](auto k) { return coefficient(x[0], k) + coefficient(x[1], k); });
               },
               {{{10}}, {{6}}}});
  c.push_back({"polysub",
               [](S x) { return polysub(x[0], x[1]); },
               [](H x) {
                 return polynomial(10, [&](auto k) { return coefficient(x[0], k) - coefficient(x[1], k); });
               },
               {{{6}}, {{10}}}});
  c.push_back({"polymul",
               [](S x) { return polymul(x[0], x[1]); },
               [](H x) {
                 return polynomial(12, [&](std::int64_t k) {
                   double s = 0;
                   for (std::int64_t j = 0; j <= k; j++) s += coefficient(x[0], j) * coefficient(x[1], k - j);
                   return s;
                 });
               },
               {{{10}}, {{3}}},
               true,
               2e-6});
  c.push_back({"polyder",
               [](S x) { return polyder(x[0], 2); },
               [](H x) {
                 return polynomial(8, [&](auto k) {
                   return coefficient(x[0], k + 2) * static_cast<double>((k + 2) * (k + 1));
                 });
               },
               {{{10}}},
               true,
               1e-6});
  c.push_back({"polyint",
               [](S x) { return polyint(x[0], 2, x[1]); },
               [](H x) {
                 return polynomial(12, [&](std::int64_t k) {
                   if (k < 2) return read(x[1], {1 - k});
                   return coefficient(x[0], k - 2) / static_cast<double>(k * (k - 1));
                 });
               },
               {{{10}}, {{2}}}});
  c.push_back({"poly",
               [](S x) { return poly(x[0]); },
               [](H x) {
                 Numbers p{1};
                 for (double root : x[0].data) {
                   p.push_back(0);
                   for (std::size_t k = p.size() - 1; k > 0; k--) p[k] -= root * p[k - 1];
                 }
                 return p;
               },
               {{{6}}},
               true,
               5e-6});
  c.push_back({"vander",
               [](S x) { return vander(x[0], 4); },
               [](H x) {
                 return build({10, 4}, [&](I i) {
                   return std::pow(read(x[0], {i[0]}), static_cast<double>(3 - i[1]));
                 });
               },
               {{{10}, 0.3, 2}},
               true,
               1e-6});
}

static void add_covariances(Cases& c) {
  c.push_back({"cov",
               [](S x) { return cov(x[0]); },
               [](H x) { return covariances(x[0], Numbers(10, 1.0), 9); },
               {{{6, 10}}},
               true,
               2e-6});
  c.push_back({"cov of columns, weighted",
               [](S x) { return cov(x[0], x[1], {.rowvar = false, .fweights = x[2], .aweights = x[3]}); },
               [](H x) {
                 const HostArray both{{4, 10}, build({4, 10}, [&](I i) {
                                        return i[0] < 3 ? read(x[0], {i[1], i[0]}) : read(x[1], {i[1], 0});
                                      })};
                 Numbers w;
                 double total = 0, squares = 0;
                 for (std::int64_t k = 0; k < 10; k++) {
                   w.push_back(read(x[2], {k}) * read(x[3], {k}));
                   total += w.back();
                   squares += w.back() * read(x[3], {k});
                 }
                 return covariances(both, w, total - squares / total);
               },
               {{{10, 3}}, {{10, 1}}, {{10}, 1, 3, DType::int32}, {{10}, 0.5, 2}},
               true,
               5e-6});
  c.push_back({"corrcoef",
               [](S x) {
                 return corrcoef(x[0])[{0, slice(1, none)}];  // of itself 1, with half the slope of a clip
               },
               [](H x) {
                 const Numbers v = covariances(x[0], Numbers(10, 1.0), 9);
                 return build({2}, [&](I i) {
                   const auto at = [&](std::int64_t a, std::int64_t b) {
                     return v[static_cast<std::size_t>(a * 3 + b)];
                   };
                   return at(0, i[0] + 1) / std::sqrt(at(0, 0) * at(i[0] + 1, i[0] + 1));
                 });
               },
               {{{3, 10}}},
               true,
               2e-6});
}

static void add_histograms(Cases& c) {
  const auto bin = [](double v) { return v < -1 || v > 1 ? -1 : v == 1 ? 1 : std::floor(v + 1); };
  c.push_back({"histogram2d",
               [](S x) {
                 return histogram2d(x[0], x[1], array({-1.0, 0.0, 1.0}), array({-1.0, 0.0, 1.0}));
               },
               [bin](H x) {
                 return build({2, 2}, [&](I i) {
                   double n = 0;
                   for (std::size_t k = 0; k < x[0].data.size(); k++)
                     n += bin(x[0].data[k]) == static_cast<double>(i[0]) &&
                          bin(x[1].data[k]) == static_cast<double>(i[1]);
                   return n;
                 });
               },
               {{{10, 6}}, {{10, 6}}},
               false,
               0});
  c.push_back({"histogramdd weighted",
               [](S x) {
                 const Array edges = array({-1.0, 0.0, 1.0});
                 return histogramdd(x[0], {edges, edges, edges}, x[1]);
               },
               [bin](H x) {
                 return build({2, 2, 2}, [&](I i) {
                   double n = 0;
                   for (std::int64_t k = 0; k < 10; k++) {
                     bool inside = true;
                     for (std::int64_t d = 0; d < 3; d++)
                       inside = inside && bin(read(x[0], {k, d})) ==
                                              static_cast<double>(i[static_cast<std::size_t>(d)]);
                     if (inside) n += read(x[1], {k});
                   }
                   return n;
                 });
               },
               {{{10, 3}, -1.2, 1.2, DType::float32, true}, {{10}}},
               true,
               1e-6});
  c.push_back({"histogram_bin_edges",
               [](S x) { return histogram_bin_edges(x[0], 4); },
               [](H x) {
                 const auto [low, high] = std::minmax_element(x[0].data.begin(), x[0].data.end());
                 Numbers r;
                 for (int k = 0; k <= 4; k++) r.push_back(*low + (*high - *low) * k / 4);
                 return r;
               },
               {{{10, 6}, -2, 2, DType::float32, false, true}},
               true,
               1e-6});
}

static void add_vectors(Cases& c) {
  c.push_back({"vecdot",
               [](S x) { return vecdot(x[0], x[1], 0); },
               [](H x) { return sum_of_products("ij,i->j", x); },
               {{{10, 6}}, {{10}}},
               true,
               5e-6});
  c.push_back({"matvec",
               [](S x) { return matvec(x[0], x[1]); },
               [](H x) { return sum_of_products("bij,bj->bi", x); },
               {{{3, 10, 6}}, {{3, 6}}},
               true,
               5e-6});
  c.push_back({"vecmat",
               [](S x) { return vecmat(x[0], x[1]); },
               [](H x) { return sum_of_products("bi,ij->bj", x); },
               {{{3, 10}}, {{10, 6}}},
               true,
               5e-6});
  c.push_back({"ediff1d",
               [](S x) { return ediff1d(x[0], x[1], 7); },
               [](H x) {
                 Numbers r{7};
                 for (std::size_t k = 1; k < x[0].data.size(); k++)
                   r.push_back(x[0].data[k] - x[0].data[k - 1]);
                 r.insert(r.end(), x[1].data.begin(), x[1].data.end());
                 return r;
               },
               {{{10, 6}}, {{2}}}});
  // Every difference is odd, but for less than 1: no operand is near a jump.
  c.push_back({"unwrap",
               [](S x) {
                 return unwrap(x[0] * 0.2f + reshape(arange(10.0f) * 3, {10, 1}), {.axis = 0, .period = 4});
               },
               [](H x) {
                 return along(x[0], 0, [](const Numbers& v) {
                   Numbers r;
                   for (std::size_t k = 0; k < v.size(); k++) {
                     double p = 0.2 * v[k] + 3 * static_cast<double>(k);
                     if (!r.empty()) p -= 4 * std::round((p - r.back()) / 4);
                     r.push_back(p);
                   }
                   return r;
                 });
               },
               {{{10, 6}}},
               true,
               5e-6});
  c.push_back(
      {"apply_along_axis",
       [](S x) {
         return apply_along_axis([](const Array& v) { return stack({sum(v), v[2]}); }, 0, x[0]);
       },
       [](H x) {
         const Numbers sums =
             fold(x[0], {0}, [](const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); });
         return build({2, 6, 3}, [&](I i) {
           return i[0] == 1 ? read(x[0], {2, i[1], i[2]}) : sums[static_cast<std::size_t>(i[1] * 3 + i[2])];
         });
       },
       {{{10, 6, 3}}},
       true,
       2e-6});
  c.push_back(
      {"apply_over_axes",
       [](S x) {
         return apply_over_axes(sum, x[0], {0, 2});
       },
       [](H x) {
         return fold(x[0], {0, 2}, [](const Numbers& v) { return std::accumulate(v.begin(), v.end(), 0.0); });
       },
       {{{10, 6, 3}}},
       true,
       5e-6});
  c.push_back({"piecewise",
               [](S x) {
                 return piecewise(
                     x[0], {x[0]<0, x[0]> 1}, [](const Array& v) { return v * v; }, sin, 0.5);
               },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   const double v = read(x[0], i);
                   return v < 0 ? v * v : v > 1 ? std::sin(v) : 0.5;
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, true}}});
}

Cases line_cases() {
  Cases c;
  add_polynomials(c);
  add_covariances(c);
  add_histograms(c);
  add_vectors(c);
  return c;
}

}  // namespace shardarray::testing
