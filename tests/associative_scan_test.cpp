// associative_scan and map: JAX's numbers, loops as a reference, sharded dimensions, trees, messages.
#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace associative_scan_test {

namespace sa = shardarray;
using golden::close;
using sa::Array;
using sa::Shape;
using transforms_test::error;

namespace {

struct Affine {
  Array factor, term;
};
Affine then(const Affine& p, const Affine& q) { return {p.factor * q.factor, q.factor * p.term + q.term}; }

}  // namespace

TEST_CASE("associative_scan: JAX's numbers and gradients, whatever is cut") {
  const golden::Json c = golden::load("transforms.json")["scans"];
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  for (const sa::P& spec : {sa::P(), sa::P("x"), sa::P("y", "x"), sa::P(sa::none, "y")}) {
    const auto put = [&](const golden::Json& j) {
      return sa::device_put(golden::array(j), sa::NamedSharding(mesh, spec));
    };
    const Affine steps{put(c["a"]), put(c["b"])};
    const auto check = [&](const Affine& got, const golden::Json& want) {
      CHECK(close(got.factor, want[0], 1e-5, 1e-6));
      CHECK(close(got.term, want[1], 1e-5, 1e-6));
    };
    check(sa::associative_scan(then, steps), c["forward"]);
    check(sa::jit([](const Affine& s) {
            return sa::associative_scan(then, s, {.axis = -2, .reverse = true});
          })(steps),
          c["backward"]);
    const auto total = [](const Affine& s) { return sa::sum(sa::sin(sa::associative_scan(then, s).term)); };
    check(sa::jit(sa::grad(total))(steps), c["gradient"]);
  }
  const auto product = [](const Array& p, const Array& q) { return sa::matmul(p, q); };
  CHECK(close(sa::associative_scan(product, golden::array(c["m"]), {.axis = 1}), c["products"], 1e-5, 1e-6));
  const auto largest = [](const Array& p, const Array& q) { return sa::maximum(p, q); };
  CHECK(close(sa::associative_scan(largest, golden::array(c["counts"]), {.axis = -1, .reverse = true}),
              c["largest"], 0));
}

TEST_CASE("associative_scan: along a cut axis parts move between neighbours, and nothing is gathered") {
  const auto mesh = sa::make_mesh({{"x", 8}});
  const auto scan = [](const Affine& steps) { return sa::associative_scan(then, steps); };
  const auto steps = [&](std::int64_t n, const sa::P& spec) {
    const auto put = [&] { return sa::device_put(sa::ones({n, 16}), sa::NamedSharding(mesh, spec)); };
    return Affine{put(), put()};
  };
  const auto moved = [&](std::int64_t n) {
    const Affine of = steps(n, sa::P("x"));
    CHECK(program_test::planned(scan, of).find("all_gather") == std::string::npos);
    return program_test::bytes_received(sa::explain(scan, of));
  };
  const auto bytes = [](std::int64_t n) { return n * 16 * 2 * 4; };  // of both arrays
  // 8 x 2^k: a part or two for each of 12 halvings.
  CHECK(moved(4096) <= bytes(3 * 12));
  // Halves that 8 does not divide are sharded elsewhere: a few times a device's part moves, less than half of a gather.
  for (const std::int64_t n : {1000, 4098, 4100}) {
    CAPTURE(n);
    CHECK(moved(n) < bytes(n) / 2);
  }
  CHECK(program_test::planned(scan, steps(4100, sa::P(sa::none, "x"))).empty());
}

