// Generated products: the documented chain of multiply-adds, in every tier and on every CPU.
#include <cmath>
#include <memory>
#include <random>
#include <string>

#include "codegen_helpers.h"
#include "cpu/codegen/compiled_work.h"
#include "cpu_helpers.h"
#include "kernel_helpers.h"
#include "kernel_random.h"
#include "program_of.h"
#include "runtime/kernel_builder.h"
#include "scale.h"
#include "with_codegen.h"

namespace codegen_products_test {

using namespace shardarray;
using testing::generators;
using testing::plugin;
using Bytes = std::vector<std::byte>;

namespace {

/// A, B, C, a bias for each column and (C + bias) C, which an epilogue computes. Rows may be longer than what they hold.
struct Product {
  GemmSpec spec;
  std::int64_t out_row = 0;
  std::vector<Bytes> before, after;  // by argument, before the run and as a plain loop leaves them
};

template <class T> Bytes bytes_of(const std::vector<T>& v) {
  Bytes b(v.size() * sizeof(T));
  std::memcpy(b.data(), v.data(), b.size());
  return b;
}

/// (x + bias) x.
GemmEpilogue epilogue(DType t, const GemmSpec& g, std::int64_t out_row, bool keep) {
  KernelBuilder b(2, 0);
  const int x = b.arg({t}), bias = b.arg({t}), out = b.arg({t, true});
  b.begin_stage(false);
  const int v = b.load(x);
  b.store(out, b.binary(Code::mul, b.binary(Code::add, v, b.load(bias)), v));
  const auto size = static_cast<std::int64_t>(itemsize(t));
  return {
      std::make_shared<const Kernel>(b.finish()),
      0,
      {{g.c_batch * size, g.c_row * size, size}, {0, 0, size}, {g.m * out_row * size, out_row * size, size}},
      keep};
}

template <class T> Product random_product(std::mt19937& rng) {
  const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(rng() % n); };
  constexpr std::int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 25, 33};
  const auto size = [&] { return sizes[below(std::size(sizes))]; };
  GemmSpec g;
  g.type = sizeof(T) == 4 ? DType::float32 : DType::float64;
  g.batch = 1 + below(3), g.m = size(), g.n = size(), g.k = size();
  const auto lay_out = [&](std::int64_t rows, std::int64_t cols, std::int64_t& row, std::int64_t& col) {
    const bool turned = below(2) == 1;
    (turned ? col : row) = (turned ? rows : cols) + below(3);
    (turned ? row : col) = 1;
    return (turned ? cols : rows) * (turned ? col : row);
  };
  g.a_batch = lay_out(g.m, g.k, g.a_row, g.a_col);
  g.b_batch = lay_out(g.k, g.n, g.b_row, g.b_col);
  g.c_row = g.n + below(3), g.c_batch = g.m * g.c_row;
  Product p;
  p.out_row = g.n + below(2);
  const bool follows = below(2) == 1;
  if (follows) g.epilogue = epilogue(g.type, g, p.out_row, below(2) == 1);
  p.spec = g;

  std::uniform_real_distribution<T> uniform(-1, 1);
  const auto values = [&](std::int64_t n) {
    std::vector<T> v(static_cast<std::size_t>(n));
    for (T& x : v) x = uniform(rng);
    return v;
  };
  std::vector<T> a = values(g.batch * g.a_batch), b = values(g.batch * g.b_batch),
                 c = values(g.batch * g.c_batch), bias = values(g.n), out = values(g.batch * g.m * p.out_row);
  p.before = {bytes_of(a), bytes_of(b), bytes_of(c), bytes_of(bias), bytes_of(out)};
  const auto at = [](std::vector<T>& v, std::int64_t i) -> T& { return v[static_cast<std::size_t>(i)]; };
  for (std::int64_t e = 0; e < g.batch; e++)
    for (std::int64_t i = 0; i < g.m; i++)
      for (std::int64_t j = 0; j < g.n; j++) {
        T sum = 0;
        for (std::int64_t k = 0; k < g.k; k++)
          sum = std::fma(at(a, e * g.a_batch + i * g.a_row + k * g.a_col),
                         at(b, e * g.b_batch + k * g.b_row + j * g.b_col), sum);
        if (!follows || g.epilogue->keep) at(c, e * g.c_batch + i * g.c_row + j) = sum;
        if (follows) at(out, (e * g.m + i) * p.out_row + j) = (sum + at(bias, j)) * sum;
      }
  p.after = {bytes_of(a), bytes_of(b), bytes_of(c), bytes_of(bias), bytes_of(out)};
  return p;
}

std::vector<Product> random_products(std::uint32_t seed, int count) {
  std::mt19937 rng(seed);
  std::vector<Product> all;
  for (int k = 0; k < count; k++)
    all.push_back(k % 3 == 2 ? random_product<double>(rng) : random_product<float>(rng));
  return all;
}

std::string text_of(const GemmSpec& g) {
  std::string text = g.epilogue ? (g.epilogue->keep ? "kept, followed:" : "followed:") : "";
  for (const std::int64_t x : {g.batch, g.m, g.n, g.k, g.a_row, g.a_col, g.b_row, g.b_col, g.c_row})
    text += " " + std::to_string(x);
  return text;
}

/// What `run` leaves of the products' arguments, each in memory of its own.
template <class Run> std::vector<Bytes> after(const std::vector<const Product*>& products, const Run& run) {
  std::deque<test::FencedBytes> memory;
  std::vector<void*> bases;
  for (const Product* p : products)
    for (const Bytes& b : p->before) bases.push_back(memory.emplace_back(b).data());
  run(bases.data());
  std::vector<Bytes> all;
  for (const auto& m : memory) all.push_back(m.content());
  return all;
}

}  // namespace

