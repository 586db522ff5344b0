// JAX's pmap cookbook, cell by cell, on 8 virtual devices.
#include <shardarray/shardarray.h>

#include <CLI/CLI.hpp>
#include <iostream>

namespace sa = shardarray;
using sa::Array;

// Rule 30 with halo exchange: every device holds a slice of the board and receives its neighbours' adjacent cells.
Array send_right(const Array& x, const std::string& axis_name) {
  sa::Permutation perm;
  const auto n = static_cast<int>(sa::axis_size(axis_name));
  for (int i = 0; i < n; i++) perm.push_back({i, (i + 1) % n});
  return sa::ppermute(x, axis_name, perm);
}
Array send_left(const Array& x, const std::string& axis_name) {
  sa::Permutation perm;
  const auto n = static_cast<int>(sa::axis_size(axis_name));
  for (int i = 0; i < n; i++) perm.push_back({(i + 1) % n, i});
  return sa::ppermute(x, axis_name, perm);
}
Array update_board(const Array& board) {
  const Array left = board[sa::slice(-2)], center = board[sa::slice(1, -1)],
              right = board[sa::slice(2, sa::none)];
  return left ^ (center | right);
}
Array step(const Array& board_slice) {
  const Array left = send_right(board_slice[sa::slice(-1, sa::none)], "i"),
              right = send_left(board_slice[sa::slice(1)], "i");
  return update_board(sa::concatenate({left, board_slice, right}));
}
void print_board(const Array& board) {
  for (const bool cell : board.to_vector<bool>()) std::cout << (cell ? '*' : ' ');
  std::cout << "\n";
}

int main(int argc, char** argv) {
  CLI::App app{"The pmap cookbook."};
  bool quick = false;
  std::int64_t rows = 5000, columns = 6000;
  app.add_option("--rows", rows, "of the random matrices, one a device");
  app.add_option("--columns", columns, "of them");
  app.add_flag("--quick", quick, "small matrices");
  CLI11_PARSE(app, argc, argv);
  if (quick) rows = 50, columns = 60;
  sa::set_cpu_device_count(8);

  // A pure map, and the graphs of a function, its vmap and its pmap
  const Array y = sa::pmap([](const Array& x) { return sa::square(x); })(sa::arange(8));
  std::cout << y << "\n" << y.type_string() << "\n" << y / 2 << "\n" << y[2] << "\n";
  sa::visualize_array_sharding(y);
  const auto f = [](const Array& a, const Array& b) { return sa::tanh(sa::dot(a, b)); };
  const Array a = sa::ones({8, 2, 3}), b = sa::ones({8, 3, 4});
  std::cout << sa::print_graph(f, a[0], b[0]) << sa::print_graph(sa::vmap(f), a, b)
            << sa::print_graph(sa::pmap(f), a, b);

  // Large random matrices, created and multiplied on their devices in parallel; only one number per device is read.
  const Array keys = sa::random::split(sa::random::PRNGKey(0), 8);
  const auto random = sa::pmap([=](const Array& key) { return sa::random::normal(key, {rows, columns}); });
  const auto product = sa::pmap([](const Array& x) { return sa::dot(x, x.T()); });
  const auto mean = sa::pmap([](const Array& x) { return sa::mean(x); });
  const Array mats = random(keys);
  std::cout << sa::explain(product, mats).transfers().size() << " transfers\n";
  const Array result = product(mats);
  std::cout << sa::explain(mean, result).transfers().size() << " transfers\n" << mean(result) << "\n";

  // Collectives
  const auto normalize = sa::pmap([](const Array& x) { return x / sa::psum(x, "i"); }, {.axis_name = "i"});
  std::cout << normalize(sa::arange(4.0)) << "\n";

  // Nested maps: 4 x 2 devices
  const auto norm = [](const Array& x) {
    return std::tuple(x / sa::psum(x, "rows"), x / sa::psum(x, "cols"), x / sa::psum(x, {"rows", "cols"}));
  };
  const auto norms = sa::pmap(sa::pmap(norm, {.axis_name = "cols"}), {.axis_name = "rows"});
  const auto [row_normed, col_normed, doubly_normed] = norms(sa::arange(8.0).reshape({4, 2}));
  std::cout << sa::sum(row_normed, 0) << "\n"
            << sa::sum(col_normed, 1) << "\n"
            << sa::sum(doubly_normed) << "\n";

  // Rule 30
  Array board = sa::zeros({40}, sa::bool_).at({20}).set(true).reshape({8, 5});
  const auto parallel_step = sa::pmap(step, {.axis_name = "i"});
  print_board(board);
  for (int i = 0; i < 16; i++) print_board(board = parallel_step(board));

  // Derivatives: of a pmap, and inside a pmap that contains another one
  const Array xs = sa::arange(8.0).reshape({4, 2});
  std::cout << sa::grad([](const Array& x) {
    return sa::sum(sa::pmap([](const Array& v) { return sa::sin(v) * sa::sum(v); })(x));
  })(xs) << "\n";
  const auto g = sa::pmap([](const Array& x) {
    const Array s = sa::sin(x);
    const auto inner =
        sa::pmap([=](const Array& z) { return sa::cos(z) * sa::tan(sa::sum(s)) * sa::sum(sa::tanh(x)); });
    return sa::grad([=](const Array& w) { return sa::sum(inner(w)); })(x);
  });
  std::cout << g(xs) << "\n" << sa::grad([=](const Array& x) { return sa::sum(g(x)); })(xs) << "\n";
}
