// Rows of op_cases.h: repeating, joining, diagonals, grids, borders.
#include "op_cases.h"

namespace shardarray::testing {
namespace rearrange_rows {

using S = std::span<const Array>;
using I = const Shape&;

/// Result element i of `out` is operand element `from(i)`; zero where that is empty.
OpCase moved(std::string name, std::function<Array(const Array&)> f, Shape in, Shape out,
             std::function<Shape(const Shape&)> from) {
  return {std::move(name),
          [f](S x) { return f(x[0]); },
          [out, from](const Hosts& x) {
            return build(out, [&](I i) {
              const Shape at = from(i);
              return at.empty() ? 0 : read(x[0], at);
            });
          },
          {{in}},
          true,
          0};
}
/// Without operands.
OpCase made(std::string name, std::function<Array()> f, Numbers want, double tolerance = 0) {
  return {std::move(name), [f](S) { return f(); }, [want](const Hosts&) { return want; }, {}, false,
          tolerance};
}

}  // namespace rearrange_rows

using namespace rearrange_rows;

static void add_repeats(Cases& c) {
  using A = const Array&;
  c.push_back(moved(
      "tile",
      [](A x) {
        return tile(x, {2, 1, 3});
      },
      {10, 6}, {2, 10, 18},
      [](I i) {
        return Shape{i[1], i[2] % 6};
      }));
  c.push_back(moved(
      "repeat", [](A x) { return repeat(x, 3, 0); }, {10, 6}, {30, 6},
      [](I i) {
        return Shape{i[0] / 3, i[1]};
      }));
  c.push_back(moved(
      "repeat flattened", [](A x) { return repeat(x, 2); }, {10, 6}, {120},
      [](I i) {
        return Shape{i[0] / 12, i[0] / 2 % 6};
      }));
  c.push_back(moved(
      "ravel", [](A x) { return ravel(x); }, {10, 6}, {60},
      [](I i) {
        return Shape{i[0] / 6, i[0] % 6};
      }));
  const auto same = [](I i) { return i; };
  c.push_back(moved(
      "atleast_3d", [](A x) { return atleast_3d(x); }, {10, 6}, {10, 6, 1},
      [](I i) {
        return Shape{i[0], i[1]};
      }));
  c.push_back(moved(
      "atleast_2d", [](A x) { return atleast_2d(x); }, {10}, {1, 10}, [](I i) { return Shape{i[1]}; }));
  c.push_back(moved(
      "atleast_1d", [](A x) { return atleast_1d(x); }, {10, 6}, {10, 6}, same));
  c.push_back(moved(
      "broadcast_arrays",
      [](A x) {
        return broadcast_arrays({x, zeros({3, 1, 1})})[0];
      },
      {10, 1}, {3, 10, 1},
      [](I i) {
        return Shape{i[1], 0};
      }));
  c.push_back(moved(
      "fliplr", [](A x) { return fliplr(x); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{i[0], 5 - i[1]};
      }));
  c.push_back(moved(
      "flipud", [](A x) { return flipud(x); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{9 - i[0], i[1]};
      }));
  c.push_back(moved(
      "array_split", [](A x) { return array_split(x, 4)[1]; }, {10, 6}, {3, 6},
      [](I i) {
        return Shape{i[0] + 3, i[1]};
      }));
}

static void add_joins(Cases& c) {
  const auto joined = [&](std::string name, auto f, Shape one, Shape other, Shape out,
                          std::function<double(const Hosts&, const Shape&)> at) {
    c.push_back({std::move(name),
                 [f](S x) {
                   return f({x[0], x[1]});
                 },
                 [out, at](const Hosts& x) { return build(out, [&](I i) { return at(x, i); }); },
                 {{one}, {other}},
                 true,
                 0});
  };
  using P = const std::vector<Array>&;
  joined(
      "hstack", [](P p) { return hstack(p); }, {10, 6}, {10, 3}, {10, 9},
      [](const Hosts& x, I i) {
        return i[1] < 6 ? read(x[0], i) : read(x[1], {i[0], i[1] - 6});
      });
  joined(
      "vstack", [](P p) { return vstack(p); }, {10, 6}, {6}, {11, 6},
      [](const Hosts& x, I i) { return i[0] < 10 ? read(x[0], i) : read(x[1], {i[1]}); });
  joined(
      "dstack", [](P p) { return dstack(p); }, {10, 6}, {10, 6}, {10, 6, 2},
      [](const Hosts& x, I i) {
        return read(x[static_cast<std::size_t>(i[2])], {i[0], i[1]});
      });
  joined(
      "column_stack", [](P p) { return column_stack(p); }, {10, 6}, {10}, {10, 7},
      [](const Hosts& x, I i) { return i[1] < 6 ? read(x[0], i) : read(x[1], {i[0]}); });
  joined(
      "append", [](P p) { return append(p[0], p[1], 0); }, {10, 6}, {3, 6}, {13, 6},
      [](const Hosts& x, I i) {
        return i[0] < 10 ? read(x[0], i) : read(x[1], {i[0] - 10, i[1]});
      });
}

static void add_diagonals(Cases& c) {
  using A = const Array&;
  c.push_back(moved(
      "diagonal", [](A x) { return diagonal(x); }, {10, 6}, {6},
      [](I i) {
        return Shape{i[0], i[0]};
      }));
  c.push_back(moved(
      "diagonal below", [](A x) { return diagonal(x, -2, 2, 0); }, {6, 3, 10}, {3, 6},
      [](I i) {
        return Shape{i[1], i[0], i[1] + 2};
      }));
  c.push_back(moved(
      "diag of a vector", [](A x) { return diag(x, 2); }, {10}, {12, 12},
      [](I i) { return i[1] == i[0] + 2 ? Shape{i[0]} : Shape{}; }));
  c.push_back(moved(
      "diag of a matrix", [](A x) { return diag(x, 1); }, {10, 6}, {5},
      [](I i) {
        return Shape{i[0], i[0] + 1};
      }));
  c.push_back({"trace",
               [](S x) { return shardarray::trace(x[0], 0, 1, 2); },
               [](const Hosts& x) {
                 return build({3}, [&](I i) {
                   double s = 0;
                   for (std::int64_t k = 0; k < 6; k++) s += read(x[0], {i[0], k, k});
                   return s;
                 });
               },
               {{{3, 10, 6}}},
               true,
               2e-6});
  c.push_back(made("tri", [] { return tri(3, 5, 1); }, {1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0}));
  c.push_back(made("identity", [] { return shardarray::identity(3); }, {1, 0, 0, 0, 1, 0, 0, 0, 1}));
}

static void add_grids(Cases& c) {
  const auto grid = [&](std::string name, Indexing indexing, std::size_t which, Shape out,
                        std::size_t along) {
    c.push_back({std::move(name),
                 [=](S x) {
                   return meshgrid({x[0], x[1]}, indexing)[which];
                 },
                 [=](const Hosts& x) { return build(out, [&](I i) { return read(x[which], {i[along]}); }); },
                 {{{10}}, {{6}}},
                 true,
                 0});
  };
  grid("meshgrid", Indexing::xy, 0, {6, 10}, 1);
  grid("meshgrid ij", Indexing::ij, 1, {10, 6}, 1);
  c.push_back(made("indices",
                   [] {
                     return shardarray::indices({2, 3});
                   },
                   {0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}));
  c.push_back(made(
      "logspace", [] { return logspace(-1, 2, 4); }, {0.1, 1, 10, 100}, 1e-7));
  c.push_back(made(
      "geomspace", [] { return geomspace(-1, -16, 5); }, {-1, -2, -4, -8, -16}, 1e-7));
}

static void add_borders(Cases& c) {
  // Element i of a line of n, continued beyond its ends.
  using Fold = std::int64_t (*)(std::int64_t i, std::int64_t n);
  const auto border = [&](std::string name, PadMode mode, Fold fold_back) {
    c.push_back(moved(
        std::move(name),
        [mode](const Array& x) {
          return pad(x, {{3, 1}, {0, 14}}, mode);
        },
        {10, 6}, {14, 20},
        [fold_back](I i) {
          return Shape{fold_back(i[0] - 3, 10), fold_back(i[1], 6)};
        }));
  };
  using i64 = std::int64_t;
  border("pad edge", PadMode::edge, [](i64 i, i64 n) { return std::clamp<i64>(i, 0, n - 1); });
  border("pad wrap", PadMode::wrap, [](i64 i, i64 n) { return (i % n + n) % n; });
  border("pad reflect", PadMode::reflect, [](i64 i, i64 n) {
    while (i < 0 || i >= n) i = i < 0 ? -i : 2 * (n - 1) - i;
    return i;
  });
  border("pad symmetric", PadMode::symmetric, [](i64 i, i64 n) {
    while (i < 0 || i >= n) i = i < 0 ? -1 - i : 2 * n - 1 - i;
    return i;
  });
}

Cases rearrange_cases() {
  Cases c;
  add_repeats(c);
  add_joins(c);
  add_diagonals(c);
  add_grids(c);
  add_borders(c);
  return c;
}

}  // namespace shardarray::testing
