// A plug-in of some program that uses the library: C functions that train a little.
#include <shardarray/shardarray.h>

#include <cmath>

namespace sa = shardarray;
using sa::Array;

// Its state while it is loaded.
static Array last;

/// Fits y = 3 x by gradient descent on four devices; 1000 times the slope that it finds.
extern "C" int train_slope(int steps) {
  static const bool devices_set = (sa::set_cpu_device_count(4), true);
  static_cast<void>(devices_set);
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}});
  const Array x = sa::device_put(sa::arange(0, 1 << 16).astype(sa::float32) / float(1 << 16),
                                 sa::NamedSharding(mesh, sa::P("x")));
  const Array y = 3 * x;
  const auto step = sa::jit([](Array w, Array a, Array b) {
    return w - sa::grad([&](Array v) { return sa::mean(sa::square(v * a - b)); })(w);
  });
  Array w = 0.0f;
  for (int k = 0; k < steps; k++) w = step(std::move(w), x, y);
  last = w + 0;
  return static_cast<int>(std::lround(1000 * last.item<float>()));
}
