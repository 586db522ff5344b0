// The lines that random programs are made of.
//
// Floats that were added up differ in their last bits between shardings. So ops that break up the real line (floor,
// comparisons, positions) only take values without sums above them, and rounded values are kept small by ops of bounded
// slope: then a small tolerance finds what is wrong.
#pragma once
#include "random_program.h"

namespace shardarray::testing {

inline void Generator::make_meshes() {
  const std::int64_t sizes[] = {1, 2, 3, 4, 6, 8};
  const std::int64_t n = any_of(sizes);
  const char* names[] = {"x", "y", "z"};
  for (int k = 0; k < 2; k++) {
    std::vector<Device> order = devices();
    order.resize(static_cast<std::size_t>(n));
    if (chance(4)) std::shuffle(order.begin(), order.end(), rng_);
    std::vector<std::pair<std::string, std::int64_t>> axes;
    std::int64_t rest = n;
    for (std::int64_t f = 2; rest > 1 && axes.size() < 2;) {
      if (rest % f == 0 && !chance(3)) axes.push_back({names[axes.size()], f}), rest /= f;
      else if (++f > rest) break;
    }
    axes.push_back({names[axes.size()], rest});
    std::shuffle(axes.begin(), axes.end(), rng_);
    meshes_.push_back(make_mesh(axes, order));
    if (!chance(4)) break;  // the other programs have a second view of the same devices
  }
}

inline void Generator::make_sizes() {
  const bool even = p_.seed % 2 == 0;
  const std::int64_t n = meshes_[0].size(), uneven[] = {1, 2, 3, 5, 7, 10, 13};
  for (int k = 0; k < 3; k++)
    sizes_.push_back(even ? n * (1 + below(n > 3 ? 2 : 5)) : chance(20) ? 0 : any_of(uneven));
}

inline Sharding Generator::random_sharding(std::size_t rank) {
  const Mesh& mesh = any_of(meshes_);
  std::vector<AxisNames> dims(rank);
  std::vector<std::string> names = mesh.axis_names();
  std::shuffle(names.begin(), names.end(), rng_);
  for (const std::string& name : names)
    if (rank > 0 && !chance(3)) any_of(dims).names.push_back(name);
  std::vector<SpecEntry> entries;
  for (const AxisNames& d : dims) entries.push_back(d.names.empty() ? SpecEntry(none) : SpecEntry(d));
  return NamedSharding(mesh, PartitionSpec(std::move(entries)));
}

inline Shape Generator::random_shape(std::size_t least_rank) {
  Shape s;
  const auto rank = std::max(least_rank, static_cast<std::size_t>(below(4)));
  while (s.size() < rank) s.push_back(chance(8) ? 1 : any_of(sizes_));
  return s;
}

inline int Generator::leaf(const Shape& s, DType t) {
  Line l{std::string("leaf"), {}, nullptr, s, t, leaf_data(s, t, rng_), std::nullopt};
  if (!chance(6)) l.sharding = random_sharding(s.size());
  values_.push_back(to_array(l.data, s, t));
  rounded_.push_back(false);
  p_.lines.push_back(std::move(l));
  return static_cast<int>(p_.lines.size()) - 1;
}

inline int Generator::add(std::string text, std::vector<int> in, Apply f, bool sums) {
  bool is_rounded_now = sums;
  Arrays operands;
  for (int v : in) {
    is_rounded_now = is_rounded_now || is_rounded(v);
    operands.push_back(values_[static_cast<std::size_t>(v)]);
  }
  if (is_rounded_now)
    f = [f](std::span<const Array> x) {
      const Array y = f(x);
      return is_floating(y.dtype()) ? clip(y, -4, 4) : y;
    };
  const Array y = f(operands);
  if (y.size() > 4096) return in[0];  // programs stay small
  sums = sums && is_floating(y.dtype());
  p_.lines.push_back(
      {std::move(text), std::move(in), std::move(f), y.shape(), y.dtype(), {}, std::nullopt, sums});
  values_.push_back(y);
  rounded_.push_back(is_rounded_now);
  return static_cast<int>(p_.lines.size()) - 1;
}

inline int Generator::pick(const std::function<bool(int)>& fits, const std::function<int()>& otherwise) {
  std::vector<int> found;
  for (int v = 0; v < static_cast<int>(p_.lines.size()); v++)
    if (fits(v)) found.push_back(v);
  if (found.empty() || chance(6)) return otherwise();
  return chance(2) ? found.back() : any_of(found);
}
inline int Generator::floats(std::size_t rank) {
  return pick([&](int v) { return is_floating(dtype(v)) && shape(v).size() >= rank; },
              [&] { return leaf(random_shape(rank), chance(8) ? DType::float64 : DType::float32); });
}
inline int Generator::exact_floats(std::size_t rank) {
  return pick([&](int v) { return is_floating(dtype(v)) && !is_rounded(v) && shape(v).size() >= rank; },
              [&] { return leaf(random_shape(rank), DType::float32); });
}
inline int Generator::integers(std::size_t rank) {
  return pick([&](int v) { return dtype(v) == DType::int32 && shape(v).size() >= rank; },
              [&] { return leaf(random_shape(rank), DType::int32); });
}
inline int Generator::truths() {
  return pick([&](int v) { return dtype(v) == DType::bool_; },
              [&] { return leaf(random_shape(0), DType::bool_); });
}
inline int Generator::anything(std::size_t rank) {
  return pick([&](int v) { return shape(v).size() >= rank; },
              [&] { return leaf(random_shape(rank), DType::float32); });
}
inline int Generator::like(int v, bool exact) {
  const Shape s = shape(v);
  const DType t = dtype(v);
  return pick([&](int o) { return o != v && shape(o) == s && dtype(o) == t && !(exact && is_rounded(o)); },
              [&] { return leaf(s, t); });
}
inline int Generator::broadcastable(int v, bool exact) {
  Shape s = shape(v);
  if (s.empty() || chance(2)) return like(v, exact);
  if (chance(2)) s[static_cast<std::size_t>(below(static_cast<std::int64_t>(s.size())))] = 1;
  else s = Shape(s.begin() + 1, s.end());
  return leaf(s, dtype(v));
}

// ---------------------------------------------------------------- elementwise
inline void Generator::smooth_unary() {
  static constexpr Unary list[] = {{"neg", [](const Array& x) { return -x; }},
                                   {"abs", [](const Array& x) { return abs(x); }},
                                   {"exp", [](const Array& x) { return exp(clip(x, -1, 1)); }},
                                   {"expm1", [](const Array& x) { return expm1(clip(x, -1, 1)); }},
                                   {"log", [](const Array& x) { return log(abs(x) + 1); }},
                                   {"log1p", [](const Array& x) { return log1p(abs(x)); }},
                                   {"sqrt", [](const Array& x) { return sqrt(abs(x) + 1); }},
                                   {"rsqrt", [](const Array& x) { return rsqrt(abs(x) + 1); }},
                                   {"sin", [](const Array& x) { return sin(x); }},
                                   {"cos", [](const Array& x) { return cos(x); }},
                                   {"tan", [](const Array& x) { return tan(tanh(x) * 0.9); }},
                                   {"tanh", [](const Array& x) { return tanh(x); }},
                                   {"sinh", [](const Array& x) { return sinh(clip(x, -1, 1)); }},
                                   {"cosh", [](const Array& x) { return cosh(clip(x, -1, 1)); }},
                                   {"asin", [](const Array& x) { return asin(tanh(x) * 0.9); }},
                                   {"acos", [](const Array& x) { return acos(tanh(x) * 0.9); }},
                                   {"atan", [](const Array& x) { return atan(x); }},
                                   {"erf", [](const Array& x) { return erf(x); }},
                                   {"erf_inv", [](const Array& x) { return erf_inv(tanh(x) * 0.9); }},
                                   {"sigmoid", [](const Array& x) { return sigmoid(x); }},
                                   {"relu", [](const Array& x) { return relu(x); }},
                                   {"gelu", [](const Array& x) { return gelu(clip(x, -4, 4)); }},
                                   {"stop_gradient", [](const Array& x) { return stop_gradient(x); }},
                                   {"scale", [](const Array& x) { return x * 0.5 + 1; }},
                                   {"float64", [](const Array& x) { return astype(x, DType::float64); }},
                                   {"float32", [](const Array& x) { return astype(x, DType::float32); }}};
  const Unary& u = any_of(list);
  add(u.name, {floats()}, [f = u.f](std::span<const Array> x) { return f(x[0]); });
}

inline void Generator::breaking_unary() {
  static constexpr Unary list[] = {
      {"sign", [](const Array& x) { return sign(x); }},
      {"floor", [](const Array& x) { return floor(x); }},
      {"ceil", [](const Array& x) { return ceil(x); }},
      {"round", [](const Array& x) { return round(x); }},
      {"trunc", [](const Array& x) { return trunc(x); }},
      {"int32", [](const Array& x) { return astype(x * 10, DType::int32); }},
      {"bitcast", [](const Array& x) { return bitcast(astype(x, DType::float32), DType::int32); }},
      {"isfinite", [](const Array& x) { return isfinite(1 / floor(x)); }}};
  const Unary& u = any_of(list);
  add(u.name, {exact_floats()}, [f = u.f](std::span<const Array> x) { return f(x[0]); });
}

inline void Generator::float_binary() {
  static constexpr Binary list[] = {
      {"add", [](const Array& a, const Array& b) { return a + b; }},
      {"sub", [](const Array& a, const Array& b) { return a - b; }},
      {"mul", [](const Array& a, const Array& b) { return a * b; }},
      {"div", [](const Array& a, const Array& b) { return a / (abs(b) + 1); }},
      {"max", [](const Array& a, const Array& b) { return maximum(a, b); }},
      {"min", [](const Array& a, const Array& b) { return minimum(a, b); }},
      {"pow", [](const Array& a, const Array& b) { return power(clip(abs(a) + 1, 1, 2), clip(b, -2, 2)); }},
      {"atan2", [](const Array& a, const Array& b) { return atan2(a, abs(b) + 1); }}};
  const Binary& u = any_of(list);
  const int a = floats(), b = broadcastable(a, false);
  add(u.name, {a, b}, [f = u.f](std::span<const Array> x) { return f(x[0], x[1]); });
}

inline void Generator::breaking_binary() {
  static constexpr Binary list[] = {
      {"rem", [](const Array& a, const Array& b) { return a % (abs(b) + 1); }},
      {"eq", [](const Array& a, const Array& b) { return floor(a) == floor(b); }},
      {"ne", [](const Array& a, const Array& b) { return a != b; }},
      {"lt", [](const Array& a, const Array& b) { return a < b; }},
      {"le", [](const Array& a, const Array& b) { return a <= b; }},
      {"gt", [](const Array& a, const Array& b) { return a > b; }},
      {"ge", [](const Array& a, const Array& b) { return a >= b; }}};
  const Binary& u = any_of(list);
  const int a = exact_floats(), b = broadcastable(a, true);
  add(u.name, {a, b}, [f = u.f](std::span<const Array> x) { return f(x[0], x[1]); });
}

inline void Generator::ternary() {
  if (chance(2)) {
    const int a = floats(), b = like(a, false), c = broadcastable(a, false);
    add("fma", {a, b, c}, [](std::span<const Array> x) { return fma(x[0], x[1], x[2]); });
  } else {
    const int a = anything(), b = broadcastable(a, false);
    const Shape s = shape(a);
    const int c = pick([&](int v) { return dtype(v) == DType::bool_ && shape(v) == s; },
                       [&] { return leaf(s, DType::bool_); });
    add("where", {c, a, b}, [](std::span<const Array> x) { return where(x[0], x[1], x[2]); });
  }
}

inline void Generator::whole_numbers() {
  static constexpr Binary list[] = {
      {"add", [](const Array& a, const Array& b) { return a + b; }},
      {"mul", [](const Array& a, const Array& b) { return a * b; }},
      {"floor_divide", [](const Array& a, const Array& b) { return floor_divide(a, b); }},
      {"remainder", [](const Array& a, const Array& b) { return a % b; }},
      {"and", [](const Array& a, const Array& b) { return a & b; }},
      {"or", [](const Array& a, const Array& b) { return a | b; }},
      {"xor", [](const Array& a, const Array& b) { return a ^ b; }},
      {"shl", [](const Array& a, const Array& b) { return a << (b & 31); }},
      {"shr", [](const Array& a, const Array& b) { return a >> (b & 31); }},
      {"lt", [](const Array& a, const Array& b) { return a < b; }},
      {"not", [](const Array& a, const Array&) { return ~a; }},
      {"float", [](const Array& a, const Array&) { return astype(a & 7, DType::float32); }},
      {"threefry", [](const Array& a, const Array& b) {
         const Array k = astype(a, DType::uint32),
                     in[] = {k, k, astype(broadcast_to(b, a.shape()), DType::uint32), k};
         return astype(record_all(op_threefry, in, nullptr, {})[1], DType::int32);
       }}};
  const Binary& u = any_of(list);
  const int a = integers(), b = broadcastable(a, true);
  add(u.name, {a, b}, [f = u.f](std::span<const Array> x) { return f(x[0], x[1]); });
}

inline void Generator::logic() {
  static constexpr Binary list[] = {
      {"and", [](const Array& a, const Array& b) { return a & b; }},
      {"or", [](const Array& a, const Array& b) { return a | b; }},
      {"xor", [](const Array& a, const Array& b) { return a ^ b; }},
      {"not", [](const Array& a, const Array&) { return !a; }},
      {"float", [](const Array& a, const Array&) { return astype(a, DType::float32); }},
      {"int", [](const Array& a, const Array& b) { return a + astype(b, DType::int32); }}};
  const Binary& u = any_of(list);
  const int a = truths(), b = broadcastable(a, true);
  add(u.name, {a, b}, [f = u.f](std::span<const Array> x) { return f(x[0], x[1]); });
}

// ---------------------------------------------------------------- movement
inline void Generator::rearrange() {
  const int a = anything(1);
  const auto rank = static_cast<std::int64_t>(shape(a).size()), dim = below(rank);
  Shape perm;
  for (std::int64_t d = 0; d < rank; d++) perm.push_back(d);
  std::shuffle(perm.begin(), perm.end(), rng_);
  const std::int64_t shift = below(5) - 2;
  switch (below(4)) {
    case 0: add("transpose", {a}, [perm](std::span<const Array> x) { return transpose(x[0], perm); }); break;
    case 1: add("flip", {a}, [dim](std::span<const Array> x) { return flip(x[0], dim); }); break;
    case 2:
      add("roll", {a}, [dim, shift](std::span<const Array> x) { return roll(x[0], shift, dim); });
      break;
    default: {
      Shape to = shape(a);
      to.insert(0, any_of(sizes_));
      add("broadcast_to", {a}, [to](std::span<const Array> x) { return broadcast_to(x[0], to); });
    }
  }
}

inline void Generator::reshape_some() {
  const int a = anything(1);
  Shape s = shape(a);
  const std::size_t d = some_dim(a);
  if (chance(4)) {
    s = {num_elements(s)};
  } else if (d + 1 < s.size() && chance(2)) {
    s[d] *= s[d + 1];
    s.erase(d + 1);
  } else {
    std::int64_t factor = 1 + below(4);
    while (s[d] % factor != 0) factor--;
    s[d] /= factor;
    s.insert(d + (chance(2) ? 1 : 0), factor);
  }
  add("reshape", {a}, [s](std::span<const Array> x) { return reshape(x[0], s); });
}

inline void Generator::slice_some() {
  const int a = anything(1);
  Indices index;
  std::vector<std::pair<std::int64_t, std::int64_t>> widths;
  for (std::int64_t n : shape(a)) {
    const std::int64_t lo = below(n / 2 + 1), step = chance(4) ? 2 : 1;
    index.push_back(chance(2) ? Index(all) : Index(slice(lo, n - below(n / 2 + 1), step)));
    widths.push_back(chance(2) ? std::pair<std::int64_t, std::int64_t>{0, 0} : std::pair(below(3), below(3)));
  }
  if (chance(2)) add("slice", {a}, [index](std::span<const Array> x) { return x[0][index]; });
  else if (is_floating(dtype(a)) && chance(2))
    add("at.add", {a}, [index](std::span<const Array> x) { return x[0].at(index).add(0.5); });
  else if (dtype(a) != DType::bool_)
    add("pad", {a}, [widths](std::span<const Array> x) { return pad(x[0], widths, 1); });
}

inline void Generator::join() {
  const int a = anything(1);
  const auto dim = static_cast<std::int64_t>(some_dim(a));
  const int b = like(a, false);
  if (chance(3)) {
    add("stack", {a, b}, [dim](std::span<const Array> x) { return stack({x[0], x[1]}, dim); });
    return;
  }
  Shape s = shape(a);
  s[static_cast<std::size_t>(dim)] = any_of(sizes_);
  const int c = leaf(s, dtype(a));
  add("concatenate", {a, c, b}, [dim](std::span<const Array> x) {
    return concatenate({x[0], x[1], x[2]}, dim);
  });
}

}  // namespace shardarray::testing
