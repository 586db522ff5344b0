// Edge cases that the headers document: division by 0, empty reductions, dtypes of results, refusals. The reference is plain
// C++.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "everywhere.h"
#include "messages.h"
#include "shardarray/shardarray.h"

namespace promises_docs_test {

namespace sa = shardarray;
using sa::Array;
using sa::DType;
using sa::Shape;
using shardarray::testing::values;

namespace {

using Values = std::vector<double>;
using Words = std::vector<std::int64_t>;

const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");

Words words(const Array& x) { return x.to_vector<std::int64_t>(); }
Array floats(const Values& v) { return sa::array(v, sa::float32); }
Array integers(const Words& v, DType t = sa::int32) { return sa::array(v, t); }
Array bools(const Words& v) { return sa::array(v, sa::bool_); }
Array nothing() { return sa::zeros({0}); }
bool same(const Values& a, const Values& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t k = 0; k < a.size(); k++)
    if (!(a[k] == b[k] || (std::isnan(a[k]) && std::isnan(b[k])))) return false;
  return true;
}

struct Parts {
  Array weight, bias;
};

}  // namespace

// ---------------------------------------------------------------- math.h
TEST_CASE("promises: division by 0, of every kind of number") {
  CHECK(words(sa::floor_divide(integers({7, -7}), 0)) == Words{-1, -1});
  CHECK(words(sa::floor_divide(integers({7, 200}, sa::uint8), 0)) == Words{255, 255});
  CHECK(words(sa::remainder(integers({7, -7}), 0)) == Words{7, -7});
  CHECK(same(values(sa::floor_divide(floats({1, -1, 0}), 0)), {inf, -inf, nan}));
  CHECK(same(values(sa::remainder(floats({1, -1, 0}), 0)), {nan, nan, nan}));
  CHECK(same(values(integers({1, -1, 0}) / 0), {inf, -inf, nan}));
  CHECK(sa::floor_divide(bools({1}), bools({1})).dtype() == sa::int32);
  CHECK(sa::remainder(bools({1}), bools({1})).dtype() == sa::int32);
}

TEST_CASE("promises: integers wrap in abs, negative and power") {
  const std::int64_t lowest = std::numeric_limits<std::int32_t>::min();
  CHECK(words(sa::abs(integers({lowest, -3}))) == Words{lowest, 3});
  CHECK(words(-integers({1, 0}, sa::uint8)) == Words{255, 0});
  const auto power = [](std::int32_t x, int n) {
    std::uint32_t r = 1;
    for (int k = 0; k < n; k++) r *= static_cast<std::uint32_t>(x);
    return std::int64_t{static_cast<std::int32_t>(r)};
  };
  CHECK(words(sa::power(integers({0, 3, -7}), integers({0, 40, 21}))) ==
        Words{power(0, 0), power(3, 40), power(-7, 21)});
  CHECK(words(sa::power(integers({2}), integers({64 + 6}))) == Words{power(2, 6)});  // the low 6 bits count
  CHECK(sa::power(bools({1}), bools({1})).dtype() == sa::int32);
}

TEST_CASE("promises: shifts beyond the width, and of bools") {
  CHECK(words(sa::left_shift(integers({1, -1}), integers({32, -1}))) == Words{0, 0});
  CHECK(words(sa::right_shift(integers({7, -7}), integers({32, -1}))) == Words{0, -1});
  CHECK(words(sa::right_shift(integers({200}, sa::uint8), 8)) == Words{0});
  const Array shifted = sa::left_shift(bools({1, 0}), bools({1, 1}));
  CHECK(shifted.dtype() == sa::int32);
  CHECK(words(shifted) == Words{2, 0});
}

TEST_CASE("promises: NaN is equal to nothing and in no order; tests of whole numbers") {
  const Array x = floats({nan, 1}), y = floats({nan, nan});
  for (const Array& none : {sa::equal(x, y), sa::less(x, y), sa::less_equal(x, y), sa::greater(x, y),
                            sa::greater_equal(x, y), sa::isnan(integers({1, 2})), sa::isinf(bools({0, 1}))})
    CHECK(words(none) == Words{0, 0});
  CHECK(words(sa::not_equal(x, y)) == Words{1, 1});
  CHECK(words(sa::isfinite(integers({1, 2}))) == Words{1, 1});
}

