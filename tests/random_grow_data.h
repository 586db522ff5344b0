// The lines of random programs: sums, products, positions; what a program aims at, and its random steps.
#pragma once
#include "random_grow.h"

namespace shardarray::testing {

inline bool Generator::grow_position(const std::string& op, int operand, int v, std::size_t dim) {
  if (op == "reduce") return reduce_some(v, dim);
  if (op == "prefix_scan") return scan_some(v, dim);
  if (op == "dot") return dot_some(v, operand, dim);
  if (op == "conv") return conv_some(v, operand, dim);
  if (op == "take") return take_some(v, operand, dim);
  if (op == "scatter") return scatter_some(v, operand);
  if (op == "update_rows") return update_rows_some(v, operand);
  if (op == "update") return update_some(v, operand, dim);
  if (op == "sort") return sort_some(v, operand, dim);
  return false;
}
inline bool Generator::grow_other(const std::string& op, int operand, int v, std::size_t) {
  if (op == "cast") return cast_some(v);
  if (op == "bitcast") return bitcast_some(v);
  if (op == "where") return where_some(v, operand);
  if (op == "optimization_barrier") return order_some(v, operand);
  if (op == "threefry" || op == "philox") return random_words_some(op, v, operand);
  return op == "constraint" && constrain(v);
}

inline bool Generator::reduce_some(int v, std::size_t dim) {
  const auto d = static_cast<std::int64_t>(dim);
  const DType t = dtype(v);
  const std::string text = " along " + std::to_string(d);
  const auto kind = below(t == DType::bool_ ? 3 : 5);
  if (t == DType::bool_ && kind > 0)
    return add((kind == 1 ? "any" : "all") + text, {v},
               [=](ArraysIn x) { return kind == 1 ? shardarray::any(x[0], d) : all(x[0], d); },
               [=](PlainsIn x) { return plain::any_or_all(kind == 1, x[0], {d}); }) >= 0;
  if (kind <= 1) {
    const bool small = !is_floating(t) && itemsize(t) < 4;
    const DType to = !small ? t : is_unsigned_integer(t) ? DType::uint32 : DType::int32;
    return add(
               "sum" + text, {v}, [d](ArraysIn x) { return sum(x[0], d); },
               [d, to](PlainsIn x) { return plain::sum(plain::cast(x[0], to), {d}, to); }) >= 0;
  }
  if (kind == 2) {
    if (!lies_in(v, {-4, 4})) return false;
    return add(
               "prod" + text, {v}, [d, t](ArraysIn x) { return prod(x[0], {.axis = d, .dtype = t}); },
               [d](PlainsIn x) { return plain::prod(x[0], {d}); }) >= 0;
  }
  if (shape(v)[dim] == 0) return false;  // nothing has no extremum
  const bool most = kind == 3;
  return add((most ? "max" : "min") + text, {v},
             [=](ArraysIn x) { return most ? max(x[0], d) : min(x[0], d); },
             [=](PlainsIn x) { return plain::extremum(most ? "max" : "min", x[0], {d}); }) >= 0;
}

inline bool Generator::scan_some(int v, std::size_t dim) {
  if (dtype(v) == DType::bool_) return false;
  const auto d = static_cast<std::int64_t>(dim);
  const bool reverse = chance(2);
  const auto kind = below(4);
  if (kind == 3 && !lies_in(v, {-4, 4})) return false;
  const CumulativeOptions o{.axis = d, .reverse = reverse};
  const std::array names{"cumsum", "cummax", "cummin", "cumprod"};
  return add(
             names[static_cast<std::size_t>(kind)] + std::string(reverse ? " back" : "") + " along " +
                 std::to_string(d),
             {v},
             [=](ArraysIn x) {
               return kind == 0   ? cumsum(x[0], o)
                      : kind == 1 ? cummax(x[0], o)
                      : kind == 2 ? cummin(x[0], o)
                                  : cumprod(x[0], o);
             },
             [=](PlainsIn x) {
               return plain::running(x[0], dim, reverse, [=](const Plain& part) {
                 return kind == 0   ? plain::sum(part, {d}, part.dtype)
                        : kind == 3 ? plain::prod(part, {d})
                                    : plain::extremum(kind == 1 ? "max" : "min", part, {d});
               });
             }) >= 0;
}

inline bool Generator::dot_some(int v, int operand, std::size_t dim) {
  if (!(kind_of(dtype(v)) & kNumbers)) return false;
  const std::string mine = std::string("abcdef").substr(0, rank(v));
  if (mine.size() < rank(v)) return false;
  std::string other(1, mine[dim]), out;
  Shape s{shape(v)[dim]};
  if (rank(v) > 1 && chance(2)) {  // a batch
    const std::size_t b = dim == 0 ? 1 : 0;
    other.insert(0, 1, mine[b]);
    s.insert(0, shape(v)[b]);
  }
  const std::size_t place = static_cast<std::size_t>(below(static_cast<std::int64_t>(other.size()) + 1));
  other.insert(place, 1, 'z');
  s.insert(place, any_of(sizes_));
  for (char c : mine + "z")
    if (c != mine[dim]) out += c;
  if (chance(2)) std::shuffle(out.begin(), out.end(), rng_);
  const int o = partner(v, s, {});
  const std::string letters = (operand == 0 ? mine + "," + other : other + "," + mine) + "->" + out;
  return add(
             letters, operand == 0 ? std::vector{v, o} : std::vector{o, v},
             [letters](ArraysIn x) { return einsum(letters, x[0], x[1]); },
             [letters](PlainsIn x) { return plain::dot(letters, x[0], x[1]); }) >= 0;
}

// A window along one dimension; perhaps a letter that both have, in the result or not, and a new one.
inline bool Generator::conv_some(int v, int operand, std::size_t dim) {
  if (!(kind_of(dtype(v)) & kNumbers)) return false;
  std::string mine = std::string("abcdef").substr(0, rank(v)), other = "A";
  if (mine.size() < rank(v)) return false;
  mine[dim] = 'A';
  const std::int64_t n = shape(v)[dim], stride = 1 + below(2), dilation = 1 + below(2);
  const auto reach = [dilation](std::int64_t window) {
    return window == 0 ? 0 : (window - 1) * dilation + 1;
  };
  Shape s{operand == 0 ? 1 + below(3) : reach(n) + below(3)};
  std::string out = mine + "z";
  if (rank(v) > 1 && chance(2)) {
    const std::size_t shared = dim == 0 ? 1 : 0;
    other.insert(0, 1, mine[shared]);
    s.insert(0, shape(v)[shared]);
    if (chance(2)) std::erase(out, mine[shared]);
  }
  const std::size_t place = static_cast<std::size_t>(below(static_cast<std::int64_t>(other.size()) + 1));
  other.insert(place, 1, 'z');
  s.insert(place, any_of(sizes_));
  if (chance(2)) std::shuffle(out.begin(), out.end(), rng_);
  const int o = partner(v, s, {});
  const std::string array = operand == 0 ? mine : other, kernel = operand == 0 ? other : mine;
  const auto spelled = [=](const char* in_array, const char* in_kernel, const char* in_result) {
    const auto with = [](std::string term, const char* letters) {
      return term.replace(term.find('A'), 1, letters);
    };
    return with(array, in_array) + "," + with(kernel, in_kernel) + "->" + with(out, in_result);
  };
  const auto windows = [=](const Plain& x, const Plain& k) {
    const std::size_t axis = array.find('A');
    const std::int64_t window = k.shape[kernel.find('A')], over = reach(window),
                       count = x.shape[axis] < over ? 0 : (x.shape[axis] - over) / stride + 1;
    std::vector<double> at;
    for (std::int64_t i = 0; i < count; i++)
      for (std::int64_t j = 0; j < window; j++) at.push_back(static_cast<double>(i * stride + j * dilation));
    return plain::take(x, plain_of(at, {count, window}, DType::int32), axis, false);
  };
  return add(
             "conv " + spelled("A", "A", "A") + " by " + std::to_string(stride) + ", " +
                 std::to_string(dilation),
             operand == 0 ? std::vector{v, o} : std::vector{o, v},
             [=](ArraysIn x) {
               return primitive::conv(spelled("A", "A", "A"), x[0], x[1], {stride}, {dilation});
             },
             [=](PlainsIn x) { return plain::dot(spelled("xy", "y", "x"), windows(x[0], x[1]), x[1]); }) >= 0;
}

inline bool Generator::take_some(int v, int operand, std::size_t dim) {
  std::int64_t n = shape(v)[dim];
  bool clips = chance(2);
  int table = v, index = v;
  if (operand == 0) {
    std::vector<double> at(static_cast<std::size_t>(std::max<std::int64_t>(1, any_of(sizes_))));
    const bool outside = !clips && dtype(v) != DType::bool_ && chance(3);
    for (double& k : at) k = static_cast<double>(whole_between(rng_, -n, n - 1 + outside));
    const Shape s{static_cast<std::int64_t>(at.size())};
    index = leaf(plain_of(at, s, chance(3) ? DType::int64 : DType::int32), sharding_of(random_cuts(1)));
  } else {
    if (!is_integer(dtype(v))) return false;
    for (const Element& e : value(v).data)
      if (std::abs(e.value) > 100) return false;
    n = 3 + below(4);
    clips = true;
    dim = 0;
    table = leaf({n, any_of(sizes_)}, random_dtype(kNumbers));
    const bool inside = std::all_of(value(v).data.begin(), value(v).data.end(),
                                    [n](const Element& e) { return e.value >= 0 && e.value < n; });
    if (inside && chance(2)) {  // the op itself, without what take() does to indices before
      const auto ranks = static_cast<std::int64_t>(rank(v));
      return add(
                 "rows", {table, v}, [ranks](ArraysIn x) { return primitive::take(x[0], x[1], 0, ranks); },
                 [](PlainsIn x) { return plain::take(x[0], x[1], 0, false); }) >= 0;
    }
  }
  const auto axis = static_cast<std::int64_t>(dim);
  const TakeMode mode = clips ? TakeMode::clip : TakeMode::fill;
  return add(
             "take along " + std::to_string(axis) + (clips ? ", clipped" : ""), {table, index},
             [axis, mode](ArraysIn x) { return take(x[0], x[1], axis, mode); },
             [dim, clips](PlainsIn x) { return plain::take(x[0], x[1], dim, clips); }) >= 0;
}
inline bool Generator::scatter_some(int v, int operand) {
  const std::int64_t rows = 2 + below(5), n = shape(v)[0];
  int index = v, updates = v;
  if (operand == 0) {
    const bool rows_type = dtype(v) == DType::int32 || dtype(v) == DType::uint32 || dtype(v) == DType::int64;
    if (rank(v) != 1 || !rows_type) return false;
    for (const Element& e : value(v).data)
      if (std::abs(e.value) > 100) return false;
    updates = leaf({n, any_of(sizes_)}, random_dtype(kNumbers));
  } else {
    if (dtype(v) == DType::bool_) return false;
    std::vector<double> at(static_cast<std::size_t>(n));
    for (double& k : at) k = static_cast<double>(whole_between(rng_, chance(4) ? -1 : 0, rows - 1));
    index = leaf(plain_of(at, {n}, DType::int32), sharding_of(random_cuts(1)));
  }
  return add(
             "scatter to " + std::to_string(rows), {index, updates},
             [rows](ArraysIn x) { return primitive::scatter(x[0], x[1], 0, 1, rows); },
             [rows](PlainsIn x) { return plain::scatter(x[0], x[1], rows); }) >= 0;
}
inline bool Generator::update_rows_some(int v, int operand) {
  int x = v, index = v, updates = v;
  if (operand == 1) {
    const bool rows_type = dtype(v) == DType::int32 || dtype(v) == DType::uint32 || dtype(v) == DType::int64;
    if (rank(v) != 1 || !rows_type) return false;
    for (const Element& e : value(v).data)
      if (std::abs(e.value) > 100) return false;
    x = leaf({2 + below(5), any_of(sizes_)}, random_dtype(kAll));
  }
  Shape s = shape(operand == 1 ? x : v);
  s[0] = operand == 1 ? shape(v)[0] : 1 + below(6);
  if (operand == 0) updates = partner(v, s, {});
  if (operand == 1) updates = partner(x, s, {});
  if (operand == 2) x = partner(v, s, {});
  if (operand != 1) {
    std::vector<double> at(static_cast<std::size_t>(shape(updates)[0]));
    for (double& k : at) k = static_cast<double>(whole_between(rng_, chance(4) ? -1 : 0, shape(x)[0] - 1));
    const Shape count{shape(updates)[0]};
    index = leaf(plain_of(at, count, DType::int32), sharding_of(random_cuts(1)));
  }
  const bool adds = dtype(x) != DType::bool_ && itemsize(dtype(x)) >= 4 && chance(2);
  return add(
             adds ? "add to rows" : "set rows", {x, index, updates},
             [adds](ArraysIn y) {
               return primitive::update_rows(y[0], y[1], y[2], {adds ? Reducer::sum : Reducer::none});
             },
             [adds](PlainsIn y) { return plain::update_rows(y[0], y[1], y[2], adds); }) >= 0;
}
inline bool Generator::update_some(int v, int operand, std::size_t dim) {
  Shape s = shape(v);
  const std::int64_t n = s[dim];
  s[dim] = operand == 0 ? 1 + below(std::max<std::int64_t>(1, n)) : n + below(4);
  const std::int64_t larger = std::max(n, s[dim]), d = static_cast<std::int64_t>(dim);
  const int o = partner(v, s, {}),
            start = leaf(plain_of({static_cast<double>(whole_between(rng_, -1, larger))}, {}, DType::int32),
                         sharding_of(random_cuts(0)));
  return add(
             "update along " + std::to_string(d),
             operand == 0 ? std::vector{v, o, start} : std::vector{o, v, start},
             [d](ArraysIn x) { return primitive::update(x[0], x[1], {d}, std::span<const Array>(&x[2], 1)); },
             [dim](PlainsIn x) { return plain::update(x[0], x[1], dim, x[2].data[0]); }) >= 0;
}
inline bool Generator::sort_some(int v, int operand, std::size_t dim) {
  const auto d = static_cast<std::int64_t>(dim);
  const std::string along = " along " + std::to_string(d);
  if (operand == 1) {
    const int keys = leaf(shape(v), DType::float32);
    return add(
               "sort by" + along, {keys, v},
               [dim](ArraysIn x) {
                 const Array both[] = {x[0], x[1]};
                 return primitive::sort(both, dim)[1];
               },
               [dim](PlainsIn x) {
                 const Plain order = plain::sorted(x[0], dim, true);
                 return plain::moved(x[1], x[1].shape, [&](const Shape& i, Shape& at) {
                   at = i;
                   at[dim] = static_cast<std::int64_t>(order.at(i).value);
                   return true;
                 });
               }) >= 0;
  }
  if (dtype(v) == DType::bool_) return false;
  const bool positions = chance(2);
  return add((positions ? "argsort" : "sort") + along, {v},
             [=](ArraysIn x) { return positions ? argsort(x[0], d) : sort(x[0], d); },
             [=](PlainsIn x) { return plain::sorted(x[0], dim, positions); }) >= 0;
}

// A gather that is read directly and through a reshape.
inline bool Generator::read_twice(int v, std::size_t dim) {
  if (rank(v) == 0 || shape(v)[dim] == 0 || !take_some(v, 0, dim)) return false;
  const int t = static_cast<int>(values_.size()) - 1;
  if (!reshape_some(t)) return false;
  const int again = static_cast<int>(values_.size()) - 1;
  reduce_some(again, 0);
  return cast_some(t);
}

// ---------------------------------------------------------------- aims
// The operand for an aim: dtype and values that the op takes, and how it lies.
inline Generator::Wanted Generator::wanted(const Aim& a, std::size_t& dim) {
  const Cell& c = a.cell;
  const std::string& op = c.row.op;
  Wanted w;
  std::vector<const Scalar*> fits;
  for (const Scalar& s : scalars())
    if (s.op == op && static_cast<std::size_t>(c.row.operand) < s.operands.size() && (s.kinds & a.kind))
      fits.push_back(&s);
  chosen_ = fits.empty() ? nullptr : any_of(fits);
  if (chosen_) w.range = chosen_->operands[static_cast<std::size_t>(c.row.operand)];
  w.dtype = random_dtype(a.kind);
  const bool four_bytes = op == "threefry" || op == "philox" || op == "bitcast";
  while (four_bytes && itemsize(w.dtype) != 4) w.dtype = random_dtype(a.kind);
  if (a.kind == kFloat && !(c.row.kinds & kHalf) && c.pending == 0 && chance(3))
    w.dtype = chance(2) ? DType::float16 : DType::bfloat16;        // widened before it meets the op
  if (op == "cast" && a.kind == kFloat) w.dtype = DType::float64;  // most types are narrower
  const bool is_row_number =
      (op == "scatter" && c.row.operand == 0) || (op == "update_rows" && c.row.operand == 1);
  if ((op == "take" && c.row.operand == 1) || is_row_number || (op == "pow" && is_integer(w.dtype))) {
    w.range = {0, 1};
    if (is_unsigned_integer(w.dtype)) w.dtype = DType::uint32;
    else if (is_row_number) w.dtype = chance(2) ? DType::int32 : DType::int64;
  }
  const std::size_t rank = is_row_number       ? 1
                           : op == "transpose" ? 2 + static_cast<std::size_t>(below(2))
                                               : 1 + static_cast<std::size_t>(below(3));
  dim = op == "permute_rows" || op == "scatter" || op == "update_rows"
            ? 0
            : static_cast<std::size_t>(below(static_cast<std::int64_t>(rank)));
  for (std::size_t k = 0; k < rank; k++) w.shape.push_back(any_of(sizes_));
  if (w.shape[dim] < 2) w.shape[dim] = 4;
  std::vector<std::string> names = axes_;
  std::shuffle(names.begin(), names.end(), rng_);
  w.cuts.resize(rank);
  w.summed.assign(names.begin(), names.begin() + c.pending);
  std::size_t used = static_cast<std::size_t>(c.pending);
  if (c.cut) w.cuts[dim].push_back(names[used++]);
  for (; used < names.size(); used++) {
    const auto d = static_cast<std::size_t>(below(static_cast<std::int64_t>(rank)));
    if (chance(c.cut ? 3 : 8) && (c.cut || d != dim)) w.cuts[d].push_back(names[used]);
  }
  return w;
}

inline void Generator::aim(const Aim& a) {
  std::size_t dim = 0;
  const Wanted w = last_ = wanted(a, dim);
  const bool grown = grow(a.cell.row, make(w), dim);
  const int first = static_cast<int>(values_.size()) - 1;
  chosen_ = nullptr;
  const std::string& op = a.cell.row.op;
  if ((op == "mul" || op == "div") && a.cell.pending > 0) scale_far(make(w));
  for (int k = 0; grown && k < 2 && chance(2); k++) {  // on with what may still be a sum in parts
    const int last = k == 0 ? first : static_cast<int>(values_.size()) - 1;
    if (rank(last) > 0) grow(any_of(rows()), last, some_dim(last));
  }
}

inline void Generator::random_step() {
  const auto n = static_cast<std::int64_t>(values_.size());
  const int v = static_cast<int>(chance(2) ? n - 1 : below(n));
  const std::size_t dim = rank(v) > 0 ? some_dim(v) : 0;
  switch (below(12)) {
    case 0: chance(2) ? vmap_some(v, dim) : chance(3) ? repeat_some(v, dim) : iterate_some(v, dim); break;
    case 1: gradient_some(v); break;
    case 2: collectives_in_shard_map(); break;
    case 3: chance(2) ? collective_in_vmap(v) : chance(2) ? call_some(v) : choose_some(v); break;
    case 4: chance(2) ? gradient_of_gather(v) : read_twice(v, dim); break;
    default: {
      Row row = any_of(rows());
      grow(row, v, dim);
    }
  }
}

inline RandomProgram Generator::run() {
  for (const Aim& a : aims_of_seed(p_.seed)) aim(a);
  if (chance(2)) collectives_in_shard_map();
  for (int k = 0; k < 4; k++) random_step();
  std::vector<bool> used(p_.lines.size(), false);
  for (const Line& l : p_.lines)
    for (int v : l.in) used[static_cast<std::size_t>(v)] = true;
  for (std::size_t v = 0; v < p_.lines.size(); v++)
    if (p_.lines[v].apply && (!used[v] || chance(12))) p_.outputs.push_back(static_cast<int>(v));
  return std::move(p_);
}

}  // namespace shardarray::testing
