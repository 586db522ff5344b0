// Partial sums as operands of ops, with numbers that cancel, wrap, overflow and underflow. They pass through an op only if it is linear
// in the arithmetic of its dtype, see Linear in graph/op.h; exact sums then show no difference at all.
#include <cmath>

#include "everywhere.h"
#include "partial_sums.h"
#include "runtime/half_floats.h"
#include "shardarray/reproducible.h"

namespace partial_numbers_test {

using namespace partial_sums;

namespace {

// Sums of four parts, exact in every order and in every mixture of two of them, as are the sums of twelve.
template <class T> std::vector<std::array<T, 4>> exact_sums() {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
    const int bits = std::numeric_limits<T>::digits, top = std::numeric_limits<T>::max_exponent;
    const T big = std::ldexp(T(1), bits - 8), huge = std::ldexp(T(1), top - bits),
            tiny = std::numeric_limits<T>::denorm_min();
    const std::array<T, 4> cancels = {big, 1, 1 - big, 1}, negative = {-big, big - 5, 1, 1};
    const auto scaled = [](std::array<T, 4> a, T by) {
      for (T& v : a) v *= by;
      return a;
    };
    return {cancels,
            negative,
            scaled(cancels, huge),
            scaled(negative, huge),
            scaled(cancels, tiny),
            {1, -3, 1, -1},
            {7, 8, 9, 9},
            {0, 0, 0, 0},
            {2, -2, 3, -3},
            {inf, 1, 2, 3},
            {1, 2, -inf, 3},
            {inf, 1, -inf, 2},
            {nan, 1, 2, 3}};
  } else {
    constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    return {{7, 8, 9, 9},         {most, 1, most, 5}, {least, most, 1, 1}, {most, most, most, most},
            {least, least, 1, 0}, {0, 0, 0, 0},       {1, 2, 3, 4},        {most, 1, 0, 0},
            {100, 27, 1, 0},      {5, most, most, 0}};
  }
}
template <class T> std::vector<T> factors() {
  using L = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>)
    return {0,
            -T(0),
            1,
            -1,
            T(0.1),
            3,
            L::infinity(),
            -L::infinity(),
            L::quiet_NaN(),
            L::max(),
            L::max() / 3,
            L::denorm_min(),
            L::min(),
            L::epsilon()};
  else return {0, 1, 2, 3, 10, L::max(), L::min(), L::max() - 1, T(-1), 7};
}

// What exact_sums() has, as arrays: parts [4, a, b] and their sums [a, b], the same all along b; factors along b.
struct Data {
  Array parts, turned, sum, factors;
};
template <class T> Data data_of(DType t) {
  const auto sums = exact_sums<T>();
  const auto along = factors<T>();
  const auto a = std::ssize(sums), b = std::ssize(along);
  std::vector<T> parts, turned, sum, other;
  for (std::size_t k = 0; k < 4; k++)
    for (const auto& s : sums) {
      parts.insert(parts.end(), along.size(), s[k]);
      turned.insert(turned.end(), along.size(), s[(k + 1) % 4]);
    }
  for (const auto& s : sums) {
    if constexpr (std::is_floating_point_v<T>)
      sum.insert(sum.end(), along.size(),
                 static_cast<T>((static_cast<long double>(s[0]) + s[1]) + s[2] + s[3]));
    else
      sum.insert(sum.end(), along.size(),
                 static_cast<T>(std::uint64_t(s[0]) + std::uint64_t(s[1]) + std::uint64_t(s[2]) +
                                std::uint64_t(s[3])));
    other.insert(other.end(), along.begin(), along.end());
  }
  const auto array = [t](const std::vector<T>& v, const Shape& s) { return sa::array(v, s).astype(t); };
  return {array(parts, {4, a, b}), array(turned, {4, a, b}), array(sum, {a, b}), array(other, {a, b})};
}
// The same in 16 bits: a sum is right when it is made in float32 and rounded once.
Data half_data(DType t) {
  const std::vector<float> sums[] = {{256, .5, -255, .5}, {-1, 1, 3, -3}, {7, 8, 9, 9}, {.25, 0, 0, .5}};
  const std::vector<float> along = {0, 1, 3, .125, INFINITY, 2};
  std::vector<float> parts, turned, sum, other;
  for (std::size_t k = 0; k < 4; k++)
    for (const auto& s : sums) {
      parts.insert(parts.end(), along.size(), s[k]);
      turned.insert(turned.end(), along.size(), s[(k + 1) % 4]);
    }
  for (const auto& s : sums) {
    sum.insert(sum.end(), along.size(), s[0] + s[1] + s[2] + s[3]);
    other.insert(other.end(), along.begin(), along.end());
  }
  const auto array = [t](const std::vector<float>& v, const Shape& s) { return sa::array(v, s).astype(t); };
  return {array(parts, {4, 4, 6}), array(turned, {4, 4, 6}), array(sum, {4, 6}), array(other, {4, 6})};
}