TEST_CASE("promises: clip and where of several dtypes, and their gradients") {
  CHECK(same(values(sa::clip(integers({1, 2, -3}), 0.5, 2)), {1, 2, 0.5}));
  CHECK(values(sa::clip(floats({0, 3}), 2, 1)) == Values{1, 1});
  CHECK(same(values(sa::clip(integers({1, 2, -3}), 1.5)), {1.5, 2, 1.5}));
  CHECK(words(sa::clip(integers({1, 2, -3}), 0, sa::none)) == Words{1, 2, 0});
  CHECK(same(values(sa::clip(floats({0, nan, 3}), sa::none, 2)), {0, nan, 2}));
  CHECK(words(sa::clamp(0.5, integers({1, 2, -3}), 2)) == Words{1, 2, 0});
  const auto chosen = [](const Array& a) {
    return sa::sum(sa::where(bools({1, 0}), 3 * a, sa::array({1.0, 1.0})));
  };
  CHECK(values(sa::grad(chosen)(floats({5, 7}))) == Values{3, 0});
}

// ---------------------------------------------------------------- ops.h
TEST_CASE("promises: reductions and products of nothing") {
  CHECK(sa::sum(nothing()).item<float>() == 0);
  CHECK(sa::prod(nothing()).item<float>() == 1);
  CHECK(std::isnan(sa::mean(nothing()).item<float>()));
  CHECK(!sa::any(nothing()).item<bool>());
  CHECK(sa::all(nothing()).item<bool>());
  CHECK(words(sa::matmul(bools({1, 0}), bools({1, 1})).reshape({1})) == Words{1});
  CHECK(sa::matmul(bools({1, 0}), bools({1, 1})).dtype() == sa::bool_);
  CHECK(same(values(sa::softmax(floats({-inf, -inf}))), {nan, nan}));
}

TEST_CASE("promises: no axis at all, and lists that are empty") {
  const Array x = sa::array({{1.0, 2.0}, {3.0, 4.0}});
  CHECK(values(sa::sum(x, {.axis = Shape{}})) == Values{1, 2, 3, 4});
  CHECK(sa::expand_dims(x, Shape{}).shape() == Shape{2, 2});
  CHECK(sa::argmax(x, {.keepdims = true}).shape() == Shape{1, 1});
  CHECK(sa::cumsum(x).shape() == Shape{4});
  CHECK_THROWS_AS(sa::softmax(Array(1.0)), sa::ShapeError);
  CHECK_THROWS_AS(sa::sort(Array(1.0)), sa::ShapeError);
}

TEST_CASE("promises: what stands outside: take of bools, one_hot, eye, negative widths") {
  CHECK(words(sa::take(bools({0, 0}), integers({0, 5}))) == Words{0, 1});
  CHECK_THROWS_AS(sa::take(floats({1}), bools({1})), sa::DTypeError);
  CHECK(values(sa::one_hot(integers({1, 2, -1}), 2)) == Values{0, 1, 0, 0, 0, 0});
  CHECK(values(sa::eye(2, 3, 1)) == Values{0, 1, 0, 0, 0, 1});
  CHECK(values(sa::eye(2, 2, -5)) == Values{0, 0, 0, 0});
  CHECK(words(sa::pad(integers({1}), 1, 2.5)) == Words{2, 1, 2});
}

// ---------------------------------------------------------------- collectives.h, transforms
TEST_CASE("promises: dtypes of collectives") {
  const auto mapped = [](auto f, const Array& x) { return sa::vmap(f, {.axis_name = "i"})(x); };
  const Array half = mapped([](const Array& a) { return sa::pmean(a, "i"); }, integers({1, 2}));
  CHECK(half.dtype() == sa::float32);
  CHECK(values(half) == Values{1.5, 1.5});
  CHECK(mapped([](const Array& a) { return sa::pmean(a, "i"); }, integers({1, 2}, sa::int64)).dtype() ==
        sa::float64);
  CHECK(words(mapped([](const Array& a) { return sa::psum(a, "i"); }, integers({100, 100}, sa::int8))) ==
        Words{-56, -56});
  CHECK(words(mapped([](const Array& a) { return sa::pmax(a, "i"); }, bools({0, 1}))) == Words{1, 1});
  CHECK(words(mapped([](const Array& a) { return sa::pmin(a, "i"); }, bools({0, 1}))) == Words{0, 0});
}

