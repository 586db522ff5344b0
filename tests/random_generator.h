// Generates random programs. The plain value of every line is known at once, so operands are chosen where an op is smooth; nothing is
// clipped, and a partial sum reaches the op itself.
#pragma once
#include <deque>

#include "erased.h"
#include "ops/windows.h"
#include "random_cells.h"
#include "random_program.h"

namespace shardarray::testing {

class Generator {
 public:
  /// `devices`: how many there are.
  Generator(std::uint64_t seed, int devices);
  RandomProgram run();

 private:
  using Apply = Erased<Array(std::span<const Array>)>;
  using PlainApply = Erased<Plain(std::span<const Plain>)>;
  /// Names of mesh axes per dimension.
  using Cuts = std::vector<std::vector<std::string>>;
  /// An operand that is asked for.
  struct Wanted {
    DType dtype = DType::float32;
    Shape shape;
    Cuts cuts;                        ///< of the dimensions
    std::vector<std::string> summed;  ///< axes over which it is a pending sum
    Range range;                      ///< of its values
  };

  std::int64_t below(std::int64_t n) { return whole_between(rng_, 0, n - 1); }
  bool chance(std::int64_t one_in) { return below(one_in) == 0; }
  template <class C> auto& any_of(C& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(list))))];
  }
  const Plain& value(int v) const { return values_[static_cast<std::size_t>(v)]; }
  const Shape& shape(int v) const { return value(v).shape; }
  DType dtype(int v) const { return value(v).dtype; }
  std::size_t rank(int v) const { return shape(v).size(); }
  std::size_t some_dim(int v) { return static_cast<std::size_t>(below(static_cast<std::int64_t>(rank(v)))); }

  void make_mesh(int devices);
  DType random_dtype(unsigned kinds);
  Sharding sharding_of(const Cuts& cuts) const { return sharding_on(*mesh_, cuts); }
  static Sharding sharding_on(const Mesh& mesh, const Cuts& cuts);
  /// Anywhere, now and then on another view of the devices.
  Sharding random_sharding(const Cuts& cuts) {
    return sharding_on(second_view_ && chance(2) ? *second_view_ : *mesh_, cuts);
  }
  Cuts random_cuts(std::size_t rank);
  static bool lies_in(const Plain& x, Range r);
  bool lies_in(int v, Range r) const { return lies_in(value(v), r); }

  // ---- lines
  /// -1: too large.
  int add(std::string text, std::vector<int> in, Apply f, PlainApply g);
  int add(const Function& f, int v);
  int leaf(Plain values, std::optional<Sharding> sharding);
  Plain random_values(const Shape& shape, DType t, Range r);
  int leaf(const Shape& shape, DType t, Range r, const Cuts& cuts);
  int leaf(const Shape& shape, DType t, Range r = {}) { return leaf(shape, t, r, random_cuts(shape.size())); }
  int constant_whole(const std::vector<double>& v, const Shape& shape, DType t) {
    return leaf(plain_of(v, shape, t), std::nullopt);
  }
  /// A leaf or a sum over leaves.
  int make(const Wanted& w);
  int summed(const Wanted& w);
  /// A second operand for v, of its dtype: placed and summed alike, or like v, or a leaf, or an earlier line.
  int partner(int v, const Shape& shape, Range r);
  int like(int v, Range r);

  // ---- steps
  void aim(const Aim& a);
  Wanted wanted(const Aim& a, std::size_t& dim);
  void random_step();
  /// The op of a row with v as its operand there, working on dimension `dim`. False: it does not fit.
  bool grow(const Row& row, int v, std::size_t dim);
  bool grow_scalar(const Row& row, int v);
  bool grow_movement(const std::string& op, int operand, int v, std::size_t dim);
  bool grow_position(const std::string& op, int operand, int v, std::size_t dim);
  bool grow_other(const std::string& op, int operand, int v, std::size_t dim);
  bool slice_some(int v, std::size_t dim);
  bool roll_some(int v, std::size_t dim);
  bool pad_some(int v, std::size_t dim);
  bool concatenate_some(int v, int operand, std::size_t dim);
  bool reshape_some(int v);
  bool broadcast_some(int v);
  bool reduce_some(int v, std::size_t dim);
  bool scan_some(int v, std::size_t dim);
  bool cast_some(int v);
  bool bitcast_some(int v);
  bool where_some(int v, int operand);
  bool dot_some(int v, int operand, std::size_t dim);
  bool conv_some(int v, int operand, std::size_t dim);
  bool take_some(int v, int operand, std::size_t dim);
  bool scatter_some(int v, int operand);
  bool update_rows_some(int v, int operand);
  bool update_some(int v, int operand, std::size_t dim);
  bool sort_some(int v, int operand, std::size_t dim);
  bool random_words_some(const std::string& op, int v, int operand);
  bool permute_some(int v, std::size_t dim);
  bool constrain(int v);
  bool scale_far(int v);
  bool read_twice(int v, std::size_t dim);

  // ---- maps
  std::optional<Function> function_of(const Plain& x, bool smooth);
  Function sum_of(const Plain& x);
  bool vmap_some(int v, std::size_t dim);
  bool iterate_some(int v, std::size_t dim);
  bool gradient_some(int v);
  bool gradient_of_gather(int v);
  bool call_some(int v);
  bool choose_some(int v);
  bool repeat_some(int v, std::size_t dim);
  bool order_some(int v, int operand);
  bool collective_in_vmap(int v);
  bool collectives_in_shard_map();

  Rng rng_;
  RandomProgram p_;
  std::deque<Plain> values_;  ///< references stay
  std::optional<Mesh> mesh_, second_view_;
  std::vector<std::string> axes_;
  std::vector<std::int64_t> sizes_;
  const Scalar* chosen_ = nullptr;  ///< what the aimed operand is made for
  Wanted last_;                     ///< how the last aimed operand lies: its partners often lie alike
};