// Ops that round every part, or that wrap before or behind a sum.
std::vector<Row> rounding_rows() {
  std::vector<Row> r = {
      {&sa::op_div, never, [](G g) { return g.s / g.w; }},
      {&sa::op_div, never, [](G g) { return sa::floor_divide(g.s, g.w); }},
      {&sa::op_div, never, [](G g) { return sa::floor_divide(g.s, 10); }},
      {&sa::op_rem, never, [](G g) { return sa::remainder(g.s, g.w); }},
      {&sa::op_max, never, [](G g) { return sa::maximum(g.s, g.w); }},
      {&sa::op_lt, never, [](G g) { return sa::less(g.s, g.w); }},
      {&sa::op_abs, never, [](G g) { return sa::abs(g.s); }},
      {&sa::op_sign, never, [](G g) { return sa::sign(g.s); }},
      {&sa::op_mul, never, [](G g) { return sa::square(g.s); }},
  };
  for (const DType t : {sa::bool_, sa::int8, sa::int16, sa::int32, sa::int64, sa::uint8, sa::uint16,
                        sa::uint32, sa::uint64, sa::float16, sa::bfloat16, sa::float32, sa::float64})
    r.push_back({&sa::op_cast, never, [t](G g) { return g.s.astype(t); }});
  return r;
}

// Empty when equal: whole numbers in all bits; floats as numbers, any NaN as any other. Each of four parts may lose half of
// the smallest number.
std::string unequal(const Array& got, const Array& want) {
  if (got.shape() != want.shape() || got.dtype() != want.dtype()) return "another type";
  if (!sa::is_inexact(want.dtype()))
    return sa::testing::read<std::uint64_t>(got) == sa::testing::read<std::uint64_t>(want)
               ? ""
               : "whole numbers differ";
  const auto g = sa::testing::values(got), w = sa::testing::values(want);
  const double lost = 2 * (want.dtype() == sa::float64   ? std::numeric_limits<double>::denorm_min()
                           : want.dtype() == sa::float32 ? std::numeric_limits<float>::denorm_min()
                                                         : 0);
  for (std::size_t k = 0; k < w.size(); k++)
    if (g[k] != w[k] && !(std::isnan(g[k]) && std::isnan(w[k])) && !(std::abs(g[k] - w[k]) <= lost))
      return "element " + std::to_string(k) + " is " + std::to_string(g[k]) + ", wanted " +
             std::to_string(w[k]);
  return "";
}

struct DataOf {
  DType dtype;
  Data (*make)(DType);
};
constexpr DataOf every_dtype[] = {{sa::int8, data_of<std::int8_t>},
                                  {sa::int16, data_of<std::int16_t>},
                                  {sa::int32, data_of<std::int32_t>},
                                  {sa::int64, data_of<std::int64_t>},
                                  {sa::uint8, data_of<std::uint8_t>},
                                  {sa::uint16, data_of<std::uint16_t>},
                                  {sa::uint32, data_of<std::uint32_t>},
                                  {sa::uint64, data_of<std::uint64_t>},
                                  {sa::float32, data_of<float>},
                                  {sa::float64, data_of<double>},
                                  {sa::float16, half_data},
                                  {sa::bfloat16, half_data}};

class Numbers {
 public:
  Numbers(DType t, const Data& d)
      : dtype_(t), index_(next_rows(d.sum.shape()[0])), sums_{d.sum, d.sum, d.factors, index_} {
    const sa::Mesh mesh = sa::make_mesh({{"d", 4}});
    for (const Array& x : {d.parts, d.turned})
      parts_.push_back(sa::device_put(x, sa::NamedSharding(mesh, P("d"))));
    for (const Array& x : {d.factors, index_})
      parts_.push_back(sa::device_put(x, sa::NamedSharding(mesh, P())));
  }