TEST_CASE("promises: a mapped or derived function runs once") {
  int runs = 0;
  const auto f = [&](const Array& x) {
    runs++;
    return 3 * x;
  };
  CHECK(values(sa::vmap(f)(floats({1, 2}))) == Values{3, 6});
  CHECK(runs == 1);
  const auto [y, pullback] = sa::vjp(f, floats({1, 2}));
  CHECK(values(std::get<0>(pullback(floats({1, 10})))) == Values{3, 30});
  CHECK(values(std::get<0>(pullback(floats({2, 20})))) == Values{6, 60});
  CHECK(values(std::get<0>(pullback(Array()))) == Values{0, 0});
  CHECK(runs == 2);
}

TEST_CASE("promises: a scan in reverse leaves what its steps give in place") {
  const auto step = [](const Array& c, const Array& x) { return std::pair(c + x, 10 * x); };
  const auto [last, ys] = sa::scan(step, Array(0.0), floats({1, 2, 3}), {.reverse = true});
  CHECK(last.item<float>() == 6);
  CHECK(values(ys) == Values{10, 20, 30});
}

// ---------------------------------------------------------------- the library
TEST_CASE("promises: random draws at the ends of what may be asked") {
  const Array key = sa::random::key(3);
  CHECK(words(sa::random::bernoulli(key, -1.0, {3})) == Words{0, 0, 0});
  CHECK(words(sa::random::bernoulli(key, 2.0, {3})) == Words{1, 1, 1});
  CHECK(values(sa::random::uniform(key, {2}, sa::float32, 1, 0)) == Values{1, 1});
  CHECK(sa::random::split(key, 0).shape() == Shape{0, 2});
  CHECK_THROWS_AS(sa::random::permutation(key, Array(3)), sa::ShapeError);
  CHECK_THROWS_AS(sa::random::bernoulli(key, Array(1)), sa::DTypeError);
}

TEST_CASE("promises: losses of nothing, of bools and of scalars") {
  CHECK(std::isnan(sa::losses::mse(nothing(), nothing()).item<float>()));
  CHECK(sa::losses::mse(integers({1, 2}), integers({1, 4})).item<float>() == 2);
  CHECK_THROWS_AS(sa::losses::mse(bools({1}), bools({0})), sa::DTypeError);
  CHECK_THROWS_AS(sa::losses::softmax_cross_entropy(Array(1.0), Array(1.0)), sa::ShapeError);
}

TEST_CASE("promises: updates have the dtype of the gradients; nesterov is nothing without momentum") {
  const Array g = sa::array({1.0, -2.0}, sa::float16);
  const auto adam = sa::optim::adam(0.5);
  CHECK(adam.update(g, adam.init(g)).first.dtype() == sa::float16);
  const auto sgd = sa::optim::sgd(0.5, {.nesterov = true});
  const Array u = sgd.update(g, sgd.init(g)).first;
  CHECK(u.dtype() == sa::float16);
  CHECK(values(u) == Values{-0.5, 1});
}

TEST_CASE("promises: apply_updates leaves out what the model lacks, and promotes") {
  const Parts model{integers({1, 2}), {}}, updates{floats({0.5, 0.5}), floats({1})};
  const Parts next = sa::apply_updates(model, updates);
  CHECK(values(next.weight) == Values{1.5, 2.5});
  CHECK(!next.bias.has_value());
}

TEST_CASE("promises: layers refuse what is no depth, and no key") {
  const Array key = sa::random::key(0);
  CHECK_THROWS_AS(sa::nn::mlp(2, 2, 4, (std::int64_t{1} << 20) + 1, sa::tanh, key), sa::ShapeError);
  CHECK_THROWS_AS(sa::nn::Linear::init(2, 3, floats({1, 2})), sa::DTypeError);
  CHECK_THROWS_AS(sa::nn::Linear::init(2, 3, sa::random::split(key)), sa::ShapeError);
}

