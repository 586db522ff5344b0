// The other operations, by plain loops over indices: movement, casts, sums, products, positions.
#pragma once
#include <functional>
#include <numeric>

#include "plain_scalars.h"

namespace shardarray::testing::plain {

/// The array of `shape` whose element i is that of x at from(i), or `fill` where from() gives no index (an empty one).
inline Plain moved(const Plain& x, const Shape& shape, const std::function<bool(const Shape&, Shape&)>& from,
                   Element fill = {}) {
  Plain r{shape, x.dtype, {}};
  each_index(shape, [&](const Shape& i) {
    Shape at = Shape::filled(x.shape.size(), 0);
    r.data.push_back(from(i, at) ? x.at(at) : fill);
  });
  return r;
}
inline Plain reshape(Plain x, const Shape& shape) {
  x.shape = shape;
  return x;
}
inline Plain transpose(const Plain& x, const Shape& perm) {
  Shape shape;
  for (std::int64_t d : perm) shape.push_back(x.shape[static_cast<std::size_t>(d)]);
  return moved(x, shape, [&](const Shape& i, Shape& at) {
    for (std::size_t d = 0; d < perm.size(); d++) at[static_cast<std::size_t>(perm[d])] = i[d];
    return true;
  });
}
inline Plain broadcast_to(const Plain& x, const Shape& shape) {
  return moved(x, shape, [&](const Shape& i, Shape& at) {
    for (std::size_t d = 0; d < at.size(); d++) at[d] = x.shape[d] == 1 ? 0 : i[i.size() - at.size() + d];
    return true;
  });
}
/// start + step * k for k < count, per dimension.
inline Plain slice(const Plain& x, const Shape& start, const Shape& step, const Shape& count) {
  return moved(x, count, [&](const Shape& i, Shape& at) {
    for (std::size_t d = 0; d < at.size(); d++) at[d] = start[d] + step[d] * i[d];
    return true;
  });
}
inline Plain flip(const Plain& x, std::size_t dim) {
  return moved(x, x.shape, [&](const Shape& i, Shape& at) {
    at = i;
    at[dim] = x.shape[dim] - 1 - i[dim];
    return true;
  });
}
inline Plain roll(const Plain& x, std::int64_t shift, std::size_t dim) {
  return moved(x, x.shape, [&](const Shape& i, Shape& at) {
    const std::int64_t n = x.shape[dim];
    at = i;
    at[dim] = ((i[dim] - shift) % n + n) % n;
    return true;
  });
}
inline Plain pad(const Plain& x, const Shape& before, const Shape& after, double value) {
  Shape shape = x.shape;
  for (std::size_t d = 0; d < shape.size(); d++) shape[d] += before[d] + after[d];
  const Element fill = plain_of({value}, {1}, x.dtype).data[0];
  return moved(
      x, shape,
      [&](const Shape& i, Shape& at) {
        bool inside = true;
        for (std::size_t d = 0; d < at.size(); d++) {
          at[d] = i[d] - before[d];
          inside = inside && at[d] >= 0 && at[d] < x.shape[d];
        }
        return inside;
      },
      fill);
}
inline Plain concatenate(std::span<const Plain> parts, std::size_t dim) {
  Plain r{parts[0].shape, parts[0].dtype, {}};
  r.shape[dim] = 0;
  for (const Plain& p : parts) r.shape[dim] += p.shape[dim];
  each_index(r.shape, [&](const Shape& i) {
    Shape at = i;
    std::size_t k = 0;
    while (at[dim] >= parts[k].shape[dim]) at[dim] -= parts[k++].shape[dim];
    r.data.push_back(parts[k].at(at));
  });
  return r;
}
/// Row k of dimension 0 is row source[k]; -1: zeros.
inline Plain rows_from(const Plain& x, const std::vector<int>& source) {
  return moved(x, x.shape, [&](const Shape& i, Shape& at) {
    at = i;
    at[0] = source[static_cast<std::size_t>(i[0])];
    return at[0] >= 0;
  });
}
inline Plain where(const Plain& c, const Plain& a, const Plain& b) {
  Plain r = a;
  for (std::size_t k = 0; k < r.data.size(); k++) {
    const Element &x = a.data[k], &y = b.data[k];
    r.data[k] = c.data[k].value != 0 ? x : y;
    r.data[k].size = std::max(x.size, y.size);  // parts of both may be there
    if (c.data[k].error > 0) r.data[k] = unknown_element(r.data[k]);
  }
  return r;
}

// ---------------------------------------------------------------- types
inline Element cast(const Element& e, DType from, DType t) {
  if (is_floating(from) && is_floating(t)) {
    const bool widens = roundoff(t) <= roundoff(from);
    Element r = real_element(t, static_cast<double>(e.value), e.error);
    // A sum in parts may be widened part by part, but not narrowed.
    r.size = widens ? e.size : std::abs(static_cast<double>(r.value));
    if (widens) r.error = e.error;
    return r;
  }
  if (is_floating(t)) {  // from integers: rounded once
    const double exact = static_cast<double>(e.value);
    const double once = t == DType::float64 ? exact : static_cast<double>(static_cast<float>(e.value));
    return real_element(t, once, e.error);
  }
  Element r;
  const auto whole = [&](long double v) -> Wide {
    if (!is_floating(from)) return t == DType::bool_ ? v != 0 : wrapped(t, static_cast<Wide>(v));
    if (t == DType::bool_) return v != 0 || std::isnan(v);
    if (std::isnan(v)) return 0;
    if (v >= static_cast<long double>(most_of(t))) return most_of(t);
    return v <= static_cast<long double>(least_of(t)) ? least_of(t) : static_cast<Wide>(v);
  };
  r = whole_element(t, whole(e.value));
  const bool sure = e.error == 0 ||
                    (whole(e.value + e.error) == whole(e.value) &&
                     whole(e.value - e.error) == whole(e.value) && e.error != kAnything && t != DType::bool_);
  return sure ? r : unknown_element(r);
}
inline Plain cast(const Plain& x, DType t) {
  Plain r{x.shape, t, {}};
  for (const Element& e : x.data) r.data.push_back(cast(e, x.dtype, t));
  return r;
}
/// Between types of 32 bits. Which NaN an operation gives is open.
inline Plain bitcast(const Plain& x, DType t) {
  Plain r{x.shape, t, {}};
  for (const Element& e : x.data) {
    const std::uint32_t bits = x.dtype == DType::float32
                                   ? std::bit_cast<std::uint32_t>(static_cast<float>(e.value))
                                   : static_cast<std::uint32_t>(static_cast<std::int64_t>(e.value));
    Element y = t == DType::float32 ? real_element(t, static_cast<double>(std::bit_cast<float>(bits)), 0)
                                    : whole_element(t, static_cast<Wide>(bits));
    r.data.push_back(e.error > 0 || std::isnan(e.value) ? unknown_element(y) : y);
  }
  return r;
}

// ---------------------------------------------------------------- sums
/// How often floats were added or multiplied up: the bits of what is made of that depend on the order.
inline std::int64_t& float_sums() {
  static std::int64_t n = 0;
  return n;
}
/// Adds products of floats up, of which nobody knows the order.
class FloatSum {
 public:
  void add(long double x, double error, double size) {
    total_ += x;
    error_ += error;
    size_ += std::max(size, static_cast<double>(std::abs(x)));
    count_++;
    if (x == 0) return;
    int exponent = 0;
    long double m = std::frexp(std::abs(x), &exponent);
    while (m != std::floor(m) && std::isfinite(m)) m *= 2, exponent--;
    while (std::isfinite(m) && m != 0 && m / 2 == std::floor(m / 2)) m /= 2, exponent++;
    grid_ = std::min(grid_, exponent);
  }
  Element result(DType t) const {
    float_sums()++;
    const double u = computing_roundoff(t);
    // Multiples of 2^grid that never need more than the mantissa: exact in any order.
    const bool exact = error_ == 0 && size_ * u * 2 <= std::ldexp(1.0, std::min(grid_, 1000));
    double error = exact || count_ <= 1 ? error_ : error_ + (static_cast<double>(count_) + 24) * u * size_;
    if (std::isnan(error) || !std::isfinite(static_cast<double>(total_))) error = kAnything;
    const double most =
        t == DType::float64 ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
    if (size_ > most) error = kAnything;  // in some order a part of the sum is infinite
    return real_element(t, static_cast<double>(total_), error, is_half_type(t) ? 0 : size_);
  }

