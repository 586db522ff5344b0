// Linear algebra and convolutions of complex arrays: JAX's numbers (linalg_complex.json), factors of large matrices, phases, where
// matrices are factorised, derivatives against differences, messages.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "golden.h"
#include "linalg_functions.h"
#include "messages.h"
#include "shardarray/shardarray.h"

namespace linalg_complex_test {

namespace sa = shardarray;
namespace la = shardarray::linalg;
using golden::Json;
using sa::Array;
using sa::P;
using Arrays = std::vector<Array>;
using Number = std::complex<double>;

namespace {

using Function = std::function<Arrays(const Arrays&)>;
using sa::testing::squared_sizes;
template <class F> Function matrix_orders(const F& f) {
  return [f](const Arrays& x) {
    const double inf = std::numeric_limits<double>::infinity();
    Arrays r{f(x[0], la::MatrixNormOptions{}), f(x[0], la::MatrixNormOptions{.nuclear = true})};
    for (const double ord : {1.0, -1.0, 2.0, -2.0, inf, -inf})
      r.push_back(f(x[0], la::MatrixNormOptions{.ord = ord}));
    return r;
  };
}
template <class F> Function every_mode(const F& f) {
  return [f](const Arrays& x) {
    Arrays r;
    for (const auto mode : {sa::ConvolveMode::full, sa::ConvolveMode::same, sa::ConvolveMode::valid})
      r.push_back(f(x[0], x[1], mode));
    return r;
  };
}
Arrays svd_of(const Arrays& x) {
  const auto [u, s, vh] = la::svd(x[0], {.full_matrices = false});
  return {s, squared_sizes(u), squared_sizes(vh),
          sa::matmul(u[{sa::ellipsis, sa::slice(2)}], vh[{sa::ellipsis, sa::slice(2), sa::all}])};
}
Arrays norms_of(const Arrays& x) {
  const double inf = std::numeric_limits<double>::infinity();
  return {la::norm(x[0]), la::norm(x[0], {.axis = -1}), la::norm(x[0], {.ord = 1, .axis = -1}),
          la::norm(x[0], {.ord = inf, .axis = 0})};
}
Arrays triangular(const Arrays& x, const la::TriangularSolveOptions& o) {
  return {la::triangular_solve(x[0], x[1], o)};
}

const sa::testing::MatrixFunctions& functions() {
  static const sa::testing::MatrixFunctions all = [] {
    sa::testing::MatrixFunctions f = sa::testing::matrix_functions();
    f["cholesky upper"] = [](const Arrays& x) { return Arrays{la::cholesky(x[0], {.upper = true})}; };
    f["triangular_solve adjoint"] = [](const Arrays& x) {
      return triangular(x, {.transpose_a = true, .conjugate_a = true});
    };
    f["triangular_solve conjugate"] = [](const Arrays& x) { return triangular(x, {.conjugate_a = true}); };
    f["solve_triangular adjoint"] = [](const Arrays& x) {
      return Arrays{la::solve_triangular(x[0], x[1], {.trans = true, .conjugate = true, .lower = true})};
    };
    f["svd"] = svd_of;
    f["norm"] = norms_of;
    f["matrix_norm"] = matrix_orders(la::matrix_norm);
    f["matrix_power"] = [](const Arrays& x) {
      return Arrays{la::matrix_power(x[0], 3), la::matrix_power(x[0], -2), la::matrix_power(x[0], 0)};
    };
    f["multi_dot"] = [](const Arrays& x) { return Arrays{la::multi_dot({x[0], x[1], x[0]})}; };
    f["tensorinv"] = [](const Arrays& x) { return Arrays{la::tensorinv(x[0].reshape({2, 3, 6}))}; };
    f["convolve"] = every_mode(sa::convolve);
    f["correlate"] = every_mode(sa::correlate);
    f["conv"] = [](const Arrays& x) {
      return Arrays{sa::conv_general_dilated(
          x[0], x[1], {.window_strides = {2}, .padding = {{1, 2}}, .rhs_dilation = {2}})};
    };
    return f;
  }();
  return all;
}

std::vector<double> parts_of(const Array& x) {
  if (!sa::is_complex(x.dtype())) return golden::values(x);
  std::vector<double> r;
  for (const Number& z : x.to_vector<Number>()) {
    r.push_back(z.real());
    r.push_back(z.imag());
  }
  return r;
}
bool close_to(const Array& x, const Json& j, double digits) {
  return x.shape() == golden::shape_of(j["shape"]) && x.dtype() == golden::dtype_named(j["dtype"]) &&
         golden::close(parts_of(x), golden::numbers(j), digits, digits);
}

/// Re(sum of given y): its gradient is the pullback of `given`.
Array loss(const Arrays& out, const Json& given) {
  Array total;
  for (std::size_t k = 0; k < out.size(); k++) {
    if (given[k].is_null()) continue;
    const Array term = sa::real(sa::sum(out[k] * golden::array(given[k])));
    total = total.has_value() ? total + term : term;
  }
  return total;
}

void check_case(const Json& c) {
  const std::string name = c["name"];
  Arrays x;
  for (const Json& operand : c["in"]) x.push_back(golden::array(operand));
  CAPTURE(name);
  CAPTURE(c["in"].dump());
  const Function& f = functions().at(name);
  const Arrays out = f(x);
  REQUIRE(out.size() == c["out"].size());
  const double digits = x[0].dtype() == sa::complex128 ? 1e-11 : 1e-4;
  for (std::size_t k = 0; k < out.size(); k++) {
    CAPTURE(k);
    CAPTURE(out[k]);
    CAPTURE(c["out"][k].dump());
    CHECK(close_to(out[k], c["out"][k], digits));
  }
  if (!c.contains("given")) return;
  const auto back = sa::grad([&](const Arrays& v) { return loss(f(v), c["given"]); })(x);
  for (std::size_t k = 0; k < x.size(); k++) {
    CAPTURE(back[k]);
    CAPTURE(c["back"][k].dump());
    CHECK(close_to(back[k], c["back"][k], 50 * digits));
  }
}

Array numbers(const sa::Shape& shape, std::uint64_t seed, sa::DType t = sa::complex128) {
  const auto part = [&](std::uint64_t s) {
    return sa::random::uniform(sa::random::key(s), shape, sa::float64, -1.0, 1.0);
  };
  return sa::complex(part(2 * seed), part(2 * seed + 1)).astype(t);
}
double largest(const Array& x) { return sa::max(sa::abs(x)).item<double>(); }
Array adjoint(const Array& x) { return sa::conj(sa::swapaxes(x, -1, -2)); }
Array one(std::int64_t n) { return sa::eye(n, std::nullopt, 0, sa::float64); }

}  // namespace

TEST_CASE("linalg: JAX's values and pullbacks of complex matrices") {
  const Json all = golden::load("linalg_complex.json");
  for (const Json& c : all["cases"]) check_case(c);
}

TEST_CASE("linalg: complex matrices that are singular, indefinite, empty or not finite give what JAX gives") {
  const Json all = golden::load("linalg_complex.json");
  for (const Json& c : all["edges"]) check_case(c);
  CHECK(la::det(sa::zeros({2, 0, 0}, sa::complex64)).to_vector<Number>() == std::vector<Number>{1, 1});
}

TEST_CASE("linalg: the factors of large complex matrices") {
  const Array x = numbers({200, 200}, 2), b = numbers({200, 140}, 3);
  CHECK(largest(sa::matmul(x, la::solve(x, b)) - b) < 1e-9);
  CHECK(largest(sa::matmul(x, la::inv(x)) - one(200)) < 1e-9);
  const Array s = sa::matmul(x, adjoint(x)) + one(200), l = la::cholesky(s),
              u = la::cholesky(s, {.upper = true});
  CHECK(largest(sa::matmul(l, adjoint(l)) - s) < 1e-10);
  CHECK(largest(sa::matmul(adjoint(u), u) - s) < 1e-10);
  CHECK(largest(sa::imag(sa::diagonal(l))) == 0);
  const auto [w, v] = la::eigh(s);
  CHECK(w.dtype() == sa::float64);
  CHECK(largest(sa::matmul(v * w, adjoint(v)) - s) < 1e-9);
  CHECK(largest(sa::matmul(adjoint(v), v) - one(200)) < 1e-11);
  CHECK(largest(la::eigvalsh(s) - w) < 1e-9);
  const auto [left, values, right] = la::svd(x);
  CHECK(largest(sa::matmul(left * values, right) - x) < 1e-10);
  const auto [q, r] = la::qr(x);
  CHECK(largest(sa::matmul(q, r) - x) < 1e-11);
  CHECK(largest(sa::matmul(adjoint(q), q) - one(200)) < 1e-12);
  CHECK(largest(sa::tril(r, -1)) == 0);
  CHECK(largest(sa::imag(sa::diagonal(r))) == 0);
  const auto [lu, pivots, permutation] = la::lu(x);
  CHECK(largest(sa::matmul(sa::tril(lu, -1) + one(200), sa::triu(lu)) - sa::take(x, permutation, 0)) < 1e-11);
  // The determinant overflows, its logarithm does not.
  const auto [sign, logabsdet] = la::slogdet(1e10 * x);
  CHECK(std::abs(sign.item<Number>()) == doctest::Approx(1));
  CHECK(logabsdet.item<double>() ==
        doctest::Approx(sa::sum(sa::log(values)).item<double>() + 200 * std::log(1e10)));
  // exp of a matrix that must be halved often
  CHECK(la::expm(sa::full({1, 1}, Number(0, 200)))[{0, 0}].item<Number>().real() ==
        doctest::Approx(std::cos(200.0)).epsilon(1e-4));
}

TEST_CASE("linalg: matrices of complex64 with real right-hand sides, and the other way round") {
  const Array a = numbers({4, 4}, 5, sa::complex64) + 4 * sa::eye(4),
              b = sa::real(numbers({4, 2}, 6, sa::complex64));
  CHECK(la::solve(a, b).dtype() == sa::complex64);
  CHECK(largest(sa::matmul(a, la::solve(a, b)) - b) < 1e-5);
  CHECK(largest(sa::matmul(sa::real(a), la::solve(sa::real(a), a)) - a) < 1e-5);
  CHECK(la::solve(a, sa::ones({4}, sa::float64)).dtype() == sa::complex128);
}

TEST_CASE("linalg: batches of complex matrices stay cut, nothing moves; right-hand sides may be cut") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = numbers({16, 6, 6}, 4) + 4 * one(6);
  const auto all = [](const Array& a) {
    const Array s = (a + adjoint(a)) / 2;
    const auto [q, r] = la::qr(a);
    return std::tuple(la::cholesky(s), la::inv(a), la::det(a), q, r, la::eigh(s).eigenvalues, la::svdvals(a),
                      la::pinv(a), la::expm(a));
  };
  const Array cut = sa::device_put(x, sa::NamedSharding(mesh, P("x")));
  CHECK(sa::explain(all, cut).transfers().empty());
  const auto results = sa::jit(all)(cut);
  CHECK(std::get<0>(results).sharding().shard_shape({16, 6, 6}) == sa::Shape{2, 6, 6});
  CHECK(sa::array_equal(std::get<1>(results), la::inv(x)));
  CHECK(largest(sa::vmap(la::pinv)(x) - std::get<7>(results)) < 1e-12);
  const Array a = x[0], b = numbers({6, 16}, 7);
  const auto f = [](const Array& m, const Array& s) { return la::solve(m, s); };
  const Array whole = sa::device_put(a, sa::NamedSharding(mesh, P())),
              sides = sa::device_put(b, sa::NamedSharding(mesh, P(sa::none, "x")));
  CHECK(sa::explain(f, whole, sides).transfers().empty());
  const Array y = sa::jit(f)(whole, sides);
  CHECK(y.sharding().shard_shape({6, 16}) == sa::Shape{6, 2});
  CHECK(largest(sa::matmul(a, y) - b) < 1e-13);
  const sa::reproducible on(true);
  CHECK(sa::array_equal(sa::jit(f)(whole, sides), f(a, b)));
}

