// Sets, polynomials, covariances, insertions and deletions, windows: JAX's numbers, edges and messages. Their sharded values:
// op_cases_sets.cpp, op_cases_samples.cpp.
#include <limits>

#include "golden.h"
#include "messages.h"

namespace numpy_more_test {

namespace sa = shardarray;
using sa::all;
using sa::array;
using sa::Array;
using sa::none;
using sa::Shape;
using Values = std::vector<double>;
using shardarray::testing::values;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 inf = std::numeric_limits<double>::infinity();

const golden::Json& reference() {
  static const golden::Json all_cases = golden::load("numpy_more.json");
  return all_cases;
}
/// The results of a case of tests/reference/numpy_more.py, in its order.
void check_case(const std::string& name, const std::vector<Array>& given, double tolerance = 0) {
  const golden::Json& cases = reference()[name];
  REQUIRE(cases.size() == given.size());
  for (std::size_t k = 0; k < given.size(); k++) {
    CAPTURE(name);
    CAPTURE(k);
    CAPTURE(sa::to_string(given[k].shape()));
    CHECK(golden::close(given[k], cases[k], tolerance, tolerance));
    CHECK(given[k].dtype() == golden::dtype_named(cases[k]["dtype"]));
  }
}

// Made when a test asks: before main there are no devices.
Array I() { return array({3, -1, 3, 7, 0, -1, 7, 7}); }
Array J() { return array({7, 2, 0, 2, -5}); }
Array F() { return array({2.5, nan, -1.0, 2.5, inf, nan, -inf}); }
Array X() {
  return array({{1.0, 2.0, nan, 4.0}, {nan, nan, nan, nan}, {5.0, 3.0, 9.0, 1.0}, {nan, 8.0, nan, -2.0}});
}
Array M() { return array({{1.0, 2.0, 4.0, 3.0}, {0.0, 5.0, 1.0, 1.0}, {2.0, 2.0, 7.0, 9.0}}); }
Array P() { return array({2.0, -1.0, 0.5, 3.0}); }
Array E() { return array({0.0, 1.0, -1.0, 30.0, -30.0, inf, -inf, nan, 0.5}); }

}  // namespace

TEST_CASE("sets: JAX's values, fill values, indices and counts") {
  std::vector<Array> r;
  for (const int size : {3, 5, 8}) {
    r.push_back(sa::unique(I(), size));
    r.push_back(sa::unique(I(), size, 9));
  }
  check_case("unique", r);
  check_case("unique of floats", {sa::unique(F(), 9), sa::unique(F())});
  r.clear();
  for (const int size : {7, 3}) {
    const sa::UniqueResult u = sa::unique_all(I(), size);
    for (const Array& a : {u.values, u.indices, u.inverse_indices, u.counts}) r.push_back(a);
  }
  check_case("unique_all", r);
  check_case("union1d", {sa::union1d(I(), J(), 4), sa::union1d(I(), J(), 7), sa::union1d(I(), J(), 10)});
  check_case("intersect1d", {sa::intersect1d(I(), J(), 1), sa::intersect1d(I(), J(), 2),
                             sa::intersect1d(I(), J(), 4), sa::intersect1d(I(), array({50}), 2)});
  check_case("setdiff1d",
             {sa::setdiff1d(I(), J(), 1), sa::setdiff1d(I(), J(), 2), sa::setdiff1d(I(), J(), 4)});
  check_case("setxor1d", {sa::setxor1d(I(), J(), 3), sa::setxor1d(I(), J(), 6), sa::setxor1d(I(), J(), 8)});
  check_case("isin", {sa::isin(F(), array({nan, inf, 2.5})).astype(sa::int32)});
}

