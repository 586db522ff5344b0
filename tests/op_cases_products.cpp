// Rows of op_cases.h: products of vectors and matrices, functions of samples.
#include "op_cases.h"

namespace shardarray::testing {
namespace product_rows {

using S = std::span<const Array>;
using I = const Shape&;
using H = const Hosts&;

/// Element i of the vector `v`, 0 outside.
double sample(const HostArray& v, std::int64_t i) {
  return i < 0 || i >= v.shape[0] ? 0 : v.data[static_cast<std::size_t>(i)];
}
/// All sums over k of a[i - k] b[k].
Numbers all_overlaps(const HostArray& a, const HostArray& b) {
  Numbers r;
  for (std::int64_t i = 0; i < a.shape[0] + b.shape[0] - 1; i++) {
    double s = 0;
    for (std::int64_t k = 0; k < b.shape[0]; k++) s += sample(a, i - k) * sample(b, k);
    r.push_back(s);
  }
  return r;
}
Numbers turned_round(Numbers v) {
  std::reverse(v.begin(), v.end());
  return v;
}
Numbers middle(const Numbers& v, std::size_t first, std::size_t count) {
  return Numbers(v.begin() + static_cast<std::ptrdiff_t>(first),
                 v.begin() + static_cast<std::ptrdiff_t>(first + count));
}

}  // namespace product_rows

using namespace product_rows;

static void add_vector_products(Cases& c) {
  c.push_back({"outer",
               [](S x) { return outer(x[0], x[1]); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   return x[0].data[static_cast<std::size_t>(i[0])] *
                          x[1].data[static_cast<std::size_t>(i[1])];
                 });
               },
               {{{10}}, {{6}}}});
  c.push_back({"inner",
               [](S x) { return inner(x[0], x[1]); },
               [](H x) { return sum_of_products("abk,ck->abc", x); },
               {{{3, 10, 6}}, {{4, 6}}},
               true,
               2e-6});
  c.push_back({"vdot",
               [](S x) { return vdot(x[0], x[1]); },
               [](H x) { return sum_of_products("ij,ij->", x); },
               {{{10, 6}}, {{10, 6}}},
               true,
               5e-6});
  c.push_back({"kron",
               [](S x) { return kron(x[0], x[1]); },
               [](H x) {
                 return build({30, 24}, [&](I i) {
                   return read(x[0], {i[0] / 3, i[1] / 4}) * read(x[1], {i[0] % 3, i[1] % 4});
                 });
               },
               {{{10, 6}}, {{3, 4}}}});
  c.push_back(
      {"cross",
       [](S x) { return cross(x[0], x[1], 0); },
       [](H x) {
         return build({3, 10}, [&](I i) {
           const std::int64_t u = (i[0] + 1) % 3, v = (i[0] + 2) % 3;
           return read(x[0], {u, i[1]}) * read(x[1], {v, 0}) - read(x[0], {v, i[1]}) * read(x[1], {u, 0});
         });
       },
       {{{3, 10}}, {{3, 1}}},
       true,
       2e-6});
  c.push_back({"cross of planes",
               [](S x) { return cross(x[0], x[1]); },
               [](H x) {
                 return build({10}, [&](I i) {
                   return read(x[0], {i[0], 0}) * read(x[1], {i[0], 1}) -
                          read(x[0], {i[0], 1}) * read(x[1], {i[0], 0});
                 });
               },
               {{{10, 2}}, {{10, 2}}},
               true,
               2e-6});
  c.push_back({"cross of a plane and space",
               [](S x) { return cross(x[0], x[1]); },
               [](H x) {
                 return build({10, 3}, [&](I i) {
                   const auto a = [&](std::int64_t k) { return k == 2 ? 0 : read(x[0], {i[0], k}); };
                   const auto b = [&](std::int64_t k) { return read(x[1], {i[0], k}); };
                   const std::int64_t u = (i[1] + 1) % 3, v = (i[1] + 2) % 3;
                   return a(u) * b(v) - a(v) * b(u);
                 });
               },
               {{{10, 2}}, {{10, 3}}},
               true,
               2e-6});
  c.push_back({"matrix_power",
               [](S x) { return matrix_power(x[0], 3); },
               [](H x) {
                 return sum_of_products("bij,bjk,bkl->bil", {x[0], x[0], x[0]});
               },
               {{{2, 6, 6}, -1, 1}},
               true,
               5e-6});
  c.push_back({"multi_dot",
               [](S x) {
                 return multi_dot({x[0], x[1], x[2], x[0]});
               },
               [](H x) {
                 return sum_of_products("i,ij,jk,k->", {x[0], x[1], x[2], x[0]});
               },
               {{{6}, -1, 1}, {{6, 10}, -1, 1}, {{10, 6}, -1, 1}},
               true,
               1e-5});
}

