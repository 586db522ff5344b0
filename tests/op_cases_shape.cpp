// Rows of op_cases.h: rearranging, positions, creation, and ops without a public function of their own.
#include "op_cases.h"

namespace shardarray::testing {

/// A function that only moves elements: result element i is operand element `from(i)`.
template <class F>
OpCase move_case(std::string name, F f, Shape in, Shape out, std::function<Shape(const Shape&)> from) {
  return {
      std::move(name),
      [f](std::span<const Array> x) { return f(x[0]); },
      [out, from](const Hosts& x) { return build(out, [&](const Shape& i) { return read(x[0], from(i)); }); },
      {{in}},
      true,
      0};
}

Cases shape_cases() {
  using A = const Array&;
  using I = const Shape&;
  Cases c;
  c.push_back({"reshape",
               [](std::span<const Array> x) {
                 return reshape(x[0], {4, -1, 5});
               },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"expand_dims",
               [](std::span<const Array> x) {
                 return expand_dims(x[0], {0, -1});
               },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"squeeze",
               [](std::span<const Array> x) { return squeeze(x[0]); },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 1, 6, 1}}},
               true,
               0});
  c.push_back(move_case(
      "transpose",
      [](A x) {
        return transpose(x, {1, 2, 0});
      },
      {3, 10, 6}, {10, 6, 3},
      [](I i) {
        return Shape{i[2], i[0], i[1]};
      }));
  c.push_back(move_case(
      "T", [](A x) { return x.T(); }, {10, 6}, {6, 10},
      [](I i) {
        return Shape{i[1], i[0]};
      }));
  c.push_back(move_case(
      "swapaxes", [](A x) { return swapaxes(x, 0, -1); }, {3, 10, 6}, {6, 10, 3},
      [](I i) {
        return Shape{i[2], i[1], i[0]};
      }));
  c.push_back(move_case(
      "moveaxis", [](A x) { return moveaxis(x, 0, -1); }, {3, 10, 6}, {10, 6, 3},
      [](I i) {
        return Shape{i[2], i[0], i[1]};
      }));
  c.push_back(move_case(
      "broadcast_to",
      [](A x) {
        return broadcast_to(x, {3, 10, 6});
      },
      {10, 1}, {3, 10, 6},
      [](I i) {
        return Shape{i[1], 0};
      }));
  c.push_back(move_case(
      "flip", [](A x) { return flip(x, 0); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{9 - i[0], i[1]};
      }));
  c.push_back(move_case(
      "flip all", [](A x) { return flip(x); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{9 - i[0], 5 - i[1]};
      }));
  c.push_back(move_case(
      "rot90", [](A x) { return rot90(x); }, {10, 6}, {6, 10},
      [](I i) {
        return Shape{i[1], 5 - i[0]};
      }));
  c.push_back(move_case(
      "rot90 back",
      [](A x) {
        return rot90(x, -1, {1, 2});
      },
      {3, 10, 6}, {3, 6, 10},
      [](I i) {
        return Shape{i[0], 9 - i[2], i[1]};
      }));
  c.push_back(move_case(
      "rot90 twice", [](A x) { return rot90(x, 2); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{9 - i[0], 5 - i[1]};
      }));
  c.push_back(move_case(
      "roll axis", [](A x) { return roll(x, 3, 0); }, {10, 6}, {10, 6},
      [](I i) {
        return Shape{(i[0] + 7) % 10, i[1]};
      }));
  c.push_back(move_case(
      "roll", [](A x) { return roll(x, -1); }, {3, 4}, {3, 4},
      [](I i) {
        const std::int64_t at = (i[0] * 4 + i[1] + 1) % 12;
        return Shape{at / 4, at % 4};
      }));
  c.push_back(move_case(
      "split",
      [](A x) {
        return split(x, {3, 7})[1];
      },
      {10, 6}, {4, 6},
      [](I i) {
        return Shape{i[0] + 3, i[1]};
      }));
  c.push_back(move_case(
      "slice",
      [](A x) {
        return x[{slice(2, 9), slice(1, 3)}];
      },
      {10, 6}, {7, 2},
      [](I i) {
        return Shape{i[0] + 2, i[1] + 1};
      }));
  c.push_back(move_case(
      "slice step", [](A x) { return x[slice(1, none, 3)]; }, {10, 6}, {3, 6},
      [](I i) {
        return Shape{1 + 3 * i[0], i[1]};
      }));
  c.push_back(move_case(
      "slice back",
      [](A x) {
        return x[{all, slice(none, none, -2)}];
      },
      {10, 6}, {10, 3},
      [](I i) {
        return Shape{i[0], 5 - 2 * i[1]};
      }));
  c.push_back(move_case(
      "index",
      [](A x) {
        return x[{-1, newaxis, ellipsis}];
      },
      {10, 6}, {1, 6},
      [](I i) {
        return Shape{9, i[1]};
      }));
  auto padded = [](double value) {
    return [value](const Hosts& x) {
      return build({13, 7}, [&](const Shape& i) {
        const Shape at{i[0] - 2, i[1]};
        return at[0] < 0 || at[0] >= 10 || at[1] >= 6 ? value : read(x[0], at);
      });
    };
  };
  c.push_back({"pad",
               [](std::span<const Array> x) {
                 return pad(x[0], {{2, 1}, {0, 1}});
               },
               padded(0),
               {{{10, 6}}},
               true,
               0});
  c.push_back({"pad value",
               [](std::span<const Array> x) {
                 return pad(x[0], {{2, 1}, {0, 1}}, 1.5);
               },
               padded(1.5),
               {{{10, 6}}},
               true,
               0});
  c.push_back({"concatenate",
               [](std::span<const Array> x) {
                 return concatenate({x[0], x[1], x[0]});
               },
               [](const Hosts& x) {
                 Numbers r = x[0].data;
                 r.insert(r.end(), x[1].data.begin(), x[1].data.end());
                 r.insert(r.end(), x[0].data.begin(), x[0].data.end());
                 return r;
               },
               {{{10, 6}}, {{3, 6}}},
               true,
               0});
  c.push_back({"stack",
               [](std::span<const Array> x) {
                 return stack({x[0], x[1]}, -1);
               },
               [](const Hosts& x) {
                 return build({10, 6, 2}, [&](const Shape& i) {
                   return read(x[static_cast<std::size_t>(i[2])], {i[0], i[1]});
                 });
               },
               {{{10, 6}}, {{10, 6}}},
               true,
               0});
  auto triangle = [&](std::string name, auto f, bool (*keep)(std::int64_t row, std::int64_t column)) {
    c.push_back({std::move(name),
                 [f](std::span<const Array> x) { return f(x[0]); },
                 [keep](const Hosts& x) {
                   return build(x[0].shape,
                                [&](const Shape& i) { return keep(i[1], i[2]) ? read(x[0], i) : 0; });
                 },
                 {{{2, 10, 6}}},
                 true,
                 0});
  };
  triangle(
      "tril", [](A x) { return tril(x); }, [](std::int64_t r, std::int64_t k) { return k <= r; });
  triangle(
      "triu", [](A x) { return triu(x, -1); }, [](std::int64_t r, std::int64_t k) { return k >= r - 1; });
  // x.at({slice(1, 8, 3), 2}): rows 1, 4, 7 of column 2
  auto update = [&](std::string name, auto f, double (*change)(double, double)) {
    c.push_back({std::move(name),
                 [f](std::span<const Array> x) {
                   return f(x[0].at({slice(1, 8, 3), 2}), x[1]);
                 },
                 [change](const Hosts& x) {
                   return build(x[0].shape, [&](const Shape& i) {
                     const bool inside = i[1] == 2 && i[0] % 3 == 1 && i[0] < 8;
                     return inside ? change(read(x[0], i), x[1].data[static_cast<std::size_t>(i[0] / 3)])
                                   : read(x[0], i);
                   });
                 },
                 {{{10, 6}, -2, 2, DType::float32, true}, {{3}, 2.2, 3}},
                 true,
                 2e-7});
  };
  using D = double;
  update(
      "at.set", [](const IndexedArray& x, A v) { return x.set(v); }, [](D, D b) { return b; });
  update(
      "at.add", [](const IndexedArray& x, A v) { return x.add(v); }, [](D a, D b) { return a + b; });
  update(
      "at.mul", [](const IndexedArray& x, A v) { return x.mul(v); }, [](D a, D b) { return a * b; });
  update(
      "at.min", [](const IndexedArray& x, A v) { return x.min(v); }, [](D a, D b) { return std::min(a, b); });
  update(
      "at.max", [](const IndexedArray& x, A v) { return x.max(v); }, [](D a, D b) { return std::max(a, b); });
  return c;
}

