// Philox bits against those that cuRAND's host generator printed (data/philox.json), and against cuRAND where it is installed.
#include <dlfcn.h>

#include <numeric>

#include "golden.h"
#include "lib/random_bits.h"

namespace philox_test {

using namespace shardarray;
using golden::Json;

namespace {

// `n` words from `offset` on: of a draw, and of positions alone.
std::vector<std::uint32_t> words(std::uint64_t seed, std::int64_t offset, std::int64_t n) {
  const random::philox on(true);
  return random::bits(random::key(seed), {offset + n})[slice(offset, offset + n)].to_vector<std::uint32_t>();
}
template <class T>
std::vector<std::uint32_t> words_at(std::uint64_t seed, std::int64_t offset, std::size_t n) {
  std::vector<T> positions(n);
  std::iota(positions.begin(), positions.end(), static_cast<T>(offset));
  const Array bits = random::philox_bits_at(random::key(seed), array(positions), uint32);
  return bits.to_vector<std::uint32_t>();
}

// cuRAND's functions, or null.
struct Curand {
  using Generator = void*;
  int (*create)(Generator*, int) = nullptr;
  int (*seed)(Generator, unsigned long long) = nullptr;
  int (*offset)(Generator, unsigned long long) = nullptr;
  int (*generate)(Generator, unsigned*, std::size_t) = nullptr;
  int (*destroy)(Generator) = nullptr;

  Curand() {
    void* library = nullptr;
    for (const char* name : {"libcurand.so.10", "/usr/local/cuda/lib64/libcurand.so.10"})
      if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    auto find = [library](auto& f, const char* name) {
      f = reinterpret_cast<std::remove_reference_t<decltype(f)>>(dlsym(library, name));
    };
    find(create, "curandCreateGeneratorHost");
    find(seed, "curandSetPseudoRandomGeneratorSeed");
    find(offset, "curandSetGeneratorOffset");
    find(generate, "curandGenerate");
    find(destroy, "curandDestroyGenerator");
  }
  std::vector<std::uint32_t> words(std::uint64_t from_seed, std::uint64_t from, std::size_t n) const {
    constexpr int philox4_32_10 = 161;
    Generator g = nullptr;
    std::vector<std::uint32_t> r(n);
    REQUIRE(create(&g, philox4_32_10) == 0);
    REQUIRE(seed(g, from_seed) == 0);
    REQUIRE(offset(g, from) == 0);
    REQUIRE(generate(g, r.data(), n) == 0);
    REQUIRE(destroy(g) == 0);
    return r;
  }
};

}  // namespace

TEST_CASE("random: philox: words are cuRAND's") {
  const Json all = golden::load("philox.json");
  int drawn = 0;
  for (const Json& c : all["cases"]) {
    CAPTURE(c.dump());
    const auto expected = c["words"].get<std::vector<std::uint32_t>>();
    const std::uint64_t seed = c["seed"];
    const std::int64_t offset = c["offset"], end = offset + static_cast<std::int64_t>(expected.size());
    CHECK(words_at<std::uint64_t>(seed, offset, expected.size()) == expected);
    if (end <= std::int64_t{1} << 32)
      CHECK(words_at<std::uint32_t>(seed, offset, expected.size()) == expected);
    if (end > 1 << 20) continue;  // too many words to draw
    CHECK(words(seed, offset, end - offset) == expected);
    drawn++;
  }
  CHECK(all["cases"].size() == 60);
  CHECK(drawn == 36);
}

TEST_CASE("random: philox: a whole draw is what cuRAND generates") {
  const Curand curand;
  if (!curand.create) {
    MESSAGE("SKIPPED: cuRAND is not installed");
    return;
  }
  for (const std::uint64_t seed : {std::uint64_t{3}, std::uint64_t{1} << 63})
    CHECK(words(seed, 0, 300001) == curand.words(seed, 0, 300001));
  CHECK(words(5, 262139, 70000) == curand.words(5, 262139, 70000));
}

TEST_CASE("random: philox: other widths are made of the same words") {
  const random::philox on(true);
  const Array key = random::key(std::int64_t{11});
  const auto word = random::bits(key, {24}).to_vector<std::uint32_t>();
  const auto u64 = random::bits(key, {3, 4}, uint64).to_vector<std::uint64_t>();
  for (std::size_t n = 0; n < 12; n++) CHECK(u64[n] == (word[2 * n] | std::uint64_t{word[2 * n + 1]} << 32));
  const auto u16 = random::bits(key, {24}, uint16).to_vector<std::uint16_t>();
  const auto u8 = random::bits(key, {4, 6}, uint8).to_vector<std::uint8_t>();
  for (std::size_t n = 0; n < 24; n++) {
    CHECK(u16[n] == static_cast<std::uint16_t>(word[n]));
    CHECK(u8[n] == static_cast<std::uint8_t>(word[n]));
  }
  const auto unit = random::uniform(key, {24}).to_vector<float>();
  for (std::size_t n = 0; n < 24; n++)
    CHECK(unit[n] == static_cast<float>(word[n] >> 9) / static_cast<float>(1 << 23));
}

TEST_CASE("random: philox: keys stay, draws do not depend on where they lie; traces are kept apart") {
  const Array key = random::key(7);
  const auto keys = random::split(key).to_vector<std::uint32_t>();
  const auto draw = jit([](const Array& k) { return random::normal(k, {16, 5}); });
  const auto threefry = draw(key).to_vector<float>();
  const random::philox on(true);
  CHECK(random::split(key).to_vector<std::uint32_t>() == keys);
  const auto whole = draw(key).to_vector<float>();
  CHECK(whole != threefry);
  CHECK(random::normal(key, {16, 5}).to_vector<float>() == whole);
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  for (const PartitionSpec& spec : {P("x"), P("x", "y"), P(none, "y")}) {
    const NamedSharding s(mesh, spec);
    const Array cut = jit([s](const Array& k) { return filter_shard(random::normal(k, {16, 5}), s); })(key);
    CHECK(cut.to_vector<float>() == whole);
  }
  const Array two = random::split(key, 2);
  const Array rows = vmap([](const Array& k) { return random::bits(k, {3}); })(two);
  for (std::int64_t i = 0; i < 2; i++) CHECK(array_equal(rows[i], random::bits(two[i], {3})));
  {
    const random::philox off(false);
    CHECK(draw(key).to_vector<float>() == threefry);
    const random::partitionable older(false);
    const random::philox again(true);
    CHECK(draw(key).to_vector<float>() == whole);
  }
  CHECK(draw(key).to_vector<float>() == whole);
}

}  // namespace philox_test
