// The lines of random programs: functions under vmap, grad, jit and pmap, collectives in vmap and shard_map.
#pragma once
#include "random_grow_data.h"
#include "shardarray/conditional.h"
#include "shardarray/custom_derivatives.h"
#include "shardarray/grad.h"
#include "shardarray/jit.h"
#include "shardarray/pmap.h"
#include "shardarray/shard_map.h"
#include "shardarray/vmap.h"

namespace shardarray::testing {

inline Function Generator::sum_of(const Plain& x) {
  const auto d = below(static_cast<std::int64_t>(x.shape.size()));
  const DType t = x.dtype;
  if (t == DType::bool_)
    return {"any along " + std::to_string(d), [d](const Array& a) { return any(a, d); },
            [d](const Plain& a) { return plain::any_or_all(true, a, {d}); }};
  return {"sum along " + std::to_string(d),
          [d, t](const Array& a) { return sum(a, {.axis = d, .dtype = t}); },
          [d, t](const Plain& a) { return plain::sum(a, {d}, t); }};
}

// One or two ops, all of them smooth where derivatives are taken.
inline std::optional<Function> Generator::function_of(const Plain& x, bool smooth) {
  static const std::set<std::string> kinks = {"abs",   "sign", "relu",  "not",   "is_finite",
                                              "floor", "ceil", "trunc", "round", "tan"};
  std::vector<const Scalar*> fits;
  for (const Scalar& s : scalars())
    if (s.operands.size() == 1 && (s.kinds & kind_of(x.dtype)) && lies_in(x, s.operands[0]) &&
        s.name != std::string("erf_inv") && !(smooth && kinks.contains(s.name)))
      fits.push_back(&s);
  const auto dims = static_cast<std::int64_t>(x.shape.size());
  Function f;
  const auto kind = below(dims == 0 ? 1 : 5);
  const std::int64_t d = dims == 0 ? 0 : below(dims);
  const auto dim = static_cast<std::size_t>(d);
  if (kind == 0) {
    if (fits.empty()) return std::nullopt;
    const Scalar* s = any_of(fits);
    f = {s->name,
         [s](const Array& a) {
           return s->apply({&a, 1});
         },
         [s](const Plain& a) {
           return plain::apply_scalar(*s, {&a, 1});
         }};
  } else if (kind == 1) {
    f = sum_of(x);
  } else if (kind == 2) {
    f = {"flip " + std::to_string(d), [d](const Array& a) { return flip(a, d); },
         [dim](const Plain& a) { return plain::flip(a, dim); }};
  } else if (kind == 3) {
    const std::int64_t by = below(3) - 1;
    f = {"roll " + std::to_string(by) + " along " + std::to_string(d),
         [=](const Array& a) { return roll(a, by, d); },
         [=](const Plain& a) { return plain::roll(a, by, dim); }};
  } else {
    if (x.shape[dim] == 0) return std::nullopt;
    std::vector<std::int32_t> at(3);
    for (std::int32_t& k : at) k = static_cast<std::int32_t>(below(x.shape[dim]));
    const Plain index = plain_of({at.begin(), at.end()}, {3}, DType::int32);
    f = {"take along " + std::to_string(d), [=](const Array& a) { return take(a, array(at), d); },
         [=](const Plain& a) { return plain::take(a, index, dim, false); }};
  }
  if (!chance(2)) return f;
  const std::optional<Function> then = function_of(f.plain(x), smooth);
  if (!then) return f;
  return Function{f.text + ", " + then->text,
                  [f, g = *then](const Array& a) { return g.library(f.library(a)); },
                  [f, g = *then](const Plain& a) { return g.plain(f.plain(a)); }};
}

inline bool Generator::vmap_some(int v, std::size_t dim) {
  if (rank(v) == 0 || shape(v)[dim] == 0) return false;
  const std::optional<Function> f = function_of(plain::row(value(v), dim, 0), false);
  if (!f) return false;
  const auto d = static_cast<std::int64_t>(dim);
  return add({"vmap " + f->text + " over " + std::to_string(d),
              [f = *f, d](const Array& a) { return vmap(f.library, {.in_axes = d})(a); },
              [f = *f, dim](const Plain& a) { return plain::mapped(f, a, dim); }},
             v) >= 0;
}

// Steps over the rows of v: each gives a function of the row before it, which it finds in the carry; at first, of row 0.
inline bool Generator::iterate_some(int v, std::size_t dim) {
  if (rank(v) == 0 || shape(v)[dim] == 0) return false;
  const std::optional<Function> f = function_of(plain::row(value(v), dim, 0), false);
  if (!f) return false;
  const bool reverse = chance(2);
  const auto d = static_cast<std::int64_t>(dim);
  std::vector<double> before;
  for (std::int64_t k = 0, n = shape(v)[dim]; k < n; k++)
    before.push_back(
        static_cast<double>(reverse ? std::min(k + 1, n - 1) : std::max<std::int64_t>(k - 1, 0)));
  const Plain index = plain_of({before.begin(), before.end()}, {shape(v)[dim]}, DType::int32);
  const auto steps = [f = *f, d, reverse](const Array& a) {
    const Array rows = moveaxis(a, d, 0);
    const auto step = [&](const Array& c, const Array& x) { return std::pair(x, f.library(c)); };
    return scan(step, reverse ? rows[-1] : rows[0], rows, {.reverse = reverse}).second;
  };
  return add({"scan of " + f->text + " over " + std::to_string(d) + (reverse ? ", reversed" : ""), steps,
              [f = *f, dim, index](const Plain& a) {
                return plain::mapped(f, plain::take(a, index, dim, false), dim);
              }},
             v) >= 0;
}

// The gradient of a sum of squares, where the operand is exact, so that differences tell it.
inline bool Generator::gradient_some(int v) {
  const auto exact = [](const Element& e) { return e.error == 0 && std::abs(e.value) < 10; };
  if ((dtype(v) != DType::float32 && dtype(v) != DType::float64) || value(v).data.size() > 120 ||
      !std::all_of(value(v).data.begin(), value(v).data.end(), exact))
    return false;
  std::optional<Function> f = function_of(value(v), true);
  if (!f) return false;
  if (chance(3)) {  // by a rule that its author gave
    f->text = "custom_jvp of " + f->text;
    f->library = [g = f->library](const Array& a) {
      return custom_jvp(g, [g](const Array& x, const Array& dx) { return jvp(g, x, dx); })(a);
    };
  }
  const auto squares = [f = *f](const Plain& a) {
    const Plain y = f.plain(a), two[] = {y, y};
    return plain::apply_scalar(scalar_named("mul"), two);
  };
  return add({"grad of squares of " + f->text,
              [f = *f](const Array& a) {
                return grad([&](const Array& x) { return sum(square(f.library(x))); })(a);
              },
              [squares](const Plain& a) { return plain::gradient(squares, a); }},
             v) >= 0;
}
// Of a gather that is read directly and through a reshape.
inline bool Generator::gradient_of_gather(int v) {
  const auto exact = [](const Element& e) { return e.error == 0 && std::abs(e.value) < 10; };
  if ((dtype(v) != DType::float32 && dtype(v) != DType::float64) || rank(v) == 0 ||
      value(v).data.size() > 120 || !std::all_of(value(v).data.begin(), value(v).data.end(), exact))
    return false;
  const std::size_t dim = some_dim(v);
  const auto d = static_cast<std::int64_t>(dim);
  if (shape(v)[dim] == 0) return false;
  std::vector<std::int32_t> at(static_cast<std::size_t>(2 + below(5)));
  for (std::int32_t& k : at) k = static_cast<std::int32_t>(below(shape(v)[dim]));
  const Plain index = plain_of({at.begin(), at.end()}, {static_cast<std::int64_t>(at.size())}, DType::int32);
  const DType index_type = random_dtype(kIntegers);
  const std::int64_t flat = num_elements(shape(v)) / shape(v)[dim] * static_cast<std::int64_t>(at.size());
  const auto squares = [=](const Plain& a) {  // 3 times: the square of t, and twice that of t reshaped
    const Plain y = plain::take(a, index, dim, false), two[] = {y, y};
    Plain r = plain::apply_scalar(scalar_named("mul"), two);
    for (Element& e : r.data) e.value *= 3;
    return r;
  };
  return add({"grad of a gather read twice along " + std::to_string(d) + " by " + name(index_type),
              [=](const Array& a) {
                return grad([&](const Array& x) {
                  const Array t = take(x, array(at).astype(index_type), d);
                  return sum(square(reshape(t, {flat}))) * 2 + sum(square(t));
                })(a);
              },
              [squares](const Plain& a) { return plain::gradient(squares, a); }},
             v) >= 0;
}

inline bool Generator::call_some(int v) {
  const std::optional<Function> f = function_of(value(v), false);
  if (!f) return false;
  const auto inner = jit(f->library);
  return add({"jit " + f->text, [inner](const Array& a) { return inner(a); }, f->plain}, v) >= 0;
}

// One of two or three functions of the same result, by a number that the program has.
inline bool Generator::choose_some(int v) {
  const std::optional<Function> f = function_of(value(v), false);
  if (!f) return false;
  const std::int64_t branches = 2 + below(2);
  const Shape s = f->plain(value(v)).shape;
  const auto changed = [s](std::int64_t k, const Array& y) {
    return k == 0 || s.empty() ? y : k == 1 ? flip(y, 0) : roll(y, 1, 0);
  };
  const auto changed_plain = [s](std::int64_t k, const Plain& y) {
    return k == 0 || s.empty() ? y : k == 1 ? plain::flip(y, 0) : plain::roll(y, 1, 0);
  };
  const int which = leaf({}, DType::int32, {-1, 1});  // -3 to 3: outside means the nearest one
  return add((branches == 2 ? "cond of " : "switch of ") + f->text, {which, v},
             [=, f = *f](ArraysIn x) {
               const auto branch = [&](std::int64_t k) {
                 return [=](const Array& a) { return changed(k, f.library(a)); };
               };
               if (branches == 2) return cond(x[0] > 0, branch(1), branch(0), x[1]);
               return switch_(x[0], std::tuple(branch(0), branch(1), branch(2)), x[1]);
             },
             [=, f = *f](PlainsIn x) {
               const auto k = static_cast<std::int64_t>(x[0].data[0].value);
               return changed_plain(branches == 2 ? k > 0 : std::clamp<std::int64_t>(k, 0, 2), f.plain(x[1]));
             }) >= 0;
}
// A step as often as a number says: v goes on by one, and meets what it was.
inline bool Generator::repeat_some(int v, std::size_t dim) {
  if (rank(v) == 0 || shape(v)[dim] < 2) return false;
  const auto d = static_cast<std::int64_t>(dim);
  const int times = leaf({}, DType::int32, {-1, 1});
  return add(
             "while_loop of rolls along " + std::to_string(d), {times, v},
             [d](ArraysIn x) {
               const Array n = x[0];
               const auto step = [d](const std::pair<Array, Array>& c) {
                 return std::pair(c.first + 1, roll(c.second, 1, d));
               };
               return while_loop([n](const std::pair<Array, Array>& c) { return c.first < n; }, step,
                                 std::pair(primitive::full({}, DType::int32, 0), x[1]))
                   .second;
             },
             [dim](PlainsIn x) {
               Plain y = x[1];
               for (Wide k = 0; k < static_cast<Wide>(x[0].data[0].value); k++) y = plain::roll(y, 1, dim);
               return y;
             }) >= 0;
}
// v behind other values, or other values behind v.
inline bool Generator::order_some(int v, int operand) {
  const int other = leaf({any_of(sizes_)}, random_dtype(kAll));
  return add(
             "behind", operand == 0 ? std::vector{v, other} : std::vector{other, v},
             [](ArraysIn x) { return primitive::behind(x[0], x.subspan(1)); },
             [](PlainsIn x) { return x[0]; }) >= 0;
}

// ---------------------------------------------------------------- collectives
/// What happens at every position; the piece at hand decides which shapes fit.
struct Collective {
  std::string text;
  std::function<Array(const Array&, const std::string&)> library;
  std::function<std::vector<Plain>(const std::vector<Plain>&)> plain;
};

inline Collective collective_of(Rng& rng, const Plain& piece, std::int64_t n, bool sums) {
  const auto rank = static_cast<std::int64_t>(piece.shape.size());
  const auto kind = sums ? 0 : whole_between(rng, 0, rank > 0 ? 8 : 4);
  const auto d = static_cast<int>(rank > 0 ? whole_between(rng, 0, rank - 1) : 0);
  const auto dim = static_cast<std::size_t>(d);
  const int shift = static_cast<int>(whole_between(rng, 1, n)),
            gap = static_cast<int>(whole_between(rng, 0, 2 * n));
  switch (kind) {
    case 0:
    case 5: return {"psum", [](const Array& x, const std::string& i) { return psum(x, i); }, plain::psum};
    case 1:
      return {"pmax", [](const Array& x, const std::string& i) { return pmax(x, i); },
              [](const std::vector<Plain>& x) { return plain::pextremum("max", x); }};
    case 2:
      return {"pbroadcast", [](const Array& x, const std::string& i) { return pbroadcast(x, i, 1); },
              [](const std::vector<Plain>& x) { return plain::all_of(x[1], x.size()); }};
    case 3:
    case 4: {
      Permutation pairs;
      std::vector<int> source(static_cast<std::size_t>(n), -1);
      for (int k = 0; k < n; k++)
        if (k != gap) {
          const int to = (k + shift) % static_cast<int>(n);
          pairs.emplace_back(k, to);
          source[static_cast<std::size_t>(to)] = k;
        }
      return {"ppermute", [pairs](const Array& x, const std::string& i) { return ppermute(x, i, pairs); },
              [source](const std::vector<Plain>& x) { return plain::permuted(x, source); }};
    }
    case 6:
      return {
          "all_gather",
          [d](const Array& x, const std::string& i) { return all_gather(x, i, {.axis = d, .tiled = true}); },
          [dim](const std::vector<Plain>& x) { return plain::all_gather(x, dim); }};
    default: break;
  }
  if (piece.shape[dim] % n != 0)
    return {"flip", [d](const Array& x, const std::string&) { return flip(x, d); },
            [dim](const std::vector<Plain>& x) {
              std::vector<Plain> r;
              for (const Plain& p : x) r.push_back(plain::flip(p, dim));
              return r;
            }};
  if (kind == 7)
    return {
        "psum_scatter",
        [d](const Array& x, const std::string& i) { return psum_scatter(x, i, {.axis = d, .tiled = true}); },
        [dim](const std::vector<Plain>& x) { return plain::psum_scatter(x, dim); }};
  const auto c = static_cast<int>(whole_between(rng, 0, rank - 1));
  return {
      "all_to_all",
      [=](const Array& x, const std::string& i) {
        return all_to_all(x, i, {.split_axis = d, .concat_axis = c, .tiled = true});
      },
      [=](const std::vector<Plain>& x) { return plain::all_to_all(x, dim, static_cast<std::size_t>(c)); }};
}

struct Communication {
  Collective collective;
  std::size_t axis;
};
/// Up to three collectives, the shapes of which fit each other: often a sum over one axis, which meets those over another.
inline std::vector<Communication> communication_of(Rng& rng, plain::Pieces pieces, std::string& text,
                                                   const std::vector<std::string>& names) {
  std::vector<Communication> r;
  const auto last_axis = static_cast<std::int64_t>(names.size()) - 1;
  const bool sums = last_axis > 0 && whole_between(rng, 0, 1) == 0;
  for (std::int64_t k = whole_between(rng, 1, 3), n = 0; n < k; n++) {
    const auto axis = static_cast<std::size_t>(sums && n < 2 ? n : whole_between(rng, 0, last_axis));
    Collective c = collective_of(rng, pieces.parts[0], pieces.grid[axis], sums && n == 0);
    pieces = plain::by_groups(pieces, axis, c.plain);
    text += " " + c.text + "(" + names[axis] + ")";
    r.push_back({std::move(c), axis});
    if (pieces.parts[0].data.size() > 200) break;
  }
  return r;
}
inline plain::Pieces after(plain::Pieces x, const std::vector<Communication>& list) {
  for (const Communication& c : list) x = plain::by_groups(x, c.axis, c.collective.plain);
  return x;
}
inline Array body_of(Array x, const std::vector<Communication>& list, const std::vector<std::string>& names) {
  for (const Communication& c : list) x = c.collective.library(x, names[c.axis]);
  return x;
}

inline bool Generator::collective_in_vmap(int v) {
  if (rank(v) == 0 || shape(v)[0] < 2 || shape(v)[0] > 8 || dtype(v) == DType::bool_) return false;
  const auto pieces_of = [](const Plain& x) {
    plain::Pieces p{{x.shape[0]}, {}};
    for (std::int64_t k = 0; k < x.shape[0]; k++) p.parts.push_back(plain::row(x, 0, k));
    return p;
  };
  const std::vector<std::string> names = {"i"};
  const bool devices = shape(v)[0] == mesh_->size() && p_.mesh && chance(2);
  std::string text = devices ? "pmap" : "vmap";
  const auto list = communication_of(rng_, pieces_of(value(v)), text, names);
  const std::vector<Device> on = mesh_->devices();
  const auto plain_body = [=](const Plain& x) { return plain::stack(after(pieces_of(x), list).parts); };
  return add({text,
              [=](const Array& x) {
                const auto f = [&](const Array& row) { return body_of(row, list, names); };
                if (devices) return pmap(f, {.axis_name = "i", .devices = on})(x);
                return vmap(f, {.axis_name = "i"})(x);
              },
              plain_body},
             v) >= 0;
}

// Over one or two axes of the mesh, of a new operand that they divide; a third one may still have to be summed over.
inline bool Generator::collectives_in_shard_map() {
  std::vector<std::string> names = axes_;
  std::shuffle(names.begin(), names.end(), rng_);
  const std::size_t manual = names.size() > 1 && !chance(3) ? 2 : 1;
  Wanted w;
  w.dtype = random_dtype(kNumbers);
  if (names.size() > manual && chance(2)) w.summed = {names.back()};
  names.resize(manual);
  Shape grid;
  for (const std::string& name : names) {
    grid.push_back(mesh_->axis_size(name));
    w.shape.push_back(grid.back() * (chance(2) ? 1 : grid.back() < 4 ? grid.back() : 2));
    w.cuts.push_back({name});
  }
  if (chance(2)) w.shape.push_back(any_of(sizes_)), w.cuts.push_back({});
  if (w.shape.size() == 1) w.shape.push_back(2), w.cuts.push_back({});
  if (num_elements(w.shape) > 300) return false;
  last_ = w;
  const int v = make(w);
  const auto pieces_of = [grid](const Plain& x) {
    plain::Pieces p{grid, {}};
    each_index(grid, [&](const Shape& at) {
      Plain piece = x;
      for (std::size_t d = 0; d < grid.size(); d++) piece = plain::part(piece, d, at[d], grid[d]);
      p.parts.push_back(std::move(piece));
    });
    return p;
  };
  std::string text = "shard_map";
  const auto list = communication_of(rng_, pieces_of(value(v)), text, names);
  std::vector<SpecEntry> in_spec;
  for (const std::string& name : names) in_spec.push_back(SpecEntry(name));
  const Mesh mesh = *mesh_;
  const PartitionSpec in(std::move(in_spec)), out{SpecEntry(AxisNames{names})};
  return add({text,
              [=](const Array& x) {
                return shard_map(
                    [&](const Array& piece) { return expand_dims(body_of(piece, list, names), 0); },
                    {mesh, in, out, names})(x);
              },
              [=](const Plain& x) { return plain::stack(after(pieces_of(x), list).parts); }},
             v) >= 0;
}

}  // namespace shardarray::testing
