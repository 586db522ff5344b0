// pmap: the cookbook's cells with JAX's numbers, axes, devices, nesting, derivatives, transfers, refusals.
#include <algorithm>

#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace pmap_test {

using namespace transforms_test;
using golden::Json;
using program_test::check_received;

namespace {

// Calls f(case) for the cases of one name in both files: JAX 0.10 and classic.
template <class F> void each(const std::string& name, int count, const F& f) {
  int seen = 0;
  for (const char* file : {"pmap_document.json", "pmap_document_old.json"}) {
    const Json all = golden::load(file)["cases"];
    for (const Json& c : all) {
      if (c["name"] != name) continue;
      CAPTURE(file);
      CAPTURE(c.value("attrs", Json()).dump());
      f(c);
      seen++;
    }
  }
  CHECK(seen == count);
}
Array numbers(const Shape& shape) { return program_test::numbers(shape) + 0.5; }

// The ids of the devices of rows 0, 1, ...
std::vector<int> row_devices(const Array& x) {
  std::vector<std::pair<std::int64_t, int>> rows;
  for (const auto& [device, index] : x.sharding().devices_indices_map(x.shape())) {
    REQUIRE(index[0].stop - index[0].start == 1);
    rows.emplace_back(index[0].start, device.id);
  }
  std::sort(rows.begin(), rows.end());
  std::vector<int> ids;
  for (const auto& r : rows) ids.push_back(r.second);
  return ids;
}
// The transfers that f(args...) plans, after a run that counts what arrives.
template <class F, class... A> std::string moves(const F& f, const A&... args) {
  check_received(f, args...);
  return program_test::transfers(sa::explain(f, args...));
}

}  // namespace

// ---------------------------------------------------------------- the cookbook
TEST_CASE("pmap document: square, functions of matrices, a convolution, a broadcast argument") {
  each("square", 4, [](const Json& c) {
    const auto square = sa::pmap([](const Array& x) { return sa::square(x); });
    const Array y = square(sa::arange(c["attrs"]["n"].get<int>()));
    CHECK(golden::same_bits(y, c["outputs"]["y"]));
    CHECK(sa::to_string(everywhere(y)) + "\n" == c["outputs"]["printed"].get<std::string>());
    CHECK(golden::same_bits(y / 2, c["outputs"]["y/2"]));
    CHECK(sa::to_string(everywhere(y / 2)) + "\n" == c["outputs"]["printed y/2"].get<std::string>());
  });
  const auto f = [](const Array& x, const Array& y) { return sa::tanh(sa::matmul(x, y)); };
  for (const char* name : {"vmap_f", "pmap_f"})
    each(name, 2, [&](const Json& c) {
      const Array x = golden::array(c["inputs"][0]), y = golden::array(c["inputs"][1]);
      CHECK(golden::close(sa::vmap(f)(x, y), c["outputs"], 1e-5, 1e-6));
      CHECK(golden::close(sa::pmap(f)(x, y), c["outputs"], 1e-5, 1e-6));
    });
  each("convolve", 2, [](const Json& c) {
    const Array w = golden::array(c["inputs"]["w"]), x = golden::array(c["inputs"]["x"]);
    const auto convolve = [&](const Array& row) {
      Array y = row[sa::slice(0, 8)] * w[2];
      for (int k = 1; k < 3; k++) y = y + row[sa::slice(k, 8 + k)] * w[2 - k];
      return y;
    };
    CHECK(golden::close(sa::pmap(convolve)(x), c["outputs"], 1e-5, 1e-6));
  });
  each("broadcast_argument", 2, [](const Json& c) {
    const auto scale = [](const Array& x, const Array& w) { return x * sa::sum(w); };
    const Array y = sa::pmap(scale, {.in_axes = {0, sa::none}})(golden::array(c["inputs"]["x"]),
                                                                golden::array(c["inputs"]["w"]));
    CHECK(golden::close(y, c["outputs"], 1e-5, 1e-6));
  });
}