// ---------------------------------------------------------------- positions and creation
Cases position_cases() {
  using S = std::span<const Array>;
  Cases c;
  const OpInput index{{4, 2}, -10, 9, DType::int32}, wild{{7}, -15, 15, DType::int32}, table{{10, 6}};
  auto wrapped = [](double i, std::int64_t n) { return static_cast<std::int64_t>(i) + (i < 0 ? n : 0); };
  c.push_back({"take",
               [](S x) { return take(x[0], x[1], 0); },
               [wrapped](const Hosts& x) {
                 return build({4, 2, 6}, [&](const Shape& i) {
                   return read(x[0], {wrapped(read(x[1], {i[0], i[1]}), 10), i[2]});
                 });
               },
               {table, index},
               true,
               0});
  c.push_back({"take 1",
               [](S x) { return take(x[0], x[1], 1); },
               [wrapped](const Hosts& x) {
                 return build({10, 4, 2}, [&](const Shape& i) {
                   return read(x[0], {i[0], wrapped(read(x[1], {i[1], i[2]}), 6)});
                 });
               },
               {table, {{4, 2}, -6, 5, DType::int32}},
               true,
               0});
  c.push_back({"take flattened",
               [](S x) { return take(x[0], x[1]); },
               [wrapped](const Hosts& x) {
                 return build({4, 2}, [&](const Shape& i) {
                   return x[0].data[static_cast<std::size_t>(wrapped(read(x[1], i), 60))];
                 });
               },
               {table, index},
               true,
               0});
  c.push_back({"take clip",
               [](S x) { return take(x[0], x[1], 0, TakeMode::clip); },
               [](const Hosts& x) {
                 return build({7, 6}, [&](const Shape& i) {
                   return read(
                       x[0],
                       {std::clamp<std::int64_t>(static_cast<std::int64_t>(read(x[1], {i[0]})), 0, 9), i[1]});
                 });
               },
               {table, wild},
               true,
               0});
  c.push_back({"take fill",
               [](S x) { return where(isnan(take(x[0], x[1], 0)), 77, take(x[0], x[1], 0)); },
               [wrapped](const Hosts& x) {
                 return build({7, 6}, [&](const Shape& i) {
                   const std::int64_t at = wrapped(read(x[1], {i[0]}), 10);
                   return at < 0 || at > 9 ? 77 : read(x[0], {at, i[1]});
                 });
               },
               {table, wild},
               true,
               0});
  c.push_back({"scatter",
               [](S x) { return primitive::scatter(x[1], x[0], 0, 1, 5); },
               [](const Hosts& x) {
                 Numbers r(5 * 6, 0.0);
                 for (std::size_t n = 0; n < 10; n++)
                   for (std::size_t d = 0; d < 6; d++)
                     if (const double row = x[1].data[n]; row >= 0 && row < 5)
                       r[static_cast<std::size_t>(row) * 6 + d] += x[0].data[n * 6 + d];
                 return r;
               },
               {table, {{10}, -1, 5, DType::int32}},
               true,
               2e-6});
  auto sorted = [](const Numbers& v) {
    Numbers r = v;
    std::sort(r.begin(), r.end());
    return r;
  };
  auto order = [](const Numbers& v) {
    Numbers r(v.size());
    std::iota(r.begin(), r.end(), 0.0);
    std::stable_sort(r.begin(), r.end(), [&](double a, double b) {
      return v[static_cast<std::size_t>(a)] < v[static_cast<std::size_t>(b)];
    });
    return r;
  };
  const OpInput distinct{{10, 6}, -2, 2, DType::float32, false, true};
  c.push_back({"sort",
               [](S x) { return sort(x[0]); },
               [sorted](const Hosts& x) { return along(x[0], 1, sorted); },
               {distinct},
               true,
               0});
  c.push_back({"sort 0",
               [](S x) { return sort(x[0], 0); },
               [sorted](const Hosts& x) { return along(x[0], 0, sorted); },
               {distinct},
               true,
               0});
  c.push_back({"argsort",
               [](S x) { return argsort(x[0], 0); },
               [order](const Hosts& x) { return along(x[0], 0, order); },
               {{{10, 6}, -3, 3, DType::int32}},
               false,
               0});

  auto made = [&](std::string name, Array (*f)(), Shape shape, std::function<double(const Shape&)> value,
                  double tolerance = 0) {
    c.push_back({std::move(name),
                 [f](S) { return f(); },
                 [shape, value](const Hosts&) { return build(shape, value); },
                 {},
                 false,
                 tolerance});
  };
  using I = const Shape&;
  made(
      "zeros",
      [] {
        return zeros({10, 6});
      },
      {10, 6}, [](I) { return 0.0; });
  made(
      "ones", [] { return ones({10}, DType::int8); }, {10}, [](I) { return 1.0; });
  made(
      "full",
      [] {
        return full({10, 6}, 2.5);
      },
      {10, 6}, [](I) { return 2.5; });
  made(
      "arange", [] { return arange(10); }, {10}, [](I i) { return double(i[0]); });
  made(
      "arange step", [] { return arange(9, -1, -3); }, {4}, [](I i) { return 9.0 - 3.0 * double(i[0]); });
  made(
      "arange float", [] { return arange(0.5, 3.0, 0.25); }, {10},
      [](I i) { return 0.5 + 0.25 * double(i[0]); });
  made(
      "linspace", [] { return linspace(-3, 7, 11); }, {11}, [](I i) { return -3.0 + double(i[0]); }, 5e-7);
  made(
      "linspace int", [] { return linspace(-5, 5, 7, {.dtype = DType::int32}); }, {7},
      [](I i) { return std::floor(-5 + 10.0 * double(i[0]) / 6); });
  made(
      "eye", [] { return eye(10, 6, 1); }, {10, 6}, [](I i) { return double(i[1] == i[0] + 1); });
  auto like = [&](std::string name, auto f, double value) {
    c.push_back({std::move(name),
                 [f](S x) { return f(x[0]); },
                 [value](const Hosts& x) { return Numbers(x[0].data.size(), value); },
                 {{{10, 6}}},
                 false,
                 0});
  };
  like(
      "zeros_like", [](const Array& x) { return zeros_like(x); }, 0);
  like(
      "ones_like", [](const Array& x) { return ones_like(x); }, 1);
  like(
      "full_like", [](const Array& x) { return full_like(x, 3); }, 3);
  return c;
}