TEST_CASE("sets: without a size as many as there are, in jit with one; of nothing") {
  CHECK(values(sa::unique(I())) == Values{-1, 0, 3, 7});
  CHECK(values(sa::unique_all(I()).counts) == Values{2, 1, 2, 3});
  CHECK(values(sa::union1d(I(), J())) == Values{-5, -1, 0, 2, 3, 7});
  CHECK(values(sa::intersect1d(I(), J())) == Values{0, 7});
  CHECK(values(sa::setdiff1d(I(), J())) == Values{-1, 3});
  CHECK(values(sa::setxor1d(I(), J())) == Values{-5, -1, 2, 3});
  CHECK(sa::union1d(I(), array({0.5})).dtype() == sa::float32);
  CHECK(values(sa::unique(array({true, false, true}))) == Values{0, 1});
  CHECK(values(sa::jit([](const Array& x) { return sa::unique(x, 6, 5); })(I())) ==
        Values{-1, 0, 3, 7, 5, 5});
  CHECK(sa::isin(3, I()).item<bool>());
  const Array nothing = sa::zeros({0}, sa::int32);
  CHECK(sa::unique(nothing).shape() == Shape{0});
  CHECK(values(sa::unique(nothing, 2, 4)) == Values{4, 4});
  CHECK(sa::unique_all(nothing).counts.shape() == Shape{0});
  CHECK(values(sa::unique_all(nothing, 2, 4).counts) == Values{0, 0});
  CHECK(sa::unique(I(), 0).shape() == Shape{0});
  CHECK(sa::unique_all(I(), 0).counts.shape() == Shape{0});
  CHECK(values(sa::setdiff1d(nothing, I(), 2)) == Values{0, 0});
  CHECK(values(sa::setdiff1d(I(), nothing)) == Values{-1, 0, 3, 7});
  CHECK(values(sa::isin(J(), nothing)) == Values{0, 0, 0, 0, 0});
  CHECK_SAYS(
      sa::jit([](const Array& x) { return sa::unique(x); })(I()),
      "unique: how many values there are nobody knows while the function is traced, and a result has one "
      "shape. Give the size: what lacks is filled up.",
      sa::TraceError);
  CHECK_SAYS(sa::unique(I(), -1),
             "unique: size -1. The number of positions is not negative. Give how many there are at most.",
             sa::ShapeError);
  CHECK_SAYS(sa::unique(nothing, 2),
             "unique: 2 values of i32[0]. It has no least one to fill up with. Give a fill_value.",
             sa::ShapeError);
  CHECK_THROWS_AS(sa::jit([](const Array& x) { return sa::unique(x); })(I()), sa::TraceError);
}

