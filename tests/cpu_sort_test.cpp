// The CPU backend's sort against std::stable_sort, bit by bit.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cpu_helpers.h"

namespace cpu_sort_test {

using namespace shardarray;
using namespace shardarray::cpu_test;

namespace {

/// Whether the key p sorts before q: among floats NaN comes last, and -0 equals 0.
template <class T> bool stands_before(T p, T q) {
  if constexpr (std::is_floating_point_v<T>) return p < q || (std::isnan(q) && !std::isnan(p));
  else return p < q;
}
/// Places of the sorted elements of all lines.
template <class F>
std::vector<std::int64_t> sorted_places(const Shape& shape, std::size_t dim, const F& before) {
  std::vector<std::int64_t> places(static_cast<std::size_t>(num_elements(shape)));
  std::int64_t inner = 1;
  for (std::size_t d = dim + 1; d < shape.size(); d++) inner *= shape[d];
  const std::int64_t length = shape[dim], lines = length == 0 ? 0 : num_elements(shape) / length;
  for (std::int64_t line = 0; line < lines; line++) {
    const std::int64_t first = line / inner * inner * length + line % inner;
    std::vector<std::int64_t> order(static_cast<std::size_t>(length));
    for (std::int64_t i = 0; i < length; i++) order[i] = first + i * inner;
    std::stable_sort(order.begin(), order.end(), before);
    for (std::int64_t i = 0; i < length; i++) places[first + i * inner] = order[i];
  }
  return places;
}
/// Those that are no Element of arrays' constructors too.
template <class T> constexpr DType type_of_values() {
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::complex128;
  else return dtype_of<T>();
}
/// A sort of keys with these payloads, into memory of its own and in place, gives what stands at `places`.
template <class T, class... Payload>
void check_sort(const Shape& shape, std::size_t dim, const std::vector<std::int64_t>& places,
                std::vector<T> keys, std::vector<Payload>... payload) {
  LibraryCall x;
  x.name = "sort";
  x.in_types = x.out_types = {dtype_of<T>(), type_of_values<Payload>()...};
  LibraryCall::Item item{0, {}, {}, {}, {}, {static_cast<std::int64_t>(dim)}};
  constexpr std::uint32_t operands = 1 + sizeof...(Payload);
  for (std::uint32_t k = 0; k < operands; k++) {
    item.in.push_back({k, 0});
    item.out.push_back({operands + k, 0});
  }
  item.in_shapes = item.out_shapes = std::vector<Shape>(operands, shape);
  x.items = {item};
  const auto moved = [&]<class V>(const std::vector<V>& v) {
    std::vector<V> r(v.size());
    for (std::size_t k = 0; k < v.size(); k++) r[k] = v[static_cast<std::size_t>(places[k])];
    return r;
  };
  const auto same = []<class V>(const std::vector<V>& a, const std::vector<V>& b) {
    return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(V)) == 0;
  };
  auto want = std::tuple(moved(keys), moved(payload)...), got = std::tuple(keys, payload...);
  std::apply([&](auto&... to) { run({step(x)}, {keys.data(), payload.data()..., to.data()...}); }, got);
  const auto check = [&](const auto&... a) {
    std::apply([&](const auto&... b) { REQUIRE((same(a, b) && ...)); }, want);
  };
  std::apply(check, got);
  x.items[0].out = x.items[0].in;
  run({step(x)}, {keys.data(), payload.data()...});
  check(keys, payload...);
}

template <class T> void random_sorts(std::uint32_t seed) {
  std::mt19937 rng(seed);
  const Shape long_lines[] = {{20000}, {300, 3}, {2, 3, 700}, {15, 2},  {16, 2},   {31, 2},  {32, 2},
                              {63, 2}, {64, 2},  {127, 2},    {128, 2}, {4095, 2}, {2, 4096}};
  constexpr int rounds = 60, first_long = 30;
  for (int round = 0; round < rounds; round++) {
    Shape shape;
    for (auto d = 1 + rng() % 3; d > 0; d--) shape.push_back(round == rounds - 1 ? 40 : rng() % 12);
    auto dim = static_cast<std::size_t>(rng() % shape.size());
    if (const int k = round - first_long; k >= 0 && k < 2 * std::ssize(long_lines)) {
      shape = long_lines[k / 2];
      dim = shape[0] < 10 ? shape.size() - 1 : 0;
    }
    const std::int64_t n = num_elements(shape);
    auto keys = random_values<T>(rng, n, true);
    if (round % 4 < 2)  // every byte of a key
      for (auto& k : keys) {
        std::uint64_t bits = rng();
        bits = bits << 32 | rng();
        std::memcpy(&k, &bits, sizeof k);
      }
    if constexpr (std::is_floating_point_v<T>) {
      // in every other round no NaN and no -0, whose keys are several numbers'
      const T infinity = std::numeric_limits<T>::infinity(), small = std::numeric_limits<T>::denorm_min(),
              quiet = std::numeric_limits<T>::quiet_NaN();
      const T special[] = {T(0), infinity, -infinity, small, -small, -T(0), quiet, -quiet};
      const unsigned count = round % 2 == 0 ? 8 : 5;
      for (auto& k : keys)
        if (rng() % 3 == 0 || (count == 5 && (std::isnan(k) || k == 0))) k = special[rng() % count];
    } else {
      for (auto& k : keys)
        if (rng() % 2 == 0) k = static_cast<T>(rng() % 5);
    }
    const auto places = sorted_places(shape, dim, [&](std::int64_t p, std::int64_t q) {
      return stands_before(keys[static_cast<std::size_t>(p)], keys[static_cast<std::size_t>(q)]);
    });
    const auto numbered = [&]<class V>(V) {
      std::vector<V> r(keys.size());
      std::iota(r.begin(), r.end(), V{1});
      return r;
    };
    const auto shorts = numbered(std::int16_t{});
    const auto positions = numbered(std::int32_t{});
    const std::vector<std::complex<double>> wide(shorts.begin(), shorts.end());
    check_sort(shape, dim, places, keys);
    check_sort(shape, dim, places, keys, positions);
    check_sort(shape, dim, places, keys, numbered(std::uint8_t{}));
    check_sort(shape, dim, places, keys, numbered(double{}));
    check_sort(shape, dim, places, keys, wide);
    check_sort(shape, dim, places, keys, shorts, wide);
  }
}

}  // namespace