static void add_samples(Cases& c) {
  c.push_back({"diff",
               [](S x) { return diff(x[0], 2, 0); },
               [](H x) {
                 return build({8, 6}, [&](I i) {
                   return read(x[0], {i[0] + 2, i[1]}) - 2 * read(x[0], {i[0] + 1, i[1]}) + read(x[0], i);
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"gradient",
               [](S x) { return shardarray::gradient(x[0], 0, 0.5); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   const std::int64_t low = std::max<std::int64_t>(i[0] - 1, 0),
                                      high = std::min<std::int64_t>(i[0] + 1, 9);
                   return (read(x[0], {high, i[1]}) - read(x[0], {low, i[1]})) /
                          (0.5 * static_cast<double>(high - low));
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"trapezoid",
               [](S x) { return trapezoid(x[0], 0.5, 0); },
               [](H x) {
                 return fold(x[0], {0}, [](const Numbers& v) {
                   double s = 0;
                   for (std::size_t k = 1; k < v.size(); k++) s += (v[k] + v[k - 1]) / 4;
                   return s;
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"trapezoid places",
               [](S x) { return trapezoid(x[0], x[1], 0); },
               [](H x) {
                 return build({6}, [&](I i) {
                   double s = 0;
                   for (std::int64_t k = 1; k < 10; k++)
                     s += (read(x[0], {k, i[0]}) + read(x[0], {k - 1, i[0]})) / 2 *
                          (sample(x[1], k) - sample(x[1], k - 1));
                   return s;
                 });
               },
               {{{10, 6}}, {{10}}},
               true,
               5e-6});
  // places 0, 1, .. with values; x beyond both ends, away from the places
  c.push_back({"interp",
               [](S x) { return interp(x[0] * 2, astype(arange(x[1].shape()[0]), x[1].dtype()), x[1]); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   const double at = std::clamp(2 * read(x[0], i), 0.0, 2.0);
                   const auto low = std::min<std::int64_t>(static_cast<std::int64_t>(at), 1);
                   return sample(x[1], low) +
                          (at - static_cast<double>(low)) * (sample(x[1], low + 1) - sample(x[1], low));
                 });
               },
               {{{10, 6}, -2, 2, DType::float32, true}, {{3}}},
               true,
               2e-6});
  c.push_back({"polyval",
               [](S x) { return polyval(x[0], x[1]); },
               [](H x) {
                 return build({10, 6}, [&](I i) {
                   double y = 0;
                   for (double p : x[0].data) y = y * read(x[1], i) + p;
                   return y;
                 });
               },
               {{{4}}, {{10, 6}}},
               true,
               2e-6});
}

static void add_convolutions(Cases& c) {
  const std::vector<OpInput> lines{{{10}}, {{4}}};
  const auto row = [&](std::string name, std::function<Array(S)> f, std::function<Numbers(H)> reference,
                       std::vector<OpInput> in) {
    c.push_back({std::move(name), std::move(f), std::move(reference), std::move(in), true, 5e-6});
  };
  row(
      "convolve", [](S x) { return convolve(x[0], x[1]); }, [](H x) { return all_overlaps(x[0], x[1]); },
      lines);
  row(
      "convolve same", [](S x) { return convolve(x[1], x[0], ConvolveMode::same); },
      [](H x) { return middle(all_overlaps(x[0], x[1]), 1, 10); }, lines);
  row(
      "convolve valid", [](S x) { return convolve(x[0], x[1], ConvolveMode::valid); },
      [](H x) { return middle(all_overlaps(x[0], x[1]), 3, 7); }, lines);
  row(
      "convolve long", [](S x) { return convolve(x[0], x[1], ConvolveMode::same); },
      [](H x) { return middle(all_overlaps(x[0], x[1]), 17, 40); }, {{{40}, -1, 1}, {{35}, -1, 1}});
  row(
      "correlate", [](S x) { return correlate(x[0], x[1]); },
      [](H x) {
        return middle(all_overlaps(x[0], {x[1].shape, turned_round(x[1].data)}), 3, 7);
      },
      lines);
  row(
      "correlate full", [](S x) { return correlate(x[1], x[0], ConvolveMode::full); },
      [](H x) {
        return all_overlaps(x[1], {x[0].shape, turned_round(x[0].data)});
      },
      lines);
}

Cases sample_cases() {
  Cases c;
  add_vector_products(c);
  add_samples(c);
  add_convolutions(c);
  return c;
}

}  // namespace shardarray::testing
