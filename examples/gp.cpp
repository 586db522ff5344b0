// Gaussian processes complete pictures of digits: from the upper half they predict the lower half, with error bars. The 32 predicted
// pixels share a kernel, whose parameters maximize the likelihood of the training pictures; pixels are sharded over 8 devices.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace sa = shardarray;
using sa::Array;

constexpr int half = 32;  // pixels. All is float64: similar pictures make the kernel nearly singular

// Logarithms, which keeps the parameters positive.
struct Parameters {
  Array length, signal, noise;
};

// [n, half], [m, half] -> [n, m]: the squared-exponential kernel of all pairs of pictures.
Array kernel(const Parameters& p, const Array& a, const Array& b) {
  const Array norms = sa::sum(a * a, {.axis = 1, .keepdims = true}) + sa::sum(b * b, 1);
  const Array distances = sa::maximum(norms - 2 * sa::matmul(a, b.T()), 0);
  return sa::exp(2 * p.signal - distances * sa::exp(-2 * p.length) / 2);
}
Array factor_of(const Parameters& p, const Array& x) {
  return sa::linalg::cholesky(kernel(p, x, x) +
                              sa::exp(2 * p.noise) * sa::eye(x.shape()[0], x.shape()[0], 0, sa::float64));
}
Array solved(const Array& factor, const Array& b, bool transposed = false) {
  return sa::linalg::triangular_solve(factor, b,
                                      {.left_side = true, .lower = true, .transpose_a = transposed});
}

// The negative log likelihood of y, [n, pixels], per element. log det K is twice that of its Cholesky factor.
Array misfit(const Parameters& p, const Array& x, const Array& y) {
  const Array factor = factor_of(p, x), white = solved(factor, y);
  const Array log_det = 2 * sa::sum(sa::log(sa::diagonal(factor)));
  return (sa::sum(white * white) / y.shape()[1] + log_det) / (2 * x.shape()[0]) + std::log(2 * M_PI) / 2;
}

// Predicted mean [m, pixels] and standard deviation [m, 1] of new pictures.
std::pair<Array, Array> predict(const Parameters& p, const Array& x, const Array& y, const Array& seen) {
  const Array factor = factor_of(p, x), common = solved(factor, kernel(p, x, seen));
  const Array variance = sa::exp(2 * p.signal) + sa::exp(2 * p.noise) - sa::sum(common * common, 0);
  return {sa::matmul(common.T(), solved(factor, y)), sa::sqrt(variance).reshape(-1, 1)};
}

void print_rows(const std::vector<double>& ink, std::size_t picture, std::size_t row) {
  for (std::size_t x = 0; x < 8; x++)
    std::cout << " .:-=+*#@"[static_cast<std::size_t>(
        std::clamp(ink[picture * half + row * 8 + x], 0.0, 1.0) * 8.5)];
  std::cout << "  ";
}

bool run(bool quick) {
  const Array table =
      sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz", {.dtype = sa::float64}) / 16;
  const int n = quick ? 128 : 768, tests = 200;
  const sa::Mesh mesh = sa::make_mesh({{"pixels", 8}});
  const sa::NamedSharding by_pixel(mesh, sa::P(sa::none, "pixels")), everywhere(mesh, sa::P());
  const Array upper = table[{sa::all, sa::slice(0, half)}],
              lower = table[{sa::all, sa::slice(half, 2 * half)}];
  const sa::slice of_train(0, n), of_test(n, n + tests);
  const Array centre = sa::mean(lower[of_train], 0);
  const Array x = sa::device_put(upper[of_train], everywhere),
              y = sa::device_put(lower[of_train] - centre, by_pixel);
  sa::visualize_array_sharding(y);

  const auto number = [](double v) { return sa::array(v, sa::float64); };
  Parameters p = sa::device_put(Parameters{number(0), number(-1), number(-1)}, everywhere);
  // The gradient is checked against a central difference.
  const auto value = sa::jit(misfit);
  const auto slope = sa::jit(sa::value_and_grad(misfit));
  const Parameters exact = slope(p, x, y).second;
  const double h = 1e-5;
  Parameters above = p, below = p;
  above.length = p.length + h;
  below.length = p.length - h;
  const double by_difference = (value(above, x, y) - value(below, x, y)).item<double>() / (2 * h),
               by_grad = exact.length.item<double>();
  std::printf("slope of the length: %.6f, by differences %.6f\n", by_grad, by_difference);
  bool ok = std::abs(by_grad - by_difference) < 1e-6;

  const auto optim = sa::optim::adam(0.1);
  auto state = optim.init(p);
  const auto step = sa::jit(
      [=](const Parameters& now, const decltype(state)& s, const Array& a, const Array& b) {
        const auto [loss, grads] = sa::value_and_grad(misfit)(now, a, b);
        const auto [updates, next] = optim.update(grads, s);
        return std::tuple(sa::apply_updates(now, updates), next, loss);
      },
      {.out_shardings = everywhere});
  double first = 0, last = 0;
  for (int i = 0; i < (quick ? 20 : 50); i++) {
    Array loss;
    std::tie(p, state, loss) = step(std::move(p), std::move(state), x, y);
    last = loss.item<double>();
    if (i == 0) first = last;
    if (i % 10 == 0) std::printf("step %2d: -log likelihood of a pixel %.4f\n", i, last);
  }
  const auto shown = [](const Array& a) { return std::exp(a.item<double>()); };
  std::printf("length %.2f, signal %.2f, noise %.2f\n", shown(p.length), shown(p.signal), shown(p.noise));

  const Array seen = sa::device_put(upper[of_test], everywhere), truth = lower[of_test];
  const auto [mean, deviation] = sa::jit(predict)(p, x, y, seen);
  const Array told = mean + sa::device_put(centre, everywhere),
              error = told - sa::device_put(truth, everywhere);
  // The same mean without Cholesky: K^-1 y by `solve`.
  const Array k = kernel(p, x, x) + sa::exp(2 * p.noise) * sa::eye(n, n, 0, sa::float64);
  const Array direct = sa::matmul(kernel(p, seen, x), sa::linalg::solve(k, y));
  ok = ok && sa::max(sa::abs(mean - direct)).item<double>() < 1e-8;

  const auto rms = [](const Array& a) { return std::sqrt(sa::mean(a * a).item<double>()); };
  const double by_mean = rms(truth - centre), by_gp = rms(error);
  const double within = sa::mean(sa::abs(error) < 2 * deviation).item<double>();
  const auto t = truth.to_vector<double>(), g = told.to_vector<double>(), s = deviation.to_vector<double>(),
             u = seen.to_vector<double>();
  std::cout << "pixel 20 of the lower half: truth, told, error bar\n";
  for (std::size_t i = 0; i < 8; i++)
    std::printf("  %5.2f  %5.2f +- %.2f\n", t[i * half + 20], g[i * half + 20], s[i]);
  std::cout << "what is seen and told, and the truth:\n";
  for (std::size_t row = 0; row < 12; row++) {
    for (std::size_t i = 0; i < 8; i++) print_rows(row < 4 ? u : row < 8 ? g : t, i, row % 4);
    std::cout << '\n';
  }
  std::printf("error %.3f, of the mean picture %.3f; %.1f %% are within two deviations\n", by_gp, by_mean,
              100 * within);
  return ok && last < first && by_gp < by_mean * (quick ? 0.9 : 0.75) && within > 0.85;
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  try {
    return run(argc > 1 && std::string_view(argv[1]) == "--quick") ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "gp: " << e.what() << "\n";
    return 1;
  }
}
