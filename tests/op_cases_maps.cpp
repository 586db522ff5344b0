// Rows of op_cases(): collectives over the rows of a vmap, the op that some of them become, scan, branches, own derivatives.
#include "op_cases.h"
#include "shardarray/associative_scan.h"
#include "shardarray/conditional.h"
#include "shardarray/control_flow.h"
#include "shardarray/custom_derivatives.h"
#include "shardarray/vmap.h"

namespace shardarray::testing {

Cases map_cases() {
  using S = std::span<const Array>;
  // f(row) for every row of operand 0; the axis is "i"
  const auto over_rows = [](const std::function<Array(const Array&)>& f) {
    return [f](S x) { return vmap(f, {.axis_name = "i"})(x[0]); };
  };
  Cases c;
  // every row: psum(row * (position + 1)) - row
  c.push_back({"psum, axis_index",
               over_rows([](const Array& r) { return psum(r * (axis_index("i") + 1), "i") - r; }),
               [](const Hosts& x) {
                 return build(x[0].shape, [&](const Shape& i) {
                   double s = 0;
                   for (std::int64_t k = 0; k < x[0].shape[0]; k++)
                     s += read(x[0], {k, i[1]}) * double(k + 1);
                   return s - read(x[0], i);
                 });
               },
               {{{10, 6}}},
               true,
               5e-6});
  // position p is in group p % 3, from the last one on: groups of different sizes, in no order of the rows
  c.push_back({"psum in groups",
               over_rows([](const Array& r) {
                 std::vector<std::vector<int>> groups(
                     static_cast<std::size_t>(std::min<std::int64_t>(3, axis_size("i"))));
                 for (int p = static_cast<int>(axis_size("i")); p-- > 0;)
                   groups[static_cast<std::size_t>(p % 3)].push_back(p);
                 return psum(r, "i", {groups});
               }),
               [](const Hosts& x) {
                 return build(x[0].shape, [&](const Shape& i) {
                   double s = 0;
                   for (std::int64_t k = i[0] % 3; k < x[0].shape[0]; k += 3) s += read(x[0], {k, i[1]});
                   return s;
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"pmax, pmin",
               over_rows([](const Array& r) { return pmax(r, "i") - pmin(r, "i"); }),
               [](const Hosts& x) {
                 const auto most =
                     fold(x[0], {0}, [](const auto& v) { return *std::max_element(v.begin(), v.end()); });
                 const auto least =
                     fold(x[0], {0}, [](const auto& v) { return *std::min_element(v.begin(), v.end()); });
                 return build(x[0].shape, [&](const Shape& i) {
                   return most[static_cast<std::size_t>(i[1])] - least[static_cast<std::size_t>(i[1])];
                 });
               },
               {{{10, 6}}},
               false});
  c.push_back({"all_gather",
               over_rows([](const Array& r) { return all_gather(r, "i", {.axis = 1}); }),
               [](const Hosts& x) {
                 return build({10, 6, 10}, [&](const Shape& i) { return read(x[0], {i[2], i[1]}); });
               },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"psum_scatter",
               over_rows([](const Array& r) { return psum_scatter(r, "i", {.axis = 1}); }),
               [](const Hosts& x) {
                 return build({5, 6}, [&](const Shape& i) {
                   double s = 0;
                   for (std::int64_t k = 0; k < 5; k++) s += read(x[0], {k, i[1], i[0]});
                   return s;
                 });
               },
               {{{5, 6, 5}}},
               true,
               2e-6});
  c.push_back(
      {"all_to_all",
       over_rows([](const Array& r) { return all_to_all(r, "i", {.split_axis = 1, .concat_axis = 0}); }),
       [](const Hosts& x) {
         return build({5, 5, 6}, [&](const Shape& i) { return read(x[0], {i[1], i[2], i[0]}); });
       },
       {{{5, 6, 5}}},
       true,
       0});
  c.push_back({"pmean",
               over_rows([](const Array& r) { return pmean(r, "i") * r; }),
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) {
                   double s = 0;
                   for (std::int64_t k = 0; k < 10; k++) s += read(x[0], {k, i[1]}) / 10;
                   return s * read(x[0], i);
                 });
               },
               {{{10, 6}}},
               true,
               2e-6});
  c.push_back({"pshuffle",
               over_rows([](const Array& r) {
                 const int n = static_cast<int>(axis_size("i"));
                 std::vector<int> from;
                 for (int p = 0; p < n; p++) from.push_back((p + 3) % n);
                 return pshuffle(r, "i", from);
               }),
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) { return read(x[0], {(i[0] + 3) % 10, i[1]}); });
               },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"pswapaxes",
               over_rows([](const Array& r) { return pswapaxes(r, "i", 0); }),
               [](const Hosts& x) {
                 return build({5, 5, 6}, [&](const Shape& i) { return read(x[0], {i[1], i[0], i[2]}); });
               },
               {{{5, 5, 6}}},
               true,
               0});
  // position p gets what p - 2 has, around; nobody sends from 1
  c.push_back({"ppermute",
               over_rows([](const Array& r) {
                 Permutation pairs;
                 const int n = static_cast<int>(axis_size("i"));
                 for (int p = 0; p < n; p++)
                   if (p != 1) pairs.emplace_back(p, (p + 2) % n);
                 return ppermute(r, "i", pairs);
               }),
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) {
                   return i[0] == 3 ? 0 : read(x[0], {(i[0] + 8) % 10, i[1]});
                 });
               },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"pbroadcast",
               over_rows([](const Array& r) {
                 const std::int64_t n = axis_size("i");
                 return n == 0 ? r : pbroadcast(r, "i", static_cast<int>(n / 2));
               }),
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) { return read(x[0], {5, i[1]}); });
               },
               {{{10, 6}}},
               true,
               0});
  // columns in threes that turn around; the second is zero
  c.push_back({"permute_rows",
               [](S x) {
                 Attrs a;
                 a.dims = {-1};
                 const std::int64_t n = x[0].shape().back();
                 for (std::int64_t k = 0; k < n; k++)
                   a.lo.push_back(k == 1 ? -1 : k / 3 * 3 + 2 < n ? k / 3 * 3 + 2 - k % 3 : k);
                 return record(op_permute_rows, {x[0]}, std::move(a));
               },
               [](const Hosts& x) {
                 const std::int64_t from[] = {2, -1, 0, 5, 4, 3};
                 return build({10, 6}, [&](const Shape& i) {
                   return from[i[1]] < 0 ? 0 : read(x[0], {i[0], from[i[1]]});
                 });
               },
               {{{10, 6}}},
               true,
               0});
  // h = tanh(x[k] w + h / 2) for the rows k from the last one on, w [6, 6]; all h and the last one
  const auto steps = [](const Hosts& x) {
    std::vector<double> h(6, 0), all(x[0].data.size());
    for (std::int64_t k = x[0].shape[0]; k-- > 0;) {
      std::vector<double> next(6);
      for (std::int64_t j = 0; j < 6; j++) {
        double s = h[static_cast<std::size_t>(j)] / 2;
        for (std::int64_t i = 0; i < 6; i++) s += read(x[0], {k, i}) * read(x[1], {i, j});
        next[static_cast<std::size_t>(j)] = all[static_cast<std::size_t>(k * 6 + j)] = std::tanh(s);
      }
      h = next;
    }
    return std::pair(h, all);
  };
  const auto scanned = [](S x) {
    const Array w = x[1];
    return scan(
        [w](const Array& h, const Array& row) {
          const Array next = tanh(dot(row, w) + h / 2);
          return std::pair(next, next);
        },
        zeros({6}, w.dtype()), x[0], {.reverse = true});
  };
  c.push_back({"scan",
               [=](S x) { return scanned(x).second; },
               [=](const Hosts& x) { return steps(x).second; },
               {{{10, 6}, -0.5, 0.5}, {{6, 6}}},
               true,
               2e-6});
  c.push_back({"scan, last carry",
               [=](S x) { return scanned(x).first; },
               [=](const Hosts& x) { return steps(x).first; },
               {{{10, 6}, -0.5, 0.5}, {{6, 6}}},
               true,
               2e-6});
  // h = a h + b for the rows, or for the columns from the last one on
  const auto affine = [](S x, const AssociativeScanOptions& o) {
    using Pair = std::pair<Array, Array>;
    const auto then = [](const Pair& p, const Pair& q) {
      return Pair(p.first * q.first, q.first * p.second + q.second);
    };
    return associative_scan(then, Pair(x[0], x[1]), o).second;
  };
  c.push_back({"associative_scan",
               [=](S x) { return affine(x, {}); },
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) {
                   double h = 0;
                   for (std::int64_t k = 0; k <= i[0]; k++)
                     h = read(x[0], {k, i[1]}) * h + read(x[1], {k, i[1]});
                   return h;
                 });
               },
               {{{10, 6}, -1.5, 1.5}, {{10, 6}}},
               true,
               5e-6});
  c.push_back({"associative_scan, reverse",
               [=](S x) { return affine(x, {.axis = -1, .reverse = true}); },
               [](const Hosts& x) {
                 return build({10, 6}, [&](const Shape& i) {
                   double h = 0;
                   for (std::int64_t k = 6; k-- > i[1];)
                     h = read(x[0], {i[0], k}) * h + read(x[1], {i[0], k});
                   return h;
                 });
               },
               {{{10, 6}, -1.5, 1.5}, {{10, 6}}},
               true,
               5e-6});
  c.push_back({"fori_loop",
               [](S x) {
                 return fori_loop(
                     0, 3, [](const Array& k, const Array& v) { return v * 0.5 + k; }, x[0]);
               },
               [](const Hosts& x) {
                 return build(x[0].shape, [&](const Shape& i) { return read(x[0], i) / 8 + 2.5; });
               },
               {{{10, 6}}}});
  c.push_back({"map",
               [](S x) { return map([](const Array& row) { return row * sum(row); }, x[0]); },
               [](const Hosts& x) {
                 return build(x[0].shape, [&](const Shape& i) {
                   double s = 0;
                   for (std::int64_t k = 0; k < 6; k++) s += read(x[0], {i[0], k});
                   return s * read(x[0], i);
                 });
               },
               {{{10, 6}}},
               true,
               5e-6});
  const auto cube =
      custom_jvp([](const Array& v) { return v * v * v; },
                 [](const Array& v, const Array& t) { return std::pair(v * v * v, 3 * v * v * t); });
  const auto cubes = [](const Hosts& x) {
    return build(x[0].shape, [&](const Shape& i) { return std::pow(read(x[0], i), 3); });
  };
  c.push_back({"custom_jvp of rows",
               [=](S x) { return vmap(cube)(x[0]); },
               cubes,
               {{{10, 6}, 0.5, 1.5}},
               true,
               2e-6});
  const auto of_square =
      custom_vjp([](const Array& v) { return v * v; }, [](const Array& v) { return std::pair(v * v, v); },
                 [](const Array& v, const Array& g) { return 2 * v * g; });
  // a derivative that is known backwards only, of a checkpoint
  c.push_back({"custom_vjp, checkpoint: gradients",
               [=](S x) {
                 const auto f = [&](const Array& v) { return sum(of_square(v) * v); };
                 return grad(checkpoint(f))(x[0]) / 3 * x[0];
               },
               cubes,
               {{{10, 6}, 0.5, 1.5}},
               false,
               2e-6});
  return c;
}

