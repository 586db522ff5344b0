// The heat equation on a plate sharded over 4 x 2 devices: once with halos exchanged by hand, once as if there were one device.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>

namespace sa = shardarray;
using sa::Array;

constexpr double rate = 0.2;  // dt / h^2: the explicit scheme is stable up to 1 / 4

// By the library: shifts a global array by one point in each direction; zeros enter at the border. The compiler finds out that only
// a neighbour's first or last row or column is needed.
Array step_global(const Array& plate) {
  const sa::slice but_first(1, sa::none), but_last(0, -1);
  const Array around = sa::pad(plate[but_last], {{1, 0}, {0, 0}}) +
                       sa::pad(plate[but_first], {{0, 1}, {0, 0}}) +
                       sa::pad(plate[{sa::all, but_last}], {{0, 0}, {1, 0}}) +
                       sa::pad(plate[{sa::all, but_first}], {{0, 0}, {0, 1}});
  return plate + rate * (around - 4 * plate);
}

// By hand: every device sees only its tile and receives its neighbours' edges, the halo. Where there is no neighbour, ppermute gives
// zeros: the border of the plate.
Array step_local(const Array& piece) {
  const auto from = [](const Array& edge, const char* axis, int offset) {
    sa::Permutation pairs;
    const auto n = static_cast<int>(sa::axis_size(axis));
    for (int to = std::max(0, -offset); to < std::min(n, n - offset); to++)
      pairs.push_back({to + offset, to});
    return sa::ppermute(edge, axis, pairs);
  };
  const sa::slice first(0, 1), last(-1, sa::none), before(0, -2), inner(1, -1), behind(2, sa::none);
  const Array left = from(piece[{sa::all, last}], "x", -1), right = from(piece[{sa::all, first}], "x", 1),
              tall = sa::concatenate({from(piece[last], "y", -1), piece, from(piece[first], "y", 1)});
  const Array wide =  // the tile with a halo of one point; its corners are not used
      sa::concatenate({sa::pad(left, {{1, 1}, {0, 0}}), tall, sa::pad(right, {{1, 1}, {0, 0}})}, 1);
  const Array around =
      wide[{before, inner}] + wide[{behind, inner}] + wide[{inner, before}] + wide[{inner, behind}];
  return piece + rate * (around - 4 * piece);
}

// The bytes that the busiest device receives in a step.
template <class F> std::int64_t received(const char* way, const F& step, const Array& plate) {
  const sa::Explanation plan = sa::explain(step, plate);
  for (const sa::TransferInfo& t : plan.transfers())
    std::cout << way << ": " << t.kind << ", " << t.bytes_per_device << " B per device\n";
  return plan.received_bytes_per_device();
}

bool run(std::int64_t n, std::int64_t steps) {
  const sa::Mesh mesh = sa::make_mesh({{"y", 4}, {"x", 2}});
  const sa::NamedSharding tiles(mesh, sa::P("y", "x"));

  // Half a sine wave per direction: an eigenvector of the step, which scales it by the same factor every time.
  const Array wave =
      sa::sin(std::numbers::pi / static_cast<double>(n + 1) * sa::arange(1, static_cast<int>(n) + 1));
  const Array plate = sa::device_put(sa::outer(wave, wave), tiles);
  sa::visualize_array_sharding(plate);

  const auto global = sa::jit(step_global, {.out_shardings = tiles});
  const auto by_hand =
      sa::jit(sa::shard_map(step_local, {.mesh = mesh, .in_specs = tiles.spec(), .out_specs = tiles.spec()}));
  const std::int64_t edges = 2 * n / 2 + 2 * n / 4;  // two rows and two columns of a tile
  const std::int64_t global_bytes = received("library", global, plate),
                     hand_bytes = received("by hand", by_hand, plate);
  std::cout << "a piece has " << n * n / 8 * 4 << " B, its neighbours' edges " << 4 * edges << " B\n";

  // All steps are one program.
  const auto many = [=](const auto& step) {
    return sa::jit([=](const Array& p) {
      return sa::fori_loop(
          0, steps, [=](const Array&, const Array& u) { return step(u); }, p);
    });
  };
  const Array a = many(global)(plate), b = many(by_hand)(plate);
  const double s = std::sin(std::numbers::pi / 2 / static_cast<double>(n + 1));
  const double factor = std::pow(1 - 8 * rate * s * s, static_cast<double>(steps));
  const double between = sa::max(sa::abs(a - b)).item<double>(),
               exact = sa::max(sa::abs(a - factor * plate)).item<double>();
  std::printf("after all steps the top is at %.4f, and should be at %.4f\n", sa::max(a).item<double>(),
              factor * sa::max(plate).item<double>());
  std::printf("the ways differ by %.1g, from the solution by %.1g\n", between, exact);
  return between < 1e-6 && exact < 1e-5 && global_bytes <= 4 * edges && hand_bytes <= 4 * edges;
}

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  sa::set_cpu_device_count(8);
  try {
    return run(quick ? 32 : 512, quick ? 50 : 2000) ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "heat: " << e.what() << "\n";
    return 1;
  }
}