// ---------------------------------------------------------------- trees, comparisons, shapes
TEST_CASE("promises: NaN in trees and comparisons, an array's own path, literals that are no values") {
  CHECK(!sa::tree_equal(floats({nan}), floats({nan})));
  CHECK(sa::tree_paths(floats({1})) == std::vector<std::string>{""});
  CHECK(sa::allclose(nothing(), floats({1})));
  CHECK(sa::array_equal(floats({1, 0}), bools({1, 0})));
  CHECK_THROWS_AS(sa::array_equal(integers({1}, sa::uint8)[0], Array(300)), sa::DTypeError);
}

TEST_CASE("promises: shapes are short vectors") {
  Shape s{8, 4};
  s.insert(1, 7);
  CHECK(s == Shape{8, 7, 4});
  s.erase(0);
  CHECK(s == Shape{7, 4});
  const Shape taken = std::move(s);
  CHECK(taken == Shape{7, 4});
  CHECK(s.empty());  // NOLINT: what was moved from is empty
  CHECK(sa::to_string(Shape{}) == "[]");
}

TEST_CASE("promises: braces alone, a mesh without names, the number of devices once more") {
  CHECK(sa::array({true, 1}).dtype() == sa::int32);
  CHECK(sa::array({true, 1, 2.5}).dtype() == sa::float32);
  CHECK(words(sa::array({1.7, -1.7}, sa::int32)) == Words{1, -1});
  CHECK(sa::asarray(3).weak_type());
  CHECK_THROWS_AS(sa::make_mesh({{"", 1}}), sa::ShardingError);
  CHECK_THROWS_AS(sa::make_mesh({{"x", 0}}), sa::ShardingError);
  CHECK_THROWS_AS(sa::create_device_mesh({0, -1}), sa::DeviceError);
  sa::set_cpu_device_count(static_cast<int>(sa::devices("cpu").size()));  // their number already: no error
}

// ---------------------------------------------------------------- messages
TEST_CASE("promises: messages of options that do not fit") {
  const auto same = [](const Array& x) { return x; };
  const Array x = floats({1, 2});
  CHECK_SAYS(sa::jit(same, {.donate_args = {1}})(x),
             "jit: donate_args names argument 1, the call has 1 argument. Positions count from 0. "
             "Correct donate_args.",
             sa::TreeError);
  CHECK_SAYS(sa::vmap(same, {.axis_size = -2})(x),
             "vmap: axis_size is -2. A size is not negative. Leave axis_size out.", sa::ShapeError);
  CHECK_SAYS(sa::set_cpu_device_count(4097),
             "set_cpu_device_count: the number is 4097. It must be from 1 to 4096. Choose another "
             "number.",
             sa::DeviceError);
  CHECK_SAYS(static_cast<bool>(x),
             "bool: the truth value of f32[2] is ambiguous. Use any() or all(); element by element: where, "
             "logical_and, logical_or, logical_not, maximum, minimum.",
             sa::ShapeError);
  const sa::Sharding halves = sa::NamedSharding(sa::make_mesh({{"x", 2}}), sa::P("x"));
  const auto piece = [](const sa::ShardIndex& index) {
    return index[0].start == 0 ? integers({1}) : floats({2});
  };
  CHECK_SAYS(sa::make_array_from_callback({2}, halves, piece),
             "make_array_from_callback: pieces must have one dtype, but got int32 and float32. Cast "
             "them in the callback.",
             sa::DTypeError);
  const sa::Sharding matrix = sa::NamedSharding(sa::make_mesh({{"x", 2}}), sa::P("x", sa::none));
  CHECK_THROWS_AS(sa::jit(same, {.in_shardings = matrix})(x), sa::ShardingError);
  const auto [list, pullback] = sa::vjp([](const Array& y) { return std::vector<Array>{y}; }, x);
  CHECK(values(std::get<0>(pullback({floats({3, 4})}))) == Values{3, 4});
  CHECK_THROWS_AS(pullback({}), sa::TreeError);
}