 private:
  long double total_ = 0;
  double error_ = 0, size_ = 0;
  int count_ = 0, grid_ = 1 << 20;
};

/// Calls f(kept index, operand index) for all elements; `axes` are reduced.
inline void each_line(const Shape& shape, const Shape& axes, Shape& kept,
                      const std::function<void(std::size_t, const Shape&)>& f) {
  kept.clear();
  std::vector<std::size_t> dims;
  for (std::size_t d = 0; d < shape.size(); d++)
    if (std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(d)) == axes.end()) {
      kept.push_back(shape[d]);
      dims.push_back(d);
    }
  each_index(shape, [&](const Shape& i) {
    Shape at;
    for (std::size_t d : dims) at.push_back(i[d]);
    f(offset(kept, at), i);
  });
}
inline std::size_t count(const Shape& shape) { return static_cast<std::size_t>(num_elements(shape)); }

inline Plain sum(const Plain& x, const Shape& axes, DType t) {
  Plain r{{}, t, {}};
  std::vector<std::pair<std::size_t, Element>> parts;
  each_line(x.shape, axes, r.shape, [&](std::size_t k, const Shape& i) { parts.emplace_back(k, x.at(i)); });
  std::vector<FloatSum> sums(count(r.shape));
  std::vector<Wide> totals(count(r.shape), 0);
  std::vector<bool> sure(count(r.shape), true);
  for (const auto& [k, e] : parts) {
    if (is_floating(t)) sums[k].add(e.value, e.error, e.size);
    else totals[k] = wrapped(t, totals[k] + static_cast<Wide>(e.value)), sure[k] = sure[k] && e.error == 0;
  }
  for (std::size_t k = 0; k < sums.size(); k++) {
    const Element e = is_floating(t) ? sums[k].result(t) : whole_element(t, totals[k]);
    r.data.push_back(is_floating(t) || sure[k] ? e : unknown_element(e));
  }
  return r;
}
/// Combines two at a time, from `first`; for prod, max, min, any, all.
inline Plain folded(const Plain& x, const Shape& axes, const Scalar& s, Element first, bool starts) {
  Plain r{{}, x.dtype, {}};
  std::vector<std::vector<Element>> lines;
  each_line(x.shape, axes, r.shape, [&](std::size_t k, const Shape& i) {
    if (lines.size() <= k) lines.resize(k + 1);
    lines[k].push_back(x.at(i));
  });
  lines.resize(count(r.shape));
  for (const auto& line : lines) {
    Element e = first;
    bool begun = starts;
    for (const Element& y : line) {
      const Element two[] = {e, y};
      e = !begun                 ? y
          : is_floating(x.dtype) ? real_scalar(s, two, x.dtype, x.dtype)
                                 : whole_scalar(s, two, x.dtype, x.dtype);
      begun = true;
    }
    e.size = 0;
    r.data.push_back(e);
  }
  return r;
}
/// 16-bit types are multiplied in float32.
inline Plain prod(const Plain& x, const Shape& axes) {
  if (is_half_type(x.dtype)) return cast(prod(cast(x, DType::float32), axes), x.dtype);
  static const Scalar product{"prod", "", kNumbers, {{}, {}}, nullptr, [](R v) { return v[0] * v[1]; },
                              times,  2};
  if (is_floating(x.dtype)) float_sums()++;
  return folded(x, axes, product, {1, 0, 1}, true);
}
inline Plain extremum(const char* name, const Plain& x, const Shape& axes) {
  return folded(x, axes, scalar_named(name), {}, false);
}
inline Plain any_or_all(bool any, const Plain& x, const Shape& axes) {
  return folded(x, axes, scalar_named(any ? "or" : "and"), {any ? 0.0L : 1.0L, 0, 0}, true);
}