// ---------------------------------------------------------------- places
inline void Generator::make_mesh(int count) {
  static const std::vector<std::vector<std::int64_t>> meshes[] = {
      {{2}, {3}, {4}, {5}},
      {{2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}, {5, 2}, {2, 5}, {3, 3}, {4, 3}, {3, 5}},
      {{2, 2, 2}, {2, 2, 3}, {3, 2, 2}, {2, 3, 2}, {2, 2, 4}, {4, 2, 2}, {5, 2, 2}, {3, 3, 2}, {4, 3, 2}}};
  const auto& sizes = any_of(meshes[rank_of_seed(p_.seed) - 1]);
  std::vector<std::pair<std::string, std::int64_t>> axes;
  std::int64_t n = 1;
  for (std::int64_t s : sizes) {
    axes_.push_back(std::string(1, static_cast<char>('x' + axes.size())));
    axes.push_back({axes_.back(), s});
    n *= s;
  }
  std::vector<Device> order(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < order.size(); k++) order[k].id = static_cast<int>(k);
  order.resize(static_cast<std::size_t>(n));
  const bool shuffled = chance(8);
  if (shuffled) std::shuffle(order.begin(), order.end(), rng_);
  mesh_ = shardarray::make_mesh(axes, order);
  if (chance(8)) {  // the sizes of the axes in another order: axes that do not fit into each other
    std::vector<std::int64_t> other = sizes;
    std::rotate(other.begin(), other.begin() + 1, other.end());
    for (std::size_t k = 0; k < axes.size(); k++) axes[k].second = other[k];
    second_view_ = shardarray::make_mesh(axes, order);
  }
  if (!shuffled && !second_view_) p_.mesh = mesh_;
}

inline Generator::Generator(std::uint64_t seed, int devices) : rng_(seed) {
  p_.seed = seed;
  p_.policy = chance(2) ? Policy::auto_ : Policy::follow;
  p_.share = !chance(4);
  p_.donate = chance(4);
  p_.reproducible = chance(10);
  p_.lazy = !p_.donate && chance(8);
  make_mesh(devices);
  const std::int64_t n = mesh_->shape()[0].second;
  for (std::int64_t s : {n, 2 * n, std::int64_t{2}, std::int64_t{3}, std::int64_t{4}, 3 + below(5)})
    sizes_.push_back(std::min<std::int64_t>(s, 8));
  if (chance(20)) sizes_.push_back(0);
  if (chance(4)) sizes_.push_back(1);
}

inline DType Generator::random_dtype(unsigned kinds) {
  static constexpr DType all_types[] = {DType::float32,  DType::float32, DType::float64, DType::float16,
                                        DType::bfloat16, DType::int8,    DType::int16,   DType::int32,
                                        DType::int64,    DType::uint8,   DType::uint16,  DType::uint32,
                                        DType::uint64,   DType::bool_};
  for (;;)
    if (const DType t = any_of(all_types); kind_of(t) & kinds) return t;
}