TEST_CASE("pmap document: random matrices in both modes") {
  each("random_matrices", 8, [](const Json& c) {
    const sa::random::partitionable mode(c["attrs"]["partitionable"].get<bool>());
    const Shape shape = golden::shape_of(c["attrs"]["shape"]);
    const Json& out = c["outputs"];
    const Array keys = sa::random::split(sa::random::PRNGKey(c["attrs"]["seed"].get<int>()), 8);
    CHECK(golden::same_bits(keys, out["keys"]));
    const Array bits = sa::pmap([&](const Array& key) { return sa::random::bits(key, shape); })(keys);
    const Array mats = sa::pmap([&](const Array& key) { return sa::random::normal(key, shape); })(keys);
    const std::vector<std::uint64_t> b = everywhere(bits).to_vector<std::uint64_t>();
    const Values m = values(mats);
    const std::size_t size = b.size() / 8;
    for (std::size_t k = 0; k < 8; k++) {
      std::uint32_t sum = 0, all = 0;
      double mean = 0;
      for (std::size_t e = k * size; e < (k + 1) * size; e++) {
        sum += static_cast<std::uint32_t>(b[e]);
        all ^= static_cast<std::uint32_t>(b[e]);
        mean += m[e] / static_cast<double>(size);
      }
      CHECK(sum == out["bits"][k]["sum_bits_mod_2_32"].get<std::uint32_t>());
      CHECK(all == out["bits"][k]["xor_bits"].get<std::uint32_t>());
      CHECK(mean == doctest::Approx(out["mats"][k]["mean_f64"].get<double>()).epsilon(1e-5));
      const auto from = m.begin() + static_cast<std::ptrdiff_t>(k * size),
                 to = from + static_cast<std::ptrdiff_t>(size);
      CHECK(golden::close({from, from + 4}, golden::numbers(out["mats"][k]["first"]), 5e-7, 1e-7));
      CHECK(golden::close({to - 4, to}, golden::numbers(out["mats"][k]["last"]), 5e-7, 1e-7));
    }
    const Array products = sa::pmap([](const Array& x) { return sa::matmul(x, x.T()); })(mats);
    CHECK(products.shape() == golden::shape_of(out["result_shape"]));
    CHECK(golden::close(sa::pmap(sa::mean)(products), out["result_mean"], 1e-4, 1e-5));
  });
}

TEST_CASE("pmap document: normalize, nested, and their gradients") {
  const auto normalize = [](const Array& x) { return x / sa::psum(x, "i"); };
  each("normalize", 6, [&](const Json& c) {
    const Array y = sa::pmap(normalize, {.axis_name = "i"})(golden::array(c["inputs"]));
    CHECK(golden::close(y, c["outputs"]["y"], 1e-6));
    CHECK(sa::to_string(everywhere(y)) + "\n" == c["outputs"]["printed"].get<std::string>());
  });
  each("grad_of_pmap_normalize", 2, [&](const Json& c) {
    const auto loss = [&](const Array& x) {
      return sa::sum(sa::sin(sa::pmap(normalize, {.axis_name = "i"})(x)));
    };
    CHECK(golden::close(sa::grad(loss)(golden::array(c["inputs"])), c["outputs"], 1e-5, 1e-6));
  });
  each("nested_normalize", 2, [](const Json& c) {
    const auto f = [](const Array& x) {
      return std::tuple(x / sa::psum(x, "rows"), x / sa::psum(x, "cols"), x / sa::psum(x, {"rows", "cols"}));
    };
    const auto [rows, cols, both] =
        sa::pmap(sa::pmap(f, {.axis_name = "cols"}), {.axis_name = "rows"})(golden::array(c["inputs"]));
    CHECK(golden::close(rows, c["outputs"]["row_normed"], 1e-6));
    CHECK(golden::close(cols, c["outputs"]["col_normed"], 1e-6));
    CHECK(golden::close(both, c["outputs"]["doubly_normed"], 1e-6));
    CHECK(sa::to_string(everywhere(cols)) + "\n" == c["outputs"]["printed"][1].get<std::string>());
  });
  each("nested_grad", 2, [](const Json& c) {
    const auto f = sa::pmap([](const Array& x) {
      const Array y = sa::sin(x);
      const auto g =
          sa::pmap([&](const Array& z) { return sa::cos(z) * sa::tan(sa::sum(y)) * sa::sum(sa::tanh(x)); });
      return sa::grad([&](const Array& w) { return sa::sum(g(w)); })(x);
    });
    const Array x = golden::array(c["inputs"]);
    CHECK(golden::close(f(x), c["outputs"]["f"], 1e-5, 1e-6));
    const auto total = [&](const Array& v) { return sa::sum(f(v)); };
    CHECK(golden::close(sa::grad(total)(x), c["outputs"]["grad_sum_f"], 1e-4, 1e-5));
  });
  each("grad_of_pmap", 2, [](const Json& c) {
    const auto loss = [](const Array& x) {
      return sa::sum(sa::pmap([](const Array& v) { return sa::sin(v) * sa::sum(v); })(x));
    };
    CHECK(golden::close(sa::grad(loss)(golden::array(c["inputs"])), c["outputs"], 1e-5, 1e-6));
  });
}