// ---------------------------------------------------------------- structure
// Words of a generator whose operands are x and 42 in turns.
OpCase random_words_case(const char* name, const Op& op, std::size_t operands, std::size_t results,
                         void (*reference)(const std::uint32_t* in, std::uint32_t* out)) {
  return {name,
          [=, &op](std::span<const Array> x) {
            Arrays in(operands, x[0]);
            for (std::size_t k = 0; k < operands; k += 2)
              in[k] = primitive::full(x[0].shape(), DType::uint32, 42);
            return stack(record_all(op, in, nullptr, {}));
          },
          [=](const Hosts& x) {
            const std::size_t size = x[0].data.size();
            Numbers r(results * size);
            for (std::size_t n = 0; n < size; n++) {
              std::uint32_t in[6], out[4];
              for (std::size_t k = 0; k < operands; k++)
                in[k] = k % 2 == 0 ? 42 : static_cast<std::uint32_t>(x[0].data[n]);
              reference(in, out);
              for (std::size_t k = 0; k < results; k++) r[n + k * size] = out[k];
            }
            return r;
          },
          {{{10}, 0, 1e9, DType::uint32}},
          false,
          0};
}
Cases structure_cases() {
  using S = std::span<const Array>;
  Cases c;
  c.push_back({"stop_gradient",
               [](S x) { return stop_gradient(x[0]); },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 6}}},
               false,
               0});
  c.push_back(
      random_words_case("threefry", op_threefry, 4, 2, [](const std::uint32_t* in, std::uint32_t* out) {
        out[0] = in[2];
        out[1] = in[3];
        threefry2x32(in, out);
      }));
  c.push_back(random_words_case("philox", op_philox, 5, 4, [](const std::uint32_t* in, std::uint32_t* out) {
    std::copy_n(in + 2, 3, out);
    out[3] = 0;
    philox4x32(in[0], in[1], out);
  }));
  c.push_back({"constraint",
               [](S x) {
                 Attrs a;
                 a.sharding = std::make_shared<const Sharding>(
                     NamedSharding(make_mesh({{"x", device_count()}}), P("x")));
                 return record(op_constraint, {x[0]}, std::move(a));
               },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 6}}},
               true,
               0});
  c.push_back({"beside",
               [](S x) {
                 return record(op_beside, {x[0], x[1]});
               },
               [](const Hosts& x) { return x[0].data; },
               {{{10, 6}}, {{10, 6}}},
               true,
               0});
  c.push_back({"call",
               [](S x) {
                 Graph g;
                 g.in = {placeholder({x[0].shape(), x[0].dtype(), false}),
                         placeholder({x[1].shape(), x[1].dtype(), false})};
                 g.out = {primitive::mul(g.in[0], primitive::exp(g.in[1]))};
                 Attrs a;
                 a.graphs = {std::make_shared<const Graph>(std::move(g))};
                 return record(op_call, x, std::move(a));
               },
               [](const Hosts& x) {
                 return build(x[0].shape,
                              [&](const Shape& i) { return read(x[0], i) * std::exp(read(x[1], i)); });
               },
               {{{10, 6}}, {{10, 6}}},
               true,
               2e-6});
  return c;
}

}  // namespace shardarray::testing