  // The value; how many values of the op are in parts.
  void check(const Row& row, std::size_t number) const {
    if (!row.exact && sa::is_inexact(dtype_)) return;
    const auto of_parts = sa::jit([&](const Arrays& x) { return of_sums(row, x, parts_[2].sharding()); });
    const auto of_sum = sa::jit([&](const Arrays& x) {
      return row.f({x[0], x[1], x[2], x[3], sums_[0].sharding()});
    });
    const std::string which =
        std::string(row.op->name) + ", row " + std::to_string(number) + ", " + sa::name(dtype_);
    const Array want = of_sum(sums_);
    const std::string text = unequal(of_parts(parts_), want);
    CHECK_MESSAGE(text.empty(), which << ": " << text);
    const bool whole = sa::is_integer(dtype_), half = sa::is_half(dtype_);
    const bool passes = !half && (row.passes == always || row.passes == (whole ? integers : floats));
    const int own = row.op == &sa::op_reduce;  // the sum whose parts they are
    const auto pass = [&] {
      return own ? values_in_parts(*row.op, of_parts, parts_) > own : parts_pass(*row.op, of_parts, parts_);
    };
    CHECK_MESSAGE(pass() == passes, which << ": parts pass");
    const sa::reproducible on(true);
    const std::string fixed = unequal(of_parts(parts_), want);
    CHECK_MESSAGE(fixed.empty(), which << ", reproducible: " << fixed);
    if (own == 0) CHECK_MESSAGE(!pass(), which << ", reproducible: parts pass");
  }

 private:
  DType dtype_;
  Array index_;
  Arrays sums_, parts_;
};

}  // namespace

TEST_CASE("partial sums: parts pass where the dtype's arithmetic is linear, and only there") {
  for (const DataOf& d : every_dtype) {
    const Numbers checks(d.dtype, d.make(d.dtype));
    std::size_t number = 0;
    for (const auto& list : {rows(), rounding_rows()})
      for (const Row& row : list) checks.check(row, number++);
  }
}

// ---------------------------------------------------------------- every public function
namespace {

// v as a sum of four parts that cancel: whole numbers wrap, floats are multiples of 1/16 whose sums are exact.
Array in_parts(const Array& v, int seed) {
  const float step = sa::is_inexact(v.dtype()) ? 1.0F / 16 : 1;
  const auto far = [&](int by) {
    return (numbers(v.shape(), sa::float32, seed + by) * (97 * step) + 1000 * static_cast<float>(by))
        .astype(v.dtype());
  };
  const Array a = far(1), b = far(3);
  return sa::stack(Arrays{v + a, b, -a, -b}, 0);
}

// The sign of a zero is not the sums'.
sa::testing::HostArray without_minus_zero(sa::testing::HostArray x) {
  for (double& v : x.data) v += 0.0;
  return x;
}

}  // namespace

TEST_CASE("partial sums: every function gives of operands in parts what it gives of the sums") {
  using namespace sa::testing;
  const sa::Mesh mesh = sa::make_mesh({{"d", 4}, {"all", 2}});
  int cases = 0;
  for (const OpCase& row : op_cases()) {
    Rng rng(1);
    Arrays sums, parts;
    for (const OpInput& in : row.inputs) {
      Array v = draw_array(in, rng);
      if (sa::is_inexact(v.dtype()))
        v = (sa::round(v.astype(sa::float32) * 16) / 16 + 0).astype(v.dtype());  // no -0
      sums.push_back(v);
      const bool summed = v.dtype() != sa::bool_ && sa::itemsize(v.dtype()) >= 4;
      parts.push_back(summed ? sa::device_put(in_parts(v, cases), sa::NamedSharding(mesh, P("d"))) : Array());
    }
    const Array y = row.function(sums);
    bool rounds = false;
    each_node(std::span(&y, 1), [&](sa::Node& n) { rounds |= adds_up(n); });
    const HostArray want = without_minus_zero(host(y));
    for (std::size_t which = 0; which <= sums.size(); which++) {  // one operand in parts, or all
      const auto f = sa::jit([&](const Arrays& x) {
        Arrays given;
        for (std::size_t k = 0; k < x.size(); k++)
          given.push_back(x[k].ndim() > sums[k].ndim() ? sa::primitive::reduce(sa::Reducer::sum, x[k], {0})
                                                       : x[k]);
        return row.function(given);
      });
      Arrays x;
      for (std::size_t k = 0; k < sums.size(); k++)
        x.push_back((k == which || which == sums.size()) && parts[k].has_value() ? parts[k] : sums[k]);
      cases++;
      const std::string text = difference(without_minus_zero(host(f(x))), want, rounds ? 1e-5 : 0);
      CHECK_MESSAGE(text.empty(), row.name << ", operand " << which << ": " << text);
    }
  }
  MESSAGE("function x operand cases: " << cases);
}

}  // namespace partial_numbers_test
