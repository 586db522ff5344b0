// The CPU backend's library kernels and data movement, compared with elementwise loops: exchanges, scatter, scan.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <type_traits>
#include <vector>

#include "cpu_helpers.h"
#include "runtime/evaluate_instruction.h"
#include "runtime/scalar.h"

namespace cpu_data_test {

using namespace shardarray;
using namespace shardarray::cpu_test;

namespace {

/// Exchanges of one random tile, and the same by element-wise loops.
template <class T> struct RandomExchange {
  std::vector<std::vector<T>> memory;  // 0: destination; others: sources
  std::vector<T> expected;
  Exchange x;
  std::int64_t received = 0;

  RandomExchange(std::uint32_t seed, Reducer reducer, std::int64_t most_elements) {
    std::mt19937 rng(seed);
    const auto pick = [&](std::int64_t lo, std::int64_t hi) {
      return lo + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(hi - lo + 1));
    };
    Shape tile;
    std::int64_t elements = 1;
    for (std::int64_t d = pick(0, 4); d > 0; d--) {
      tile.push_back(pick(rng() % 8 == 0 ? 0 : 1,
                          std::max<std::int64_t>(1, std::min<std::int64_t>(9, most_elements / elements))));
      elements *= std::max<std::int64_t>(tile.back(), 1);
    }
    if (most_elements > 10'000) tile.push_back(most_elements / elements);
    memory.push_back(random_values<T>(rng, num_elements(tile), true));
    x.dtype = dtype_of<T>();
    x.reducer = reducer;
    x.transfer = 1;
    Exchange::Item item;
    item.device = 2;
    item.dst_bytes = memory[0].size() * sizeof(T);
    item.fill = rng() % 2;
    const T fill_value = static_cast<T>(7);
    std::memcpy(&x.fill_bits, &fill_value, sizeof(T));
    expected = memory[0];
    if (item.fill) std::fill(expected.begin(), expected.end(), fill_value);
    if (tile.empty()) tile = {1};
    // Boxes that lie side by side along one dimension, some of them left out.
    const auto along = static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(tile.size()) - 1));
    for (std::int64_t at = 0; at < tile[along];) {
      const std::int64_t width = pick(1, tile[along] - at);
      if (rng() % 4 != 0) {
        Shape extents = tile;
        extents[along] = width;
        add_piece(item, rng, tile, extents, along, at);
      }
      at += width;
    }
    x.items = {item};
  }
  void add_piece(Exchange::Item& item, std::mt19937& rng, const Shape& tile, const Shape& extents,
                 std::size_t along, std::int64_t at) {
    const std::size_t rank = tile.size();
    Exchange::Piece p;
    p.extents = extents;
    p.dst_strides = Shape::filled(rank, 1);
    for (std::size_t d = rank - 1; d-- > 0;) p.dst_strides[d] = p.dst_strides[d + 1] * tile[d + 1];
    p.dst = {0, static_cast<std::uint64_t>(at * p.dst_strides[along]) * sizeof(T)};
    // Sources: the box with its dimensions in random order, some reversed, some with a stride.
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (rng() % 2) std::shuffle(order.begin(), order.end(), rng);
    p.src_strides = Shape::filled(rank, 0);
    std::int64_t size = 1, first = 0;
    for (std::size_t d : order) {
      const std::int64_t stride = size * (rng() % 5 == 0 ? 2 : 1);
      size = stride * extents[d];
      p.src_strides[d] = stride;
      if (rng() % 5 == 0) {
        p.src_strides[d] = -stride;
        first += stride * (extents[d] - 1);
      }
    }
    const int sources = x.reducer == Reducer::none ? 1 : 1 + static_cast<int>(rng() % 9);
    for (int s = 0; s < sources; s++) {
      memory.push_back(random_values<T>(rng, size + 3, false));
      const auto device = static_cast<int>(rng() % 4);
      const auto bytes = static_cast<std::uint64_t>(first + 1) * sizeof(T);
      p.sources.push_back({{static_cast<std::uint32_t>(memory.size() - 1), bytes},
                           device,
                           memory.back().size() * sizeof(T),
                           bytes});
      if (device != item.device) received += num_elements(extents) * static_cast<std::int64_t>(sizeof(T));
    }
    // Pointers, since tests are compiled without optimisation.
    std::vector<const T*> from;
    for (const auto& s : p.sources) from.push_back(memory[s.ref.base].data());
    const std::int64_t *n = extents.data(), *by = p.src_strides.data(), *to = p.dst_strides.data();
    const T* const* const source = from.data();
    T* const result = expected.data();
    for (std::int64_t e = 0, count = num_elements(extents); e < count; e++) {
      std::int64_t rest = e, src = first + 1, dst = at * to[along];
      for (std::size_t d = rank; d-- > 0; rest /= n[d]) {
        src += rest % n[d] * by[d];
        dst += rest % n[d] * to[d];
      }
      T sum = source[0][src];
      for (int s = 1; s < sources; s++) sum = combine(sum, source[s][src]);
      result[dst] = sum;
    }
    item.pieces.push_back(p);
  }
  T combine(T a, T b) const {
    switch (x.reducer) {
      case Reducer::sum:
        if constexpr (std::is_floating_point_v<T>) return a + b;
        else return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      case Reducer::prod:
        if constexpr (std::is_floating_point_v<T>) return a * b;
        else return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      case Reducer::max: return std::max(a, b);
      default: return std::min(a, b);
    }
  }
  void check(int workers) {
    const Workers w(workers);
    const std::vector<T> before = memory[0];
    std::vector<void*> bases;
    for (auto& m : memory) bases.push_back(m.data());
    const RunReport report = run({step(x)}, bases, 3);
    CHECK(report.received == std::vector<std::int64_t>{0, received, 0});
    CHECK((expected.empty() ||
           std::memcmp(memory[0].data(), expected.data(), expected.size() * sizeof(T)) == 0));
    memory[0] = before;
  }
};

