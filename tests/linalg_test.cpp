// Linear algebra: JAX's numbers (linalg.json); singular, empty, non-finite and 16-bit matrices; where matrices are factorised; messages.
#include "shardarray/linalg.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cpu/library/lapack.h"
#include "golden.h"
#include "linalg_functions.h"
#include "messages.h"
#include "shardarray/shardarray.h"

namespace linalg_test {

namespace sa = shardarray;
namespace la = shardarray::linalg;
using golden::Json;
using sa::Array;
using sa::P;
using Arrays = std::vector<Array>;

namespace {

const sa::testing::MatrixFunctions& functions() {
  static const sa::testing::MatrixFunctions all = [] {
    sa::testing::MatrixFunctions f = sa::testing::matrix_functions();
    f["triangular_solve right"] = [](const Arrays& x) {
      return Arrays{la::triangular_solve(x[0], x[1], {.transpose_a = true})};
    };
    f["svd"] = [](const Arrays& x) {
      const auto [u, s, vh] = la::svd(x[0], {.full_matrices = false});
      return Arrays{s, sa::testing::squared_sizes(u), sa::testing::squared_sizes(vh)};
    };
    return f;
  }();
  return all;
}

Array loss(const std::string& name, const Arrays& x, const Json& weights) {
  const Arrays out = functions().at(name)(x);
  Array sum = sa::zeros({}, x[0].dtype());
  for (std::size_t k = 0; k < out.size(); k++)
    if (sa::is_floating(out[k].dtype())) sum = sum + sa::sum(out[k] * golden::array(weights[k]));
  return sum;
}

void check_case(const Json& c) {
  const std::string name = c["name"];
  Arrays x;
  for (const Json& operand : c["in"]) x.push_back(golden::array(operand));
  CAPTURE(name);
  CAPTURE(c["in"].dump());
  const Arrays out = functions().at(name)(x);
  REQUIRE(out.size() == c["out"].size());
  const double digits = x[0].dtype() == sa::float64 ? 1e-11 : 1e-4;
  for (std::size_t k = 0; k < out.size(); k++) {
    CHECK(sa::name(out[k].dtype()) == c["out"][k]["dtype"].get<std::string>());
    CHECK(golden::close(out[k], c["out"][k], digits, digits));
  }
  if (!c.contains("gradient")) return;
  const auto gradients = sa::grad([&](const Arrays& v) { return loss(name, v, c["weights"]); })(x);
  for (std::size_t k = 0; k < x.size(); k++)
    CHECK(golden::close(gradients[k], c["gradient"][k], 50 * digits, 50 * digits));
}

Array numbers(const sa::Shape& shape, std::uint64_t seed = 0, sa::DType t = sa::float64) {
  return sa::random::uniform(sa::random::key(seed), shape, sa::float64, -1.0, 1.0).astype(t);
}
double largest(const Array& x) { return sa::max(sa::abs(x)).item<double>(); }

}  // namespace

TEST_CASE("linalg: JAX's values and gradients, of batches too") {
  const Json all = golden::load("linalg.json");
  for (const Json& c : all["cases"]) check_case(c);
}

TEST_CASE("linalg: what is singular, indefinite, empty or not finite gives what JAX gives") {
  const Json all = golden::load("linalg.json");
  for (const Json& c : all["edges"]) check_case(c);
}

TEST_CASE("linalg: integers and bool become what they do in JAX, 16-bit floats are rounded once") {
  const Json all = golden::load("linalg.json");
  for (const Json& c : all["dtypes"]) {
    CAPTURE(c.dump());
    const Array x = sa::eye(4, std::nullopt, 0, golden::dtype_named(c["dtype"]));
    CHECK(sa::name(functions().at(c["name"])({x})[0].dtype()) == c["result"].get<std::string>());
  }
  const Array x = numbers({3, 4, 4}, 1, sa::float32) + 4 * sa::eye(4);
  for (const sa::DType t : {sa::float16, sa::bfloat16})
    for (const char* name : {"inv", "det", "qr", "svdvals", "expm"}) {
      CAPTURE(name);
      const Array narrow = x.astype(t);
      const Array y = functions().at(name)({narrow})[0];
      CHECK(y.dtype() == t);
      CHECK(sa::array_equal(y, functions().at(name)({narrow.astype(sa::float32)})[0].astype(t)));
    }
  CHECK(la::solve(sa::eye(2), sa::array({1.0, 2.0}, sa::float64)).dtype() == sa::float64);
}

TEST_CASE("linalg: an ill-conditioned matrix and a large one") {
  const Array x = numbers({300, 300}, 2), b = numbers({300, 140}, 3);
  CHECK(largest(sa::matmul(x, la::solve(x, b)) - b) < 1e-9);
  CHECK(largest(sa::matmul(x, la::inv(x)) - sa::eye(300)) < 1e-9);
  const Array s = sa::matmul(x, x.T()) + sa::eye(300), l = la::cholesky(s);
  CHECK(largest(sa::matmul(l, l.T()) - s) < 1e-10);
  const auto [w, v] = la::eigh(s);
  CHECK(largest(sa::matmul(v * w, v.T()) - s) < 1e-9);
  CHECK(largest(sa::matmul(v.T(), v) - sa::eye(300)) < 1e-11);
  const auto [u, values, vh] = la::svd(x);
  CHECK(largest(sa::matmul(u * values, vh) - x) < 1e-10);
  const auto [q, r] = la::qr(x);
  CHECK(largest(sa::matmul(q, r) - x) < 1e-11);
  // The determinant overflows, its logarithm does not.
  const Array large = 1e10 * x;
  CHECK(std::isinf(la::det(large).item<double>()));
  CHECK(la::slogdet(large).logabsdet.item<double>() ==
        doctest::Approx(la::slogdet(x).logabsdet.item<double>() + 300 * std::log(1e10)));
  // exp of a matrix that must be halved often
  const Array turn = sa::array({{0.0, -200.0}, {200.0, 0.0}}, sa::float64);
  CHECK(la::expm(turn)[{0, 0}].item<double>() == doctest::Approx(std::cos(200.0)).epsilon(1e-10));
  CHECK(std::isnan(la::expm(turn, {.max_squarings = 2})[{0, 0}].item<double>()));
}

TEST_CASE("linalg: batches stay cut, nothing moves; a matrix that is cut is gathered") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = numbers({16, 6, 6}, 4) + 4 * sa::eye(6, std::nullopt, 0, sa::float64);
  const auto all = [](const Array& a) {
    const Array s = (a + sa::swapaxes(a, -1, -2)) / 2;
    const auto [q, r] = la::qr(a);
    const auto [w, v] = la::eigh(s);
    return std::tuple(la::cholesky(s), la::inv(a), la::det(a), q, r, w, la::svdvals(a), la::pinv(a),
                      la::expm(a));
  };
  const Array cut = sa::device_put(x, sa::NamedSharding(mesh, P("x")));
  CHECK(sa::explain(all, cut).transfers().empty());
  const sa::policy::strict here;
  const auto results = sa::jit(all)(cut);
  CHECK(std::get<0>(results).sharding().shard_shape({16, 6, 6}) == sa::Shape{2, 6, 6});
  CHECK(std::get<2>(results).sharding().shard_shape({16}) == sa::Shape{2});
  const auto gradient = sa::grad([](const Array& a) { return sa::sum(la::slogdet(a).logabsdet); });
  CHECK(largest(sa::jit(gradient)(cut) - sa::swapaxes(la::inv(x), -1, -2)) < 1e-12);
}