/// Along `dim`, what `f` makes of all elements up to each one.
inline Plain running(const Plain& x, std::size_t dim, bool reverse,
                     const std::function<Plain(const Plain& part)>& f) {
  Plain r{x.shape, x.dtype, std::vector<Element>(x.data.size())};
  const std::int64_t n = x.shape[dim];
  for (std::int64_t last = 0; last < n; last++) {
    Plain part{x.shape, x.dtype, {}};
    part.shape[dim] = reverse ? n - last : last + 1;
    each_index(part.shape, [&](Shape i) {
      if (reverse) i[dim] += last;
      part.data.push_back(x.at(i));
    });
    const Plain line = f(part);
    each_index(line.shape, [&](const Shape& i) {
      Shape to;
      for (std::size_t d = 0; d <= i.size(); d++) {
        if (d == dim) to.push_back(last);
        if (d < i.size()) to.push_back(i[d]);
      }
      r.data[offset(x.shape, to)] = line.at(i);
    });
  }
  return r;
}

/// Sum over the letters that the result lacks: "ij,jk->ik".
inline Plain dot(const std::string& letters, const Plain& a, const Plain& b) {
  const std::size_t comma = letters.find(','), arrow = letters.find("->");
  const std::string la = letters.substr(0, comma), lb = letters.substr(comma + 1, arrow - comma - 1),
                    out = letters.substr(arrow + 2);
  std::string names = la;
  Shape sizes = a.shape;
  for (std::size_t d = 0; d < lb.size(); d++)
    if (names.find(lb[d]) == std::string::npos) names += lb[d], sizes.push_back(b.shape[d]);
  const auto part = [&](const std::string& term, const Shape& of) {
    Shape s;
    for (char c : term) s.push_back(of[names.find(c)]);
    return s;
  };
  Plain r{part(out, sizes), a.dtype, {}};
  std::vector<FloatSum> sums(count(r.shape));
  std::vector<Wide> totals(sums.size(), 0);
  std::vector<bool> sure(sums.size(), true);
  each_index(sizes, [&](const Shape& i) {
    const Element x = a.at(part(la, i)), y = b.at(part(lb, i));
    const std::size_t k = offset(r.shape, part(out, i));
    const double ax = static_cast<double>(std::abs(x.value)), ay = static_cast<double>(std::abs(y.value));
    sums[k].add(x.value * y.value, x.error * (ay + y.error) + y.error * ax,
                std::max(ax, x.size) * std::max(ay, y.size));
    if (is_floating(r.dtype)) return;
    const Wide two[] = {static_cast<Wide>(x.value), static_cast<Wide>(y.value)};
    totals[k] = wrapped(r.dtype, totals[k] + times(two, r.dtype));
    sure[k] = sure[k] && x.error == 0 && y.error == 0;
  });
  for (std::size_t k = 0; k < sums.size(); k++) {
    const Element e = is_floating(r.dtype) ? sums[k].result(r.dtype) : whole_element(r.dtype, totals[k]);
    r.data.push_back(is_floating(r.dtype) || sure[k] ? e : unknown_element(e));
  }
  return r;
}