inline Sharding Generator::sharding_on(const Mesh& mesh, const Cuts& cuts) {
  std::vector<SpecEntry> entries;
  for (const auto& names : cuts)
    entries.push_back(names.empty() ? SpecEntry(none) : SpecEntry(AxisNames{names}));
  return NamedSharding(mesh, PartitionSpec(std::move(entries)));
}
inline Generator::Cuts Generator::random_cuts(std::size_t rank) {
  Cuts cuts(rank);
  std::vector<std::string> names = axes_;
  std::shuffle(names.begin(), names.end(), rng_);
  for (const std::string& name : names)
    if (rank > 0 && chance(2)) any_of(cuts).push_back(name);
  return cuts;
}

/// Whether every value that may come out, and all that it is made of, is in the range.
inline bool Generator::lies_in(const Plain& x, Range r) {
  if (!is_floating(x.dtype)) return true;
  return std::all_of(x.data.begin(), x.data.end(), [&](const Element& e) {
    return e.value >= r.lo && e.value <= r.hi && e.error < 0.1 * (r.hi - r.lo);
  });
}

// ---------------------------------------------------------------- lines
inline int Generator::add(std::string text, std::vector<int> in, Apply f, PlainApply g) {
  std::vector<Plain> operands;
  for (int v : in) operands.push_back(value(v));
  const std::int64_t sums_before = plain::float_sums();
  Plain y = g(operands);
  if (y.data.size() > 1500) return -1;
  Line l;
  l.text = std::move(text);
  l.sums = plain::float_sums() != sums_before;
  for (int v : in) l.sums = l.sums || p_.lines[static_cast<std::size_t>(v)].sums;
  l.in = std::move(in);
  l.apply = std::move(f);
  l.plain = std::move(g);
  l.shape = y.shape;
  l.dtype = y.dtype;
  p_.lines.push_back(std::move(l));
  values_.push_back(std::move(y));
  return static_cast<int>(p_.lines.size()) - 1;
}
inline int Generator::add(const Function& f, int v) {
  return add(
      f.text, {v}, [f](std::span<const Array> x) { return f.library(x[0]); },
      [f](std::span<const Plain> x) { return f.plain(x[0]); });
}
inline int Generator::leaf(Plain values, std::optional<Sharding> sharding) {
  Line l;
  l.text = "leaf";
  l.shape = values.shape;
  l.dtype = values.dtype;
  l.leaf = values;
  l.sharding = std::move(sharding);
  p_.lines.push_back(std::move(l));
  values_.push_back(std::move(values));
  return static_cast<int>(p_.lines.size()) - 1;
}
/// Distinct values; those of floats are multiples of 1/16 half of the time, so that sums are exact.
inline Plain Generator::random_values(const Shape& shape, DType t, Range r) {
  const bool dyadic = chance(2), wide = is_integer(t) && r.hi - r.lo > 7.5 && chance(3);
  std::vector<double> v;
  for (std::int64_t k = num_elements(shape); k > 0; k--) {
    double x = uniform_between(rng_, r.lo, r.hi);
    if (is_floating(t)) v.push_back(dyadic ? std::clamp(std::round(x * 16) / 16, r.lo, r.hi) : x);
    else if (t == DType::bool_) v.push_back(chance(2));
    else v.push_back(std::round(3 * x));
  }
  Plain p = plain_of(v, shape, t);
  for (Element& e : p.data)
    if (wide) e = whole_element(t, static_cast<Wide>(static_cast<std::int64_t>(rng_())));
  return p;
}
inline int Generator::leaf(const Shape& s, DType t, Range r, const Cuts& cuts) {
  const bool uncommitted = chance(12);
  return leaf(random_values(s, t, r), uncommitted ? std::nullopt : std::optional(random_sharding(cuts)));
}