TEST_CASE("pmap document: rule 30 and rule 110 on parts of a ring") {
  each("rule", 12, [](const Json& c) {
    const Json& a = c["attrs"];
    const int n = a["devices"], cells = a["cells"], number = a["rule"];
    sa::Permutation right, left;
    for (int k = 0; k < n; k++) {
      right.emplace_back(k, (k + 1) % n);
      left.emplace_back((k + 1) % n, k);
    }
    const auto step = sa::pmap(
        [=](const Array& board) {
          const Array before = sa::ppermute(board[sa::slice(-1, sa::none)], "i", right);
          const Array after = sa::ppermute(board[sa::slice(0, 1)], "i", left);
          const Array b = sa::concatenate({before, board, after}, 0);
          const std::int64_t size = cells / n;
          const Array index =
              b[sa::slice(0, size)] * 4 + b[sa::slice(1, size + 1)] * 2 + b[sa::slice(2, size + 2)];
          return (sa::full_like(index, number) >> index) & 1;
        },
        {.axis_name = "i"});
    std::vector<int> start(static_cast<std::size_t>(cells), 0);
    for (int at : a["live"].get<std::vector<int>>()) start[static_cast<std::size_t>(at)] = 1;
    Array board = sa::array(start, {n, cells / n}, sa::int32);
    for (const std::string row : c["outputs"]["rows"]) {
      std::string text;
      for (int v : everywhere(board).to_vector<int>()) text += v ? '*' : ' ';
      CHECK(text == row);
      board = step(board);
    }
  });
}

// ---------------------------------------------------------------- axes and devices
TEST_CASE("pmap: axes of trees, none, static arguments") {
  const Array x = numbers({3, 4}), w = numbers({4});
  const auto f = [](const std::pair<Array, Array>& p, const Array& b, int times) {
    return std::pair(p.first * times + p.second, std::vector{sa::sum(p.first) * b});
  };
  const auto mapped =
      sa::pmap(f, {.in_axes = {{1, sa::none}, 0, sa::none}, .out_axes = {1, 0}, .static_args = {2}});
  const std::pair<Array, Array> p{x, numbers({3})};
  const auto [first, second] = mapped(p, w, 2);
  CHECK(first.shape() == Shape{3, 4});
  CHECK(values(first) == values(2 * x + sa::reshape(p.second, {3, 1})));
  CHECK(values(second[0]) == values(sa::sum(x, 0) * w));
  CHECK(mapped.traces() == 1);
  mapped(p, w, 2);
  CHECK(mapped.traces() == 1);
  CHECK(values(mapped(p, w, 3).first) == values(3 * x + sa::reshape(p.second, {3, 1})));
  CHECK(mapped.traces() == 2);
  // none: the first one's value; a constant is on every device
  const auto own = [](const Array& v) { return std::tuple(v, v * 2, sa::array({1.0, 2.0})); };
  const auto [one, all, constant] = sa::pmap(own, {.out_axes = {sa::none, 0, 0}})(x);
  CHECK(values(one) == values(x[0]));
  CHECK(values(all) == values(2 * x));
  CHECK(values(constant) == Values{1, 2, 1, 2, 1, 2});
  CHECK(values(sa::pmap([](const Array& v) { return 2 * v; }, {.out_axes = 1, .axis_size = 3})(x)) ==
        values(2 * x.T()));
}

