// The lines of random programs: elementwise ops and movement, one op with one operand given.
#pragma once
#include "random_generator.h"
#include "shardarray/shardarray.h"

namespace shardarray::testing {

using ArraysIn = std::span<const Array>;
using PlainsIn = std::span<const Plain>;

inline bool Generator::grow(const Row& row, int v, std::size_t dim) {
  const unsigned kinds = row.kinds & kFloat ? row.kinds | kHalf : row.kinds;
  if (!(kind_of(dtype(v)) & kinds) || (row.op == "bitcast" && is_half_type(dtype(v)))) return false;
  const std::size_t before = values_.size();
  const bool is_scalar =
      std::any_of(scalars().begin(), scalars().end(), [&](const Scalar& s) { return s.op == row.op; });
  if (is_scalar) return grow_scalar(row, v);
  const bool fits = rank(v) > 0 && shape(v)[dim] > 0;
  if (fits && grow_movement(row.op, row.operand, v, dim)) return true;
  if (values_.size() == before && fits && grow_position(row.op, row.operand, v, dim)) return true;
  return values_.size() == before && grow_other(row.op, row.operand, v, dim);
}

// ---------------------------------------------------------------- elementwise
inline bool Generator::grow_scalar(const Row& row, int v) {
  std::vector<const Scalar*> fits;
  for (const Scalar& s : scalars())
    if (s.op == row.op && static_cast<std::size_t>(row.operand) < s.operands.size() &&
        (s.kinds & kind_of(dtype(v))) && lies_in(v, s.operands[static_cast<std::size_t>(row.operand)]))
      fits.push_back(&s);
  if (fits.empty()) return false;
  const Scalar* s = chosen_ && std::count(fits.begin(), fits.end(), chosen_) ? chosen_ : any_of(fits);
  std::vector<int> in(s->operands.size(), v);
  for (std::size_t k = 0; k < in.size(); k++)
    if (static_cast<int>(k) != row.operand) {
      Range r = s->operands[k];
      if (is_integer(dtype(v)) && s->name == std::string("pow")) {
        // small exponents
        r = {0, 2};
        if (k == 0) {
          in[k] = partner(v, shape(v), r);
          continue;
        }
        in[k] = leaf(shape(v), dtype(v), r);
        continue;
      }
      const bool broadcasts = rank(v) > 1 && chance(6);
      in[k] = broadcasts ? leaf(Shape(shape(v).begin() + 1, shape(v).end()), dtype(v), r)
                         : partner(v, shape(v), r);
    }
  if (is_integer(dtype(v)) && s->name == std::string("pow"))
    for (const Element& e : value(in[1]).data)
      if (e.value < 0 || e.value > 60) return false;
  return add(
             s->name, in, [s](ArraysIn x) { return s->apply(x); },
             [s](PlainsIn x) { return plain::apply_scalar(*s, x); }) >= 0;
}

// Factors beyond what a part of a sum can bear, though the sum itself can.
inline bool Generator::scale_far(int v) {
  if (dtype(v) != DType::float32 && dtype(v) != DType::float64) return false;
  double largest = 0;
  for (const Element& e : value(v).data) {
    if (!(std::abs(e.value) < 1e3) || e.error > 0.01) return false;
    largest = std::max(largest, static_cast<double>(std::abs(e.value)));
  }
  if (largest == 0) return false;
  const bool single = dtype(v) == DType::float32, divides = chance(2);
  const bool any_may_be_zero = std::any_of(value(v).data.begin(), value(v).data.end(), [](const Element& e) {
    return e.error > 0 && std::abs(e.value) <= e.error;
  });
  double factor = (single ? 0x1p127 : 0x1p1022) / largest;
  if (single) factor = static_cast<double>(static_cast<float>(factor));
  if (chance(3)) factor = std::numeric_limits<double>::infinity();
  else if (chance(3)) factor = 0;
  if (any_may_be_zero && (divides ? factor == 0 || std::isinf(factor) : std::isinf(factor))) return false;
  if (divides) {
    const double by = factor == 0 ? kAnything : std::isinf(factor) ? 0 : 1 / factor;
    if (single && by != 0 && std::isfinite(by) && by < 0x1p-126) return false;
    factor = single ? static_cast<double>(static_cast<float>(by)) : by;
  }
  const Scalar* s = &scalar_named(divides ? "div" : "mul");
  const Plain constant = plain_of({factor}, {}, dtype(v));
  return add(
             std::string(divides ? "/ " : "* ") + number_text(factor), {v},
             [factor, divides](ArraysIn x) { return divides ? x[0] / factor : x[0] * factor; },
             [s, constant](PlainsIn x) {
               const Plain two[] = {x[0], constant};
               return plain::apply_scalar(*s, two);
             }) >= 0;
}

inline bool Generator::cast_some(int v) {
  DType t = random_dtype(kAll);
  if (is_floating(dtype(v)) && chance(2)) t = random_dtype(kFloating);
  if (dtype(v) == DType::float64 && chance(2)) t = DType::float32;
  if (t == dtype(v)) t = t == DType::float32 ? DType::float16 : DType::float32;
  return add(
             name(t), {v}, [t](ArraysIn x) { return astype(x[0], t); },
             [t](PlainsIn x) { return plain::cast(x[0], t); }) >= 0;
}
inline bool Generator::bitcast_some(int v) {
  const std::vector<DType> types = {DType::float32, DType::int32, DType::uint32};
  const auto it = std::find(types.begin(), types.end(), dtype(v));
  if (it == types.end()) return false;
  const DType t = *it == DType::int32 ? DType::uint32 : DType::int32;
  return add(
             std::string("bits as ") + name(t), {v}, [t](ArraysIn x) { return bitcast(x[0], t); },
             [t](PlainsIn x) { return plain::bitcast(x[0], t); }) >= 0;
}
inline bool Generator::where_some(int v, int operand) {
  int in[3] = {v, v, v};
  if (operand == 0) {
    in[1] = leaf(shape(v), random_dtype(kAll));
    in[2] = partner(in[1], shape(v), {});
  } else {
    in[0] = leaf(shape(v), DType::bool_);
    in[3 - operand] = partner(v, shape(v), {});
  }
  return add(
             "where", {in[0], in[1], in[2]}, [](ArraysIn x) { return where(x[0], x[1], x[2]); },
             [](PlainsIn x) { return plain::where(x[0], x[1], x[2]); }) >= 0;
}
inline bool Generator::random_words_some(const std::string& op, int v, int operand) {
  if (dtype(v) != DType::uint32) return false;
  const bool philox = op == "philox";
  std::vector<int> in(philox ? 5 : 4, v);
  for (std::size_t k = 0; k < in.size(); k++)
    if (static_cast<int>(k) != operand) in[k] = partner(v, shape(v), {});
  const auto which = static_cast<std::size_t>(below(philox ? 4 : 2));
  return add(
             op, in,
             [=](ArraysIn x) { return record_all(philox ? op_philox : op_threefry, x, nullptr, {})[which]; },
             [=](PlainsIn x) {
               Plain r{x[0].shape, DType::uint32, {}};
               for (std::size_t k = 0; k < x[0].data.size(); k++) {
                 std::uint32_t w[6] = {};
                 for (std::size_t j = 0; j < x.size(); j++)
                   w[j] = static_cast<std::uint32_t>(x[j].data[k].value);
                 if (philox) philox4x32(w[0], w[1], w + 2);
                 else threefry2x32(w, w + 2);
                 r.data.push_back(whole_element(DType::uint32, w[2 + which]));
               }
               return r;
             }) >= 0;
}

// ---------------------------------------------------------------- movement
inline bool Generator::grow_movement(const std::string& op, int operand, int v, std::size_t dim) {
  const auto d = static_cast<std::int64_t>(dim);
  if (op == "slice") return slice_some(v, dim);
  if (op == "roll") return roll_some(v, dim);
  if (op == "pad") return pad_some(v, dim);
  if (op == "concatenate") return concatenate_some(v, operand, dim);
  if (op == "permute_rows") return permute_some(v, dim);
  if (op == "reshape") return reshape_some(v);
  if (op == "broadcast") return broadcast_some(v);
  if (op == "reverse")
    return add(
               "flip " + std::to_string(d), {v}, [d](ArraysIn x) { return flip(x[0], d); },
               [dim](PlainsIn x) { return plain::flip(x[0], dim); }) >= 0;
  if (op != "transpose" || rank(v) < 2) return false;
  Shape perm;
  for (std::size_t k = 0; k < rank(v); k++) perm.push_back(static_cast<std::int64_t>((k + 1) % rank(v)));
  if (rank(v) > 2 && chance(2)) std::swap(perm[0], perm[1]);
  return add(
             "transpose " + shardarray::to_string(perm), {v},
             [perm](ArraysIn x) { return transpose(x[0], perm); },
             [perm](PlainsIn x) { return plain::transpose(x[0], perm); }) >= 0;
}

inline bool Generator::roll_some(int v, std::size_t dim) {
  const std::int64_t n = shape(v)[dim];
  if (n < 2) return false;
  const std::int64_t shift = 1 + below(n - 1), d = static_cast<std::int64_t>(dim);
  const std::int64_t by = chance(2) ? shift : -shift;
  return add(
             "roll " + std::to_string(by) + " along " + std::to_string(d), {v},
             [by, d](ArraysIn x) { return roll(x[0], by, d); },
             [by, dim](PlainsIn x) { return plain::roll(x[0], by, dim); }) >= 0;
}

inline bool Generator::slice_some(int v, std::size_t dim) {
  Indices index;
  Shape start, step, count, result;
  std::string text = "slice";
  for (std::size_t k = 0; k < rank(v); k++) {
    const std::int64_t size = shape(v)[k];
    std::int64_t lo = 0, hi = size, by = 1;
    if (size > 0 && (k == dim || chance(4))) {
      lo = below(size / 2 + 1);
      hi = size - below((size - lo + 1) / 2);
      if (lo == 0 && hi == size && size > 1) chance(2) ? lo++ : hi--;
      if (chance(4)) by = chance(2) ? 2 : -1;
    }
    if (size > 0 && k == dim && chance(5)) {
      index.push_back(Index(lo));
      hi = lo + 1;
      by = 1;
    } else if (by < 0) {
      index.push_back(shardarray::slice(
          hi - 1, lo > 0 ? shardarray::slice::Bound(lo - 1) : shardarray::slice::Bound(none), by));
      result.push_back(hi - lo);
    } else {
      index.push_back(shardarray::slice(lo, hi, by));
      result.push_back((hi - lo + by - 1) / by);
    }
    start.push_back(by < 0 ? hi - 1 : lo);
    step.push_back(by);
    count.push_back(by < 0 ? hi - lo : (hi - lo + by - 1) / by);
    text +=
        " " + std::to_string(start.back()) + "+" + std::to_string(by) + "*" + std::to_string(count.back());
  }
  return add(
             text, {v}, [index](ArraysIn x) { return x[0][index]; },
             [=](PlainsIn x) { return plain::reshape(plain::slice(x[0], start, step, count), result); }) >= 0;
}
inline bool Generator::pad_some(int v, std::size_t dim) {
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(rank(v));
  widths[dim] = {below(3), 1 + below(2)};
  if (chance(3)) std::swap(widths[dim].first, widths[dim].second);
  const double fill = chance(4) ? 1 : 0;
  Shape before, after;
  for (const auto& [lo, hi] : widths) before.push_back(lo), after.push_back(hi);
  return add(
             "pad " + shardarray::to_string(before) + " " + shardarray::to_string(after) + " with " +
                 number_text(fill),
             {v}, [=](ArraysIn x) { return pad(x[0], widths, fill); },
             [=](PlainsIn x) { return plain::pad(x[0], before, after, fill); }) >= 0;
}
inline bool Generator::concatenate_some(int v, int operand, std::size_t dim) {
  const auto d = static_cast<std::int64_t>(dim);
  std::vector<int> in(operand > 0 || chance(2) ? 2 : 3, v);
  for (std::size_t k = 0; k < in.size(); k++) {
    if (static_cast<int>(k) == operand) continue;
    Shape s = shape(v);
    if (!chance(3)) s[dim] = any_of(sizes_);
    in[k] = partner(v, s, {});
  }
  const std::string text = "concatenate along " + std::to_string(d);
  return add(
             text, in, [d](ArraysIn x) { return concatenate(std::vector<Array>(x.begin(), x.end()), d); },
             [dim](PlainsIn x) { return plain::concatenate(x, dim); }) >= 0;
}
inline bool Generator::reshape_some(int v) {
  Shape s = shape(v);
  const std::size_t d = some_dim(v);
  if (chance(5)) {
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
  return add(
             "reshape", {v}, [s](ArraysIn x) { return reshape(x[0], s); },
             [s](PlainsIn x) { return plain::reshape(x[0], s); }) >= 0;
}
inline bool Generator::broadcast_some(int v) {
  Shape s = shape(v);
  s.insert(0, 2 + below(3));
  return add(
             "broadcast_to", {v}, [s](ArraysIn x) { return broadcast_to(x[0], s); },
             [s](PlainsIn x) { return plain::broadcast_to(x[0], s); }) >= 0;
}
inline bool Generator::permute_some(int v, std::size_t dim) {
  if (dim != 0) return false;
  const auto n = static_cast<int>(shape(v)[0]);
  std::vector<int> source(static_cast<std::size_t>(n), -1);
  Permutation pairs;
  const int shift = static_cast<int>(below(n)), gap = chance(2) ? static_cast<int>(below(n)) : -1;
  for (int k = 0; k < n; k++) {
    if (k == gap) continue;
    pairs.emplace_back(k, (k + shift) % n);
    source[static_cast<std::size_t>((k + shift) % n)] = k;
  }
  return add(
             "vmap ppermute by " + std::to_string(shift) + (gap < 0 ? "" : " but " + std::to_string(gap)),
             {v},
             [pairs](ArraysIn x) {
               return vmap([&](const Array& row) { return ppermute(row, "i", pairs); },
                           {.axis_name = "i"})(x[0]);
             },
             [source](PlainsIn x) { return plain::rows_from(x[0], source); }) >= 0;
}
inline bool Generator::constrain(int v) {
  const int c = add(
      "constraint", {v}, [](ArraysIn x) { return x[0]; }, [](PlainsIn x) { return x[0]; });
  if (c >= 0) p_.lines.back().sharding = random_sharding(random_cuts(rank(c)));
  return c >= 0;
}

}  // namespace shardarray::testing