template <class T> void random_exchanges(std::uint32_t seed, std::initializer_list<Reducer> reducers) {
  for (Reducer r : reducers) {
    INFO(name(r), " of ", name(dtype_of<T>()));
    for (std::uint32_t k = 0; k < 25; k++) RandomExchange<T>(seed + k, r, 2000).check(1);
    for (std::uint32_t k = 0; k < 2; k++) {
      RandomExchange<T> large(seed + 1000 + k, r, 150'000);  // cut into chunks
      for (int workers : {1, 2, 5}) large.check(workers);
    }
  }
}

}  // namespace

TEST_CASE("exchange: random boxes, fills and reductions against element-wise loops") {
  random_exchanges<float>(1, {Reducer::none, Reducer::sum, Reducer::prod, Reducer::max, Reducer::min});
  random_exchanges<double>(2, {Reducer::none, Reducer::sum, Reducer::max});
  random_exchanges<std::int32_t>(3, {Reducer::none, Reducer::sum, Reducer::prod, Reducer::max, Reducer::min});
  random_exchanges<std::int8_t>(4, {Reducer::none, Reducer::sum, Reducer::min});
  random_exchanges<std::uint16_t>(5, {Reducer::none, Reducer::sum});
  random_exchanges<std::uint64_t>(6, {Reducer::sum, Reducer::max});
}

TEST_CASE("exchange: bool, NaN, signed zeros, wide elements") {
  const auto combine_two = [](Reducer r, auto a, auto b) {
    using T = decltype(a);
    T c{};
    Exchange x;
    x.dtype = dtype_of<T>();
    x.reducer = r;
    x.items = {{0,
                {2, 0},
                sizeof(T),
                false,
                {{{}, {}, {}, {2, 0}, {{{0, 0}, 0, sizeof(T), 0}, {{1, 0}, 0, sizeof(T), 0}}}}}};
    run({step(x)}, {&a, &b, &c});
    return c;
  };
  for (bool a : {false, true}) {
    for (bool b : {false, true}) {
      CHECK(combine_two(Reducer::any, a, b) == (a || b));
      CHECK(combine_two(Reducer::max, a, b) == (a || b));
      CHECK(combine_two(Reducer::all, a, b) == (a && b));
      CHECK(combine_two(Reducer::min, a, b) == (a && b));
    }
  }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(combine_two(Reducer::max, nan, 1.f)));
  CHECK(std::isnan(combine_two(Reducer::min, 1.f, nan)));
  CHECK_FALSE(std::signbit(combine_two(Reducer::max, -0.f, 0.f)));
  CHECK(std::signbit(combine_two(Reducer::min, 0.f, -0.f)));
  CHECK(std::signbit(combine_two(Reducer::any, -0.f, 0.f)));  // the bits, of any dtype
  CHECK(combine_two(Reducer::any, 0.0, -1.5) == -1.5);
  CHECK(combine_two(Reducer::any, std::int16_t{3}, std::int16_t{0}) == 3);

  double in[6] = {1, 2, 3, 4, 5, 6}, out[6] = {};  // three complex128, reversed
  Exchange x;
  x.dtype = DType::complex128;
  x.items = {{0, {1, 0}, 48, false, {{{3}, {-1}, {1}, {1, 0}, {{{0, 32}, 0, 48, 32}}}}}};
  run({step(x)}, {in, out});
  CHECK(std::vector<double>(out, out + 6) == std::vector<double>{5, 6, 3, 4, 1, 2});
  const double one = 1;
  x.items = {{0, {0, 0}, 48, true, {}}};
  std::memcpy(&x.fill_bits, &one, 8);
  run({step(x)}, {out});
  CHECK(std::vector<double>(out, out + 6) == std::vector<double>{1, 0, 1, 0, 1, 0});
}