TEST_CASE("pmap: element k is on device k, or on the given one") {
  const auto twice = [](const Array& v) { return 2 * v; };
  const auto all = sa::devices();
  const Array x = numbers({8, 3});
  CHECK(row_devices(sa::pmap(twice)(x)) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(row_devices(sa::pmap(twice)(numbers({5, 3}))) == std::vector{0, 1, 2, 3, 4});
  const auto some = sa::pmap(twice, {.devices = {all[6], all[1], all[3]}});
  const Array y = some(numbers({3, 2}));
  CHECK(row_devices(y) == std::vector{6, 1, 3});
  CHECK(values(y) == values(2 * numbers({3, 2})));
  CHECK(row_devices(some(y)) == std::vector{6, 1, 3});
  CHECK(moves(some, y).empty());
  // nested: element (i, j) on device i * inner + j
  const Array z = sa::pmap(sa::pmap(twice))(numbers({2, 3, 2}));
  int elements = 0;
  for (const auto& [device, index] : z.sharding().devices_indices_map(z.shape()))
    if (index[0].stop > index[0].start && index[1].stop > index[1].start) {
      CHECK(device.id == index[0].start * 3 + index[1].start);
      elements++;
    }
  CHECK(elements == 6);
}

TEST_CASE("pmap: donation") {
  const auto increment = [](const Array& v) { return v + 1; };
  Array x = sa::pmap([](const Array& v) { return v; })(numbers({8, 4}));
  const Values want = values(x + 1);
  const auto f = sa::pmap(increment);
  const auto pieces = [](const Array& v) {
    std::vector<const void*> p;
    for (const auto& b : sa::value_of(v)->buffers) p.push_back(b->data);
    return p;
  };
  const auto before = pieces(x);
  Array y = f(std::move(x));
  CHECK(pieces(y) == before);
  CHECK(values(y) == want);
  const Array other = y;
  const Array z = sa::pmap(increment, {.donate_args = {0}})(y);
  CHECK(other.is_deleted());
  CHECK(pieces(z) == before);
}

// ---------------------------------------------------------------- nesting and derivatives
TEST_CASE("pmap: the inner of two axes of one name, an outer axis from inside") {
  const Array x = sa::arange(8).astype(sa::float32).reshape({2, 4});
  const auto sum = [](const Array& v) { return sa::psum(v, "i"); };
  CHECK(values(sa::pmap(sa::pmap(sum, {.axis_name = "i"}), {.axis_name = "i"})(x)) ==
        Values{6, 6, 6, 6, 22, 22, 22, 22});
  CHECK(values(sa::pmap(sa::pmap(sum), {.axis_name = "i"})(x)) == Values{4, 6, 8, 10, 4, 6, 8, 10});
  CHECK(values(sa::pmap(sa::vmap(sum), {.axis_name = "i"})(x)) == Values{4, 6, 8, 10, 4, 6, 8, 10});
  // work around the inner map, which sees a value of the outer one
  const auto f = [](const Array& row) {
    const Array shift = sa::psum(sa::sum(row), "rows");
    return sa::pmap([&](const Array& v) { return v + shift + sa::psum(v, "cols"); },
                    {.axis_name = "cols"})(row * 2) -
           1;
  };
  Values want;
  for (int k = 0; k < 8; k++) want.push_back(2 * k + 28 + (k < 4 ? 12 : 44) - 1);
  CHECK(values(sa::pmap(f, {.axis_name = "rows"})(x)) == want);
}

TEST_CASE("pmap: inner maps of several sizes, given devices, values from outside") {
  const auto all = sa::devices();
  const Array x = sa::arange(8).astype(sa::float32).reshape({2, 4}), w = numbers({4});
  const auto f = [&](const Array& row) {
    const auto sum = [](const Array& v) { return sa::psum(v, "i"); };
    const Array pairs = sa::pmap(sum, {.axis_name = "i"})(row.reshape({2, 2})),
                fours = sa::pmap(sum, {.axis_name = "i"})(row);
    return pairs.reshape({4}) + fours * w;
  };
  const Array fours = sa::array({6.0, 22.0}).reshape({2, 1}) * w;
  const Values want = values(sa::array({{2.0, 4.0, 2.0, 4.0}, {10.0, 12.0, 10.0, 12.0}}) + fours);
  CHECK(values(sa::pmap(f)(x)) == want);
  const auto reversed = std::vector<sa::Device>(all.rbegin(), all.rend());
  CHECK(values(sa::pmap(f, {.devices = reversed})(x)) == want);
  const auto twice = [](const Array& v) { return 2 * v; };
  const Array y = sa::pmap(sa::pmap(twice), {.devices = reversed})(x);
  CHECK(values(y) == values(2 * x));
  for (const auto& [device, index] : y.sharding().devices_indices_map(y.shape()))
    CHECK(device.id == 7 - 4 * index[0].start - index[1].start);
  // from more devices to fewer, with a captured value that lies elsewhere
  const Array away = sa::device_put(numbers({2}), sa::SingleDeviceSharding(all[5]));
  const Array eight = sa::pmap(twice)(numbers({8, 2}));
  const Array four =
      sa::pmap([&](const Array& v) { return v + away; })(eight.reshape({4, 4})[{sa::all, sa::slice(0, 2)}]);
  CHECK(row_devices(four) == std::vector{0, 1, 2, 3});
  CHECK(values(four) ==
        values((2 * numbers({8, 2})).reshape({4, 4})[{sa::all, sa::slice(0, 2)}] + numbers({2})));
  // rows of every dtype
  for (sa::DType t : {sa::bool_, sa::int8, sa::uint64, sa::float64}) {
    const Array v = sa::arange(4).astype(t);
    const Array r = sa::pmap(
        [](const Array& e) {
          return sa::pshuffle(e, "i", {1, 2, 3, 0});
        },
        {.axis_name = "i"})(v);
    CHECK(r.dtype() == t);
    CHECK(golden::values(r) == golden::values(sa::array({1, 2, 3, 0}).astype(t)));
  }
}

TEST_CASE("pmap: an inner map that fails, and is caught, leaves the outer one as it was") {
  const Array x = numbers({2, 4, 3});
  const auto inner = [](const Array& row) {
    return sa::pmap([](const Array& v) { return sa::psum(v, "j") + sa::axis_index("j"); },
                    {.axis_name = "j"})(row);
  };
  const auto good = [&](const Array& a) {
    const Array y = inner(a);
    return y + sa::psum(y, "i");
  };
  const Values want = values(sa::pmap(good, {.axis_name = "i"})(x));
  for (const bool first : {true, false})
    for (const bool deep : {true, false}) {
      const auto fails = [&](const Array& a) {
        const auto bad = [&](const Array& row) -> Array {
          if (deep) static_cast<void>(inner(row.reshape({3, 1})));
          throw std::runtime_error("user");
        };
        CHECK_THROWS_AS(static_cast<void>(sa::pmap(bad, {.axis_name = "j"})(a)), std::runtime_error);
      };
      CHECK(values(sa::pmap(
                [&](const Array& a) {
                  if (first) fails(a);
                  const Array y = inner(a);
                  if (!first) fails(a);
                  return y + sa::psum(y, "i");
                },
                {.axis_name = "i"})(x)) == want);
    }
}

TEST_CASE("pmap: one jitted function under two maps") {
  const auto share = sa::jit([](const Array& v) { return v / sa::psum(v, "i"); });
  const Array x = sa::array({1.0, 3.0, 4.0, 8.0}), y = sa::array({1.0, 1.0});
  for (int again = 0; again < 2; again++) {
    CHECK(values(sa::pmap(share, {.axis_name = "i"})(x)) == Values{0.0625, 0.1875, 0.25, 0.5});
    CHECK(values(sa::pmap(share, {.axis_name = "i"})(y)) == Values{0.5, 0.5});
    CHECK(values(sa::vmap(share, {.axis_name = "i"})(x)) == Values{0.0625, 0.1875, 0.25, 0.5});
  }
  const auto inside =
      sa::jit([](const Array& v) { return sa::pmap([](const Array& e) { return e * 2; })(v) + 1; });
  CHECK(values(inside(x)) == Values{3, 7, 9, 17});
}

TEST_CASE("pmap: derivatives outside, inside, and under vmap") {
  const Array x = numbers({4, 3}) / 4.0, w = numbers({3}) / 8.0;
  const auto f = [](const Array& v, const Array& u) { return sa::sin(v) * sa::psum(sa::sum(v * u), "i"); };
  const sa::PmapOptions options{.axis_name = "i", .in_axes = {0, sa::none}};
  const auto loss = [&](const Array& v, const Array& u) { return sa::sum(sa::pmap(f, options)(v, u)); };
  const auto plain = [](const Array& v, const Array& u) { return sa::sum(sa::sin(v)) * sa::sum(v * u); };
  const auto [gx, gw] = sa::grad(loss, {.argnums = {0, 1}})(x, w);
  const auto [px, pw] = sa::grad(plain, {.argnums = {0, 1}})(x, w);
  check_near(gx, values(px));
  check_near(gw, values(pw));  // the cotangent of a broadcast argument: the sum over devices
  for (int k = 0; k < 3; k++) {
    const Array e = sa::one_hot(sa::array(k), 3) * 0.01;
    CHECK(at(gw[k]) == doctest::Approx((at(loss(x, w + e)) - at(loss(x, w - e))) / 0.02).epsilon(1e-2));
  }
  const auto second = [&](const Array& v) { return sa::sum(sa::grad(loss)(v, w) * x); };
  const auto plain_second = [&](const Array& v) { return sa::sum(sa::grad(plain)(v, w) * x); };
  check_near(sa::grad(second)(x), values(sa::grad(plain_second)(x)), 1e-4);
  // the gradient of each element's own loss; a collective between the gradients
  const auto own = [](const Array& v) {
    return sa::pmean(sa::grad([](const Array& u) { return sa::sum(u * u * u); })(v), "i");
  };
  const Array mean = sa::mean(3 * x * x, {.axis = 0, .keepdims = true});
  check_near(sa::pmap(own, {.axis_name = "i"})(x), values(sa::broadcast_to(mean, {4, 3})));
  // in_axes and out_axes that are not the first
  const auto turned = [](const Array& v) {
    return sa::sum(sa::square(
        sa::pmap([](const Array& c) { return c * sa::sum(c); }, {.in_axes = 1, .out_axes = 1})(v)));
  };
  const auto plain_turned = [](const Array& v) {
    return sa::sum(sa::square(v * sa::sum(v, {.axis = 0, .keepdims = true})));
  };
  check_near(sa::grad(turned)(x), values(sa::grad(plain_turned)(x)), 1e-4);
  const auto normalize = [](const Array& v) { return v / sa::psum(v, "i"); };
  const auto over_columns = sa::vmap(sa::pmap(normalize, {.axis_name = "i"}), {.in_axes = 1, .out_axes = 1});
  check_near(over_columns(x), values(x / sa::sum(x, {.axis = 0, .keepdims = true})), 1e-5);
  check_near(sa::pmap(sa::vmap(sa::grad(sa::sin)))(x), values(sa::cos(x)));
}

// ---------------------------------------------------------------- what moves
TEST_CASE("pmap: chains move nothing") {
  const Array x = numbers({8, 4});
  const auto f = sa::pmap([](const Array& v) { return sa::sin(v) * 2; });
  const Array y = f(x);
  CHECK(moves(f, y).empty());
  const auto chain = sa::jit([&](const Array& v) { return f(f(v)); });
  CHECK(moves(chain, y).empty());
  // an op that is no pmap goes on where the rows are
  CHECK(moves(sa::jit([](const Array& v) { return v / 2 + 1; }), y).empty());
  CHECK(row_devices(y / 2) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(at(sa::sum(y)) == doctest::Approx(at(sa::sum(sa::sin(x) * 2))));
  CHECK(values(y + x) == values(f(x) + x));
  // 4 devices to 8: row k goes to device k
  const Array four = f(numbers({4, 8}));
  CHECK(row_devices(four) == std::vector{0, 1, 2, 3});
  const Array eight = f(four.reshape({8, 4}));
  CHECK(row_devices(eight) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  check_near(eight, values(sa::sin(sa::sin(numbers({4, 8})) * 2) * 2));
  // what a collective moves: 2 * 7/8 of 16 bytes
  const auto sum = sa::pmap([](const Array& v) { return sa::psum(v, "i"); }, {.axis_name = "i"});
  const sa::Explanation e = sa::explain(sum, y);
  REQUIRE(e.transfers().size() == 1);
  CHECK(e.transfers()[0].kind == "all_reduce");
  CHECK(e.transfers()[0].bytes_per_device <= 28);
  const auto ring = sa::pmap(
      [](const Array& v) {
        return sa::pshuffle(v, "i", {7, 0, 1, 2, 3, 4, 5, 6});
      },
      {.axis_name = "i"});
  const sa::Explanation r = sa::explain(ring, y);
  REQUIRE(r.transfers().size() == 1);
  CHECK(r.transfers()[0].bytes_per_device == 16);  // one row each
  const auto swap = sa::pmap([](const Array& v) { return sa::pswapaxes(v, "i", 0); }, {.axis_name = "i"});
  const sa::Explanation t = sa::explain(swap, f(numbers({8, 8})));
  REQUIRE(t.transfers().size() == 1);
  CHECK(t.transfers()[0].kind == "all_to_all");
  CHECK(t.transfers()[0].bytes_per_device == 28);  // 7 of 8 numbers
}

TEST_CASE("pmap: keys to matrices to products to means, in place") {
  const auto id = sa::pmap([](const Array& key) { return key; });
  const Array keys = id(sa::random::split(sa::random::key(3), 8));
  const auto make = sa::pmap([](const Array& key) { return sa::random::normal(key, {50, 60}); });
  const auto multiply = sa::pmap([](const Array& m) { return sa::matmul(m, m.T()); });
  const auto mean = sa::pmap(sa::mean);
  CHECK(moves(make, keys).empty());
  const Array mats = make(keys);
  CHECK(row_devices(mats) == std::vector{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(moves(multiply, mats).empty());
  CHECK(moves(mean, multiply(mats)).empty());
  CHECK(moves(sa::jit([&](const Array& k) { return mean(multiply(make(k))); }), keys).empty());
  // one large array of numbers: each device makes its own part
  const auto part = sa::jit([](const Array& key) {
    return sa::filter_shard(sa::random::uniform(key, {64, 32}),
                            sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x")));
  });
  const Array key = sa::random::key(5);
  CHECK(program_test::transfers(
            sa::explain(part, sa::device_put(key, sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P()))))
            .empty());
  CHECK(golden::bits(part(key)) == golden::bits(sa::random::uniform(key, {64, 32})));
}

// ---------------------------------------------------------------- messages

}  // namespace pmap_test