TEST_CASE("sort: keys of all types with payload, along any dimension") {
  random_sorts<float>(1);
  random_sorts<double>(2);
  random_sorts<std::int8_t>(3);
  random_sorts<std::int32_t>(4);
  random_sorts<std::int64_t>(5);
  random_sorts<std::uint16_t>(6);
  random_sorts<std::uint64_t>(7);
}

TEST_CASE("sort: lines whose passes leave the cache, and every 16-bit float") {
  std::mt19937 rng(8);
  const std::int64_t n = 600'000;
  auto keys = random_values<float>(rng, n, false);
  for (const bool with_minus_zero : {false, true}) {
    keys[7] = with_minus_zero ? -0.0F : 1.0F;
    const auto places = sorted_places({n}, 0, [&](std::int64_t p, std::int64_t q) {
      return keys[static_cast<std::size_t>(p)] < keys[static_cast<std::size_t>(q)];
    });
    std::vector<std::int32_t> positions(static_cast<std::size_t>(n));
    std::iota(positions.begin(), positions.end(), 0);
    check_sort({n}, 0, places, keys);
    check_sort({n}, 0, places, keys, positions);
  }
  const auto value = [](DType t, std::uint32_t bits) {
    const int digits = t == DType::float16 ? 10 : 7, bias = t == DType::float16 ? 15 : 127;
    const std::uint32_t whole = 1U << digits, digit = bits & (whole - 1),
                        exponent = (bits & 0x7fff) >> digits;
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == 0x7fffU >> digits) return digit == 0 ? sign * HUGE_VAL : std::nan("");
    return sign * std::ldexp(exponent == 0 ? digit : digit + whole,
                             static_cast<int>(std::max(exponent, 1U)) - bias - digits);
  };
  for (const DType t : {DType::float16, DType::bfloat16})
    for (const bool with_shared : {false, true}) {
      std::vector<std::uint16_t> all;
      for (std::uint32_t bits = 0; bits < 65536; bits++) {
        const double v = value(t, bits);
        if (with_shared || !(std::isnan(v) || bits == 0x8000))
          all.push_back(static_cast<std::uint16_t>(bits));
      }
      std::shuffle(all.begin(), all.end(), rng);
      const Shape shape{std::ssize(all)};
      const auto places = sorted_places(shape, 0, [&](std::int64_t p, std::int64_t q) {
        return stands_before(value(t, all[static_cast<std::size_t>(p)]),
                             value(t, all[static_cast<std::size_t>(q)]));
      });
      std::vector<std::uint16_t> out(all.size());
      LibraryCall x;
      x.name = "sort";
      x.in_types = x.out_types = {t};
      x.items = {{0, {{0, 0}}, {{1, 0}}, {shape}, {shape}, {0}}};
      run({step(x)}, {all.data(), out.data()});
      bool same = true;
      for (std::size_t k = 0; k < all.size(); k++) same &= out[k] == all[static_cast<std::size_t>(places[k])];
      CHECK(same);
    }
}

}  // namespace cpu_sort_test
