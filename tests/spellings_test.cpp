// Spellings that users of NumPy and JAX write out of habit.
#include <doctest/doctest.h>

#include <vector>

#include "messages.h"
#include "shardarray/shardarray.h"

namespace shardarray::spellings_test {
namespace {

Array numbers(const Shape& shape) { return arange(num_elements(shape), float32).reshape(shape); }
NamedSharding cut(const PartitionSpec& spec) { return NamedSharding(make_mesh({{"x", 4}, {"y", 2}}), spec); }

}  // namespace

TEST_CASE("spellings: a list of axes is a list of axes") {
  const Array x = numbers({2, 3, 4});
  CHECK(sum(x, {0, 1}).shape() == Shape{4});
  CHECK(sum(x, {1}).shape() == Shape{2, 4});
  CHECK(sum(x, {}).shape() == Shape{});
  CHECK(sum(x, {.axis = {0, 1}}).shape() == Shape{4});
  CHECK(sum(x, {0, true}).shape() == Shape{1, 3, 4});
  CHECK(sum(x, {.axis = 0, .keepdims = true}).shape() == Shape{1, 3, 4});
  for (const Array& r :
       {sum(x, -1, {.keepdims = true}), x.sum(-1, {.keepdims = true}), mean(x, 2, {.keepdims = true}),
        var(x, 2, {.keepdims = true}), x.max(2, {.keepdims = true}), argmax(x, 2, {.keepdims = true})})
    CHECK(r.shape() == Shape{2, 3, 1});
  CHECK(sum(x, {0, 1}, {.keepdims = true}).shape() == Shape{1, 1, 4});
  CHECK(x.all({0, 2}, {.keepdims = true}).shape() == Shape{1, 3, 1});
  CHECK(sum(x, 0, {.dtype = float64}).dtype() == float64);
  CHECK(x.sum({0, 1}).to_vector<float>() == std::vector<float>{60, 66, 72, 78});
  CHECK(mean(x, {0, 1}).to_vector<float>() == std::vector<float>{10, 11, 12, 13});
  for (const Array& r : {max(x, {0, 1}), min(x, {0, 1}), prod(x, {0, 1}), any(x, {0, 1}), all(x, {0, 1}),
                         logsumexp(x, {0, 1}), var(x, {0, 1}), x.mean({0, 1}), x.max({0, 1}), x.min({0, 1}),
                         x.prod({0, 1}), x.any({0, 1}), x.all({0, 1})})
    CHECK(r.shape() == Shape{4});
  CHECK(argmax(x, {1}).shape() == Shape{2, 4});
  const std::int64_t last = 2;
  CHECK(sum(x, {.axis = {last, 1}}).shape() == Shape{2});
  CHECK(sum(x, {last, true}).shape() == Shape{2, 3, 1});
  CHECK(cumsum(x, {last, true}).to_vector<float>()[0] == 6);
  CHECK(squeeze(numbers({1, 1, 2}), {0, 1}).shape() == Shape{2});
  CHECK(expand_dims(numbers({2}), {0, 1}).shape() == Shape{1, 1, 2});
  CHECK(flip(numbers({2, 2}), {0, 1}).to_vector<float>() == std::vector<float>{3, 2, 1, 0});
}

TEST_CASE("spellings: sizes and names of a mesh apart, as in JAX") {
  CHECK(make_mesh({4, 2}, {"x", "y"}) == make_mesh({{"x", 4}, {"y", 2}}));
}

TEST_CASE("spellings: numbers where NumPy takes them") {
  Array x = numbers({2, 3});
  CHECK(x.reshape(3, 2).shape() == Shape{3, 2});
  CHECK(x.reshape(-1).shape() == Shape{6});
  CHECK(x.reshape(1, 2, 3).shape() == Shape{1, 2, 3});
  CHECK(reshape(x, 3, -1).shape() == Shape{3, 2});
  CHECK(zeros(3).shape() == Shape{3});
  CHECK(ones(3, int32).to_vector<int>() == std::vector<int>{1, 1, 1});
  CHECK(x.at(0).set(7).to_vector<float>() == std::vector<float>{7, 7, 7, 3, 4, 5});
  const Array before = x;
  x += 1;
  CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 5, 6});
  x *= x;
  x -= 1;
  x /= 2;
  CHECK(x.to_vector<float>() == std::vector<float>{0, 1.5, 4, 7.5, 12, 17.5});
  CHECK(before.to_vector<float>() == std::vector<float>{0, 1, 2, 3, 4, 5});
  Array bits = array({1, 2, 12});
  bits <<= 2;
  CHECK(bits.to_vector<int>() == std::vector<int>{4, 8, 48});
  bits >>= array({0, 3, 4});
  CHECK(bits.to_vector<int>() == std::vector<int>{4, 1, 3});
  bits |= 8;
  bits ^= 1;
  bits &= 13;
  CHECK(bits.to_vector<int>() == std::vector<int>{13, 8, 8});
}

TEST_CASE("spellings: floats do not go into integers without a word") {
  const Array i = arange(4);
  CHECK(testing::message_of<DTypeError>([&] { static_cast<void>(i.at(0).set(2.7)); }) ==
        "at.set: f32[] in an array i32[4]. Fractions would be lost: x.astype(float32) holds them, "
        "v.astype(int32) drops them.");
  CHECK(i.at(0).set(Array(2.7).astype(int32)).to_vector<int>() == std::vector<int>{2, 1, 2, 3});
  CHECK(numbers({2}).at(0).set(1).to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("spellings: a null pointer in a spec is none") {
  const char* nothing = nullptr;
  CHECK(P(nullptr, "x") == P(none, "x"));
  CHECK(P(nothing, "x") == P(none, "x"));
  CHECK(cut(P(nullptr, "x"))->shard_shape({8, 8}) == Shape{8, 2});
}

// ---------------------------------------------------------------- types before anything is computed
TEST_CASE("spellings: type_string shows a placement as soon as it is asked for") {
  const Array x = numbers({8, 4}) + 0;
  const Array placed = filter_shard(x, cut(P("x", "y")));
  const Array next = tanh(placed) * 2 + placed;
  CHECK(placed.type_string() == "f32[8@x,4@y]");
  CHECK(next.type_string() == "f32[8@x,4@y]");
  CHECK(sum(placed, 0).type_string() == "f32[4]");  // not known yet
  eval(next);
  CHECK(next.type_string() == "f32[8@x,4@y]");
  const Array other = filter_shard(x, cut(P("y", "x")));
  CHECK((placed + other).type_string() == "f32[8,4]");  // the compiler chooses
  // What is made of summands is not, for most operations.
  const Array summands = device_put(x, cut(P(unreduced("x"))));
  CHECK(summands.type_string() == "f32[8,4]{U:x}");
  for (const Array& made :
       {tanh(summands), summands * 2, where(x > 0, summands, 0), summands.astype(int32)}) {
    const std::string before = made.type_string();
    CHECK(before.find("{U") == before.npos);
    eval(made);
    CHECK(made.type_string() == before);
  }
}

}  // namespace shardarray::spellings_test