// ---------------------------------------------------------------- positions
/// [..a, n, c..] by [i..] -> [..a, i.., c..]. Indices outside: clipped, or NaN (integers: the lowest, unsigned: the highest).
inline Plain take(const Plain& x, const Plain& index, std::size_t axis, bool clips) {
  const std::size_t ranks = index.shape.size();
  const std::int64_t n = x.shape[axis];
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  for (std::int64_t s : index.shape) shape.push_back(s);
  for (std::size_t d = axis + 1; d < x.shape.size(); d++) shape.push_back(x.shape[d]);
  const Element outside =
      is_floating(x.dtype)
          ? Element{std::numeric_limits<double>::quiet_NaN(), 0, 0}
          : whole_element(x.dtype, is_unsigned_integer(x.dtype) ? most_of(x.dtype) : least_of(x.dtype));
  Plain r{shape, x.dtype, {}};
  each_index(shape, [&](const Shape& i) {
    const Element row = index.at(Shape(i.begin() + static_cast<std::ptrdiff_t>(axis),
                                       i.begin() + static_cast<std::ptrdiff_t>(axis + ranks)));
    auto k = static_cast<std::int64_t>(row.value);
    if (k < 0 && !clips) k += n;
    if (clips) k = std::clamp<std::int64_t>(k, 0, n - 1);
    Element e = outside;
    if (k >= 0 && k < n) {
      Shape at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(axis));
      at.push_back(k);
      for (std::size_t d = axis + ranks; d < i.size(); d++) at.push_back(i[d]);
      e = x.at(at);
    }
    r.data.push_back(row.error > 0 ? unknown_element(e) : e);
  });
  return r;
}
/// x with `part` written over from `start` along a dimension; what lies outside is left out.
inline Plain update(const Plain& x, const Plain& part, std::size_t dim, const Element& start) {
  Plain r{x.shape, x.dtype, {}};
  each_index(x.shape, [&](const Shape& i) {
    Shape at = i;
    at[dim] -= static_cast<std::int64_t>(start.value);
    const Element e = at[dim] >= 0 && at[dim] < part.shape[dim] ? part.at(at) : x.at(i);
    r.data.push_back(start.error > 0 ? unknown_element(e) : e);
  });
  return r;
}
/// Zeros [rows, d..] with updates [n, d..] added at rows index [n]; those outside are dropped.
inline Plain scatter(const Plain& index, const Plain& updates, std::int64_t rows) {
  Shape shape = updates.shape;
  shape[0] = rows;
  const DType t = updates.dtype;
  Plain r{shape, t, {}};
  const bool unknown =
      std::any_of(index.data.begin(), index.data.end(), [](const Element& e) { return e.error > 0; });
  each_index(shape, [&](const Shape& i) {
    FloatSum s;
    Wide total = 0;
    bool sure = !unknown;
    for (std::int64_t k = 0; k < index.shape[0]; k++) {
      if (index.data[static_cast<std::size_t>(k)].value != static_cast<long double>(i[0])) continue;
      Shape at = i;
      at[0] = k;
      const Element e = updates.at(at);
      if (is_floating(t)) s.add(e.value, e.error, e.size);
      else total = wrapped(t, total + static_cast<Wide>(e.value)), sure = sure && e.error == 0;
    }
    const Element e = is_floating(t) ? s.result(t) : whole_element(t, total);
    r.data.push_back(sure ? e : unknown_element(e));
  });
  return r;
}

