// Rows of op_cases.h: statistics, with and without NaN, norms, running reductions.
#include "op_cases.h"

namespace shardarray::testing {
namespace statistics_rows {

using A = const Array&;
using N = const Numbers&;

double sum_of(N v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double mean_of(N v) { return sum_of(v) / static_cast<double>(v.size()); }
// Mean square distance to the mean, divided by n - ddof.
double variance_of(N v, double ddof) {
  double s = 0;
  for (double x : v) s += (x - mean_of(v)) * (x - mean_of(v));
  return s / (static_cast<double>(v.size()) - ddof);
}
double largest_of(N v) { return *std::max_element(v.begin(), v.end()); }
double smallest_of(N v) { return *std::min_element(v.begin(), v.end()); }
// What NumPy calls the linear method.
double linear_quantile(Numbers v, double q) {
  std::sort(v.begin(), v.end());
  const double at = q * static_cast<double>(v.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, v.size() - 1);
  return v[low] + (v[high] - v[low]) * (at - static_cast<double>(low));
}
// Elements above 1 stand for NaN.
Array with_holes(A x) { return where(x > 1, std::numeric_limits<double>::quiet_NaN(), x); }
Numbers present(N v) {
  Numbers r;
  std::copy_if(v.begin(), v.end(), std::back_inserter(r), [](double x) { return x <= 1; });
  return r;
}
// A single axis of [10, 6] is reduced.
template <class F>
OpCase along_rows(std::string name, F f, double (*combine)(N), OpInput in, bool differentiable = true,
                  double tolerance = 1e-6) {
  in.shape = rows_and_columns;
  return {std::move(name),
          [f](std::span<const Array> x) { return f(x[0]); },
          [combine](const Hosts& x) { return fold(x[0], {0}, combine); },
          {in},
          differentiable,
          tolerance};
}

}  // namespace statistics_rows

using namespace statistics_rows;

static void add_statistics(Cases& c) {
  const OpInput x = values(-2, 2), apart{{}, -2, 2, DType::float32, false, true};
  c.push_back(along_rows(
      "std", [](A a) { return shardarray::std(a, 0); }, [](N v) { return std::sqrt(variance_of(v, 0)); }, x,
      true, 2e-6));
  c.push_back(along_rows(
      "std ddof", [](A a) { return shardarray::std(a, {.axis = 0}, 1); },
      [](N v) { return std::sqrt(variance_of(v, 1)); }, x, true, 2e-6));
  c.push_back(along_rows(
      "var ddof behind an axis", [](A a) { return var(a, 0, {.ddof = 1}); },
      [](N v) { return variance_of(v, 1); }, x, true, 2e-6));
  c.push_back(along_rows(
      "ptp", [](A a) { return ptp(a, 0); }, [](N v) { return largest_of(v) - smallest_of(v); }, apart));
  c.push_back(along_rows(
      "count_nonzero", [](A a) { return count_nonzero(a, 0); },
      [](N v) {
        return static_cast<double>(std::count_if(v.begin(), v.end(), [](double e) { return e != 0; }));
      },
      whole(-1, 1), false, 0));
  c.push_back({"average",
               [](std::span<const Array> a) { return shardarray::average(a[0], a[1], 0); },
               [](const Hosts& a) {
                 return build({6}, [&](const Shape& i) {
                   double total = 0, weight = 0;
                   for (std::int64_t k = 0; k < 10; k++) {
                     total += read(a[0], {k, i[0]}) * read(a[1], {k});
                     weight += read(a[1], {k});
                   }
                   return total / weight;
                 });
               },
               {{{10, 6}}, {{10}, 0.5, 2}},
               true,
               2e-6});
  c.push_back(along_rows(
      "median", [](A a) { return median(a, 0); }, [](N v) { return linear_quantile(v, 0.5); }, apart));
  c.push_back({"quantile",
               [](std::span<const Array> a) {
                 return quantile(a[0], {0.1, 0.75}, {.axis = {0, 2}, .keepdims = true});
               },
               [](const Hosts& a) {
                 Numbers r = fold(a[0], {0, 2}, [](N v) { return linear_quantile(v, 0.1); });
                 const Numbers high = fold(a[0], {0, 2}, [](N v) { return linear_quantile(v, 0.75); });
                 r.insert(r.end(), high.begin(), high.end());
                 return r;
               },
               {{{10, 6, 3}, -2, 2, DType::float32, false, true}},
               true,
               1e-6});
  c.push_back(along_rows(
      "percentile", [](A a) { return percentile(a, 30, {.axis = 0, .method = QuantileMethod::higher}); },
      [](N v) { return linear_quantile(v, 3.0 / 9); }, apart, true, 0));
}

static void add_nan_reductions(Cases& c) {
  const OpInput x = kinked(-2, 2);
  c.push_back(along_rows(
      "nansum", [](A a) { return nansum(with_holes(a), 0); }, [](N v) { return sum_of(present(v)); }, x));
  c.push_back(along_rows(
      "nanprod", [](A a) { return nanprod(with_holes(a), 0); },
      [](N v) {
        const Numbers p = present(v);
        return std::accumulate(p.begin(), p.end(), 1.0, std::multiplies<>());
      },
      x, true, 5e-6));
  c.push_back(along_rows(
      "nanmax", [](A a) { return nanmax(with_holes(a), 0); }, [](N v) { return largest_of(present(v)); }, x,
      true, 0));
  c.push_back(along_rows(
      "nanmin", [](A a) { return nanmin(with_holes(a), 0); }, [](N v) { return smallest_of(present(v)); }, x,
      true, 0));
  c.push_back(along_rows(
      "nanmean", [](A a) { return nanmean(with_holes(a), 0); }, [](N v) { return mean_of(present(v)); }, x));
  c.push_back(along_rows(
      "nanvar", [](A a) { return nanvar(with_holes(a), {.axis = 0}, 1); },
      [](N v) { return variance_of(present(v), 1); }, x, true, 2e-6));
  c.push_back(along_rows(
      "nanstd", [](A a) { return nanstd(with_holes(a), 0); },
      [](N v) { return std::sqrt(variance_of(present(v), 0)); }, x, true, 2e-6));
  c.push_back(along_rows(
      "nanargmax", [](A a) { return nanargmax(with_holes(a), 0); },
      [](N v) {
        return static_cast<double>(std::find(v.begin(), v.end(), largest_of(present(v))) - v.begin());
      },
      x, false, 0));
  c.push_back(along_rows(
      "nanargmin", [](A a) { return nanargmin(with_holes(a), 0); },
      [](N v) {
        return static_cast<double>(std::find(v.begin(), v.end(), smallest_of(present(v))) - v.begin());
      },
      x, false, 0));
  const OpInput apart{{}, -2, 2, DType::float32, true, true};
  c.push_back(along_rows(
      "nanquantile", [](A a) { return nanquantile(with_holes(a), 0.3, {.axis = 0}); },
      [](N v) { return linear_quantile(present(v), 0.3); }, apart, true, 1e-6));
  c.push_back(along_rows(
      "nanpercentile",
      [](A a) { return nanpercentile(with_holes(a), 0, {.axis = 0, .method = QuantileMethod::nearest}); },
      [](N v) { return smallest_of(present(v)); }, apart, true, 0));
  c.push_back(along_rows(
      "nanmedian", [](A a) { return nanmedian(with_holes(a), 0); },
      [](N v) { return linear_quantile(present(v), 0.5); }, apart, true, 1e-6));
  c.push_back({"nancumprod",
               [](std::span<const Array> a) { return nancumprod(with_holes(a[0]), 0); },
               [](const Hosts& a) {
                 return along(a[0], 0, [](N v) {
                   Numbers r;
                   for (double e : v) r.push_back((r.empty() ? 1 : r.back()) * (e <= 1 ? e : 1));
                   return r;
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, true}},
               true,
               5e-6});
  c.push_back({"nancumsum",
               [](std::span<const Array> a) { return nancumsum(with_holes(a[0]), 0); },
               [](const Hosts& a) {
                 return along(a[0], 0, [](N v) {
                   Numbers r;
                   for (double e : v) r.push_back((r.empty() ? 0 : r.back()) + (e <= 1 ? e : 0));
                   return r;
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, true}},
               true,
               2e-6});
}

static void add_norms(Cases& c) {
  const OpInput x = kinked(-2, 2);
  const auto vector_norm_row = [&](std::string name, double ord, double (*reference)(N), const OpInput& in) {
    c.push_back(along_rows(
        std::move(name), [ord](A a) { return vector_norm(a, {.ord = ord, .axis = 0}); }, reference, in,
        ord != 0, 2e-6));
  };
  using D = double;
  const OpInput apart{{}, 0.1, 2, DType::float32, false, true};
  vector_norm_row(
      "vector_norm 1", 1,
      [](N v) { return std::accumulate(v.begin(), v.end(), 0.0, [](D s, D e) { return s + std::abs(e); }); },
      x);
  vector_norm_row(
      "vector_norm 3", 3,
      [](N v) {
        return std::cbrt(
            std::accumulate(v.begin(), v.end(), 0.0, [](D s, D e) { return s + std::pow(std::abs(e), 3); }));
      },
      x);
  vector_norm_row("vector_norm inf", HUGE_VAL, largest_of, apart);
  vector_norm_row("vector_norm -inf", -HUGE_VAL, smallest_of, apart);
  vector_norm_row(
      "vector_norm 0", 0,
      [](N v) {
        return static_cast<double>(std::count_if(v.begin(), v.end(), [](double e) { return e != 0; }));
      },
      whole(-1, 1));
  c.push_back({"norm",
               [](std::span<const Array> a) { return norm(a[0]); },
               [](const Hosts& a) {
                 return fold(a[0], {0, 1}, [](N v) {
                   return std::sqrt(
                       std::accumulate(v.begin(), v.end(), 0.0, [](D s, D e) { return s + e * e; }));
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"norm of matrices",
               [](std::span<const Array> a) {
                 return norm(a[0], {.ord = 1, .axis = {1, 2}});
               },
               [](const Hosts& a) {
                 return build({3}, [&](const Shape& i) {
                   double most = 0;
                   for (std::int64_t column = 0; column < 6; column++) {
                     double s = 0;
                     for (std::int64_t row = 0; row < 10; row++)
                       s += std::abs(read(a[0], {i[0], row, column}));
                     most = std::max(most, s);
                   }
                   return most;
                 });
               },
               {{{3, 10, 6}, -2, 2, DType::float32, true}},
               true,
               2e-6});
}

static void add_running(Cases& c) {
  const auto running = [&](std::string name, auto f, bool reverse) {
    c.push_back({std::move(name),
                 [f](std::span<const Array> a) { return f(a[0]); },
                 [reverse](const Hosts& a) {
                   return along(a[0], 0, [&](N v) {
                     Numbers r(v.size());
                     double s = 0;
                     for (std::size_t k = 0; k < v.size(); k++) {
                       const std::size_t at = reverse ? v.size() - 1 - k : k;
                       r[at] = std::log(s += std::exp(v[at]));
                     }
                     return r;
                   });
                 },
                 {{{10, 6}}},
                 true,
                 2e-6});
  };
  running(
      "cumlogsumexp", [](A a) { return cumlogsumexp(a, 0); }, false);
  running(
      "cumlogsumexp back", [](A a) { return cumlogsumexp(a, {.axis = 0, .reverse = true}); }, true);
}

Cases statistics_cases() {
  Cases c;
  add_statistics(c);
  add_nan_reductions(c);
  add_norms(c);
  add_running(c);
  return c;
}

}  // namespace shardarray::testing