TEST_CASE("linalg: right-hand sides may be cut") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array a = numbers({6, 6}, 5) + 4 * sa::eye(6, std::nullopt, 0, sa::float64), b = numbers({6, 16}, 6);
  const auto f = [](const Array& m, const Array& s) { return la::solve(m, s); };
  const Array whole = sa::device_put(a, sa::NamedSharding(mesh, P())),
              cut = sa::device_put(b, sa::NamedSharding(mesh, P(sa::none, "x")));
  CHECK(sa::explain(f, whole, cut).transfers().empty());
  const Array x = sa::jit(f)(whole, cut);
  CHECK(x.sharding().shard_shape({6, 16}) == sa::Shape{6, 2});
  CHECK(largest(sa::matmul(a, x) - b) < 1e-13);
  // Of one matrix vmap makes more of them, and no copies of it.
  const Array many = numbers({32, 6}, 7);
  const auto g = sa::vmap([&](const Array& v) { return la::solve(a, v); });
  CHECK(largest(g(many) - la::solve(a, many.T()).T()) < 1e-13);
  // On reproducible lines they are whole: the bits are those of one device.
  const sa::reproducible on(true);
  CHECK(sa::array_equal(sa::jit(f)(whole, cut), f(a, b)));
}

TEST_CASE("linalg: results are trees; what is not asked for is absent") {
  const Array x = numbers({4, 3}, 8);
  const auto [u, s, vh] = sa::jit([](const Array& a) { return la::svd(a, {.full_matrices = false}); })(x);
  CHECK(largest(sa::matmul(u * s, vh) - x) < 1e-13);
  const auto [none_u, only, none_vh] = la::svd(x, {.compute_uv = false});
  CHECK(!none_u.has_value());
  CHECK(!none_vh.has_value());
  CHECK(largest(only - s) < 1e-13);
  CHECK(la::svd(x).u.shape() == sa::Shape{4, 4});
  const auto [lu, pivots, permutation] = la::lu(x);
  CHECK(pivots.dtype() == sa::int32);
  const Array l = sa::tril(lu, -1)[{sa::all, sa::slice(3)}] + sa::eye(4, 3, 0, sa::float64);
  CHECK(largest(sa::matmul(l, sa::triu(lu)[sa::slice(3)]) - sa::take(x, permutation, 0)) < 1e-13);
  CHECK(la::matrix_rank(sa::array({0.0, 2.0})).item<int>() == 1);
}