TEST_CASE("codegen: random products and what follows them, in every tier and on every CPU") {
  if (!plugin()) return;
  const auto products = random_products(11, testing::full_scale() ? 600 : 60);
  std::vector<CodeSpec> specs;
  for (const Product& p : products) specs.emplace_back(p.spec);
  for (const auto& generator : generators())
    for (const CodeTier tier : {CodeTier::quick, CodeTier::full}) {
      CAPTURE(generator->target());
      const auto code = generator->link(generator->compile(specs, tier), specs.size());
      for (std::size_t k = 0; k < products.size(); k++) {
        const Product& p = products[k];
        const std::string shown = text_of(p.spec);
        CAPTURE(shown);
        // the batch in two pieces
        const auto got = after({&p}, [&](void* const* bases) {
          for (const auto& [begin, end] : {std::pair<std::int64_t, std::int64_t>(0, 1), {1, p.spec.batch}}) {
            const std::int64_t box[] = {begin, end};
            if (begin < end) code->functions[k](bases, nullptr, box);
          }
        });
        REQUIRE(got == p.after);
      }
    }
}

TEST_CASE("codegen: sequences of products, some of one code, in every tier and on every CPU") {
  if (!plugin()) return;
  const auto products = random_products(12, 8);
  SequenceSpec all;
  std::vector<const Product*> called;
  for (const std::size_t k : {0, 1, 2, 3, 1, 4, 5, 6, 7, 0}) {
    SequenceSpec::Call call{k, {}, {}};
    const std::size_t args = products[k].spec.epilogue ? 5 : 3;
    for (std::size_t a = 0; a < args; a++)
      call.args.push_back({static_cast<std::uint32_t>(5 * called.size() + a), 0});
    all.steps.emplace_back(std::move(call));
    called.push_back(&products[k]);
  }
  std::vector<Bytes> want;
  for (const Product* p : called) want.insert(want.end(), p->after.begin(), p->after.end());
  for (const Product& p : products) all.kernels.emplace_back(p.spec);
  const std::vector<CodeSpec> specs = {all};
  for (const auto& generator : generators())
    for (const CodeTier tier : {CodeTier::quick, CodeTier::full}) {
      CAPTURE(generator->target());
      const auto code = generator->link(generator->compile(specs, tier), 1);
      REQUIRE(after(called, [&](void* const* bases) { code->functions[0](bases, nullptr, nullptr); }) ==
              want);
    }
}

// Whether they run cannot be seen here.
TEST_CASE("codegen: objects can be made for CPUs that this machine is not") {
  if (!plugin()) return;
  std::vector<CodeSpec> specs;
  for (const Product& p : random_products(13, 6)) specs.emplace_back(p.spec);
  for (std::uint64_t k = 0; k < (testing::full_scale() ? 200 : 30); k++) {
    const test::KernelCase c = test::random_case(7000 + k);
    const LoopNest nest(std::make_shared<const Kernel>(c.kernel), test::item_of(c));
    if (nest.has_points()) specs.emplace_back(nest.spec());
  }
  const auto object = [&](const char* cpu, const char* features, const char* triple) {
    return plugin()->make(cpu, features, triple)->compile(specs, CodeTier::full);
  };
  constexpr std::size_t machine = 18;  // where an ELF header says it
  const auto avx512 = object("x86-64-v4", "", "x86_64-linux-gnu"),
             neon = object("cortex-a76", "", "aarch64-linux-gnu");
  CHECK(static_cast<int>(avx512.at(machine)) == 62);
  CHECK(static_cast<unsigned char>(neon.at(machine)) == 183);
  CHECK(cpu_test::contains(
      cpu_test::message_of<CompileError>([&] { object("", "", "abacus-linux-gnu"); }),
      "code generation: No available targets are compatible with triple \"abacus-linux-gnu\""));
}

TEST_CASE("codegen: a training step goes through the tiers and keeps its bits") {
  if (!plugin()) return;
  const auto step = [](const Array& w, const Array& u, const Array& x, const Array& y) {
    const auto loss = [&](const std::tuple<Array, Array>& p) {
      return mean(square(matmul(relu(matmul(x, std::get<0>(p))), std::get<1>(p)) - y));
    };
    const auto [gw, gu] = grad(loss)(std::tuple(w, u));
    return std::tuple(w - 0.125 * gw, u - 0.125 * gu);
  };
  const auto draw = [](int seed, const Shape& shape) {
    return random::normal(random::key(seed), shape) * 0.5;
  };
  const auto modules = [] {
    const CodeStore::Stats s = CodeStore::instance().stats();
    return s.compiled + s.loaded;
  };
  const int before = modules();
  // The weights after one step, until both tiers came.
  const auto weights = [&] {
    const auto f = jit(step);
    const Array w = draw(1, {6, 19}), u = draw(2, {19, 5}), x = draw(3, {16, 6}), y = draw(4, {16, 5});
    const auto values = [&] {
      const auto [a, b] = f(w, u, x, y);
      return std::pair(a.to_vector<float>(), b.to_vector<float>());
    };
    const auto first = values();
    if (codegen_mode() == CodegenMode::off) return first;
    for (int k = 0; k < 1'000'000 && modules() < before + 2; k++)
      if (k % 100 == 0) CHECK(values() == first);
      else f(w, u, x, y);
    CHECK(values() == first);
    return first;
  };
  const auto want = testing::with_codegen(CodegenMode::off, weights);
  CHECK(testing::with_codegen(CodegenMode::on, weights) == want);
  CHECK(modules() == before + 2);  // one module of the quick tier, one of the full
}

}  // namespace codegen_products_test
