// One row per way to call an op that may let partial sums pass, with one part on each device of some mesh axes. Whatever the op does with
// them, the result is that of the sum.
#pragma once
#include "erased.h"
#include "op_data.h"
#include "ops/complex.h"
#include "program_of.h"

namespace partial_sums {

namespace sa = shardarray;
using namespace program_test;
using sa::DType;
using sa::Op;
using Arrays = std::vector<Array>;

// s, t: [a, b], perhaps partial sums; w: [a, b]; index: the rows of a, permuted.
struct Given {
  Array s, t, w, index;
  sa::Sharding placed;  // of [a, b], for constraints
};
enum class Passes { never, integers, floats, always };
struct Row {
  const Op* op;
  Passes passes;  // parts, in the small program of "parts pass where ..."; 16-bit floats never do
  shardarray::testing::Erased<Array(const Given&)> f;
  bool exact = true;  // for floats too
};

inline Array recorded(const Op& op, std::initializer_list<Array> in, sa::Attrs a) {
  return sa::record(op, in, std::move(a));
}
inline Array padded(const Array& x, const Shape& lo, const Shape& hi) {
  sa::Attrs a;
  a.lo = lo;
  a.hi = hi;
  return recorded(sa::op_pad, {x}, std::move(a));
}
inline Array joined(std::initializer_list<Array> parts, std::int64_t dim) {
  sa::Attrs a;
  a.dims = {dim};
  return recorded(sa::op_concatenate, parts, std::move(a));
}
// Row k of dimension dim is row k + 2, with zeros after the last one.
inline Array rows_moved(const Array& x, std::size_t dim) {
  sa::Attrs a;
  const std::int64_t n = x.shape()[dim];
  a.dims = {static_cast<std::int64_t>(dim) - 2};
  for (std::int64_t k = 0; k < n; k++) a.lo.push_back(k + 2 < n ? k + 2 : -1);
  return recorded(sa::op_permute_rows, {x}, std::move(a));
}

using G = const Given&;
constexpr auto always = Passes::always, integers = Passes::integers, floats = Passes::floats,
               never = Passes::never;

inline std::vector<Row> elementwise_rows() {
  using namespace sa::primitive;
  return {
      {&sa::op_add, always, [](G g) { return add(g.s, g.t); }},
      {&sa::op_add, always, [](G g) { return add(g.s, g.s); }},
      {&sa::op_add, never, [](G g) { return add(g.s, g.w); }},
      {&sa::op_sub, always, [](G g) { return sub(g.s, g.t); }},
      {&sa::op_sub, never, [](G g) { return sub(g.w, g.s); }},
      {&sa::op_neg, always, [](G g) { return neg(g.s); }},
      {&sa::op_mul, integers, [](G g) { return mul(g.s, g.w); }},
      {&sa::op_mul, integers, [](G g) { return mul(g.w, g.s); }},
      {&sa::op_mul, never, [](G g) { return mul(g.s, g.t); }},
      {&sa::op_div, never, [](G g) { return div(g.s, g.w); }},
      {&sa::op_div, never, [](G g) { return div(g.w, g.s); }},
      {&sa::op_mul, always, [](G g) { return mul(g.s, like(g.s, 0.5)); }},
      {&sa::op_mul, always, [](G g) { return mul(like(g.s, -0.25), g.s); }},
      {&sa::op_mul, integers, [](G g) { return mul(g.s, like(g.s, 2)); }},
      {&sa::op_mul, integers, [](G g) { return mul(g.s, like(g.s, 0.1)); }},
      {&sa::op_div, floats, [](G g) { return div(g.s, like(g.s, 4)); }},
      {&sa::op_div, never, [](G g) { return div(g.s, like(g.s, 0.5)); }},
      {&sa::op_div, never, [](G g) { return div(g.s, like(g.s, 10)); }},
      {&sa::op_div, never, [](G g) { return div(like(g.s, 4), g.s); }},
      {&sa::op_where, always, [](G g) { return select(sa::greater(g.w, 0), g.s, g.t); }},
      {&sa::op_where, never, [](G g) { return select(sa::greater(g.w, 0), g.s, g.w); }},
      {&sa::op_cast, always, [](G g) { return cast(g.s, g.s.dtype(), true); }},
      {&sa::op_like, always, [](G g) { return placed_like(g.s, g.w); }},
      {&sa::op_complex, floats, [](G g) { return sa::imag(sa::roll(sa::complex(g.t, g.s), 1, 0)); }},
      {&sa::op_real, floats, [](G g) { return sa::real(sa::roll(sa::complex(g.s, g.t), 1, 0)); }},
      {&sa::op_imag, floats, [](G g) { return sa::imag(sa::roll(sa::complex(g.t, g.s), 1, 0)); }},
      {&sa::op_complex, never, [](G g) { return sa::real(sa::roll(sa::complex(g.s, g.w), 1, 0)); }},
  };
}
inline Array written_over(const Array& x, const Array& rows, const Given& g) {
  const Array start = sa::primitive::element(g.index, 0, {});
  return sa::primitive::update(x, rows, {0}, std::span(&start, 1));
}
inline std::vector<Row> moving_rows() {
  using namespace sa::primitive;
  return {
      {&sa::op_broadcast, always,
       [](G g) {
         return broadcast(g.s, {1, g.s.shape()[0], g.s.shape()[1]}, {-2, -1});
       }},
      {&sa::op_reshape, always, [](G g) { return reshape(g.s, {g.s.shape()[0] * g.s.shape()[1]}); }},
      {&sa::op_reshape, always,
       [](G g) {
         return reshape(g.s, {g.s.shape()[0], 1, g.s.shape()[1]});
       }},
      {&sa::op_transpose, always,
       [](G g) {
         return transpose(g.s, {1, 0});
       }},
      {&sa::op_slice, always,
       [](G g) {
         return slice(g.s, {1, 0}, g.s.shape());
       }},
      {&sa::op_slice, always,
       [](G g) {
         return slice(g.s, {0, 1}, {g.s.shape()[0] - 1, g.s.shape()[1]});
       }},
      {&sa::op_slice, always,
       [](G g) {
         return slice(g.s, {1, 0}, g.s.shape(), {1, 2});
       }},
      {&sa::op_slice, always,
       [](G g) {
         return slice(g.s, {g.s.shape()[0] - 1, 0}, g.s.shape());
       }},
      {&sa::op_reverse, always, [](G g) { return reverse(g.s, {-2}); }},
      {&sa::op_reverse, always,
       [](G g) {
         return reverse(g.s, {-2, -1});
       }},
      {&sa::op_pad, always,
       [](G g) {
         return padded(g.s, {0, 0}, {0, 0});
       }},
      {&sa::op_pad, never,
       [](G g) {
         return padded(g.s, {1, 0}, {0, 2});
       }},
      {&sa::op_pad, always,
       [](G g) {
         return padded(reduce(sa::Reducer::sum, g.s, {0, 1}), {}, {});
       },
       false},
      {&sa::op_concatenate, always, [](G g) { return joined({g.s}, -1); }},
      {&sa::op_concatenate, never,
       [](G g) {
         return joined({g.s, g.t}, -2);
       }},
      {&sa::op_roll, always, [](G g) { return sa::roll(g.s, 2, 0); }},
      {&sa::op_roll, always, [](G g) { return sa::roll(g.s, -1, 1); }},
      {&sa::op_permute_rows, always, [](G g) { return rows_moved(g.s, 0); }},
      {&sa::op_permute_rows, always, [](G g) { return rows_moved(g.s, 1); }},
      {&sa::op_take, always, [](G g) { return take(g.s, g.index, 0, 1); }},
      {&sa::op_update, never,  // two readers: it is combined first
       [](G g) { return written_over(g.s, slice_dim(g.s, 0, 0, 2), g); }},
      {&sa::op_update, always,
       [](G g) {
         return written_over(g.s, sa::zeros_of({{2, g.s.shape()[1]}, g.s.dtype()}), g);
       }},
      {&sa::op_update, always, [](G g) { return written_over(sa::zeros_of(sa::type_of(g.s)), g.s, g); }},
      {&sa::op_update, never, [](G g) { return written_over(g.s, slice_dim(g.t, 0, 0, 2), g); }},
      {&sa::op_update_rows, never,  // two readers
       [](G g) { return update_rows(g.s, g.index, take(g.s, g.index, 0, 1)); }},
      {&sa::op_update_rows, always,
       [](G g) {
         return update_rows(g.s, g.index, sa::zeros_of({{g.index.shape()[0], g.s.shape()[1]}, g.s.dtype()}));
       }},
      {&sa::op_update_rows, always,
       [](G g) {
         return update_rows(sa::zeros_of(sa::type_of(g.s)), g.index, take(g.s, g.index, 0, 1),
                            {sa::Reducer::sum});
       }},
      {&sa::op_update_rows, always, [](G g) { return update_rows(g.s, g.index, take(g.t, g.index, 0, 1)); }},
      {&sa::op_constraint, never, [](G g) { return sa::filter_shard(g.s, g.placed); }},
  };
}
inline std::vector<Row> summing_rows() {
  using namespace sa::primitive;
  return {
      {&sa::op_reduce, always, [](G g) { return reduce(sa::Reducer::sum, g.s, {1}); }},
      {&sa::op_reduce, always, [](G g) { return reduce(sa::Reducer::sum, g.s, {0}); }, false},
      {&sa::op_reduce, never, [](G g) { return reduce(sa::Reducer::max, g.s, {0}); }},
      {&sa::op_scan, always, [](G g) { return sa::cumsum(g.s, 1); }, false},
      {&sa::op_scan, always, [](G g) { return sa::cumsum(g.s, {.axis = 0, .reverse = true}); }, false},
      {&sa::op_scan, never, [](G g) { return sa::cummax(g.s, 0); }},
      {&sa::op_dot, integers, [](G g) { return dot("ab,ab->ab", g.s, g.w); }},
      {&sa::op_dot, integers, [](G g) { return dot("ab,ab->ab", g.w, g.s); }},
      {&sa::op_dot, integers, [](G g) { return dot("ab,ab->a", g.s, g.w); }, false},
      {&sa::op_dot, integers, [](G g) { return dot("ab,ab->b", g.w, g.s); }, false},
      {&sa::op_dot, never, [](G g) { return dot("ab,ab->a", g.s, g.t); }, false},
      {&sa::op_conv, integers, [](G g) { return conv("aA,aA->aA", g.s, slice_dim(g.w, 1, 0, 2), {2}, {1}); }},
      {&sa::op_conv, integers, [](G g) { return conv("cA,cA->A", g.w, slice_dim(g.s, 1, 0, 3), {1}, {2}); },
       false},
      {&sa::op_conv, never, [](G g) { return conv("aA,aA->A", g.s, slice_dim(g.t, 1, 0, 2), {1}, {1}); },
       false},
      {&sa::op_scatter, always, [](G g) { return scatter(g.index, g.s, 0, 1, g.s.shape()[0]); }},
      {&sa::op_scatter, always, [](G g) { return scatter(g.index % 2, g.s, 0, 1, 2); }, false},
  };
}
inline std::vector<Row> rows() {
  std::vector<Row> all = elementwise_rows();
  for (const auto& list : {moving_rows(), summing_rows()}) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// How many values by `op` in the program of f(x) are partial sums.
template <class F, class... A> int values_in_parts(const Op& op, const F& f, const A&... x) {
  const Prepared p = prepare(f, x...);
  int n = 0;
  for (const sa::PlacedValue& v : p.loaded->compiled.values)
    n += v.op == op.name && !v.layout->unreduced().empty();
  return n;
}

// Whether partial sums pass through `op`, which may be a sum itself.
template <class F, class... A> bool parts_pass(const Op& op, const F& f, const A&... x) {
  const Prepared p = prepare(f, x...);
  bool combined = false;
  for (const sa::Transfer& t : p.program().transfers)
    combined |= t.reason.find("must be combined before") != std::string::npos;
  return values_in_parts(op, f, x...) > 0 && values_in_parts(sa::op_reduce, f, x...) > 0 && !combined;
}

// f of the sums of x[0] and x[1] over their first dimension, of x[2] and of x[3].
inline Array of_sums(const Row& row, const Arrays& x, const sa::Sharding& placed) {
  return row.f({sa::primitive::reduce(sa::Reducer::sum, x[0], {0}),
                sa::primitive::reduce(sa::Reducer::sum, x[1], {0}), x[2], x[3], placed});
}

inline Array next_rows(std::int64_t n) {
  std::vector<std::int32_t> index;
  for (std::int64_t k = 0; k < n; k++) index.push_back(static_cast<std::int32_t>((k + 1) % n));
  return sa::array(index);
}

}  // namespace partial_sums