TEST_CASE("linalg: condition numbers of what is singular are infinite, of NaN NaN, as in NumPy") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const Array nothing = sa::zeros({2, 2}), singular = sa::ones({2, 2});
  const Array all = sa::stack({nothing, sa::array({{nan, 1.0}, {0.0, 1.0}}), 3 * sa::eye(2)});
  for (const double ord : {2.0, -2.0, 1.0, -1.0, inf, -inf}) {
    CAPTURE(ord);
    const auto r = la::cond(all, {.ord = ord}).to_vector<double>();
    CHECK(r[0] == inf);
    CHECK(std::isnan(r[1]));
    CHECK(r[2] == doctest::Approx(1));
  }
  CHECK(la::cond(singular, {.ord = 1}).item<double>() == inf);
  CHECK(la::cond(singular).item<double>() > 1e6);  // the smaller singular value is rounded
  CHECK(la::cond(sa::eye(3).astype(sa::complex128)).dtype() == sa::float64);
  CHECK(la::cond(sa::eye(3).astype(sa::bfloat16)).dtype() == sa::bfloat16);
}

TEST_CASE("linalg: messages") {
  const Array wide = sa::ones({2, 3}), square = sa::ones({3, 3}), line = sa::ones({3});
  const std::string needs_squares =
      ": the operand is f32[2,3]. It takes square matrices, which are the last two dimensions. Check them.";
  CHECK_SAYS(la::cholesky(wide), "linalg::cholesky" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::inv(wide), "linalg::inv" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::det(wide), "linalg::det" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::slogdet(wide), "linalg::slogdet" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::eigh(wide), "linalg::eigh" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::eigvalsh(wide), "linalg::eigvalsh" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::expm(wide), "linalg::expm" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::solve(wide, line), "linalg::solve" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::triangular_solve(wide, wide), "linalg::triangular_solve" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::solve_triangular(wide, line), "linalg::solve_triangular" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::pinv(wide, {.hermitian = true}), "linalg::pinv" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::matrix_rank(wide, {.hermitian = true}), "linalg::matrix_rank" + needs_squares,
             sa::ShapeError);
  const std::string needs_matrices =
      ": the operand is f32[3]. Matrices are the last two dimensions. Use reshape.";
  CHECK_SAYS(la::lu(line), "linalg::lu" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::qr(line), "linalg::qr" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::svd(line), "linalg::svd" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::svdvals(line), "linalg::svdvals" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::pinv(line), "linalg::pinv" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::cholesky(line), "linalg::cholesky" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(
      la::solve(square, wide),
      "linalg::solve: f32[3,3] with right-hand sides f32[2,3]. They have as many rows as A. Check the last "
      "dimensions, or add one with expand_dims.",
      sa::ShapeError);
  CHECK_SAYS(la::triangular_solve(square, sa::ones({3, 2})),
             "linalg::triangular_solve: f32[3,3] with right-hand sides f32[3,2]. They have as many columns "
             "as A. Check "
             "the last dimensions, or add one with expand_dims.",
             sa::ShapeError);
  CHECK_SAYS(
      la::solve(sa::ones({2, 3, 3}), sa::ones({5, 3, 1})),
      "linalg::solve: shapes [2], [5] cannot be broadcast together: sizes 2 and 5 meet. Aligned at the last "
      "dimension, sizes must be equal or 1. Insert dimensions with reshape or newaxis.",
      sa::ShapeError);
  CHECK_SAYS(
      la::lstsq(square, sa::ones({2})),
      "linalg::lstsq: f32[3,3] with right-hand sides f32[2]. A is a matrix, and B a vector or matrix with as "
      "many rows. Use vmap for batches.",
      sa::ShapeError);
  CHECK_SAYS(la::cond(wide, {.ord = 1}), "linalg::cond" + needs_squares, sa::ShapeError);
  CHECK_SAYS(la::cond(line), "linalg::cond" + needs_matrices, sa::ShapeError);
  CHECK_SAYS(la::cond(sa::zeros({2, 0, 3})),
             "linalg::cond: the matrices f32[2,0,3] are empty. They have no singular values. Check the size "
             "first.",
             sa::ShapeError);
  CHECK_SAYS(la::cond(square, {.ord = 3}),
             "linalg::cond: order 3. The orders are 1, -1, 2, -2, infinity and -infinity. For other norms "
             "multiply those of the matrix and of its inverse.",
             sa::Error);
  CHECK_SAYS(la::expm(square, {.max_squarings = -1}),
             "linalg::expm: max_squarings is -1. Their number is not negative. Correct it.", sa::Error);
  const auto with_full = [](const Array& x) { return sa::sum(la::svd(x).u); };
  CHECK_SAYS(sa::grad(with_full)(sa::ones({4, 2})),
             "grad: the factors of svd with full matrices of f32[4,2] have no derivative. What completes "
             "them is not "
             "determined. Use full_matrices = false.",
             sa::Error);
}

TEST_CASE("linalg: without a LAPACK the first factorisation says what is missing") {
  const sa::LapackOpener before =
      sa::set_lapack_opener([](sa::Lapack&) { return std::string("it is not installed"); });
  CHECK_SAYS(
      la::cholesky(sa::eye(7)).block_until_ready(),
      "cholesky: no LAPACK (it is not installed). Matrices are factorised by the one in OpenBLAS, or in the "
      "library that SHARDARRAY_BLAS names. Install libopenblas0-pthread.",
      sa::Error);
  sa::set_lapack_opener(before);
  CHECK(largest(la::cholesky(sa::eye(7)) - sa::eye(7)) == 0);
}

TEST_CASE("linalg: determinants of empty matrices are constants") {
  const Array x = sa::zeros({3, 0, 0});
  CHECK(sa::grad([](const Array& a) { return sa::sum(sa::linalg::det(a)); })(x).shape() ==
        sa::Shape{3, 0, 0});
  const auto [value, slope] = sa::jvp(sa::linalg::det, x, x);
  CHECK(value.to_vector<float>() == std::vector<float>{1, 1, 1});
  CHECK(slope.to_vector<float>() == std::vector<float>{0, 0, 0});
}

TEST_CASE("linalg: logarithms of determinants that overflow or underflow, of any size") {
  for (const std::int64_t n : {2, 3, 8})
    for (const double element : {1e30, 1e-30}) {
      CAPTURE(n);
      const auto [sign, logabsdet] = la::slogdet(-sa::full({}, element) * sa::eye(n));
      CHECK(sign.item<double>() == (n % 2 == 0 ? 1 : -1));
      CHECK(logabsdet.item<double>() ==
            doctest::Approx(static_cast<double>(n) * std::log(element)).epsilon(1e-5));
    }
}

TEST_CASE("linalg: what is not finite reaches what depends on it, in float32 as in float64") {
  const auto nan_at = [](const Array& x) {
    std::vector<bool> all;
    for (const double v : x.to_vector<double>()) all.push_back(!std::isfinite(v));
    return all;
  };
  int seen = 0;
  for (const std::int64_t n : {1, 2, 3, 5, 40})
    for (const double bad : {std::nan(""), HUGE_VAL})
      for (std::int64_t at = 0; at < n * n; at += n < 40 ? 1 : 371) {
        CAPTURE(n);
        CAPTURE(bad);
        CAPTURE(at);
        std::vector<double> v(static_cast<std::size_t>(n * n));
        for (std::size_t k = 0; k < v.size(); k++) v[k] = static_cast<double>((k * 7 + k / 3) % 5) / 8;
        for (std::int64_t k = 0; k < n; k++) v[static_cast<std::size_t>(k * n + k)] += static_cast<double>(n);
        v[static_cast<std::size_t>(at)] = bad;
        const Array wide = sa::array(v, {n, n}, sa::float64), x = wide.astype(sa::float32),
                    b = sa::ones({n, 2});
        const auto same = [&](const char* what, const Array& a, const Array& expected) {
          seen++;
          CHECK_MESSAGE(nan_at(a) == nan_at(expected), what);
        };
        same("cholesky", sa::linalg::cholesky(x), sa::linalg::cholesky(wide));
        same("solve", sa::linalg::solve(x, b), sa::linalg::solve(wide, b.astype(sa::float64)));
        same("inv", sa::linalg::inv(x), sa::linalg::inv(wide));
        same("det", sa::linalg::det(x), sa::linalg::det(wide));
        same("q", sa::linalg::qr(x).q, sa::linalg::qr(wide).q);
        same("r", sa::linalg::qr(x).r, sa::linalg::qr(wide).r);
      }
  CHECK(seen > 400);
}

namespace {

enum class Odd : std::uint8_t { infinity_in_a, infinity_in_b, zero_pivot, small_pivot };

/// Which elements of X are finite by substitution, number by number, in T: in every block of BLAS nothing else may be lost.
template <class T>
void check_triangle(sa::DType t, std::int64_t n, std::int64_t k, const la::TriangularSolveOptions& o,
                    Odd odd) {
  std::vector<T> a(static_cast<std::size_t>(n * n)), b(static_cast<std::size_t>(n * k), T(1));
  for (std::size_t e = 0; e < a.size(); e++) a[e] = static_cast<T>((e * 7 + e / 3) % 5) / 64;
  for (std::int64_t i = 0; i < n; i++) a[static_cast<std::size_t>(i * n + i)] = 2;
  const auto middle = static_cast<std::size_t>(n / 2 * n + n / 2);
  switch (odd) {
    case Odd::infinity_in_a:
      a[o.lower ? a.size() - static_cast<std::size_t>(n) : static_cast<std::size_t>(n - 1)] = HUGE_VALF;
      break;
    case Odd::infinity_in_b: b[b.size() / 2] = HUGE_VALF; break;
    case Odd::zero_pivot: a[middle] = 0; break;
    case Odd::small_pivot: a[middle] = std::numeric_limits<T>::denorm_min(); break;
  }
  const sa::Shape sides = o.left_side ? sa::Shape{n, k} : sa::Shape{k, n};
  const auto got =
      sa::isfinite(la::triangular_solve(sa::array(a, {n, n}).astype(t), sa::array(b, sides).astype(t), o))
          .template to_vector<bool>();
  // op(A) X = B, or op(A)^T X^T = B^T
  const bool turned = o.transpose_a == o.left_side, forward = o.lower != turned;
  const auto of_a = [&](std::int64_t i, std::int64_t j) {
    return a[static_cast<std::size_t>(turned ? j * n + i : i * n + j)];
  };
  const auto at = [&](std::int64_t i, std::int64_t side) {
    return static_cast<std::size_t>(o.left_side ? i * k + side : side * n + i);
  };
  for (std::int64_t side = 0; side < k; side++)
    for (std::int64_t s = 0; s < n; s++) {
      const std::int64_t i = forward ? s : n - 1 - s;
      T& x = b[at(i, side)];
      for (std::int64_t r = 0; r < s; r++) {
        const std::int64_t j = forward ? r : n - 1 - r;
        x -= of_a(i, j) * b[at(j, side)];
      }
      if (!o.unit_diagonal) x /= of_a(i, i);
      CHECK(got[at(i, side)] == std::isfinite(x));
    }
}

}  // namespace

TEST_CASE("linalg: triangles that are not finite give what substitution gives, for every side and dtype") {
  for (const sa::DType t : {sa::float32, sa::float64, sa::complex64, sa::complex128})
    for (const std::int64_t n : {1, 3, 5, 8, 33, 70})
      for (const std::int64_t k : {1, 5, 130})
        for (int form = 0; form < 16; form++)
          for (const Odd odd : {Odd::infinity_in_a, Odd::infinity_in_b, Odd::zero_pivot, Odd::small_pivot}) {
            if (k > 5 && (n > 8 || form % 3 != 0)) continue;
            const la::TriangularSolveOptions o{.left_side = (form & 1) != 0,
                                               .lower = (form & 2) != 0,
                                               .transpose_a = (form & 4) != 0,
                                               .unit_diagonal = (form & 8) != 0};
            CAPTURE(sa::name(t));
            CAPTURE(n);
            CAPTURE(k);
            CAPTURE(form);
            CAPTURE(static_cast<int>(odd));
            if (sa::itemsize(t) / (sa::is_complex(t) ? 2 : 1) == 4) check_triangle<float>(t, n, k, o, odd);
            else check_triangle<double>(t, n, k, o, odd);
          }
}

TEST_CASE("linalg: the bits of a solution do not depend on a side beside it that is not finite") {
  const Array a = sa::random::normal(sa::random::key(1), {40, 40}) + 8 * sa::eye(40),
              b = sa::random::normal(sa::random::key(2), {40, 6});
  const auto want = la::solve(a, b).to_vector<float>(),
             got = la::solve(a, b.at({7, 3}).set(HUGE_VALF)).to_vector<float>();
  for (std::size_t e = 0; e < want.size(); e++)
    if (e % 6 != 3) CHECK(got[e] == want[e]);
}

TEST_CASE("linalg: workspaces that LAPACK cannot count are refused, whatever it answers") {
  const auto refuses = [](const auto& f) {
    const std::string text = sa::testing::message_of<sa::CompileError>([&] { sa::eval(f()); });
    CHECK_MESSAGE(text.find("its workspace has more than 2^31 elements") != std::string::npos, text);
  };
  for (const std::int64_t n : {32767, 46341}) {
    refuses([&] { return sa::linalg::eigh(sa::zeros({0, n, n})).eigenvectors; });
    refuses([&] { return sa::linalg::eigh(sa::zeros({0, n, n}, sa::complex64)).eigenvectors; });
    refuses([&] { return sa::linalg::svd(sa::zeros({0, n, n})).u; });
  }
  refuses([&] { return sa::linalg::svd(sa::zeros({0, 30000, 30000})).u; });
}

}  // namespace linalg_test
