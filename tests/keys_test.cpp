// Keys are exact: programs that differ in anything never share one.
#include <doctest/doctest.h>

#include "graph/key.h"
#include "ops/record.h"
#include "shardarray/shardarray.h"

namespace keys_test {

using namespace shardarray;

Words key_of(const Attrs& a, const Modes& m = {}) {
  Words words;
  put_node(&op_slice, &a, &m, {}, 1, words);
  return words;
}

TEST_CASE("keys: every attribute counts, and no two lists run into each other") {
  const Sharding s1 = SingleDeviceSharding(devices()[0]), s2 = SingleDeviceSharding(devices()[1]);
  const auto axis = std::make_shared<const Axis>(Axis{"i", 4}),
             other = std::make_shared<const Axis>(Axis{"i", 4});
  std::vector<Attrs> all;
  const auto add = [&](auto set) {
    Attrs a;
    set(a);
    all.push_back(std::move(a));
  };
  add([](Attrs&) {});
  const std::vector<Shape> lists = {{1}, {2}, {1, 2}, {2, 1}, {1, 1}, {0}, {0, 0}, {-1}};
  for (const Shape& l : lists) {
    add([&](Attrs& a) { a.dims = l; });
    add([&](Attrs& a) { a.lo = l; });
    add([&](Attrs& a) { a.hi = l; });
    add([&](Attrs& a) { a.step = l; });
    add([&](Attrs& a) { a.shape = l; });
    add([&](Attrs& a) { a.lo = l, a.hi = {1}; });
    add([&](Attrs& a) { a.lo = {1}, a.hi = l, a.step = {1}; });
  }
  for (std::uint64_t bits : {1ull, 2ull, 1ull << 63}) add([&](Attrs& a) { a.bits = bits; });
  for (DType t : {DType::float32, DType::int8}) add([&](Attrs& a) { a.dtype = t; });
  for (Reducer r : {Reducer::sum, Reducer::max}) add([&](Attrs& a) { a.reducer = r; });
  for (const char* l : {"i", "ij", "ij,jk->ik", "ij,jk->ki", "iiiiiiii", "iiiiiiiii"})
    add([&](Attrs& a) { a.letters = l; });
  add([&](Attrs& a) { a.uncut = true; });
  for (const Sharding* s : {&s1, &s2})
    add([&](Attrs& a) { a.sharding = std::make_shared<const Sharding>(*s); });
  for (const char* spec : {"x", "y"})
    for (const char* names : {"xy", "yx"})
      add([&](Attrs& a) {
        const Mesh mesh = make_mesh({{std::string(1, names[0]), 2}, {std::string(1, names[1]), 2}});
        a.sharding = std::make_shared<const Sharding>(NamedSharding(mesh, P(spec)));
      });
  add([&](Attrs& a) { a.axes = {axis}; });
  add([&](Attrs& a) { a.axes = {other}; });
  add([&](Attrs& a) { a.axes = {axis, other}; });
  std::vector<std::pair<Words, std::size_t>> seen;
  std::vector<std::size_t> classes;  // equal attributes are one class
  for (std::size_t i = 0; i < all.size(); i++)
    for (std::size_t j = 0; j <= i; j++) {
      CAPTURE(i);
      CAPTURE(j);
      CHECK((key_of(all[i]) == key_of(all[j])) == (all[i] == all[j]));
    }
}

TEST_CASE("keys: of modes, what compiling depends on counts") {
  const Attrs a{};
  Modes follow, fixed;
  follow.policy = Policy::follow;
  fixed.reproducible = true;
  CHECK(key_of(a) != key_of(a, follow));
  CHECK(key_of(a) != key_of(a, fixed));
  CHECK(key_of(a, follow) != key_of(a, fixed));
}

// Pairs of attributes of which the 64-bit mix of the words is the same: the mix is invertible, so the last word of one can be
// chosen. Slices that differ so are two programs.
TEST_CASE("keys: programs whose attributes collide in a hash are two programs") {
  const auto unmix = [](std::uint64_t h, std::uint64_t target) {  // x with hash_mix(h, x) == target
    std::uint64_t t = target;
    t ^= t >> 32;
    std::uint64_t inverse = 1;
    for (int k = 0; k < 6; k++) inverse *= 2 - 0xff51afd7ed558ccdull * inverse;
    t *= inverse;
    t ^= h;
    return t - (0x9e3779b97f4a7c15ull + (h << 6) + (h >> 2));
  };
  CHECK(hash_mix(5, unmix(5, hash_mix(77, 99))) == hash_mix(77, 99));
  Words a{3, 10}, b{3, 0};  // {slices} as lists of words
  b[0] = 4;
  const auto state = [](const Words& w) { return hash_mix(w.size(), w[0]); };
  b[1] = unmix(state(b), hash_mix(state(a), a[1]));
  REQUIRE(WordsHash()(a) == WordsHash()(b));
  std::unordered_map<Words, int, WordsHash> table{{a, 1}, {b, 2}};
  CHECK(table.at(a) == 1);
  CHECK(table.at(b) == 2);
}

TEST_CASE("keys: the hottest trace of a jitted function is not the one that goes") {
  int traced = 0;
  const auto f = jit(
      [&](const Array& x, int k) {
        traced++;
        return x + k;
      },
      {.max_entries = 4});
  const Array x = array({1.0f});
  for (int k = 0; k < 40; k++) {
    f(x, 0);
    f(x, 0);
    f(x, k + 1);
    CHECK(f.cache_size() <= 4);
  }
  CHECK(traced == 41);  // the first one is never traced again
  CHECK(f.traces() == 41);
}

}  // namespace keys_test