namespace {

template <class T, class Index> void random_scatters(std::uint32_t seed) {
  std::mt19937 rng(seed);
  for (int round = 0; round < 30; round++) {
    const std::int64_t batch = rng() % 4, rows = rng() % 9, columns = round % 10 == 0 ? 700 : rng() % 9,
                       n = rng() % 40, first_row = rng() % 20;
    const auto updates = random_values<T>(rng, batch * n * columns, false);
    std::vector<Index> where(static_cast<std::size_t>(batch * n));
    for (auto& w : where) w = static_cast<Index>(rng() % 32);
    if (where.size() > 0 && std::is_signed_v<Index>) where[0] = std::numeric_limits<Index>::min();
    if (where.size() > 1) where[1] = std::numeric_limits<Index>::max();
    const bool has_x = rng() % 2 == 0, in_place = rng() % 2 == 0;
    const Reducer reducer = std::array{Reducer::sum, Reducer::prod, Reducer::max, Reducer::min,
                                       Reducer::none}[rng() % (has_x ? 5 : 4)];
    using Limits = std::numeric_limits<T>;
    const T low = Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
            high = Limits::has_infinity ? Limits::infinity() : Limits::max();
    const T identity = reducer == Reducer::sum    ? T(0)
                       : reducer == Reducer::prod ? T(1)
                       : reducer == Reducer::max  ? low
                                                  : high;
    std::vector<T> expected(static_cast<std::size_t>(batch * rows * columns), identity);
    if (has_x) expected = random_values<T>(rng, batch * rows * columns, false);
    std::vector<T> given = expected;
    for (std::int64_t i = 0; i < batch * n; i++) {
      for (std::int64_t r = 0; r < rows; r++) {
        if (static_cast<std::int64_t>(where[i]) != first_row + r) continue;
        for (std::int64_t c = 0; c < columns; c++) {
          T& to = expected[(i / n * rows + r) * columns + c];
          using Wide = std::conditional_t<std::is_floating_point_v<T>, T, std::uint64_t>;  // wraps around
          const T update = updates[i * columns + c];
          to = reducer == Reducer::none   ? update
               : reducer == Reducer::sum  ? static_cast<T>(Wide(to) + Wide(update))
               : reducer == Reducer::prod ? static_cast<T>(Wide(to) * Wide(update))
               : reducer == Reducer::max  ? std::max(to, update)
                                          : std::min(to, update);
        }
      }
    }
    LibraryCall x;
    x.name = "scatter";
    x.in_types = {dtype_of<Index>(), dtype_of<T>()};
    x.out_types = {dtype_of<T>()};
    x.items = {{0,
                {{0, 0}, {1, 0}},
                {{2, 0}},
                {{batch, n}, {batch, n, columns}},
                {{batch, rows, columns}},
                {first_row, static_cast<std::int64_t>(reducer)}}};
    std::vector<T> out(expected.size(), T(1));
    if (has_x) {  // base 3, or the result
      x.name = "update_rows";
      x.in_types.insert(x.in_types.begin(), dtype_of<T>());
      LibraryCall::Item& item = x.items[0];
      item.in.insert(item.in.begin(), {in_place ? 2u : 3u, 0});
      item.in_shapes.insert(item.in_shapes.begin(), item.out_shapes[0]);
      if (in_place) out = given;
    }
    const Workers w(1 + round % 3);
    run({step(x)}, {where.data(), const_cast<T*>(updates.data()), out.data(), given.data()});
    REQUIRE(out == expected);
  }
}

// program.h, word by word.
template <class T> struct ScanState {
  Reducer r;
  T total, lost{};
  T op(T a, T b) const {
    return r == Reducer::sum    ? scalar::add(a, b)
           : r == Reducer::prod ? scalar::mul(a, b)
           : r == Reducer::max  ? scalar::max(a, b)
                                : scalar::min(a, b);
  }
  T with(T local) const {
    const bool rounds = std::is_floating_point_v<T> && r == Reducer::sum;
    return op(total, rounds ? op(local, lost) : local);
  }
  void end_block(T local) {
    if constexpr (std::is_floating_point_v<T>) {
      const T off = scalar::rounded_off(total, op(local, lost)), next = with(local);
      if (r == Reducer::sum) lost = std::isfinite(off) ? off : 0;
      total = next;
    } else {
      total = op(total, local);
    }
  }
};
template <class T> void random_scans(std::uint32_t seed, DType t) {
  std::mt19937 rng(seed);
  for (int round = 0; round < 60; round++) {
    const std::int64_t lengths[] = {0, 1, 5, 1023, 1024, 1025, 4 * 1024, 5 * 1024 + 3, 9 * 1024};
    const std::int64_t length = lengths[rng() % 9], columns = length > 1025 ? 9 : 133;
    const Shape shape{static_cast<std::int64_t>(rng() % 12), length,
                      round % 3 == 0 ? 1 : static_cast<std::int64_t>(rng() % 3) * columns};
    const std::int64_t inner = shape[2], lines = shape[0] * inner, direction = rng() % 2 ? 1 : -1;
    const auto r = std::array{Reducer::sum, Reducer::prod, Reducer::max, Reducer::min}[rng() % 4];
    auto x = random_values<T>(rng, lines * length, false);
    const std::uint64_t bits = identity_bits(r, t);
    T identity;
    std::memcpy(&identity, &bits, sizeof identity);
    std::vector<T> want(x.size()), ends(static_cast<std::size_t>(lines), identity);
    for (std::int64_t line = 0; line < lines; line++) {
      ScanState<T> state{r, identity};
      T local = identity;
      for (std::int64_t i = 0; i < length; i++) {
        const std::int64_t place = direction < 0 ? length - 1 - i : i,
                           at = (line / inner * length + place) * inner + line % inner;
        local = state.op(local, x[at]);
        ends[line] = want[at] = state.with(local);
        if ((i + 1) % scan_block == 0) {
          state.end_block(local);
          local = identity;
        }
      }
    }
    LibraryCall call;
    call.name = "scan";
    call.in_types = call.out_types = {t};
    call.items = {{0, {{0, 0}}, {{1, 0}}, {shape}, {shape}, {1, static_cast<std::int64_t>(r), direction}}};
    if (round % 2) {
      call.out_types.push_back(t);
      call.items[0].out.push_back({2, 0});
      call.items[0].out_shapes.push_back({shape[0], shape[2]});
    }
    std::vector<T> out(x.size(), T(7)), totals(ends.size(), T(7));
    const Workers w(1 + round % 3);
    const auto same = [](const std::vector<T>& a, const std::vector<T>& b) {
      return a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
    };
    run({step(call)}, {x.data(), out.data(), totals.data()});
    REQUIRE(same(out, want));
    REQUIRE((round % 2 == 0 || same(totals, ends)));
    call.items[0].out[0] = call.items[0].in[0];  // in place
    run({step(call)}, {x.data(), out.data(), totals.data()});
    REQUIRE(same(x, want));
  }
}

}  // namespace

TEST_CASE("scan: blocks, totals, both directions, in place") {
  random_scans<float>(1, DType::float32);
  random_scans<double>(2, DType::float64);
  random_scans<std::int8_t>(3, DType::int8);
  random_scans<std::int64_t>(4, DType::int64);
  random_scans<std::uint16_t>(5, DType::uint16);
}

TEST_CASE("scatter: rows repeat and lie outside, batches") {
  random_scatters<float, std::int32_t>(1);
  random_scatters<double, std::int64_t>(2);
  random_scatters<std::int32_t, std::uint32_t>(3);
  random_scatters<std::uint8_t, std::int32_t>(4);
}

}  // namespace cpu_data_test
