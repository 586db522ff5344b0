// Three ways to add a function that the library lacks, here Bessel's J0: composed of existing functions, with a custom derivative, and
// as code that runs on the host. The reference is std::cyl_bessel_j.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>

namespace sa = shardarray;
using sa::Array;

// 1. Composed: a function of arrays works like a built-in one under jit, vmap and grad, on any number of devices.
// J0(x) is the mean of cos(x sin t) over 0 < t < pi; for |x| < 50 the midpoint rule with 64 points is accurate to float32. The mean is
// fused with what it sums: no array of [.., 64] is stored.
Array midpoints() { return (sa::arange(64.0) + 0.5) * (std::numbers::pi / 64); }
Array bessel0(const Array& x) {
  return sa::mean(sa::cos(x[{sa::ellipsis, sa::newaxis}] * sa::sin(midpoints())), -1);
}
Array bessel1(const Array& x) {
  const Array t = midpoints();
  return sa::mean(sa::cos(t - x[{sa::ellipsis, sa::newaxis}] * sa::sin(t)), -1);
}

// 2. With a custom derivative: the second summand is 0, but its derivative is slope(x).
template <class F, class Slope> auto with_slope(F f, Slope slope) {
  return [=](const Array& x) -> Array {
    return sa::stop_gradient(f(x)) + sa::stop_gradient(slope(x)) * (x - sa::stop_gradient(x));
  };
}

// 3. On the host, element by element and shard by shard; the result is sharded like x. Reading needs a value, so this works where
// functions run eagerly, also in grad, but not in jit.
template <class F> Array on_host(const F& f, const Array& x) {
  const std::vector<sa::Shard> pieces = x.addressable_shards();
  return sa::make_array_from_callback(x.shape(), x.sharding(), [&](const sa::ShardIndex& index) {
    for (const sa::Shard& piece : pieces)
      if (piece.index == index) {
        std::vector<float> values = piece.data.to_vector<float>();
        for (float& v : values) v = f(v);
        return values;
      }
    return std::vector<float>();
  });
}
// std::cyl_bessel_j takes no negative arguments: J0 is even, J1 odd.
float host_j0(float x) { return static_cast<float>(std::cyl_bessel_j(0.0, std::abs(double{x}))); }
float host_j1(float x) {
  return static_cast<float>(std::copysign(1.0f, x) * std::cyl_bessel_j(1.0, std::abs(double{x})));
}

// The largest error of `values` against the host's function of x.
double error_of(const Array& values, const Array& x, float (*truth)(float), float sign = 1) {
  const std::vector<float> v = values.to_vector<float>(), at = x.to_vector<float>();
  double worst = 0;
  for (std::size_t k = 0; k < at.size(); k++)
    worst = std::max(worst, std::abs(double{v[k] - sign * truth(at[k])}));
  return worst;
}

bool run() {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array x = sa::device_put(sa::linspace(-20, 20, 1000), sa::NamedSharding(mesh, sa::P("x")));
  sa::visualize_array_sharding(x);
  bool ok = true;
  const auto report = [&](const char* what, double error) {
    std::printf("%-50s differs by %.1g\n", what, error);
    ok = ok && error < 2e-6;
  };
  // The derivatives at all elements: the gradient of the sum.
  const auto slopes_of = [](const auto& f) {
    return sa::grad([=](const Array& v) { return sa::sum(f(v)); });
  };

  report("composed, in jit", error_of(sa::jit(bessel0)(x), x, host_j0));
  report("its slope -J1, derived by the library", error_of(sa::jit(slopes_of(bessel0))(x), x, host_j1, -1));
  report("the slope of a slope: J0'' = J1 / x - J0",
         error_of(sa::jit(slopes_of(slopes_of(bessel0)))(x) - bessel1(x) / x, x, host_j0, -1));
  const sa::Explanation plan = sa::explain(sa::jit(slopes_of(bessel0)), x);
  std::printf("value and slope move nothing: %zu transfers, and need %lld B per device for 125 elements\n",
              plan.transfers().size(), static_cast<long long>(plan.peak_bytes_per_device));

  const auto ruled = with_slope(bessel0, [](const Array& v) { return -bessel1(v); });
  report("with a slope of its own, in jit", error_of(sa::jit(ruled)(x), x, host_j0));
  report("that slope", error_of(sa::jit(slopes_of(ruled))(x), x, host_j1, -1));
  // A function without a useful derivative may be given one: that of rounding becomes 1 ("straight through").
  const auto rounded = with_slope([](const Array& v) { return sa::round(v); }, sa::ones_like);
  const Array passed = slopes_of(rounded)(x),
              stopped = slopes_of([](const Array&v) { return sa::round(v); })(x);
  std::printf("slope of round %.0f, straight through %.0f\n", sa::max(stopped).item<double>(),
              sa::min(passed).item<double>());
  ok = ok && sa::array_equal(passed, sa::ones_like(x));

  const auto by_host = with_slope([](const Array& v) { return on_host(host_j0, v); },
                                  [](const Array& v) { return -on_host(host_j1, v); });
  const Array values = by_host(x);
  report("by the host, from the composed one", sa::max(sa::abs(values - bessel0(x))).item<double>());
  report("its slope", sa::max(sa::abs(slopes_of(by_host)(x) + bessel1(x))).item<double>());
  std::cout << "it is cut like x: " << values.type_string() << "\n";
  try {
    std::cout << sa::jit(by_host)(x) << "\n";
    ok = false;
  } catch (const sa::TraceError& e) { std::cout << "in jit: " << e.what() << "\n"; }

  // A host function that only observes works in jit: it is called after the run, with the values.
  int calls = 0;
  const auto watched = sa::jit([&](const Array& v) {
    Array y = bessel0(v);
    sa::debug::callback([&](const sa::HostValues& seen) { calls += static_cast<int>(seen.arrays[0].size()); },
                        {y});
    return y;
  });
  sa::eval(watched(x), watched(x));
  std::printf("the host saw %d elements\n", calls);
  return ok && calls == 2000;
}

int main() {
  sa::set_cpu_device_count(8);
  try {
    return run() ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "custom_op: " << e.what() << "\n";
    return 1;
  }
}
