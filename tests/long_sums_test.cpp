// Float sums and products over many elements: in blocks, with the same bits in every executor, and a relative error of about 1e-6.
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <random>

#include "cpu/products/gemm.h"
#include "cpu_helpers.h"
#include "kernel_check.h"
#include "kernel_cpp.h"
#include "kernel_random.h"
#include "own_gemm_tables.h"
#include "program_of.h"
#include "runtime/scalar.h"
#include "with_codegen.h"

namespace long_sums_test {

namespace sa = shardarray;
using namespace shardarray;
using namespace shardarray::test;
using cpu_test::contains;
using cpu_test::message_of;

namespace {

/// kernel.h, word by word: the sum or product of n elements x(j).
template <class T, class At> T reduced(Reducer r, ReductionOrder order, std::int64_t n, const At& x) {
  const bool sum = r == Reducer::sum;
  const T identity = sum ? T(0) : T(1);
  T total = identity, lost = 0;
  for (std::int64_t begin = 0; begin < n; begin += order.block) {
    std::vector<T> lane(static_cast<std::size_t>(order.lanes), identity);
    for (std::int64_t j = begin; j < std::min(n, begin + order.block); j++) {
      T& l = lane[static_cast<std::size_t>(j % order.lanes)];
      l = sum ? l + x(j) : l * x(j);
    }
    for (std::size_t w = lane.size() / 2; w > 0; w /= 2) {
      for (std::size_t i = 0; i < w; i++) lane[i] = sum ? lane[i] + lane[i + w] : lane[i] * lane[i + w];
    }
    const T p = lane[0];
    if (!sum) {
      total *= p;
      continue;
    }
    const T t = total + p, z = t - total;
    lost += (total - (t - z)) + (p - z);
    total = t;
  }
  return sum && std::isfinite(total + lost) ? total + lost : total;
}

template <class T> std::vector<std::byte> bytes_of(const std::vector<T>& x) {
  std::vector<std::byte> b(x.size() * sizeof(T));
  if (!x.empty()) std::memcpy(b.data(), x.data(), b.size());
  return b;
}

/// A sum, a product, a maximum and a sum of integers of `points` [outer, inner..]; the elements of a sum lie in a row, or
/// (`turned`) a sum apart.
template <class T> struct Reductions {
  KernelCase c;
  std::vector<std::vector<std::byte>> want;

  Reductions(const Shape& points, bool turned, ReductionOrder order, const std::vector<T>& x) {
    const auto rank = points.size();
    KernelBuilder b(1, static_cast<int>(rank) - 1);
    const DType t = dtype_of<T>();
    const int in = b.arg({t});
    int out[4];
    for (int k = 0; k < 4; k++) out[k] = b.arg({k < 3 ? t : int32, true});
    b.begin_stage(true);
    const int v = b.load(in);
    const int results[] = {b.reduce(Reducer::sum, v), b.reduce(Reducer::prod, v), b.reduce(Reducer::max, v),
                           b.reduce(Reducer::sum, b.cast(v, int32))};
    b.begin_stage(false);
    for (int k = 0; k < 4; k++) b.store(out[k], results[k]);
    c.kernel = b.finish();
    c.kernel.order = order;
    c.extents = points;
    c.start = Shape::filled(rank, 0);
    const std::int64_t rows = points[0], n = num_elements(points) / std::max<std::int64_t>(rows, 1);
    Shape strides = Shape::filled(rank, 0), first = strides;
    std::int64_t next = turned ? rows : 1;
    for (std::size_t d = rank; d-- > 1; next *= points[d]) strides[d] = next;
    strides[0] = turned ? 1 : n;
    first[0] = 1;
    c.args = {{strides, 0, rows * n}};
    for (int k = 0; k < 4; k++) c.args.push_back({first, 0, rows});
    std::vector<T> sums, products, most;
    std::vector<std::int32_t> integers;
    for (std::int64_t row = 0; row < rows; row++) {
      const auto at = [&](std::int64_t j) {
        return x[static_cast<std::size_t>(turned ? j * rows + row : row * n + j)];
      };
      sums.push_back(reduced<T>(Reducer::sum, order, n, at));
      products.push_back(reduced<T>(Reducer::prod, order, n, at));
      T m = -std::numeric_limits<T>::infinity();
      std::uint32_t i = 0;
      for (std::int64_t j = 0; j < n; j++) {
        m = scalar::max(m, at(j));
        i += static_cast<std::uint32_t>(scalar::cast<std::int32_t>(at(j)));
      }
      most.push_back(m);
      integers.push_back(static_cast<std::int32_t>(i));
    }
    want = {bytes_of(x), bytes_of(sums), bytes_of(products), bytes_of(most), bytes_of(integers)};
    c.inputs = {want[0]};
    for (std::size_t k = 1; k < 5; k++) c.inputs.emplace_back(want[k].size());
  }
};

/// Numbers near 1 of either size, so that products neither vanish nor overflow soon.
template <class T> std::vector<T> numbers(std::int64_t n, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> x;
  for (std::int64_t i = 0; i < n; i++)
    x.push_back((random() % 2 ? T(1) : T(-1)) *
                T(std::exp(static_cast<double>(random() % 1201) / 1000 - 0.6)));
  return x;
}

template <class T> void check_shapes() {
  std::vector<KernelCase> cases;
  const Shape shapes[] = {{3, 1},      {3, 31},     {2, 64},        {3, 65},      {2, 1000},   {2, 4500},
                          {1, 0},      {0, 7},      {130, 100},     {200, 3, 50}, {3, 40, 33}, {2, 7, 13, 11},
                          {5, 64, 32}, {3, 300, 7}, {1, 33, 1, 70}, {2, 1025},    {2, 129, 17}};
  std::uint64_t seed = 0;
  int cases_seen = 0;
  for (const Shape& points : shapes) {
    for (const bool turned : {false, true}) {
      for (const std::int32_t block : {32, 64, ReductionOrder().block}) {
        const Reductions<T> r(points, turned, {32, block}, numbers<T>(num_elements(points), ++seed));
        CAPTURE(to_string(points));
        CAPTURE(block);
        CAPTURE(turned);
        check_interpreter(r.c, r.want);
        if (testing::full_scale() || cases_seen++ % 8 == 0) cases.push_back(r.c);  // LLVM takes its time
      }
    }
  }
  check_generated(cases, CodeTier::full);
  if (testing::full_scale()) check_generated(cases, CodeTier::quick);
}

}  // namespace

TEST_CASE("long sums: blocks of one and of several inner axes, rows and columns, by every executor") {
  check_shapes<float>();
  if (testing::full_scale()) check_shapes<double>();
}

TEST_CASE("long sums: the printed kernel honours any lanes and blocks") {
  std::string text = cpp_prelude();
  std::vector<Reductions<float>> cases;
  for (const ReductionOrder order :
       {ReductionOrder{1, 1}, {1, 8}, {8, 8}, {8, 64}, {32, 32}, {128, 256}, {32, 2048}}) {
    for (const Shape& points : {Shape{3, 500}, Shape{2, 7, 90}, Shape{1, 0}, Shape{2, 64}, Shape{1, 4097}}) {
      const std::string name = "k" + std::to_string(cases.size());
      cases.emplace_back(points, false, order, numbers<float>(num_elements(points), cases.size()));
      text += to_cpp(cases.back().c.kernel, name);
    }
  }
  const CompiledText printed(text);
  for (std::size_t k = 0; k < cases.size(); k++) {
    const KernelCase& c = cases[k].c;
    const auto got = run_printed(c, reinterpret_cast<PrintedKernel>(printed.symbol("k" + std::to_string(k))));
    const std::string shown = to_string(c.kernel) + to_string(c.extents);
    CAPTURE(shown);
    for (std::size_t a = 0; a < got.size(); a++)
      CHECK(same_values(c.kernel.args[a].type, got[a], cases[k].want[a]));
  }
}

namespace {

/// Rows of four blocks of 64 whose sums have these values: one element and zeros, somewhere in each block.
template <class T> void check_specials() {
  constexpr T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN(),
              most = std::numeric_limits<T>::max(), tiny = std::numeric_limits<T>::denorm_min();
  const T huge = std::ldexp(T(1), std::numeric_limits<T>::digits + 4);
  const struct {
    T blocks[4], sum;
  } rows[] = {
      {{inf, 1, 2, 3}, inf},
      {{1, 2, -inf, 3}, -inf},
      {{1, inf, -inf, 3}, nan},
      {{1, 2, nan, 3}, nan},
      {{inf, nan, 1, 1}, nan},
      {{most, most, -most, -most}, inf},  // as numbers are added, one after the other
      {{most, 1, 1, 1}, most},
      {{-most, most, 1, 0}, 1},
      {{most, -most, tiny, 0}, tiny},
      {{huge, 1, -huge, 1}, 2},
      {{1, huge, 1, -huge}, 2},
      {{tiny, tiny, -tiny, tiny}, 2 * tiny},
      {{-T(0), -T(0), -T(0), -T(0)}, 0},
  };
  constexpr std::int64_t n = 256;
  const auto count = static_cast<std::int64_t>(std::size(rows));
  std::vector<KernelCase> cases;
  for (const bool turned : {false, true}) {
    std::vector<T> x(static_cast<std::size_t>(count * n), -T(0)), sums;
    for (std::int64_t row = 0; row < count; row++) {
      for (std::int64_t b = 0; b < 4; b++) {
        const std::int64_t j = b * 64 + (row * 17 + b * 5) % 64;
        x[static_cast<std::size_t>(turned ? j * count + row : row * n + j)] = rows[row].blocks[b];
      }
      sums.push_back(rows[row].sum);
    }
    const Reductions<T> r({count, n}, turned, {32, 64}, x);
    REQUIRE(same_values(dtype_of<T>(), r.want[1], bytes_of(sums)));
    check_interpreter(r.c, r.want);
    cases.push_back(r.c);
  }
  check_generated(cases, CodeTier::full);
}

}  // namespace

TEST_CASE("long sums: infinities, NaN, zeros, overflow and cancellation across blocks") {
  check_specials<float>();
  check_specials<double>();
}

TEST_CASE("long sums: the order is part of a kernel, and a CPU has its own number of lanes") {
  const Reductions<float> r({3, 100}, false, {}, numbers<float>(300, 1));
  const auto with = [&](std::int32_t lanes, std::int32_t block) {
    Kernel k = r.c.kernel;
    k.order = {lanes, block};
    return k;
  };
  const Loop::Item item = item_of(r.c);
  const std::int32_t standard = ReductionOrder().block;
  CHECK(to_string(with(32, standard)).starts_with("kernel outer=1 inner=1\n"));
  CHECK(to_string(with(32, 64)).starts_with("kernel outer=1 inner=1 lanes=32 block=64\n"));
  CHECK(!(with(32, 64) == with(32, 128)));
  const auto key = [&](const Kernel& k) {
    return LoopNest(std::make_shared<const Kernel>(k), item, LoopMode::rows).spec().key();
  };
  CHECK(key(with(32, standard)) == key(r.c.kernel));
  CHECK(key(with(32, 4096)) != key(with(32, standard)));  // one block in both
  for (const auto& [lanes, block] : {std::pair{0, 64}, {-32, 64}, {24, 48}, {32, 48}, {32, 16}, {64, 32}}) {
    CHECK(message_of<InternalError>([&, l = lanes, b = block] { verify(with(l, b)); }) ==
          "verify: float sums in " + std::to_string(lanes) + " lanes and blocks of " + std::to_string(block) +
              ". Both are powers of two, and a block has an element for every lane. Mend the order that the "
              "kernel was given.");
  }
  const auto load = [&](const Kernel& k) {
    Program program;
    program.steps = {cpu_test::step(Loop{std::make_shared<const Kernel>(k), {item}})};
    program.base_count = 5;
    (void)make_cpu_backend(1)->load(std::make_shared<const Program>(std::move(program)));
  };
  load(with(32, 64));
  CHECK(
      message_of<InternalError>([&] { load(with(16, 64)); }) ==
      "LoopPlan: a kernel whose float sums run in 16 lanes. On a CPU they run in 32. Compile the program for "
      "the backend that loads it.");
}

namespace {

/// A way to sum, and the same over elements [a, b, c] in float64.
struct Way {
  const char* name;
  Shape shape;
  AxisSet axis;
};

/// The sums of x and of |x| over `axis`, by plain loops in float64.
std::pair<std::vector<double>, std::vector<double>> plain_sums(const std::vector<float>& x, const Way& w) {
  std::vector<bool> gone(w.shape.size(), w.axis.all);
  for (const std::int64_t d : w.axis.axes) gone[static_cast<std::size_t>(d)] = true;
  std::int64_t count = 1;
  Shape strides = Shape::filled(w.shape.size(), 0);
  for (std::size_t d = w.shape.size(); d-- > 0;) {
    if (gone[d]) continue;
    strides[d] = count;
    count *= w.shape[d];
  }
  std::vector<double> sums(static_cast<std::size_t>(count)), sizes(sums.size());
  for (std::size_t i = 0; i < x.size(); i++) {
    auto rest = static_cast<std::int64_t>(i), to = std::int64_t{0};
    for (std::size_t d = w.shape.size(); d-- > 0; rest /= w.shape[d]) to += rest % w.shape[d] * strides[d];
    sums[static_cast<std::size_t>(to)] += static_cast<double>(x[i]);
    sizes[static_cast<std::size_t>(to)] += std::abs(static_cast<double>(x[i]));
  }
  return {sums, sizes};
}

/// The largest error of a sum or mean, relative to the sum of sizes.
void check_error(const sa::Array& got, const std::pair<std::vector<double>, std::vector<double>>& want,
                 double scale) {
  const std::vector<float> g = got.to_vector<float>();
  REQUIRE(g.size() == want.first.size());
  double worst = 0;
  for (std::size_t i = 0; i < g.size(); i++)
    worst = std::max(worst, std::abs(static_cast<double>(g[i]) * scale - want.first[i]) / want.second[i]);
  CHECK(worst <= 1e-6);
}

/// Of numbers in [0, 1), or all of `value`.
void check_way(const Way& w, std::optional<float> value) {
  std::mt19937 random(17);
  std::vector<float> x(static_cast<std::size_t>(num_elements(w.shape)), value.value_or(0));
  if (!value)
    for (float& v : x) v = static_cast<float>(random() >> 8) / 16777216.f;
  const auto want = plain_sums(x, w);
  const double each = static_cast<double>(x.size()) / static_cast<double>(want.first.size());
  CAPTURE(std::string(w.name));
  CAPTURE(value.value_or(-1));
  const auto lazy = [&](const sa::Array& a) { return sa::sum(a, {.axis = w.axis}); };
  const auto jitted = sa::jit(lazy);
  for (const CodegenMode mode : {CodegenMode::off, CodegenMode::always}) {
    const testing::WithCodegen with(mode);
    CAPTURE(static_cast<int>(mode));
    const sa::Array a = sa::array(x, w.shape);
    check_error(lazy(a), want, 1);
    check_error(jitted(a), want, 1);
    check_error(sa::mean(a, {.axis = w.axis}), want, each);
    const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
    const sa::Array cut = sa::device_put(a, sa::NamedSharding(mesh, sa::P("x")));
    check_error(lazy(cut), want, 1);
    check_error(jitted(cut), want, 1);
    const sa::reproducible same_bits(true);
    check_error(lazy(a), want, 1);
    check_error(jitted(a), want, 1);
    check_error(sa::mean(a, {.axis = w.axis}), want, each);
    check_error(lazy(cut), want, 1);
    check_error(jitted(cut), want, 1);
  }
}

}  // namespace

TEST_CASE(
    "long sums: exact to 1e-6 in every shape, over every axis, on one device and on eight, compiled or not") {
  std::vector<Way> ways;
  for (const std::int64_t n : {1, 31, 1023, 1024, 1025, 2047, 2048, 2049, 1'000'001})
    ways.push_back({"all of a vector", {n}, {}});
  ways.push_back({"columns of a tall matrix", {300'007, 3}, 0});
  ways.push_back({"columns of a matrix", {40'003, 70}, 0});
  ways.push_back({"rows of a wide matrix", {3, 300'007}, 1});
  ways.push_back({"all of a matrix", {3, 300'007}, {}});
  ways.push_back({"all of a tall matrix", {300'007, 3}, {}});
  ways.push_back({"outermost and innermost", {701, 3, 501}, {0, 2}});
  ways.push_back({"the middle", {2, 100'003, 5}, 1});
  if (testing::full_scale()) ways.push_back({"very many", {100'000'000}, {}});
  for (const Way& w : ways) {
    check_way(w, 0.1f);
    check_way(w, std::nullopt);
  }
  check_way({"many", {10'000'000}, {}}, 0.1f);
  // In two steps: rows, and their sums.
  for (const float value : {0.1f, 0.860162199f, 0.51369375f, 0.657757759f})
    check_way({"all of a large matrix", {2048, 1024}, {}}, value);
}

TEST_CASE("long sums: products of vectors are sums") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  for (const std::int64_t n : {131'072, 524'288, 1'000'003, 4'000'000}) {
    CAPTURE(n);
    std::mt19937 random(5);
    std::vector<float> x(static_cast<std::size_t>(n)), y(x.size(), 0.7f);
    for (float& v : x) v = n % 2 == 0 ? 0.1f : static_cast<float>(random() >> 8) / 16777216.f;
    double sum = 0;
    for (std::size_t k = 0; k < x.size(); k++) sum += static_cast<double>(x[k]) * static_cast<double>(y[k]);
    const std::pair<std::vector<double>, std::vector<double>> want{{sum}, {sum}};
    const sa::Array a = sa::array(x, {n}), b = sa::array(y, {n});
    for (const bool cut : {false, true}) {
      const auto put = [&](const sa::Array& v, const sa::P& spec) {
        return cut ? sa::device_put(v, sa::NamedSharding(mesh, spec)) : v;
      };
      const sa::Array u = put(a, sa::P("x")), v = put(b, sa::P("x"));
      check_error(sa::dot(u, v), want, 1);
      check_error(sa::reshape(sa::matmul(sa::reshape(u, {1, n}), sa::reshape(v, {n, 1})), {1}), want, 1);
      check_error(
          sa::jit([](const sa::Array& p, const sa::Array& q) { return sa::einsum("k,k->", p, q); })(u, v),
          want, 1);
      const sa::Array rows = sa::einsum("kb,bk->b", put(sa::stack({a, b}, 1), sa::P("x")),
                                        put(sa::stack({b, a}), sa::P(sa::none, "x")));
      for (const std::int64_t r : {0, 1}) check_error(rows[r], want, 1);
    }
  }
}

TEST_CASE("long sums: a program with a fixed order has it on any number of devices") {
  const sa::Array x = sa::random::uniform(sa::random::key(3), {300'007}) - 0.4f;
  const auto total = [&](int devices) {
    const sa::reproducible on(true);
    return sa::sum(sa::device_put(x, sa::NamedSharding(sa::make_mesh({{"x", devices}}), sa::P("x"))))
        .item<float>();
  };
  const float one = total(1);
  for (const int devices : {2, 4, 8}) CHECK(total(devices) == one);
}

namespace {

/// scalar.h, word by word: row times column in chains of 32.
template <class T> T long_product(const std::vector<T>& a, const std::vector<T>& b, std::size_t k) {
  T total = 0, lost = 0;
  for (std::size_t from = 0; from < k; from += 32) {
    T p = 0;
    for (std::size_t j = from; j < std::min(k, from + 32); j++) p = std::fma(a[j], b[j], p);
    const T t = total + p, z = t - total;
    lost += (total - (t - z)) + (p - z);
    total = t;
  }
  return std::isfinite(total + lost) ? total + lost : total;
}

/// [m, k] x [k, n], rows of A and columns of B in sequence or a row apart, by every table.
template <class T> void check_long_product(std::int64_t m, std::int64_t n, std::int64_t k, bool turned) {
  const auto x = numbers<T>(m * k, 3), y = numbers<T>(n * k, 4);  // A's rows; B's columns
  std::vector<T> b(y.size()), c(static_cast<std::size_t>(m * (n + 1)), T(7));
  for (std::int64_t j = 0; j < n; j++)
    for (std::int64_t p = 0; p < k; p++)
      b[static_cast<std::size_t>(turned ? j * k + p : p * n + j)] = y[static_cast<std::size_t>(j * k + p)];
  const OwnGemm<T> g = {m, n, k, x.data(), k, 1, b.data(), turned ? 1 : n, turned ? k : 1, c.data(), n + 1};
  for (const OwnGemmTable* table : own_gemm_tables()) {
    run_product(*table, g);
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m; i++) {
      const std::vector<T> row(x.begin() + i * k, x.begin() + (i + 1) * k);
      for (std::int64_t j = 0; j < n; j++) {
        const std::vector<T> column(y.begin() + j * k, y.begin() + (j + 1) * k);
        wrong += c[static_cast<std::size_t>(i * (n + 1) + j)] !=
                 long_product<T>(row, column, static_cast<std::size_t>(k));
      }
      wrong += c[static_cast<std::size_t>(i * (n + 1) + n)] != T(7);
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("long sums: chains of a long product are blocks, whatever the table, the shape and the strides") {
  for (const bool turned : {false, true}) {
    check_long_product<float>(1, 1, 8193, turned);
    check_long_product<float>(7, 19, 8200, turned);
    check_long_product<float>(101, 5, 8255, turned);
    check_long_product<double>(3, 11, 8257, turned);
  }
}

TEST_CASE("long sums: what is rounded off in products of very long rows is itself kept") {
  constexpr std::int64_t k = 10'000'019;
  const double want = static_cast<double>(0.1f) * k;
  for (const auto& row : {std::pair{2, 1}, {1, 2}}) {
    const sa::Array a = sa::full({row.first, k}, 1.0f), b = sa::full({k, row.second}, 0.1f);
    for (const bool own : {false, true}) {
      const sa::reproducible mode(own);
      for (const float v : sa::matmul(a, b).to_vector<float>()) CHECK(std::abs(v / want - 1) <= 1e-6);
    }
  }
}

TEST_CASE("long sums: products of long rows and columns, of equal numbers, which are the worst") {
  constexpr std::int64_t k = 1'000'003;
  const double want = static_cast<double>(0.1f) * 0.7f * k;
  for (const auto& row : {std::pair{1, 3}, {1, 40}, {3, 1}, {40, 1}, {2, 3}, {5, 33}}) {
    const auto& m = row.first;
    const auto& n = row.second;
    const sa::Array a = sa::full({m, k}, 0.1f), b = sa::full({k, n}, 0.7f);
    CAPTURE(m);
    CAPTURE(n);
    for (const bool own : {false, true}) {
      const sa::reproducible mode(own);
      double worst = 0;
      for (const float v : sa::matmul(a, b).to_vector<float>())
        worst = std::max(worst, std::abs(v / want - 1));
      CHECK(worst <= 1e-6);
    }
  }
}

}  // namespace long_sums_test
