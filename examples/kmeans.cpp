// k-means on pictures of digits: the points are sharded over 8 devices, the centres are replicated.
#include <shardarray/shardarray.h>

#include <cstdio>
#include <iostream>
#include <limits>

namespace sa = shardarray;
using sa::Array;

constexpr int clusters = 10, pixels = 64;

// points: [n, pixels], centres: [clusters, pixels]. Returns the nearest centre of each point, int32[n], and the sum of the squared
// distances to them (the inertia).
std::pair<Array, Array> assign(const Array& points, const Array& centres) {
  // |p - c|^2 = |p|^2 - 2 p c + |c|^2: the products p c of all pairs are one matmul.
  const Array squares = sa::sum(sa::square(points), 1)[{sa::all, sa::newaxis}] +
                        sa::sum(sa::square(centres), 1) - 2 * sa::matmul(points, centres.T());
  return {sa::argmin(squares, 1), sa::sum(sa::min(squares, 1))};
}

// One step of Lloyd's algorithm: every centre moves to the mean of its points. Each device sums its own points per cluster; only
// these partial sums are combined.
std::pair<Array, Array> step(const Array& points, const Array& centres) {
  const auto [nearest, inertia] = assign(points, centres);
  const Array sums = sa::segment_sum(points, nearest, clusters);
  const Array counts = sa::bincount(nearest, clusters)[{sa::all, sa::newaxis}];
  return {sa::where(counts > 0, sums / counts, centres), inertia};
}

// k-means++: the next centre is a point drawn with a probability proportional to its squared distance from the nearest centre so far.
Array first_centres(const Array& points, const Array& key) {
  const auto draw = [&](const Array& i, const Array& distances) -> Array {
    return points[sa::random::categorical(sa::random::fold_in(key, i), sa::log(distances))];
  };
  Array centres = sa::broadcast_to(draw(0, sa::ones_like(points[{sa::all, 0}])), {clusters, pixels});
  return sa::fori_loop(
      1, clusters,
      [&](const Array& i, const Array& c) {
        const Array to_each = sa::sum(sa::square(points[{sa::all, sa::newaxis}] - c), 2);
        return c.at(i).set(draw(i, sa::min(to_each, 1)));
      },
      centres);
}

// Reference: the inertia by plain loops in float64.
double plain_inertia(const std::vector<float>& points, const std::vector<float>& centres) {
  double sum = 0;
  for (std::size_t i = 0; i < points.size(); i += pixels) {
    double least = std::numeric_limits<double>::max();
    for (std::size_t c = 0; c < centres.size(); c += pixels) {
      double square = 0;
      for (std::size_t k = 0; k < pixels; k++) {
        const double d = points[i + k] - centres[c + k];
        square += d * d;
      }
      least = std::min(least, square);
    }
    sum += least;
  }
  return sum;
}

void print_pictures(const Array& centres) {
  const std::vector<float> ink = centres.to_vector<float>();
  for (std::size_t row = 0; row < 8; row++) {
    for (std::size_t c = 0; c < clusters; c++) {
      for (std::size_t x = 0; x < 8; x++)
        std::cout << " .:-=+*#@"[static_cast<std::size_t>(ink[c * pixels + row * 8 + x] * 8.5f)];
      std::cout << ' ';
    }
    std::cout << '\n';
  }
}

bool run(bool quick) {
  const Array table = sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz");
  const sa::Mesh mesh = sa::make_mesh({{"points", 8}});
  const sa::NamedSharding by_point(mesh, sa::P("points")), everywhere(mesh, sa::P());
  const Array points =
      sa::device_put(table[{sa::all, sa::slice(0, pixels)}] / 16, by_point);  // 1797 = 7 * 225 + 222
  const Array labels = sa::device_put(table[{sa::all, pixels}].astype(sa::int32), by_point);
  sa::visualize_array_sharding(points);

  Array centres = sa::device_put(sa::jit(first_centres)(points, sa::random::key(3)), everywhere), inertia;
  const auto move = sa::jit(step, {.out_shardings = everywhere});
  for (const sa::TransferInfo& t : sa::explain(move, points, centres).transfers())
    std::cout << t.kind << " of " << t.dtype << t.shape << ", " << t.bytes_per_device
              << " B per device: " << t.reason << "\n";

  bool ok = true;
  double before = std::numeric_limits<double>::max();
  for (int i = 0; i < (quick ? 10 : 100); i++) {
    const Array old = centres;
    std::tie(centres, inertia) = move(points, centres);
    const double now = inertia.item<double>();
    std::printf("step %2d: inertia %.2f\n", i, now);
    if (i == 0)
      ok = ok && std::abs(now / plain_inertia(points.to_vector<float>(), old.to_vector<float>()) - 1) < 1e-5;
    ok = ok && now <= before * (1 + 1e-6);
    before = now;
    if (sa::array_equal(old, centres)) break;  // converged: no point changes its cluster
  }

  // A cluster predicts the digit of most of its points.
  const Array nearest = assign(points, centres).first;
  const Array digits = sa::bincount(nearest * 10 + labels, clusters * 10).reshape(clusters, 10);
  const double right = (sa::sum(sa::max(digits, 1)) / table.shape()[0]).item<double>();
  print_pictures(centres);
  for (const int digit : sa::argmax(digits, 1).to_vector<int>()) std::printf("   %d     ", digit);
  std::printf("\n%.1f %% of the points are in a cluster of their digit\n", 100 * right);
  return ok && right > 0.6;
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  try {
    return run(argc > 1 && std::string_view(argv[1]) == "--quick") ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "kmeans: " << e.what() << "\n";
    return 1;
  }
}