/// x [v, d..] with updates [n, d..] written over rows index [n], the last one last, or added to them; those outside are dropped.
inline Plain update_rows(const Plain& x, const Plain& index, const Plain& updates, bool adds) {
  Plain r{x.shape, x.dtype, {}};
  const bool unknown =
      std::any_of(index.data.begin(), index.data.end(), [](const Element& e) { return e.error > 0; });
  each_index(x.shape, [&](const Shape& i) {
    const Element old = x.at(i);
    FloatSum s;
    if (is_floating(x.dtype)) s.add(old.value, old.error, old.size);
    Wide total = is_floating(x.dtype) ? 0 : static_cast<Wide>(old.value);
    Element e = old;
    bool sure = !unknown && (is_floating(x.dtype) || old.error == 0), is_met = false;
    for (std::int64_t k = 0; k < index.shape[0]; k++) {
      if (index.data[static_cast<std::size_t>(k)].value != static_cast<long double>(i[0])) continue;
      Shape at = i;
      at[0] = k;
      e = updates.at(at);
      is_met = true;
      if (!adds) continue;
      if (is_floating(x.dtype)) s.add(e.value, e.error, e.size);
      else total = wrapped(x.dtype, total + static_cast<Wide>(e.value)), sure = sure && e.error == 0;
    }
    if (adds && is_met) e = is_floating(x.dtype) ? s.result(x.dtype) : whole_element(x.dtype, total);
    r.data.push_back(unknown || (adds && is_met && !sure) ? unknown_element(e) : e);
  });
  return r;
}

/// Per line along `dim`, the positions of the elements in ascending order; `f(start, order)` with order of equal ones kept.
inline void each_order(const Plain& x, std::size_t dim,
                       const std::function<void(const Shape&, const std::vector<std::int64_t>&)>& f) {
  Shape lines = x.shape;
  lines[dim] = std::min<std::int64_t>(1, lines[dim]);
  each_index(lines, [&](const Shape& start) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(x.shape[dim]));
    std::iota(order.begin(), order.end(), 0);
    Shape p = start, q = start;
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      p[dim] = a;
      q[dim] = b;
      const long double v = x.at(p).value, w = x.at(q).value;
      return v < w || (!std::isnan(v) && std::isnan(w));
    });
    f(start, order);
  });
}
/// Sorted values, or the positions that sort.
inline Plain sorted(const Plain& x, std::size_t dim, bool positions) {
  Plain r{x.shape, positions ? DType::int32 : x.dtype, std::vector<Element>(x.data.size())};
  each_order(x, dim, [&](const Shape& start, const std::vector<std::int64_t>& order) {
    Shape at = start, to = start;
    double worst = 0;
    for (std::int64_t k : order) at[dim] = k, worst = std::max(worst, x.at(at).error);
    for (std::size_t k = 0; k < order.size(); k++) {
      at[dim] = order[k];
      to[dim] = static_cast<std::int64_t>(k);
      Element e = x.at(at);
      e.error = worst;
      e.size = std::abs(static_cast<double>(e.value));
      if (positions) e = {static_cast<long double>(order[k]), worst > 0 ? kAnything : 0, 0};
      r.data[offset(x.shape, to)] = e;
    }
  });
  return r;
}

}  // namespace shardarray::testing::plain