// Factors themselves turn by phases; what jvp says is that A is their product still, and that they stay what they are.
TEST_CASE("linalg: derivatives of complex factors fit each other") {
  for (const auto& row : {std::pair<std::int64_t, std::int64_t>{5, 5}, {6, 3}, {3, 6}}) {
    const auto& m = row.first;
    const auto& n = row.second;
    CAPTURE(m);
    CAPTURE(n);
    const Array a = numbers({m, n}, 11) + 4 * sa::eye(m, n, 0, sa::float64), da = numbers({m, n}, 12);
    const auto product = [](const Array& x, const Array& y) { return sa::matmul(x, y); };
    for (const auto mode : {la::QrMode::reduced, la::QrMode::complete}) {
      const auto f = [&](const Array& x) {
        const auto [q, r] = la::qr(x, mode);
        return std::pair(q, r);
      };
      const auto [value, change] = sa::jvp(f, a, da);
      const auto& [q, r] = value;
      const auto& [dq, dr] = change;
      CHECK(largest(product(dq, r) + product(q, dr) - da) < 1e-12);
      CHECK(largest(product(adjoint(dq), q) + product(adjoint(q), dq)) < 1e-12);
      CHECK(largest(sa::tril(dr, -1)) < 1e-12);
      CHECK(largest(sa::imag(sa::diagonal(dr))) < 1e-12);
      // Q and R have no free phase: LAPACK's are smooth here
      const double h = 1e-6;
      const auto [q1, r1] = f(a + h * da);
      const auto [q0, r0] = f(a - h * da);
      CHECK(largest((q1 - q0) / (2 * h) - dq) < 1e-7);
      CHECK(largest((r1 - r0) / (2 * h) - dr) < 1e-7);
    }
    const auto g = [](const Array& x) {
      const auto [u, s, vh] = la::svd(x, {.full_matrices = false});
      return std::tuple(u, s, vh);
    };
    const auto [value, change] = sa::jvp(g, a, da);
    const auto& [u, s, vh] = value;
    const auto& [du, ds, dvh] = change;
    CHECK(largest(product(du * s, vh) + product(u * ds, vh) + product(u * s, dvh) - da) < 1e-12);
    CHECK(largest(product(adjoint(du), u) + product(adjoint(u), du)) < 1e-12);
    CHECK(largest(product(dvh, adjoint(vh)) + product(vh, adjoint(dvh))) < 1e-12);
    CHECK(ds.dtype() == sa::float64);
  }
  const Array x = numbers({5, 5}, 13), h = (x + adjoint(x)) / 2, y = numbers({5, 5}, 14),
              dh = (y + adjoint(y)) / 2;
  const auto [value, change] = sa::jvp(
      [](const Array& a) {
        const auto [w, v] = la::eigh(a);
        return std::pair(w, v);
      },
      h, dh);
  const auto& [w, v] = value;
  const auto& [dw, dv] = change;
  CHECK(largest(sa::matmul(dh, v) + sa::matmul(h, dv) - v * dw - dv * w) < 1e-11);
}

TEST_CASE("linalg: the phase of a complex determinant has a derivative") {
  const Array a = numbers({4, 4}, 15), da = numbers({4, 4}, 16);
  const auto sign = [](const Array& x) { return la::slogdet(x).sign; };
  const double h = 1e-6;
  const auto [value, slope] = sa::jvp(sign, a, da);
  CHECK(std::abs(value.item<Number>()) == doctest::Approx(1));
  CHECK(largest((sign(a + h * da) - sign(a - h * da)) / (2 * h) - slope) < 1e-8);
}

TEST_CASE("linalg: messages about complex matrices") {
  const Array wide = sa::ones({2, 3}, sa::complex64);
  CHECK_SAYS(la::cholesky(wide),
             "linalg::cholesky: the operand is c64[2,3]. It takes square matrices, which are the last two "
             "dimensions. Check them.",
             sa::ShapeError);
  CHECK_SAYS(
      sa::grad([](const Array& x) { return sa::sum(squared_sizes(la::svd(x).u)); })(wide),
      "grad: the factors of svd with full matrices of c64[2,3] have no derivative. What completes them "
      "is not determined. Use full_matrices = false.",
      sa::Error);
}

}  // namespace linalg_complex_test