TEST_CASE("associative_scan: any length, with less than twice as many combinations") {
  for (std::int64_t n = 0; n < 20; n++) {
    std::int64_t parts = 0;
    const auto add = [&](const Array& p, const Array& q) {
      parts += p.shape()[0];
      return p + q;
    };
    const Array x = sa::arange(n) * 3 % 7;
    const std::vector<int> xs = x.to_vector<int>(), got = sa::associative_scan(add, x).to_vector<int>();
    REQUIRE(got.size() == static_cast<std::size_t>(n));
    int sum = 0;
    for (std::size_t k = 0; k < xs.size(); k++) CHECK(got[k] == (sum += xs[k]));
    CHECK(parts <= std::max<std::int64_t>(0, 2 * n - 2));
  }
  // The function is not commutative: the order is kept, and in reverse the arguments are swapped as in JAX.
  const auto second = [](const Array&, const Array& q) { return q * 1; };
  const auto first = [](const Array& p, const Array&) { return p * 1; };
  const Array x = sa::arange(5);
  CHECK(sa::associative_scan(first, x).to_vector<int>() == std::vector<int>(5, 0));
  CHECK(sa::associative_scan(second, x).to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(sa::associative_scan(first, x, {.reverse = true}).to_vector<int>() == std::vector<int>(5, 4));
}

TEST_CASE("associative_scan: messages") {
  const auto add = [](const Array& p, const Array& q) { return p + q; };
  using Pair = std::pair<Array, Array>;
  const auto pairs = [](const Pair& p, const Pair&) { return p; };
  CHECK(error<sa::ShapeError>([&] { (void)sa::associative_scan(add, sa::ones({3}), {.axis = 1}); }) ==
        "associative_scan: axis 1 is out of bounds for an array f32[3] of rank 1. Axes are in -1 .. 0. Give "
        "one of "
        "them.");
  CHECK(
      error<sa::ShapeError>([&] { (void)sa::associative_scan(pairs, Pair(sa::ones({3}), sa::ones({4}))); }) ==
      "associative_scan: the arrays have different lengths along axis 0: 3 and 4. One part of each is "
      "combined at "
      "once. Slice or pad them to one length.");
  CHECK(error<sa::TreeError>([&] { (void)sa::associative_scan(add, Array()); }) ==
        "associative_scan: there is no array to combine parts of. Elements are a tree of arrays. Give one.");
  CHECK(error<sa::ShapeError>([&] {
          (void)sa::associative_scan([](const Array& p, const Array&) { return sa::sum(p); }, sa::ones({4}));
        }) ==
        "associative_scan: the function made f32[] of two f32[2]. It combines part by part and keeps shapes. "
        "Let it "
        "work on any length along the axis.");
  CHECK(error<sa::DTypeError>([&] {
          (void)sa::associative_scan([](const Array& p, const Array& q) { return p > q; }, sa::ones({4}));
        }) ==
        "associative_scan: the function made bool[2] of two f32[2]. It keeps dtypes. Convert with astype.");
  CHECK(error<sa::TreeError>([&] {
          (void)sa::associative_scan([](const Pair& p, const Pair&) { return Pair(p.first, Array()); },
                                     Pair(sa::ones({4}), sa::ones({4})));
        }) ==
        "associative_scan: the function left an array of its arguments out. It gives a tree like them. "
        "Return all "
        "of its arrays.");
  CHECK(error<sa::TreeError>([&] {
          (void)sa::associative_scan([](const Pair& p, const Pair&) { return Pair(p.first, p.first); },
                                     Pair(sa::ones({4}), Array()));
        }) ==
        "associative_scan: the function made f32[2] in a place where the elements have no array. It gives a "
        "tree like them. Leave it absent (Array()).");
}

TEST_CASE("map: JAX's numbers; batches of any size give the same; trees; messages") {
  const golden::Json c = golden::load("transforms.json")["scans"];
  const Array b = golden::array(c["b"]);
  const auto row = [](const Array& r) { return sa::sum(sa::exp(r)) * r; };
  CHECK(close(sa::map(row, b), c["map"], 1e-5, 1e-6));
  for (std::int64_t size = 1; size < 10; size++)
    CHECK(close(sa::map(row, b, {.batch_size = size}), c["map_in_batches"], 1e-5, 1e-6));
  struct Result {
    Array total;
    std::vector<Array> parts;
    int count = 3;
  };
  const auto f = [](const std::pair<Array, Array>& x) {
    return Result{sa::sum(x.first), {x.second * 2, Array()}};
  };
  const std::pair<Array, Array> xs(b, sa::arange(7));
  for (const sa::MapOptions& o : {sa::MapOptions{}, sa::MapOptions{.batch_size = 4}}) {
    const Result r = sa::map(f, xs, o);
    CHECK(r.total.shape() == Shape{7});
    CHECK(r.parts[0].to_vector<int>() == std::vector<int>{0, 2, 4, 6, 8, 10, 12});
    CHECK_FALSE(r.parts[1].has_value());
  }
  CHECK(sa::map(row, sa::zeros({0, 3}), {.batch_size = 2}).shape() == Shape{0, 3});
  CHECK(error<sa::ShapeError>([&] { (void)sa::map(row, b, {.batch_size = 0}); }) ==
        "map: batch_size is 0. A batch has 1 element or more. Give more, or leave batch_size out.");
  CHECK(error<sa::ShapeError>([&] { (void)sa::map(row, Array(1.0)); }) ==
        "map: the sequence is f32[]: it has no leading dimension to step over. Reshape it, or capture it.");
}

}  // namespace associative_scan_test
