// A tour of pictures: how arrays of one, two and more dimensions lie on devices.
#include <shardarray/shardarray.h>

#include <CLI/CLI.hpp>
#include <iostream>

namespace sa = shardarray;

void show(const char* title, const sa::Shape& shape, const sa::Sharding& sharding) {
  std::cout << "\n" << title << ": " << shape << " over " << sharding << "\n";
  if (shape.size() == 1 || shape.size() == 2) sa::visualize_sharding(shape, sharding);
  else std::cout << sa::sharding_table(shape, sharding);
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
  show("three dimensions, as a table", {4, 6, 5}, named(sa::P("x", sa::none, "y")));

  // Results lie where their inputs say.
  const sa::Array a = sa::device_put(sa::ones({8, 4}), named(sa::P("x", sa::none)));
  const sa::Array b = sa::device_put(sa::ones({4, 8}), named(sa::P(sa::none, "y")));
  const sa::Array c = sa::matmul(a, b);
  show("matmul of a row-cut and a column-cut matrix", c.shape(), c.sharding());
  std::cout << "its type: " << c.type_string() << "\n";
}
