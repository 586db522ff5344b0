// More lines of random programs: sums, products, positions, and what is left. See random_program_ops.h.
#pragma once
#include "random_program.h"

namespace shardarray::testing {

inline void Generator::reduce_some() {
  const int a = floats(1);
  const auto dim = static_cast<std::int64_t>(some_dim(a));
  const bool empty_line = shape(a)[static_cast<std::size_t>(dim)] == 0;
  switch (below(empty_line ? 3 : 5)) {
    case 0:
      add(
          "sum", {a}, [dim](std::span<const Array> x) { return sum(x[0], dim) * 0.25; }, true);
      break;
    case 1:
      add(
          "sum all", {a}, [](std::span<const Array> x) { return sum(x[0]) * 0.05; }, true);
      break;
    case 2:
      add(
          "prod", {a}, [dim](std::span<const Array> x) { return prod(tanh(x[0]), dim); }, true);
      break;
    case 3:
      add(
          "mean", {a},
          [dim](std::span<const Array> x) { return x[0] - mean(x[0], {.axis = dim, .keepdims = true}); },
          true);
      break;
    default:
      add(
          "softmax", {a}, [dim](std::span<const Array> x) { return softmax(x[0], dim); }, true);
  }
}

inline void Generator::reduce_exact() {
  const int a = chance(2) ? floats(1) : integers(1);
  const auto dim = static_cast<std::int64_t>(some_dim(a));
  if (chance(3)) {
    const int b = truths();
    if (shape(b).empty()) return;
    const auto along = static_cast<std::int64_t>(some_dim(b));
    if (chance(2)) add("any", {b}, [along](std::span<const Array> x) { return any(x[0], along); });
    else add("all", {b}, [along](std::span<const Array> x) { return all(x[0], along); });
  } else if (dtype(a) == DType::int32 && chance(2)) {
    add("sum", {a}, [dim](std::span<const Array> x) { return sum(x[0], dim); });
  } else if (shape(a)[static_cast<std::size_t>(dim)] > 0) {
    if (chance(2))
      add("max", {a}, [dim](std::span<const Array> x) { return max(x[0], {.axis = dim, .keepdims = true}); });
    else add("min", {a}, [dim](std::span<const Array> x) { return min(x[0], dim); });
  }
}

inline void Generator::product() {
  const int a = floats(1);
  const Shape sa = shape(a);
  const DType t = dtype(a);
  const std::size_t d = some_dim(a);
  // a's dimension d with the first or last one of a matrix; a second shared dimension is a batch
  const std::int64_t n = any_of(sizes_);
  const bool batched = sa.size() > 1 && chance(2);
  std::string la = std::string("abcdefgh").substr(0, sa.size()), lb, out;
  const char k = la[d], other = d == 0 && sa.size() > 1 ? la[1] : la[0];
  Shape sb;
  auto put = [&](char letter, std::int64_t size) {
    lb += letter;
    sb.push_back(size);
  };
  if (batched && other != k) put(other, sa[la.find(other)]);
  if (chance(2)) put(k, sa[d]), put('z', n);
  else put('z', n), put(k, sa[d]);
  for (char c : la + "z")
    if (c != k) out += c;
  std::shuffle(out.begin(), out.end(), rng_);
  const int b = pick([&](int v) { return shape(v) == sb && dtype(v) == t; }, [&] { return leaf(sb, t); });
  const std::string letters = la + "," + lb + "->" + out;
  add(
      letters, {a, b}, [letters](std::span<const Array> x) { return einsum(letters, x[0], x[1]) * 0.25; },
      true);
}

inline void Generator::positions() {
  const int a = anything(1);
  const auto dim = static_cast<std::int64_t>(some_dim(a));
  const std::int64_t n = shape(a)[static_cast<std::size_t>(dim)], count = any_of(sizes_);
  const int raw = pick([&](int v) { return dtype(v) == DType::int32 && shape(v) == Shape{count}; },
                       [&] { return leaf({count}, DType::int32); });
  if (chance(2)) {
    const TakeMode mode = n > 0 && chance(2) ? TakeMode::clip : TakeMode::fill;
    add("take", {a, raw}, [dim, mode](std::span<const Array> x) { return take(x[0], x[1], dim, mode); });
    return;
  }
  if (dtype(a) == DType::bool_) return;
  Shape s = shape(a);
  s[0] = count;
  const int updates = like(leaf(s, dtype(a)), false);
  const std::int64_t rows = any_of(sizes_);
  add(
      "scatter", {raw, updates},
      [rows](std::span<const Array> x) { return prim::scatter(x[0], x[1], 0, 1, rows); }, true);
}

inline void Generator::order() {
  const int a = chance(2) ? exact_floats(1) : integers(1);
  const auto dim = static_cast<std::int64_t>(some_dim(a));
  if (chance(2)) add("sort", {a}, [dim](std::span<const Array> x) { return sort(x[0], dim); });
  else if (chance(2)) add("argsort", {a}, [dim](std::span<const Array> x) { return argsort(x[0], dim); });
  else if (shape(a)[static_cast<std::size_t>(dim)] > 0)
    add("argmax", {a}, [dim](std::span<const Array> x) { return argmax(x[0], dim); });
}

// ---------------------------------------------------------------- the rest
inline void Generator::place() {
  const int a = anything();
  const int v = add("constraint", {a}, [](std::span<const Array> x) { return x[0]; });
  if (v != a) p_.lines.back().sharding = random_sharding(shape(v).size());
}

inline void Generator::transformed() {
  const int a = floats();
  if (chance(2)) {
    const auto inner = jit([](const Array& x) { return sin(x) + tanh(x) * 0.5; });
    add("call", {a}, [inner](std::span<const Array> x) { return inner(x[0]); });
  } else if (chance(2) || shape(a).empty()) {
    add("grad", {a},
        [](std::span<const Array> x) { return grad([](const Array& y) { return sum(sin(y) * y); })(x[0]); });
  } else {
    const auto dim = static_cast<std::int64_t>(some_dim(a));
    auto loss = [dim](const Array& y) { return sum(square(sum(tanh(y), dim))) * 0.25; };
    add(
        "grad of sums", {a}, [loss](std::span<const Array> x) { return grad(loss)(x[0]); }, true);
  }
}

inline void Generator::mapped() {
  const int a = floats(1);
  if (shape(a)[0] == 0) return;
  const std::int64_t n = shape(a)[0];
  const auto over_rows = [](const std::function<Array(const Array&)>& f) {
    return [f](std::span<const Array> x) { return vmap(f, {.axis_name = "i"})(x[0]); };
  };
  if (chance(3)) {  // a ring, with a gap
    Permutation pairs;
    for (std::int64_t k = 0; k < n; k++)
      if (k != 1) pairs.emplace_back(static_cast<int>(k), static_cast<int>((k + 2) % n));
    add("vmap ppermute", {a}, over_rows([pairs](const Array& row) { return ppermute(row, "i", pairs); }));
    return;
  }
  if (chance(3)) {
    add("vmap pmax", {a}, over_rows([](const Array& row) { return row - pmax(row, "i"); }));
    return;
  }
  add(
      "vmap psum axis_index", {a},
      [](std::span<const Array> x) {
        const auto f = [](const Array& row) {
          return psum(row, "i") * 0.1 + row * (axis_index("i") + 1) * 0.1;
        };
        return vmap(f, {.axis_name = "i"})(x[0]);
      },
      true);
}

inline void Generator::made() {
  const int a = floats(1);
  const std::int64_t n = shape(a).back();
  if (chance(2))
    add("arange", {a},
        [n](std::span<const Array> x) { return x[0] + astype(arange(n), x[0].dtype()) * 0.125; });
  else add("tril", {a}, [](std::span<const Array> x) { return x[0].ndim() < 2 ? x[0] * 2 : tril(x[0]); });
}

inline RandomProgram Generator::run(int ops) {
  static constexpr Step steps[] = {
      &Generator::smooth_unary, &Generator::smooth_unary,  &Generator::breaking_unary,
      &Generator::float_binary, &Generator::float_binary,  &Generator::breaking_binary,
      &Generator::ternary,      &Generator::whole_numbers, &Generator::logic,
      &Generator::rearrange,    &Generator::rearrange,     &Generator::reshape_some,
      &Generator::slice_some,   &Generator::join,          &Generator::reduce_some,
      &Generator::reduce_exact, &Generator::product,       &Generator::product,
      &Generator::positions,    &Generator::order,         &Generator::place,
      &Generator::place,        &Generator::transformed,   &Generator::mapped,
      &Generator::made};
  for (int k = 0; k < ops; k++) (this->*any_of(steps))();
  std::vector<bool> used(p_.lines.size(), false);
  for (const Line& l : p_.lines)
    for (int v : l.in) used[static_cast<std::size_t>(v)] = true;
  for (std::size_t v = 0; v < p_.lines.size(); v++)
    if (p_.lines[v].apply && (!used[v] || chance(8))) p_.outputs.push_back(static_cast<int>(v));
  return std::move(p_);
}

}  // namespace shardarray::testing