TEST_CASE("sets: isin of elements that are cut moves nothing") {
  const Array x = sa::device_put(sa::arange(1000), sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x")));
  const auto report = sa::explain([](const Array& a) { return sa::isin(a, J()); }, x);
  CHECK(report.transfers().empty());
}

TEST_CASE("statistics: covariances and quantiles without NaN are JAX's") {
  using sa::QuantileMethod;
  std::vector<Array> r;
  for (const double q : {0.0, 0.3, 0.75, 1.0})
    for (const QuantileMethod m : {QuantileMethod::linear, QuantileMethod::lower, QuantileMethod::higher,
                                   QuantileMethod::midpoint, QuantileMethod::nearest})
      r.push_back(sa::nanquantile(X(), q, {.axis = 1, .method = m}));
  check_case("nanquantile", r, 1e-6);
  check_case("nanmedian", {sa::nanmedian(X()), sa::nanmedian(X(), {.axis = 0, .keepdims = true})}, 1e-6);
  CHECK(sa::nanquantile(X(), {0.25, 0.5}).shape() == Shape{2});
  CHECK(
      golden::close(values(sa::nanpercentile(X(), {25, 50})), values(sa::nanquantile(X(), {0.25, 0.5})), 0));
  CHECK(values(sa::nancumprod(array({2.0, nan, 3.0}))) == Values{2, 2, 6});
  check_case("cov",
             {sa::cov(M()), sa::cov(M(), {.ddof = 0}), sa::cov(M(), {.rowvar = false}),
              sa::cov(M()[0], M()[1]), sa::cov(M()[0]), sa::cov(M(), {.fweights = array({1, 2, 0, 3})}),
              sa::cov(M(), {.aweights = array({0.5, 1.0, 2.0, 0.1})})},
             1e-5);
  check_case(
      "corrcoef",
      {sa::corrcoef(M()), sa::corrcoef(M()[0]), sa::corrcoef(array({{1.0, 1.0, 1.0}, {1.0, 2.0, 3.0}}))},
      1e-5);
  CHECK(std::isnan(sa::cov(sa::zeros({1, 0})).item<float>()));
  CHECK_SAYS(
      sa::cov(sa::zeros({2, 2, 2})),
      "cov: the operand is f32[2,2,2]. It is a matrix, or a vector of one variable. Reshape it, or use vmap.",
      sa::ShapeError);
  CHECK_SAYS(sa::corrcoef(M(), P()[sa::slice(2)]),
             "corrcoef: 4 observations and 2. Both arrays have as many. See CovOptions::rowvar.",
             sa::ShapeError);
  CHECK_SAYS(sa::cov(M(), {.aweights = J()}),
             "cov: aweights i32[5] of 4 observations. Every one has a weight. Give a vector that is as long.",
             sa::ShapeError);
  CHECK_SAYS(sa::cov(M(), {.fweights = P()}),
             "cov: the operand is f32[4]. How often an observation was made is an integer. Cast with astype.",
             sa::DTypeError);
}

TEST_CASE("polynomials: JAX's numbers, messages") {
  check_case("poly",
             {sa::polyadd(P(), P()[sa::slice(2)]), sa::polysub(P()[sa::slice(2)], P()),
              sa::polymul(P(), P()[sa::slice(3)]), sa::polyder(P()), sa::polyder(P(), 3), sa::polyder(P(), 0),
              sa::polyint(P()), sa::polyint(P(), 2, array({5.0, 7.0})), sa::polyint(P(), 3, 1), sa::poly(P()),
              sa::vander(P(), 3), sa::vander(P(), std::nullopt, true), sa::vander(array({2, 3, 5}), 3),
              sa::polyfit(sa::arange(5.0), array({1.0, 3.0, 2.0, 5.0, 7.0}), 2)},
             2e-6);
  CHECK(sa::polyder(P(), 9).shape() == Shape{0});
  CHECK(values(sa::polymul(P(), sa::zeros(0))) == Values{0, 0, 0, 0});
  CHECK(values(sa::poly(sa::zeros(0))) == Values{1});
  const Array two = sa::stack({sa::arange(5.0), 2 * sa::arange(5.0)}, 1);
  const Array fits = sa::polyfit(sa::arange(5.0), two, 1);
  CHECK(golden::close(values(fits), {1, 2, 0, 0}, 1e-5, 1e-5));
  CHECK_SAYS(
      sa::polyadd(M(), P()),
      "polyadd: the operand is f32[3,4]. A polynomial is a vector of coefficients, the highest power first. "
      "Use vmap for several.",
      sa::ShapeError);
  CHECK_SAYS(sa::polyder(P(), -1),
             "polyder: -1 times. The number is not negative. Use polyint for the other way.", sa::ShapeError);
  CHECK_SAYS(sa::polyint(P(), 2, P()),
             "polyint: constants f32[4] of 2 integrals. They are a number, or one for each. Give as many.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::vander(M()),
      "vander: the operand is f32[3,4]. Its rows are the powers of the elements of a vector. Use vmap for "
      "several.",
      sa::ShapeError);
  CHECK_SAYS(sa::vander(P(), -1),
             "vander: -1 columns. The number is not negative. Leave it out for a square.", sa::ShapeError);
  CHECK_SAYS(
      sa::polyfit(P(), J(), 1),
      "polyfit: places f32[4] and values i32[5]. Places are a vector with elements, and every place has a "
      "value or a row of them. Correct the shapes.",
      sa::ShapeError);
  CHECK_SAYS(sa::polyfit(P(), P(), -1), "polyfit: degree -1. It is not negative. Use 0 for a constant.",
             sa::ShapeError);
  CHECK_SAYS(sa::polyfit(P(), P(), 1, {.w = J()}),
             "polyfit: weights i32[5] of 4 places. Every place has one. Give as many.", sa::ShapeError);
}

TEST_CASE("samples: phases, windows, histograms, products of vectors are JAX's, messages") {
  const double pi = 3.141592653589793;
  check_case("unwrap",
             {sa::unwrap(array({0.0, 3.0, 6.5, -3.0, 9.0, 9.0 - 2 * pi})),
              sa::unwrap(array({0.0, 350.0, 10.0, 180.0, 0.0}), {.period = 360}),
              sa::unwrap(array({0.0, 350.0, 10.0, 180.0, 0.0}), {.period = 360, .discont = 345})},
             1e-6);
  std::vector<Array> r;
  for (const auto f : {sa::bartlett, sa::hanning, sa::hamming, sa::blackman})
    for (const int n : {0, 1, 7}) r.push_back(f(n, sa::float32, sa::Where::here()));
  for (const int n : {1, 7}) r.push_back(sa::kaiser(n, 5));
  check_case("windows", r, 1e-6);
  CHECK_SAYS(sa::hanning(-1), "hanning: -1 elements. The number is not negative. Give how many there are.",
             sa::ShapeError);
  CHECK_SAYS(sa::hanning(3, sa::int32),
             "hanning: dtype int32. Its values are fractions. Choose a floating dtype.", sa::DTypeError);
  CHECK_SAYS(sa::unwrap(P(), {.period = 0}), "unwrap: the period is 0. It is positive. Give another one.",
             sa::Error);
  CHECK(values(sa::ediff1d(I())) == values(sa::diff(I())));
  CHECK_THROWS_AS(sa::ediff1d(I(), 0.5), sa::DTypeError);
  const Array edges = array({0.0, 1.0, 2.0});
  CHECK(sa::histogram2d(P(), P(), edges, edges).dtype() == sa::int32);
  CHECK(values(sa::histogram2d(P(), P(), edges, edges)) == Values{1, 0, 0, 1});  // 2 lies in the last bin
  CHECK_SAYS(sa::histogram2d(P(), J(), edges, edges),
             "histogram2d: coordinates f32[4] and i32[5]. Every point has both. Broadcast one.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::histogramdd(M(), {edges}),
      "histogramdd: points f32[3,4] and edges of 1 dimension. A row is a point, and every column has edges. "
      "Give as many.",
      sa::ShapeError);
  CHECK_SAYS(
      sa::histogramdd(sa::zeros({3, 1}), {sa::zeros(1)}),
      "histogramdd: the edges of dimension 0 are f32[1]. They are a vector, and a bin has two of them. Use "
      "histogram_bin_edges for a number of bins.",
      sa::ShapeError);
  CHECK_SAYS(sa::histogramdd(sa::zeros({3, 1}), {edges}, P()),
             "histogramdd: weights f32[4] of 3 points. Every one has one. Give a vector that is as long.",
             sa::ShapeError);
  const Array many = sa::zeros(1 << 11);
  CHECK_SAYS(sa::histogramdd(sa::zeros({3, 3}), {many, many, many}),
             "histogramdd: 8577357823 bins in all. They are numbered by int32. Take fewer.", sa::ShapeError);
  CHECK_SAYS(sa::matvec(P(), P()),
             "matvec: matrices f32[4] and vectors f32[4]. A matrix has two dimensions, a vector one, behind "
             "those of "
             "a batch. Reshape an operand.",
             sa::ShapeError);
}

TEST_CASE("edits: parts put in and left out, diagonals and bits are JAX's, messages") {
  check_case(
      "insert",
      {sa::insert(M(), 1, 5, 1), sa::insert(M(), 2, array({7.0, 8.0, 9.0}), 1), sa::insert(M(), {1, 1, 3}, 6),
       sa::insert(M(), {0, 2}, array({{1.0}, {2.0}, {3.0}}), 1), sa::insert(P(), 4, array({1.0, 2.0}))});
  check_case("delete", {sa::delete_(M(), 1, 1), sa::delete_(M(), {0, -1}, 0), sa::delete_(M(), 5)});
  CHECK(sa::delete_(M(), {0, 1, 2}, 0).shape() == Shape{0, 4});
  CHECK(values(sa::insert(M(), Shape{}, 5)) == values(M()));
  const auto [lower, column] = sa::tril_indices(3);
  const auto [row1, column1] = sa::tril_indices(3, 1, 4);
  const auto [row2, column2] = sa::triu_indices(4, -1, 2);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(sa::tril_indices(3, most).first.size() == 9);
  CHECK(sa::tril_indices(3, -most - 1).first.size() == 0);
  CHECK(sa::triu_indices(3, most).first.size() == 0);
  CHECK(sa::array_equal(sa::triu_indices(3, -most - 1).second, array({0, 1, 2, 0, 1, 2, 0, 1, 2})));
  check_case("diagonals",
             {sa::fill_diagonal(M(), 9), sa::fill_diagonal(M(), array({7.0, 8.0, 9.0})),
              sa::fill_diagonal(sa::zeros({2, 2, 2}), 1), lower, column, row1, column1, row2, column2});
  check_case("bits", {sa::packbits(I()), sa::packbits(array({{1, 0, 2}, {0, 0, 1}}), 0, sa::BitOrder::little),
                      sa::unpackbits(array({3, 200}).astype(sa::uint8)),
                      sa::unpackbits(array({{3}, {200}}).astype(sa::uint8), {.axis = 1, .count = 10}),
                      sa::unpackbits(array({3, 200}).astype(sa::uint8),
                                     {.count = 5, .order = sa::BitOrder::little})});
  CHECK_SAYS(sa::insert(P(), 5, 1), "insert: position 5 among 4. Positions are in -4 .. 4. Give one of them.",
             sa::ShapeError);
  CHECK_SAYS(sa::delete_(P(), 4), "delete_: position 4 among 4. Positions are in -4 .. 3. Give one of them.",
             sa::ShapeError);
  CHECK_THROWS_AS(sa::insert(M(), {0, 1}, J(), 1), sa::ShapeError);
  CHECK_THROWS_AS(sa::insert(I(), 0, 0.5), sa::DTypeError);
  CHECK_SAYS(sa::fill_diagonal(P(), 1),
             "fill_diagonal: the operand is f32[4]. It is a matrix, or has more dimensions of one size. Use "
             "vmap for "
             "several matrices.",
             sa::ShapeError);
  CHECK_SAYS(sa::fill_diagonal(M(), P()),
             "fill_diagonal: values f32[4] on a diagonal of 3. They are a number, or a vector as long. Give "
             "as many.",
             sa::ShapeError);
  CHECK_SAYS(sa::tril_indices(-1), "tril_indices: a matrix of -1 x -1. Sizes are not negative. Give others.",
             sa::ShapeError);
  CHECK_SAYS(sa::packbits(P()),
             "packbits: the operand is f32[4]. It packs integers and bool. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(sa::unpackbits(I()), "unpackbits: the operand is i32[8]. It unpacks uint8. Cast with astype.",
             sa::DTypeError);
  CHECK_SAYS(sa::unpackbits(sa::zeros(2, sa::uint8), {.count = -1}),
             "unpackbits: -1 bits. The number is not negative. Leave it out for all.", sa::ShapeError);
}

TEST_CASE("blocks: shapes and messages") {
  CHECK(values(sa::block({{1, 2}, {3, 4}})) == Values{1, 2, 3, 4});
  CHECK(sa::block_diag({P(), 1, sa::zeros({2, 0})}).shape() == Shape{4, 5});
  CHECK(sa::unstack(sa::zeros({0, 3})).empty());
  CHECK(sa::hsplit(P(), 2)[1].shape() == Shape{2});
  CHECK_SAYS(sa::hsplit(Array(1), 1),
             "hsplit: the operand is i32[]. It is cut along axis 1. Use split along another one.",
             sa::ShapeError);
  CHECK_SAYS(sa::block_diag({}),
             "block_diag: no matrices. The result has a dtype, which is theirs. Give at least one.",
             sa::ShapeError);
  CHECK_SAYS(sa::block_diag({sa::zeros({2, 2, 2})}),
             "block_diag: an operand is f32[2,2,2]. It is a matrix. Use vmap for several of them.",
             sa::ShapeError);
  CHECK_SAYS(sa::matrix_transpose(P()),
             "matrix_transpose: the operand is f32[4]. The last two dimensions are a matrix. Use reshape for "
             "a column.",
             sa::ShapeError);
  CHECK_THROWS_AS(sa::unstack(sa::zeros((1 << 20) + 1)), sa::ShapeError);
}

TEST_CASE("special: logarithms of distributions and entropies are JAX's at their edges") {
  check_case(
      "special",
      {sa::log_ndtr(E()), sa::factorial(array({-1.0, 0.0, 3.0, 5.5})), sa::rel_entr(E(), 2.0f),
       sa::rel_entr(0.0f, E()), sa::kl_div(E(), 2.0f), sa::betaln(array({0.5, 3.0}), array({2.0, 7.0})),
       sa::multigammaln(array({3.0, 7.0}), 3), sa::log1mexp(array({0.0, 1e-6, 0.3, 5.0, inf})),
       sa::logmeanexp(array({{1.0, 2.0}, {-inf, -inf}}), 1)},
      1e-5);
  // The tail against its asymptotic series: Abramowitz, Stegun 26.2.12.
  const Array far = sa::log_ndtr(array({-40.0, -20.5, 9.0}, sa::float64));
  CHECK(golden::close(values(far), {-804.6084420137538, -214.0667289632638, -1.1285884059538406e-19}, 1e-13));
  // Where ndtr rounds to 1, too.
  std::vector<double> at;
  for (double v = -9.75; v < 30; v += 0.25) at.push_back(v);
  const std::vector<double> doubles = values(sa::log_ndtr(sa::array(at))),
                            singles = values(sa::log_ndtr(sa::array(at, sa::float32)));
  for (std::size_t k = 0; k < at.size(); k++) {
    const double half = 0.5 * std::erfc(std::abs(at[k]) / std::numbers::sqrt2),
                 want = at[k] > 0 ? std::log1p(-half) : std::log(half);
    CAPTURE(at[k]);
    const double ulps = 8 + (at[k] > 0 ? 2 * at[k] * at[k] : 0);  // of erfc: its argument is rounded
    CHECK(std::abs(doubles[k] - want) <= ulps * 0x1p-52 * std::abs(want));
    if (-want > 1e-37) CHECK(std::abs(singles[k] - want) <= ulps * 0x1p-23 * std::abs(want));
  }
  CHECK(sa::isfinite(sa::grad([](const Array& x) { return sa::sum(sa::log_ndtr(x)); })(
                         array({-1000.0, -10.0, -3.0, 5.0, 20.0})))
            .to_vector<bool>() == std::vector<bool>(5, true));
  CHECK_SAYS(sa::multigammaln(P(), 0), "multigammaln: the order is 0. It is 1 or more. Give another one.",
             sa::Error);
}

TEST_CASE("apply: vectors along an axis, functions by conditions") {
  check_case("piecewise",
             {sa::piecewise(
                 P(), {P() < 0, P() > 0, P() > 2}, [](const Array& v) { return -v; }, sa::exp, 7, 1)},
             1e-6);
  CHECK(values(sa::piecewise(P(), {P() > 1}, 5)) == Values{5, 0, 0, 5});
  CHECK_SAYS(sa::piecewise(P(), {P() > 1, P() > 2}, 5),
             "piecewise: 1 function for 2 conditions. There are as many, or one more for what is left. Give "
             "as many.",
             sa::ShapeError);
  CHECK(sa::apply_along_axis(sa::sum, 1, M()).shape() == Shape{3});
  CHECK(sa::apply_along_axis([](const Array& v) { return sa::outer(v, v); }, 0, M()).shape() ==
        Shape{3, 3, 4});
  CHECK(sa::apply_along_axis(sa::sort, -1, P()).shape() == Shape{4});
  CHECK_THROWS_AS(sa::apply_along_axis(sa::sum, 2, M()), sa::ShapeError);
  CHECK(values(sa::apply_over_axes(sa::max, M(), {0, 1})) == Values{9});
}

TEST_CASE("linalg: norms of matrices are JAX's, arrays as matrices, messages") {
  std::vector<Array> r{sa::linalg::matrix_norm(M()), sa::linalg::matrix_norm(M(), {.nuclear = true})};
  for (const double ord : {1.0, -1.0, 2.0, -2.0, inf, -inf})
    r.push_back(sa::linalg::matrix_norm(M(), {.ord = ord}));
  r.push_back(sa::linalg::matrix_norm(M(), {.keepdims = true}));
  check_case("norms", r, 1e-5);
  CHECK(sa::linalg::matrix_norm(sa::zeros({2, 3, 4}), {.ord = 2, .keepdims = true}).shape() ==
        Shape{2, 1, 1});
  CHECK_SAYS(sa::linalg::matrix_norm(M(), {.ord = 3}),
             "linalg::matrix_norm: order 3. The orders are 1, -1, 2, -2, infinity and -infinity. Leave it "
             "out for the "
             "root of the sum of squares, or say nuclear alone.",
             sa::Error);
  CHECK_SAYS(
      sa::linalg::tensorinv(sa::zeros({2, 3, 4})),
      "linalg::tensorinv: f32[2,3,4] as a matrix of 6 x 4. It is square. Choose ind so that both products of "
      "sizes are equal.",
      sa::ShapeError);
  CHECK_SAYS(sa::linalg::tensorinv(M(), 0),
             "linalg::tensorinv: ind is 0 of 2 dimensions. It is how many of them are rows, 1 at least. Give "
             "another "
             "one.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::linalg::tensorsolve(M(), P()),
      "linalg::tensorsolve: f32[3,4] and f32[4]. The first dimensions are those of b, and the others have as "
      "many elements. Name the axes of the solution.",
      sa::ShapeError);
  const Array a = sa::reshape(sa::eye(6), {2, 6, 3});  // rows are dimensions 0 and 2
  CHECK(sa::linalg::tensorsolve(sa::reshape(sa::eye(6), {2, 3, 6}), sa::ones({2, 3})).shape() == Shape{6});
  CHECK(sa::linalg::tensorsolve(sa::moveaxis(sa::reshape(sa::eye(6), {2, 3, 6}), 2, 1), sa::ones({2, 3}), {1})
            .shape() == Shape{6});
}

TEST_CASE("distributions: draws of matrices are JAX's") {
  namespace rnd = sa::random;
  const Array key = rnd::PRNGKey(std::int32_t{7});
  check_case("orthogonal", {rnd::orthogonal(key, 3, {2}), rnd::orthogonal(key, 2, {}, sa::float32, 4)}, 1e-5);
  const Array mean = array({1.0, -2.0}), cov = array({{2.0, 0.5}, {0.5, 1.0}});
  check_case("multivariate_normal",
             {rnd::multivariate_normal(key, mean, cov), rnd::multivariate_normal(key, mean, cov, Shape{3}),
              rnd::multivariate_normal(key, mean, cov, Shape{2, 2})},
             1e-5);
  for (const auto root :
       {rnd::CovarianceRoot::cholesky, rnd::CovarianceRoot::eigh, rnd::CovarianceRoot::svd}) {
    const Array x = rnd::multivariate_normal(key, mean, cov, Shape{40000}, sa::float32, root);
    CHECK(golden::close(values(sa::mean(x, 0)), values(mean), 0, 0.03));
    CHECK(golden::close(values(sa::cov(x, {.rowvar = false})), values(cov), 0, 0.05));
  }
  const Array q = rnd::orthogonal(key, 5, {3}, sa::float64);
  CHECK(golden::close(values(sa::matmul(q, sa::matrix_transpose(q))),
                      values(sa::broadcast_to(sa::eye(5, std::nullopt, 0, sa::float64), {3, 5, 5})), 0,
                      1e-12));
  CHECK(sa::isfinite(
            sa::grad([&](const Array& c) { return sa::sum(rnd::multivariate_normal(key, mean, c)); })(cov))
            .to_vector<bool>() == std::vector<bool>(4, true));
  CHECK_SAYS(rnd::multivariate_normal(key, mean, sa::eye(3)),
             "random::multivariate_normal: mean f32[2] and covariances f32[3,3]. A mean of n numbers goes "
             "with a matrix "
             "n x n. Correct the sizes.",
             sa::ShapeError);
  CHECK_SAYS(rnd::multivariate_normal(key, sa::zeros({4, 2}), cov, Shape{}),
             "random::multivariate_normal: parameters of shape [4] for a draw of shape []. They are "
             "broadcast to the "
             "draw. Correct the shape.",
             sa::ShapeError);
  CHECK_SAYS(rnd::orthogonal(key, -1),
             "random::orthogonal: matrices of -1 x -1. Sizes are not negative. Correct them.",
             sa::ShapeError);
}

}  // namespace numpy_more_test