inline int Generator::make(const Wanted& w) {
  return w.summed.empty() ? leaf(random_values(w.shape, w.dtype, w.range), sharding_of(w.cuts)) : summed(w);
}
// The values that are wanted, dealt to summands along new dimensions that the axes cut: the last one is what is left.
inline int Generator::summed(const Wanted& w) {
  const bool together = w.summed.size() > 1 && chance(2);
  Shape terms;
  std::vector<std::vector<std::string>> cuts;
  for (std::size_t k = 0; k < (together ? 1 : w.summed.size()); k++) {
    const std::int64_t n = mesh_->axis_size(w.summed[k]);
    terms.push_back(chance(2) ? n : std::min<std::int64_t>(6, n + 1 + below(2)));
    cuts.push_back(together ? w.summed : std::vector{w.summed[k]});
  }
  if (together) terms[0] = 4;
  const Plain target = random_values(w.shape, w.dtype, w.range);
  Plain x = random_values(
      [&] {
        Shape s = terms;
        for (std::int64_t n : w.shape) s.push_back(n);
        return s;
      }(),
      w.dtype, {-4, 4});
  const std::size_t outer = target.data.size(), count = plain::count(terms);
  for (std::size_t k = 0; k < outer && w.dtype != DType::bool_; k++) {
    double rest = static_cast<double>(target.data[k].value);
    Wide whole_rest = static_cast<Wide>(target.data[k].value);
    for (std::size_t j = 0; j + 1 < count; j++) {
      rest -= static_cast<double>(x.data[j * outer + k].value);
      if (!is_floating(w.dtype)) whole_rest -= static_cast<Wide>(x.data[j * outer + k].value);
    }
    x.data[(count - 1) * outer + k] =
        is_floating(w.dtype) ? real_element(w.dtype, rest, 0) : whole_element(w.dtype, whole_rest);
  }
  Shape dims;
  for (std::size_t k = 0; k < terms.size(); k++) dims.push_back(static_cast<std::int64_t>(k));
  for (const auto& names : w.cuts) cuts.push_back(names);
  const int v = leaf(std::move(x), sharding_of(cuts));
  const DType t = w.dtype;
  if (t == DType::bool_) {
    const bool any = chance(2);
    return add(
        any ? "any" : "all", {v},
        [any, dims](std::span<const Array> a) {
          return any ? shardarray::any(a[0], {.axis = dims}) : all(a[0], {.axis = dims});
        },
        [any, dims](std::span<const Plain> a) { return plain::any_or_all(any, a[0], dims); });
  }
  if (chance(3) && (t == DType::float32 || t == DType::float64)) {  // the same as a product
    const std::string k = std::string("uv").substr(0, terms.size()),
                      rest = std::string("abcd").substr(0, w.shape.size());
    const std::string letters = k + rest + "," + k + "->" + rest;
    const int ones =
        leaf(plain_of(std::vector<double>(count, 1.0), terms, t),
             sharding_of({cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(terms.size())}));
    return add(
        letters, {v, ones}, [letters](std::span<const Array> a) { return einsum(letters, a[0], a[1]); },
        [letters](std::span<const Plain> a) { return plain::dot(letters, a[0], a[1]); });
  }
  return add(
      "sum " + shardarray::to_string(dims), {v},
      [dims, t](std::span<const Array> a) { return sum(a[0], {.axis = dims, .dtype = t}); },
      [dims, t](std::span<const Plain> a) { return plain::sum(a[0], dims, t); });
}

inline int Generator::partner(int v, const Shape& s, Range r) {
  const DType t = dtype(v);
  if (last_.shape == s && last_.dtype == t && !chance(3)) {
    Wanted w = last_;
    w.range = r;
    return make(w);
  }
  for (int o = static_cast<int>(values_.size()) - 1; o >= 0 && chance(2); o--)
    if (o != v && shape(o) == s && dtype(o) == t && lies_in(o, r)) return o;
  if (const int c = shape(v) == s && chance(3) ? like(v, r) : -1; c >= 0) return c;
  return leaf(s, t, r);
}
/// One number wherever v lies.
inline int Generator::like(int v, Range r) {
  const DType t = dtype(v);
  const double number = is_floating(t)
                            ? std::clamp(std::round(uniform_between(rng_, r.lo, r.hi) * 16) / 16, r.lo, r.hi)
                            : static_cast<double>(t == DType::bool_ ? below(2) : 1 + below(3));
  const Plain one = plain_of({number}, {}, t);
  return add(
      "full_like " + number_text(number), {v},
      [number](std::span<const Array> x) { return full_like(x[0], number); },
      [one](std::span<const Plain> x) { return plain::broadcast_to(one, x[0].shape); });
}

}  // namespace shardarray::testing