Cases branch_cases() {
  using S = std::span<const Array>;
  Cases c;
  // of the sum's sign: the sine or the square
  c.push_back({"cond, switch_",
               [](S x) {
                 const auto sine = [&](const Array& v) { return sin(v) * x[1]; };
                 const auto square = [](const Array& v) { return v * v; };
                 return cond(sum(x[0]) + 100 > 0, sine, square, x[0]) +
                        switch_((sum(x[0]) > 1000).astype(int32) * 5, std::tuple(square, sine), x[0]);
               },
               [](const Hosts& x) {
                 return build(x[0].shape, [&](const Shape& i) {
                   const double v = read(x[0], i);
                   return std::sin(v) * read(x[1], i) + v * v;
                 });
               },
               {{{10, 6}, -1, 1}, {{10, 6}}},
               true,
               2e-6});
  // halved until all are below 1/4: two times for what is drawn
  c.push_back(
      {"while_loop",
       [](S x) {
         return while_loop([](const Array& v) { return max(abs(v)) > 0.25; },
                           [](const Array& v) { return v * 0.5; }, x[0] * 0 + 1) *
                x[0];
       },
       [](const Hosts& x) { return build(x[0].shape, [&](const Shape& i) { return read(x[0], i) * 0.25; }); },
       {{{10, 6}}},
       false});
  return c;
}

}  // namespace shardarray::testing