// ---------------------------------------------------------------- braces and edges
TEST_CASE("promises: a list in braces is a list, a number a number") {
  const Array a = floats({1, 2, 3, 4, 5, 6}).reshape({2, 3}), b = floats({1, 10, 100, 1000}).reshape({2, 2});
  const Array first = sa::tensordot(a, b, {0}, {0});  // columns of a with columns of b
  CHECK(first.shape() == Shape{3, 2});
  CHECK(same(values(first), {1 + 400, 10 + 4000, 2 + 500, 20 + 5000, 3 + 600, 30 + 6000}));
  CHECK(sa::tensordot(a, b, 0).shape() == Shape{2, 3, 2, 2});
  const std::vector<Array> parts = sa::split(floats({1, 2, 3}), {1});
  CHECK(parts.size() == 2);
  CHECK(same(values(parts[0]), {1}));
  CHECK(same(values(parts[1]), {2, 3}));
  CHECK(sa::split(floats({1, 2, 3}), 3).size() == 3);
}

TEST_CASE("promises: what is no range, no layer, no bit pattern is refused") {
  for (const auto& [stop, step] : {std::pair{nan, 1.0}, {1.0, nan}, {inf, 1.0}})
    CHECK_THROWS_AS(sa::arange(0.0, stop, step), sa::ShapeError);
  CHECK(sa::arange(1.0, 0.0, 1.0).shape() == Shape{0});
  CHECK_SAYS(sa::nn::MLP<>{}(floats({1})),
             "nn::MLP: there is no layer. A call needs one at least. Make the model with nn::mlp() or "
             "MLP::init().",
             sa::TreeError);
  CHECK_SAYS(sa::bitcast(bools({1}), sa::int8),
             "bitcast: bool[1] to int8. A bool has one bit, whatever its byte. Use astype to convert values.",
             sa::DTypeError);
  CHECK_THROWS_AS(sa::bitcast(integers({1, 0}, sa::int8), sa::bool_), sa::DTypeError);
  CHECK(words(sa::bitcast(bools({1, 0}), sa::bool_)) == Words{1, 0});
  const auto pullback = sa::vjp([](const Array& x) { return x * 2; }, floats({1, 2})).second;
  CHECK_SAYS(pullback(floats({1})),
             "vjp: the cotangent of the result has shape [1], the value [2]. Both must have the same "
             "shape. Broadcast it first.",
             sa::ShapeError);
}

TEST_CASE("promises: edges as JAX and optax 2026 have them") {
  CHECK(same(values(sa::var(floats({1, 2}), {}, 3)), {nan}));
  CHECK(same(values(sa::var(floats({1, 2}), {}, 2)), {nan}));
  CHECK(same(values(sa::var(floats({1, 2}), {}, 1)), {0.5}));
  for (const sa::TakeMode mode : {sa::TakeMode::fill, sa::TakeMode::clip})
    CHECK_SAYS(sa::take(nothing(), integers({0, 1}), 0, mode),
               "take: f32[0] has no elements along axis 0 for 2 indices. An index needs an "
               "element. Check the size first.",
               sa::ShapeError);
  CHECK(sa::take(sa::zeros({0, 3}), integers({}), 0).shape() == Shape{0, 3});
  CHECK_SAYS(sa::arange(3, sa::bool_),
             "arange: bool. A range is of numbers. Compare a range of int32 instead.", sa::DTypeError);
  const auto mean = sa::vmap([](const Array& a) { return sa::pmean(a, "i"); }, {.axis_name = "i"});
  const Array halves = mean(integers({1, 2}));
  CHECK(same(values(halves), {1.5, 1.5}));
  CHECK((halves + floats({1, 1}).astype(sa::float16)).dtype() == sa::float32);  // strong
  const auto descent = sa::optim::sgd(0.5);
  const Array whole = integers({4, 6});
  CHECK(same(values(descent.update(whole, descent.init(whole)).first), {-2, -3}));
}

}  // namespace promises_docs_test
