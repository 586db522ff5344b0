// The op conv: sums of products of a kernel with windows that slide over an array. Padding and holes in the array are separate ops (pad,
// embed), so that this one is closed under derivative and transpose.
#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "ops/complex.h"
#include "ops/rules.h"
#include "ops/windows.h"
#include "runtime/contraction.h"
#include "runtime/step_ranges.h"

namespace shardarray {

using namespace rules;

namespace {

bool is_spatial(char letter) { return letter >= 'A' && letter <= 'Z'; }
bool stands_in(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }
std::size_t place_of(char spatial) { return static_cast<std::size_t>(spatial - 'A'); }

std::int64_t size_in(const std::string& term, const Shape& shape, char letter) {
  return shape[term.find(letter)];
}

/// The number of windows that fit.
std::int64_t windows_in(std::int64_t size, std::int64_t window, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t over = windows::reach(window, dilation);
  return size < over ? 0 : (size - over) / stride + 1;
}

Types conv_type(const Call& c) {
  const Letters l = split_letters(c.attrs->letters);
  const auto misfit = [&](const char* what) {
    throw InternalError(fmt::format("conv: operands {} and {} by \"{}\": {}. Please report this.",
                                    to_string(c.in[0]), to_string(c.in[1]), c.attrs->letters, what));
  };
  if (c.in[0].dtype != c.in[1].dtype || c.in[0].dtype == DType::bool_ || is_complex(c.in[0].dtype))
    misfit("they must be real numbers of one dtype");
  for (std::size_t k = 0; k < 2; k++)
    if (l.in[k].size() != c.in[k].shape.size()) misfit("every dimension needs a letter");
  for (const char letter : l.in[0])
    if (!is_spatial(letter) && stands_in(l.in[1], letter) &&
        size_in(l.in[0], c.in[0].shape, letter) != size_in(l.in[1], c.in[1].shape, letter))
      misfit("dimensions of one letter must be equal");
  Type t{{}, c.in[0].dtype, c.in[0].weak && c.in[1].weak};
  for (const char letter : l.out) {
    const std::size_t first = stands_in(l.in[0], letter) ? 0 : 1;
    std::int64_t size = size_in(l.in[first], c.in[first].shape, letter);
    if (is_spatial(letter))
      size = windows_in(size, size_in(l.in[1], c.in[1].shape, letter), c.attrs->step[place_of(letter)],
                        c.attrs->lo[place_of(letter)]);
    t.shape.push_back(size);
  }
  return {t};
}

// A spatial dimension is a factor of the kernel and one of the result. The larger one may be sharded, and the array with it: devices read
// overlapping windows of it. Either the windows are distributed (result sharded), or each window is split (kernel sharded, results are
// partial sums).
Rule conv_rule(const Call& c) {
  const Letters l = split_letters(c.attrs->letters);
  const Shape out = conv_type(c)[0].shape;
  Rule r;
  std::array<int, 128> factor;
  factor.fill(-1);
  for (std::size_t k = 0; k < l.out.size(); k++) {
    if (!is_spatial(l.out[k])) continue;
    const std::int64_t window = size_in(l.in[1], c.in[1].shape, l.out[k]);
    factor[static_cast<unsigned char>(l.out[k])] =
        out[k] >= window ? add_factor(r, out[k], Role::halo)[0] : add_summed(r, c, window, Reducer::sum)[0];
  }
  const auto dims = [&](const std::string& term, const Shape& shape, bool is_array, bool is_out) {
    std::vector<DimFactors> d;
    for (std::size_t k = 0; k < term.size(); k++) {
      int& f = factor[static_cast<unsigned char>(term[k])];
      if (is_spatial(term[k])) {
        const bool is_cut = is_array || (r.factors[static_cast<std::size_t>(f)].role == Role::halo) == is_out;
        d.push_back(is_cut ? DimFactors{f} : add_factor(r, shape[k], Role::whole));
      } else if (f >= 0) {
        d.push_back({f});
      } else {
        d.push_back(stands_in(l.out, term[k]) ? add_factor(r, shape[k])
                                              : add_summed(r, c, shape[k], Reducer::sum));
        f = d.back()[0];
      }
    }
    return d;
  };
  r.operands = {dims(l.in[0], c.in[0].shape, true, false), dims(l.in[1], c.in[1].shape, false, false)};
  r.results = {dims(l.out, out, false, true)};
  return r;
}

// The range of the array that the windows of these results reach with this part of the kernel.
std::vector<Box> conv_windows(const LowerArgs& a) {
  const Letters l = split_letters(a.call.attrs->letters);
  std::vector<Box> boxes(a.in.begin(), a.in.end());
  for (std::size_t d = 0; d < l.in[0].size(); d++) {
    const char letter = l.in[0][d];
    if (!is_spatial(letter)) continue;
    const std::size_t result = l.out.find(letter), window = l.in[1].find(letter);
    const std::int64_t step = a.call.attrs->step[place_of(letter)],
                       apart = a.call.attrs->lo[place_of(letter)], windows = a.out[0].size[result],
                       elements = a.in[1].size[window];
    const bool is_none = windows == 0 || elements == 0;
    boxes[0].lo[d] = is_none ? 0 : a.out[0].lo[result] * step + a.in[1].lo[window] * apart;
    boxes[0].size[d] = is_none ? 0 : (windows - 1) * step + windows::reach(elements, apart);
  }
  return boxes;
}

Batched conv_batch(const BatchArgs& b) {
  const Attrs& a = b.node.attrs();
  const Letters l = split_letters(a.letters);
  char fresh = 'a';
  while (stands_in(a.letters, fresh)) fresh++;
  const auto term = [&](std::size_t k) { return (b.mapped[k] ? std::string(1, fresh) : "") + l.in[k]; };
  return mapped(
      {primitive::conv(term(0) + "," + term(1) + "->" + fresh + l.out, b.in[0], b.in[1], a.step, a.lo)});
}

// Calls f(dimension, spatial index) for each spatial dimension of `term`.
template <class F> void each_spatial(const std::string& term, const F& f) {
  for (std::size_t d = 0; d < term.size(); d++)
    if (is_spatial(term[d])) f(d, place_of(term[d]));
}

/// Convolves the flipped kernel with the cotangent, which gets the strides as holes and is padded by the window's reach.
Array array_cotangent(const TransposeArgs& t, const Letters& l) {
  const Attrs& a = t.node.attrs();
  const Array &g = t.cotangents[0], &kernel = t.in[1];
  const Shape& array = type_of(t.in[0]).shape;
  Shape lo = Shape::filled(g.shape().size(), 0), step = Shape::filled(lo.size(), 1), wide = g.shape(), turned;
  each_spatial(l.out, [&](std::size_t d, std::size_t k) {
    const std::int64_t over = windows::reach(size_in(l.in[1], kernel.shape(), l.out[d]), a.lo[k]);
    lo[d] = over - 1;
    step[d] = a.step[k];
    wide[d] = size_in(l.in[0], array, l.out[d]) + over - 1;
  });
  each_spatial(l.in[1], [&](std::size_t d, std::size_t) { turned.push_back(from_last(d, l.in[1].size())); });
  return primitive::conv(l.out + "," + l.in[1] + "->" + l.in[0], primitive::embed(g, lo, step, wide),
                         primitive::reverse(kernel, turned), Shape::filled(a.step.size(), 1), a.lo);
}

/// Convolves the array with the cotangent, with stride and dilation exchanged.
Array kernel_cotangent(const TransposeArgs& t, const Letters& l) {
  const Attrs& a = t.node.attrs();
  const Array& g = t.cotangents[0];
  const Shape& kernel = type_of(t.in[1]).shape;
  Shape seen = t.in[0].shape();
  each_spatial(l.in[0], [&](std::size_t d, std::size_t k) {
    seen[d] = windows::reach(size_in(l.out, g.shape(), l.in[0][d]), a.step[k]) +
              windows::reach(size_in(l.in[1], kernel, l.in[0][d]), a.lo[k]) - 1;
  });
  const Array part = primitive::slice(t.in[0], Shape::filled(seen.size(), 0), seen);
  return primitive::conv(l.in[0] + "," + l.out + "->" + l.in[1], part, g, a.lo, a.step);
}

Arrays conv_transpose_rule(const TransposeArgs& t) {
  const Letters l = split_letters(t.node.attrs().letters);
  const bool is_empty = num_elements(t.cotangents[0].shape()) == 0 ||
                        num_elements(type_of(t.in[0]).shape) == 0 ||
                        num_elements(type_of(t.in[1]).shape) == 0;
  Arrays r(2);
  for (std::size_t k = 0; k < 2; k++)
    if (t.linear[k])
      r[k] = is_empty ? zeros_of(type_of(t.in[k])) : k == 0 ? array_cotangent(t, l) : kernel_cotangent(t, l);
  return r;
}

Arrays conv_jvp(const JvpArgs& v) {
  const Attrs& a = v.node.attrs();
  const auto slid = [&](const Array& x, const Array& kernel) {
    return x.has_value() && kernel.has_value() ? primitive::conv(a.letters, x, kernel, a.step, a.lo)
                                               : Array();
  };
  return {add_or(slid(v.tangents[0], v.in[1]), slid(v.in[0], v.tangents[1]))};
}

LocalCall conv_call(const LowerArgs& l) {
  const Attrs& a = *l.call.attrs;
  const Letters letters = split_letters(a.letters);
  const Shape shapes[] = {l.in[0].size, l.in[1].size, l.out[0].size};
  const std::string* const terms[] = {&letters.in[0], &letters.in[1], &letters.out};
  const Shape far[] = {row_major(shapes[0]), row_major(shapes[1]), row_major(shapes[2])};
  const auto distance = [&](std::size_t term, char c) {
    return stands_in(*terms[term], c) ? size_in(*terms[term], far[term], c) : 0;
  };
  // stride 0 for size 1, which has no next element
  const auto apart = [&](std::int64_t size, std::int64_t step, char c) {
    return size > 1 ? step * distance(0, c) : 0;
  };
  Contraction c;
  for (const char x : letters.out) {
    const std::int64_t size = size_in(letters.out, shapes[2], x);
    if (is_spatial(x)) c.points.push_back({size, apart(size, a.step[place_of(x)], x), 0, distance(2, x)});
    else
      (!stands_in(letters.in[0], x)   ? c.features
       : !stands_in(letters.in[1], x) ? c.points
                                      : c.groups)
          .push_back({size, distance(0, x), distance(1, x), distance(2, x)});
  }
  for (const char x : letters.in[1]) {
    const std::int64_t size = size_in(letters.in[1], shapes[1], x);
    if (is_spatial(x)) c.summed.push_back({size, apart(size, a.lo[place_of(x)], x), distance(1, x), 0});
    else if (!stands_in(letters.out, x)) c.summed.push_back({size, distance(0, x), distance(1, x), 0});
  }
  for (auto* dims : {&c.groups, &c.points, &c.features, &c.summed}) *dims = merged(*dims);
  return library_call(l, "conv", c.params());
}

}  // namespace

// attrs.letters as for dot; capitals from A on are spatial and occur in all terms: in the array its size, in the kernel the window's, in
// the result the number of windows. step: between windows; lo: between elements of a window.
SHARDARRAY_OP op_conv{.name = "conv",
                      .form = Form::library,
                      .rule = conv_rule,
                      .type = conv_type,
                      .linearity = each_of_product,
                      .jvp = conv_jvp,
                      .transpose = conv_transpose_rule,
                      .batch = conv_batch,
                      .windows = conv_windows,
                      .lower = conv_call,
                      .trait = Trait::sums,
                      .on_parts = complex_ops::of_products<op_conv>};

namespace primitive {

Array conv(const std::string& letters, const Array& x, const Array& kernel, const Shape& stride,
           const Shape& dilation) {
  Attrs a;
  a.letters = letters;
  a.step = stride;
  a.lo = dilation;
  return record(op_conv, {x, kernel}, std::move(a));
}

}  // namespace primitive
}  // namespace shardarray
