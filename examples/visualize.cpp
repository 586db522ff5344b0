// A tour of pictures: how arrays of any rank are placed on devices, and what resharding costs.
#include <shardarray/shardarray.h>

#include <CLI/CLI.hpp>
#include <iostream>

namespace sa = shardarray;

void show(const char* title, const sa::Shape& shape, const sa::Sharding& sharding) {
  std::cout << "\n" << title << ": " << shape << " over " << sharding << "\n" << std::flush;
  sa::visualize_sharding(shape, sharding);
}

// A sharding may refer to devices that this machine does not have.
sa::Sharding on_64(const sa::P& spec) {
  sa::DeviceGrid grid{{4, 16}, {}};
  for (int id = 0; id < 64; id++) grid.devices.push_back(sa::Device{id});
  return sa::NamedSharding(sa::Mesh(grid, {"data", "model"}), spec);
}

int main(int argc, char** argv) {
  CLI::App app{"Draws shardings over 8 virtual devices."};
  CLI11_PARSE(app, argc, argv);
  sa::set_cpu_device_count(8);
  const sa::Mesh mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  auto named = [&](const sa::P& spec) { return sa::NamedSharding(mesh, spec); };
  const sa::PositionalSharding grid(sa::create_device_mesh({8, 1}));

  show("a vector, cut into eight", {16}, named(sa::P(sa::axes("x", "y"))));
  show("a vector on pairs of devices", {16}, named(sa::P("x")));
  show("a matrix in tiles", {8, 8}, named(sa::P("x", "y")));
  show("its columns, each on four devices", {8, 8}, named(sa::P(sa::none, "y")));
  show("a batch", {16, 4}, grid);
  show("fully replicated", {8, 8}, grid.replicate());
  show("10 rows over 4: 3, 3, 3 and 1", {10, 6}, named(sa::P("x", "y")));
  show("three dimensions, the first one cut", {4, 6, 6}, named(sa::P("x", sa::none, "y")));
  show("three dimensions, the others cut", {4, 6, 6}, named(sa::P(sa::none, "x", "y")));
  show("weights on 64 devices, in 4 copies", {512, 512}, on_64(sa::P(sa::none, "model")));
  show("a vector in 64 pieces", {4096}, on_64(sa::P(sa::axes("data", "model"))));
  std::cout << "\na table has them all\n" << sa::sharding_table({4, 6, 5}, named(sa::P("x", sa::none, "y")));

  // Inputs determine where results are placed.
  const sa::Array a = sa::device_put(sa::ones({8, 4}), named(sa::P("x", sa::none)));
  const sa::Array b = sa::device_put(sa::ones({4, 8}), named(sa::P(sa::none, "y")));
  const sa::Array c = sa::matmul(a, b);
  std::cout << "\nmatmul of a row-cut and a column-cut matrix is " << c.type_string() << "\n" << std::flush;
  sa::visualize_array_sharding(c);
  std::cout << "\nto have its rows whole, devices would receive\n" << std::flush;
  sa::visualize_diff(c, sa::filter_shard(c, named(sa::P("x"))));
}
