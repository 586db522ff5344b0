// Rows of op_cases.h: options of reductions and of functions of NumPy, jax.nn and lax.
#include "op_cases.h"

namespace shardarray::testing {
namespace option_rows {

using S = std::span<const Array>;
using H = const Hosts&;
using N = const Numbers&;
using I = const Shape&;

// A mask of [10, 6] that has an element of every column; elements that are false have no value for the reference.
const OpInput mask{{10, 6}, 0, 1, DType::bool_};
bool is_chosen(const HostArray& m, I i) { return read(m, i) != 0 || i[0] == 3; }
Array chosen(const Array& m) { return m | (expand_dims(arange(10), 1) == 3); }

// NaN in the place of what is larger than 1, but for the row that is always chosen.
bool is_nan(const HostArray& x, I i) { return read(x, i) > 1 && i[0] != 3; }
Array with_nan(const Array& x) {
  return shardarray::where((x > 1) & (expand_dims(arange(10), 1) != 3),
                           std::numeric_limits<float>::quiet_NaN(), x);
}

// Of the chosen elements of every column of [10, 6], some of which are NaN if `nan`.
OpCase masked(std::string name, Array (*f)(const Array& x, const ReduceOptions& o), double (*combine)(N),
              bool differentiable = true, double tolerance = 2e-6, bool nan = false) {
  return {std::move(name),
          [f, nan](S x) { return f(nan ? with_nan(x[0]) : x[0], {.axis = 0, .where = chosen(x[1])}); },
          [combine, nan](H x) {
            return build({6}, [&](I i) {
              Numbers v;
              for (std::int64_t k = 0; k < 10; k++)
                if (is_chosen(x[1], {k, i[0]}) && !(nan && is_nan(x[0], {k, i[0]})))
                  v.push_back(read(x[0], {k, i[0]}));
              return combine(v);
            });
          },
          {{{10, 6}, -2, 2, DType::float32, false, true}, mask},
          differentiable,
          tolerance};
}
double sum_of(N v) { return std::accumulate(v.begin(), v.end(), 0.0); }
double mean_of(N v) { return sum_of(v) / static_cast<double>(v.size()); }
double variance_of(N v) {
  double s = 0;
  for (double x : v) s += (x - mean_of(v)) * (x - mean_of(v));
  return s / static_cast<double>(v.size());
}

// f(x, mask) along the columns; the reference sees the chosen elements, and puts the others to `other`.
OpCase masked_line(std::string name, Array (*f)(const Array& x, const Array& where), Numbers (*reference)(N),
                   double other, double tolerance) {
  return {std::move(name),
          [f](S x) { return f(x[0], chosen(x[1])); },
          [reference, other](H x) {
            std::vector<double> r(60, other);
            for (std::int64_t c = 0; c < 6; c++) {
              Numbers v;
              for (std::int64_t k = 0; k < 10; k++)
                if (is_chosen(x[1], {k, c})) v.push_back(read(x[0], {k, c}));
              v = reference(v);
              for (std::int64_t k = 0, at = 0; k < 10; k++)
                if (is_chosen(x[1], {k, c}))
                  r[static_cast<std::size_t>(k * 6 + c)] = v[static_cast<std::size_t>(at++)];
            }
            return r;
          },
          {{{10, 6}}, mask},
          true,
          tolerance};
}

void add_reductions(Cases& c) {
  c.push_back(masked(
      "sum where", [](const Array& x, const ReduceOptions& o) { return sum(x, o); }, sum_of));
  c.push_back(masked(
      "prod where initial",
      [](const Array& x, const ReduceOptions& o) {
        return prod(x, {.axis = o.axis, .where = o.where, .initial = 2});
      },
      [](N v) { return std::accumulate(v.begin(), v.end(), 2.0, std::multiplies<>()); }));
  c.push_back(masked(
      "max where initial",
      [](const Array& x, const ReduceOptions& o) {
        return max(x, {.axis = o.axis, .where = o.where, .initial = -9});
      },
      [](N v) { return *std::max_element(v.begin(), v.end()); }, true, 0));
  c.push_back(masked(
      "min where initial",
      [](const Array& x, const ReduceOptions& o) {
        return min(x, {.axis = o.axis, .where = o.where, .initial = 9});
      },
      [](N v) { return *std::min_element(v.begin(), v.end()); }, true, 0));
  c.push_back(masked(
      "mean where", [](const Array& x, const ReduceOptions& o) { return mean(x, o); }, mean_of));
  c.push_back(masked(
      "var where", [](const Array& x, const ReduceOptions& o) { return var(x, o); }, variance_of));
  c.push_back(masked(
      "std where", [](const Array& x, const ReduceOptions& o) { return shardarray::std(x, o); },
      [](N v) { return std::sqrt(variance_of(v)); }));
  const auto without_nan = [&](std::string name, auto f, double (*combine)(N), double tolerance = 2e-6) {
    c.push_back(masked(std::move(name), f, combine, true, tolerance, true));
  };
  without_nan(
      "nansum where", [](const Array& x, const ReduceOptions& o) { return nansum(x, o); }, sum_of);
  without_nan(
      "nanprod where", [](const Array& x, const ReduceOptions& o) { return nanprod(x, o); },
      [](N v) { return std::accumulate(v.begin(), v.end(), 1.0, std::multiplies<>()); });
  without_nan(
      "nanmean where", [](const Array& x, const ReduceOptions& o) { return nanmean(x, o); }, mean_of);
  without_nan(
      "nanvar where", [](const Array& x, const ReduceOptions& o) { return nanvar(x, o); }, variance_of);
  without_nan(
      "nanstd where", [](const Array& x, const ReduceOptions& o) { return nanstd(x, o); },
      [](N v) { return std::sqrt(variance_of(v)); });
  without_nan(
      "nanmax where initial",
      [](const Array& x, const ReduceOptions& o) {
        return nanmax(x, {.axis = o.axis, .where = o.where, .initial = -9});
      },
      [](N v) { return *std::max_element(v.begin(), v.end()); }, 0);
  without_nan(
      "nanmin where initial",
      [](const Array& x, const ReduceOptions& o) {
        return nanmin(x, {.axis = o.axis, .where = o.where, .initial = 9});
      },
      [](N v) { return *std::min_element(v.begin(), v.end()); }, 0);
  c.push_back(masked(
      "count_nonzero where", [](const Array& x, const ReduceOptions& o) { return count_nonzero(x > 1, o); },
      [](N v) { return double(std::count_if(v.begin(), v.end(), [](double e) { return e > 1; })); }, false,
      0));
  c.push_back(masked(
      "any where", [](const Array& x, const ReduceOptions& o) { return any(x > 1, o); },
      [](N v) { return double(std::any_of(v.begin(), v.end(), [](double e) { return e > 1; })); }, false, 0));
  c.push_back(masked(
      "all where", [](const Array& x, const ReduceOptions& o) { return all(x > -1, o); },
      [](N v) { return double(std::all_of(v.begin(), v.end(), [](double e) { return e > -1; })); }, false,
      0));
  c.push_back(masked(
      "logsumexp where", [](const Array& x, const ReduceOptions& o) { return logsumexp(x, o); },
      [](N v) {
        double s = 0;
        for (double e : v) s += std::exp(e);
        return std::log(s);
      }));
  const auto probabilities = [](N v) {
    Numbers r;
    double s = 0;
    for (double e : v) s += std::exp(e);
    for (double e : v) r.push_back(std::exp(e) / s);
    return r;
  };
  c.push_back(masked_line(
      "softmax where", [](const Array& x, const Array& m) { return softmax(x, {.axis = 0, .where = m}); },
      probabilities, 0, 2e-6));
  c.push_back(masked_line(
      "log_softmax where",
      [](const Array& x, const Array& m) {
        return shardarray::where(m, log_softmax(x, {.axis = 0, .where = m}), 0.0);
      },
      [](N v) {
        Numbers r;
        double s = 0;
        for (double e : v) s += std::exp(e);
        for (double e : v) r.push_back(e - std::log(s));
        return r;
      },
      0, 2e-6));
  c.push_back(masked_line(
      "standardize where",
      [](const Array& x, const Array& m) { return standardize(x, {.axis = 0, .where = m}) * m; },
      [](N v) {
        Numbers r;
        for (double e : v) r.push_back((e - mean_of(v)) / std::sqrt(variance_of(v) + 1e-5));
        return r;
      },
      0, 1e-5));
}

void add_rearrangements(Cases& c) {
  c.push_back({"repeat by a list",
               [](S x) {
                 return repeat(x[0], {2, 0, 1, 1, 1, 3, 0, 0, 2, 1}, 0);
               },
               [](H x) {
                 const std::int64_t from[] = {0, 0, 2, 3, 4, 5, 5, 5, 8, 8, 9};
                 return build({11, 6}, [&](I i) { return read(x[0], {from[i[0]], i[1]}); });
               },
               {{{10, 6}}},
               true,
               0});
  c.push_back(
      {"repeat by an array",
       [](S x) { return repeat(x[0], x[1], {.axis = 0, .total_repeat_length = 12}); },
       [](H x) {
         std::vector<std::int64_t> from;
         for (std::int64_t k = 0; k < 10; k++)
           for (int n = 0; n < static_cast<int>(read(x[1], {k})); n++) from.push_back(k);
         from.resize(12, 9);
         return build({12, 6}, [&](I i) { return read(x[0], {from[static_cast<std::size_t>(i[0])], i[1]}); });
       },
       {{{10, 6}}, {{10}, 0, 3, DType::int32}},
       true,
       0});
  c.push_back({"pad_general",
               [](S x) {
                 return pad_general(x[0], {{-3, 4, 1}, {2, -3, 2}}, 0.5);
               },
               [](H x) {
                 return build({20, 15}, [&](I i) {
                   const std::int64_t row = i[0] + 3, column = i[1] - 2;
                   const bool there = row % 2 == 0 && row / 2 < 10 && column >= 0 && column % 3 == 0;
                   return there ? read(x[0], {row / 2, column / 3}) : 0.5;
                 });
               },
               {{{10, 6}}},
               true,
               0});
}

void add_samples(Cases& c) {
  c.push_back({"diff with ends",
               [](S x) { return diff(x[0], {.axis = 0, .prepend = 1, .append = x[1]}); },
               [](H x) {
                 const auto row = [&](std::int64_t k, std::int64_t column) {
                   return k == 0 ? 1.0 : k == 11 ? read(x[1], {0, column}) : read(x[0], {k - 1, column});
                 };
                 return build({11, 6}, [&](I i) { return row(i[0] + 1, i[1]) - row(i[0], i[1]); });
               },
               {{{10, 6}}, {{1, 6}}}});
  c.push_back({"histogram weights",
               [](S x) {
                 return histogram(x[0], 4, {.range = {{-1, 1}}, .weights = x[1]}).first;
               },
               [](H x) {
                 Numbers r(4, 0.0);
                 for (std::size_t k = 0; k < x[0].data.size(); k++)
                   if (const double v = x[0].data[k]; v >= -1 && v <= 1)
                     r[static_cast<std::size_t>(std::min(3.0, std::floor((v + 1) * 2)))] += x[1].data[k];
                 return r;
               },
               {{{10, 6}, -2, 2, DType::float64}, {{10, 6}, -2, 2, DType::float64}},
               true,
               1e-12});
  c.push_back({"gradient at places",
               [](S x) { return gradient(x[0], 0, cumsum(x[1], 0)); },
               [](H x) {
                 Numbers at{read(x[1], {0})};
                 for (std::int64_t k = 1; k < 10; k++) at.push_back(at.back() + read(x[1], {k}));
                 return build({10, 6}, [&](I i) {
                   const auto step = [&](std::int64_t k) {
                     return (read(x[0], {k + 1, i[1]}) - read(x[0], {k, i[1]})) /
                            (at[static_cast<std::size_t>(k + 1)] - at[static_cast<std::size_t>(k)]);
                   };
                   if (i[0] == 0 || i[0] == 9) return step(i[0] == 0 ? 0 : 8);
                   const auto k = static_cast<std::size_t>(i[0]);
                   const double before = at[k] - at[k - 1], behind = at[k + 1] - at[k];
                   return (behind * step(i[0] - 1) + before * step(i[0])) / (before + behind);
                 });
               },
               {{{10, 6}}, {{10}, 0.5, 2}},
               true,
               1e-5});
  c.push_back(unary_case(
      "round away from zero", [](const Array& x) { return round(x * 0.5, RoundingMethod::away_from_zero); },
      [](double v) { return std::round(v * 0.5); }, whole(-9, 9, DType::float32), false, 0));
  c.push_back({"sort by two keys",
               [](S x) {
                 return sort({x[0], x[1], x[2]}, {.axis = 0, .num_keys = 2})[2];
               },
               [](H x) {
                 std::vector<double> r(60);
                 for (std::int64_t column = 0; column < 6; column++) {
                   std::vector<std::int64_t> order(10);
                   std::iota(order.begin(), order.end(), 0);
                   std::stable_sort(order.begin(), order.end(), [&](std::int64_t p, std::int64_t q) {
                     const auto key = [&](std::int64_t k) {
                       return std::pair(read(x[0], {k, column}), read(x[1], {k, column}));
                     };
                     return key(p) < key(q);
                   });
                   for (std::int64_t k = 0; k < 10; k++)
                     r[static_cast<std::size_t>(k * 6 + column)] =
                         read(x[2], {order[static_cast<std::size_t>(k)], column});
                 }
                 return r;
               },
               {{{10, 6}, 0, 2, DType::int32}, {{10, 6}, -1, 1, DType::int32}, {{10, 6}}},
               true,
               0});
  c.push_back({"einsum of three",
               [](S x) { return einsum("ij,kj,k->i", x[0], x[1], x[2]); },
               [](H x) {
                 return build({10}, [&](I i) {
                   double s = 0;
                   for (std::int64_t j = 0; j < 6; j++)
                     for (std::int64_t k = 0; k < 9; k++)
                       s += read(x[0], {i[0], j}) * read(x[1], {k, j}) * read(x[2], {k});
                   return s;
                 });
               },
               {{{10, 6}}, {{9, 6}}, {{9}}},
               true,
               5e-6});
}

}  // namespace option_rows

Cases option_cases() {
  Cases c;
  option_rows::add_reductions(c);
  option_rows::add_rearrangements(c);
  option_rows::add_samples(c);
  return c;
}

}  // namespace shardarray::testing
