// Generated code: equal to the interpreter, bit for bit, for every kernel, split and CPU.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cpu/codegen/code_store.h"
#include "cpu_helpers.h"
#include "kernel_check.h"
#include "kernel_random.h"
#include "runtime/expand.h"
#include "scale.h"
#include "shardarray/error.h"

namespace codegen_test {

using namespace shardarray;
using namespace shardarray::test;
using testing::generators;
using testing::plugin;

namespace {

std::vector<KernelCase> random_cases(std::uint64_t first, std::uint64_t count) {
  std::vector<KernelCase> cases;
  for (std::uint64_t i = 0; i < count; i++) cases.push_back(random_case(first + i));
  return cases;
}

}  // namespace

TEST_CASE("codegen: random kernels equal the interpreter in every mode, tier, cut and on every CPU") {
  const char* from = std::getenv("CODEGEN_FROM");
  const std::uint64_t count = testing::full_scale() ? 1000 : 40,
                      first = from ? std::strtoull(from, nullptr, 10) : 5000;
  for (std::uint64_t i = 0; i < count; i += 10) {
    CAPTURE(i);
    check_generated(random_cases(first + i, 10), i % 20 == 0 ? CodeTier::full : CodeTier::quick);
  }
}

TEST_CASE("codegen: plug-ins that are missing, none, or built for another library are refused") {
  const auto refusal = [](const std::string& path) {
    return cpu_test::message_of<CompileError>([&] { (void)open_code_plugin(path); });
  };
  CHECK(
      cpu_test::contains(refusal("/nowhere/libshardarray_llvm.so"),
                         "code generation: /nowhere/libshardarray_llvm.so: cannot open shared object file"));
  const CompiledText empty("int nothing;");
  CHECK(refusal(empty.path()) == "code generation: " + empty.path() +
                                     " is no plug-in, it lacks the symbol 'shardarray_plugin'. Remove it.");
  const CompiledText foreign(
      "struct Plugin { unsigned long abi; const char* version; void* make; };\n"
      "extern \"C\" const Plugin shardarray_plugin;\n"
      "const Plugin shardarray_plugin = {7, \"0.0.9, GNU 11\", nullptr};\n");
  const CompiledText own(
      "struct Plugin { unsigned long abi; const char* version; int (*make)(int); };\n"
      "extern \"C\" const Plugin shardarray_plugin;\n"
      "const Plugin shardarray_plugin = {" +
      std::to_string(abi_hash()) + "ul, \"here\", [](int x) { return 2 * x; }};\n");
  struct Doubling : Plugin {
    int (*make)(int);
  };
  CHECK(static_cast<const Doubling&>(open_plugin(own.path(), "doubling", "nothing")).make(21) == 42);
  const std::string text = refusal(foreign.path());
  CHECK(cpu_test::contains(
      text, "was built for another library: it has version 0.0.9, GNU 11 (0000000000000007), the library "));
  CHECK(cpu_test::contains(text, "Both must come from one build. Install them together."));
}

namespace {

/// y = f(x) over n elements, in a buffer each.
KernelCase elementwise_case(const std::function<int(KernelBuilder&, int)>& f, const std::vector<float>& x,
                            std::int64_t skew) {
  KernelBuilder b(1, 0);
  const int in = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, f(b, b.load(in)));
  KernelCase c;
  c.kernel = b.finish();
  const auto n = static_cast<std::int64_t>(x.size());
  c.extents = {n};
  c.start = {0};
  c.args = {{{1}, skew, n + skew}, {{1}, 2 * skew, n + 2 * skew}};
  c.inputs.resize(2);
  c.inputs[0].resize(static_cast<std::size_t>(n + skew) * 4);
  c.inputs[1].resize(static_cast<std::size_t>(n + 2 * skew) * 4);
  std::memcpy(c.inputs[0].data() + skew * 4, x.data(), x.size() * 4);
  return c;
}

/// y[b, r, c] = 2 x[b, c, r].
KernelCase turned_case(std::int64_t batch, std::int64_t rows, std::int64_t columns) {
  KernelBuilder b(3, 0);
  const int in = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  const int x = b.load(in);
  b.store(out, b.binary(Code::add, x, x));
  KernelCase c;
  c.kernel = b.finish();
  c.extents = {batch, rows, columns};
  c.start = {0, 0, 0};
  const std::int64_t n = rows * columns;
  c.args = {{{n, 1, rows}, 0, batch * n}, {{n, columns, 1}, 0, batch * n}};
  std::vector<float> values(static_cast<std::size_t>(batch * n));
  std::iota(values.begin(), values.end(), 1.f);
  c.inputs.assign(2, std::vector<std::byte>(values.size() * 4));
  std::memcpy(c.inputs[0].data(), values.data(), values.size() * 4);
  return c;
}

}  // namespace

TEST_CASE("codegen: transposed loads, units along either axis, bands, blocks that are not whole") {
  check_generated({turned_case(1, 70, 330), turned_case(1, 330, 70), turned_case(1, 600, 20),
                   turned_case(3, 80, 90), turned_case(70, 17, 19)},
                  CodeTier::full);
}

TEST_CASE(
    "codegen: elementary functions on denormals, infinities, NaN and every exponent; tails; skewed "
    "addresses") {
  if (!plugin()) return;
  std::vector<float> special;
  for (std::uint32_t e = 0; e < 256; e++) {
    for (const std::uint32_t m : {0u, 1u, 0x2aaaaau, 0x7fffffu}) {
      for (const std::uint32_t sign : {0u, 1u})
        special.push_back(std::bit_cast<float>(sign << 31 | e << 23 | m));
    }
  }
  using Unary = int (*)(KernelBuilder&, int);
  const Unary functions[] = {expand::exp,     expand::expm1,    expand::log,    expand::log1p, expand::sin,
                             expand::cos,     expand::tan,      expand::asin,   expand::acos,  expand::atan,
                             expand::sinh,    expand::cosh,     expand::tanh,   expand::erf,   expand::erfc,
                             expand::erf_inv, expand::logistic, expand::lgamma, expand::exp2,  expand::log2,
                             expand::log10,   expand::cbrt,     expand::asinh,  expand::acosh, expand::atanh,
                             expand::ndtri};
  std::vector<KernelCase> cases;
  for (const Unary f : functions) cases.push_back(elementwise_case(f, special, 0));
  for (const std::int64_t n : {1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 63, 65}) {
    cases.push_back(
        elementwise_case(expand::tanh, {special.begin() + 900, special.begin() + 900 + n}, n % 5));
  }
  check_generated(cases, CodeTier::full);
}

namespace {

/// Softmax of rows: what the third pass needs, the second has computed already.
KernelCase softmax_case(std::int64_t rows, std::int64_t columns, std::mt19937& rng) {
  KernelBuilder b(1, 1);
  const int in = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(true);
  const int most = b.reduce(Reducer::max, b.load(in));
  b.begin_stage(true);
  const int total = b.reduce(Reducer::sum, expand::exp(b, b.binary(Code::sub, b.load(in), most)));
  b.begin_stage(true);
  b.store(out, b.binary(Code::div, expand::exp(b, b.binary(Code::sub, b.load(in), most)), total));
  KernelCase c;
  c.kernel = b.finish();
  c.extents = {rows, columns};
  c.start = {0, 0};
  c.args = {{{columns, 1}, 0, rows * columns}, {{columns, 1}, 0, rows * columns}};
  if (rows % 2 == 0) c.args[1].alias = 0;  // in place
  const auto x = cpu_test::random_values<float>(rng, rows * columns, false);
  c.inputs.assign(2, std::vector<std::byte>(x.size() * 4));
  std::memcpy(c.inputs[0].data(), x.data(), x.size() * 4);
  return c;
}

}  // namespace

TEST_CASE("codegen: softmax of short and of long rows, in place and not") {
  std::mt19937 rng(9);
  std::vector<KernelCase> cases;
  std::int64_t rows = 3;  // 2: in place
  for (const std::int64_t columns : {2, 31, 33, 1000, 8192, 8193, 16384, 16385}) {
    if (!testing::full_scale() && columns == 1000) continue;
    cases.push_back(softmax_case(rows, columns, rng));
    rows = 5 - rows;
    if (testing::full_scale()) cases.push_back(softmax_case(rows, columns, rng));
  }
  check_generated(cases, CodeTier::full);
  check_generated(cases, CodeTier::quick);
}

TEST_CASE("codegen: code comes from this process, from the disk, or is made again") {
  if (!plugin()) return;
  std::string pattern = (std::filesystem::temp_directory_path() / "shardarray-XXXXXX").string();
  REQUIRE((mkdtemp(pattern.data()) != nullptr));
  const KernelCase c = random_case(12);
  const LoopNest nest(std::make_shared<const Kernel>(c.kernel), item_of(c), LoopMode::columns);
  REQUIRE(nest.has_points());
  const auto want = interpreted(c);
  const auto check = [&](CodeStore& store, CodeTier tier) {
    const auto code = store.get({nest.spec(), nest.spec()}, tier);
    check_nest(c, want, nest, code[0].function);
    CHECK((code[0].function == code[1].function));
  };
  const auto store = [&] {
    return std::make_unique<CodeStore>(plugin()->make(nullptr, nullptr, nullptr), pattern);
  };
  const auto first = store();
  check(*first, CodeTier::full);
  check(*first, CodeTier::quick);  // the better one serves
  CHECK(first->stats().compiled == 1);
  const auto second = store();
  check(*second, CodeTier::full);
  CHECK(second->stats().compiled == 0);
  CHECK(second->stats().loaded == 1);
  check(*second, CodeTier::full);
  CHECK(second->stats().loaded == 1);
  for (const auto& f : std::filesystem::directory_iterator(pattern))
    std::filesystem::resize_file(f.path(), 500);
  const auto third = store();
  check(*third, CodeTier::full);
  CHECK(third->stats().compiled == 1);
  std::filesystem::remove_all(pattern);
}

TEST_CASE("codegen: a program changes tiers while several threads run it, with the same bits") {
  if (!plugin()) return;
  KernelBuilder b(1, 0);
  const int in = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, expand::tanh(b, expand::exp(b, b.load(in))));
  Loop loop{std::make_shared<const Kernel>(b.finish()), {}};
  constexpr std::int64_t n = 50'000;
  loop.items = {{0, {n}, {0}, {{{0, 0}, {1}, n * 4, 0}, {{1, 0}, {1}, n * 4, 0}}}};
  auto program = std::make_shared<Program>();
  program->steps = {cpu_test::step(loop)};
  program->base_count = 2;
  std::mt19937 rng(5);
  auto x = cpu_test::random_values<float>(rng, n, false);
  const auto run = [&](const Executable& e) {
    std::vector<float> y(n);
    void* bases[] = {x.data(), y.data()};
    e.run(bases, nullptr);
    return y;
  };
  const auto cpu = make_cpu_backend(1);
  const CodegenMode before = set_codegen_mode(CodegenMode::off);
  const auto want = run(*cpu->load(program));
  set_codegen_mode(CodegenMode::on);
  const auto modules = [] {
    const CodeStore::Stats s = CodeStore::instance().stats();
    return s.compiled + s.loaded;
  };
  const int modules_before = modules();
  const auto executable = cpu->load(program);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; t++) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; k++) wrong += std::memcmp(run(*executable).data(), want.data(), n * 4) != 0;
    });
  }
  executable->prepare();
  for (auto& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(modules() == modules_before + 2);  // of the quick tier and of the full one
  set_codegen_mode(before);
}

TEST_CASE("codegen: a loop that has to wait for another does not run with its product") {
  if (!plugin()) return;
  const auto kernel = [](int outer, auto body) {
    KernelBuilder b(outer, 0);
    body(b);
    return std::make_shared<const Kernel>(b.finish());
  };
  constexpr std::int64_t m = 2, n = 8, k = 3;
  enum : std::uint32_t { A, B, C, bias, out };
  const auto arg = [](std::uint32_t base, const Shape& strides, std::int64_t elements) {
    return LoopArg{{base, 0}, strides, static_cast<std::uint64_t>(elements) * 4, 0};
  };
  Gemm gemm;
  gemm.items = {
      {.a = {A, 0}, .b = {B, 0}, .c = {C, 0}, .m = m, .n = n, .k = k, .lda = k, .ldb = n, .ldc = n}};
  Loop doubled{kernel(1,
                      [](KernelBuilder& b) {
                        const int x = b.arg({float32}), y = b.arg({float32, true});
                        b.begin_stage(false);
                        const int v = b.load(x);
                        b.store(y, b.binary(Code::add, v, v));
                      }),
               {{0, {n}, {0}, {arg(bias, {1}, n), arg(bias, {1}, n)}}}};
  Loop added{kernel(2,
                    [](KernelBuilder& b) {
                      const int x = b.arg({float32}), y = b.arg({float32}), z = b.arg({float32, true});
                      b.begin_stage(false);
                      b.store(z, b.binary(Code::add, b.load(x), b.load(y)));
                    }),
             {{0, {m, n}, {0, 0}, {arg(C, {n, 1}, m * n), arg(bias, {0, 1}, n), arg(out, {n, 1}, m * n)}}}};
  auto program = std::make_shared<Program>();
  program->steps = {cpu_test::step(gemm), cpu_test::step(doubled), cpu_test::step(added)};
  program->base_count = 5;
  const CodegenMode before = set_codegen_mode(CodegenMode::always);
  const auto executable = make_cpu_backend(1)->load(program);
  set_codegen_mode(before);
  std::vector<float> a(m * k, 1), b(k * n, 2), c(m * n), d(n, 0.5f), e(m * n);
  void* bases[] = {a.data(), b.data(), c.data(), d.data(), e.data()};
  executable->run(bases, nullptr);
  CHECK(c == std::vector<float>(m * n, 6));
  CHECK(e == std::vector<float>(m * n, 7));
}

// Loops and sums over devices on whole buffers, on the same ones shifted by an element, in place, and with one element for all:
// whatever is run block by block, values are those of one step after another.
TEST_CASE("codegen: large works over the same elements have the values of one after another") {
  if (!plugin()) return;
  constexpr std::int64_t n = 60'011, elements = n + 3;
  constexpr std::uint32_t buffers = 6;
  KernelBuilder builder(1, 0);
  {
    const int x = builder.arg({float32}), y = builder.arg({float32}), z = builder.arg({float32, true});
    builder.begin_stage(false);
    const int sum = builder.binary(Code::add, builder.load(x), builder.load(y));
    builder.store(z, builder.binary(Code::mul, sum, builder.constant(float32, 0.5)));
  }
  const auto kernel = std::make_shared<const Kernel>(builder.finish());
  struct Part {
    std::uint32_t base;
    std::int64_t first;
  };
  const auto ref = [](const Part& p) { return Ref{p.base, static_cast<std::uint64_t>(p.first) * 4}; };
  std::mt19937 rng(5);
  for (int round = 0; round < (testing::full_scale() ? 300 : 20); round++) {
    std::vector<std::vector<float>> memory(buffers);
    for (auto& m : memory) m = cpu_test::random_values<float>(rng, elements, true);
    auto want = memory;
    auto program = std::make_shared<Program>();
    program->base_count = buffers;
    const auto part_of = [&](std::uint32_t base) { return Part{base, rng() % 3 == 0 ? 1 : 0}; };
    const auto source_of = [&](const Part& to) {
      const auto base = static_cast<std::uint32_t>(rng() % buffers);
      return base == to.base ? to : part_of(base);
    };
    for (auto steps = 2 + rng() % 6; steps > 0; steps--) {
      const Part to = part_of(static_cast<std::uint32_t>(rng() % buffers));
      const Part x = source_of(to);
      Part y = source_of(to);
      const auto at = [&](const Part& p, std::int64_t k) {
        return want[p.base][static_cast<std::size_t>(p.first + k)];
      };
      const auto each = [&](auto value) {
        for (std::int64_t k = 0; k < n; k++) want[to.base][static_cast<std::size_t>(to.first + k)] = value(k);
      };
      if (rng() % 3 == 0) {
        Exchange sum;
        sum.reducer = Reducer::sum;
        Exchange::Piece piece{{n}, {1}, {1}, ref(to), {}};
        for (const Part& p : {x, y}) piece.sources.push_back({ref(p), 0, n * 4, 0});
        sum.items = {{0, ref(to), n * 4, false, {piece}}};
        program->steps.push_back(cpu_test::step(sum));
        each([&](std::int64_t k) { return at(x, k) + at(y, k); });
        continue;
      }
      const bool one = y.base != to.base && rng() % 4 == 0;
      if (one) y.first = static_cast<std::int64_t>(rng() % elements);
      program->steps.push_back(
          cpu_test::step(Loop{kernel,
                              {{0,
                                {n},
                                {0},
                                {{ref(x), {1}, n * 4, 0},
                                 {ref(y), {one ? 0 : 1}, one ? 4u : std::uint64_t{n * 4}, 0},
                                 {ref(to), {1}, n * 4, 0}}}}}));
      each([&](std::int64_t k) { return (at(x, k) + at(y, one ? 0 : k)) * 0.5f; });
    }
    const CodegenMode before = set_codegen_mode(CodegenMode::always);
    const auto executable = make_cpu_backend(1)->load(program);
    set_codegen_mode(before);
    const cpu_test::Workers workers(1 + round % 3);
    void* bases[buffers];
    for (std::size_t k = 0; k < buffers; k++) bases[k] = memory[k].data();
    executable->run(bases, nullptr);
    CHECK(memory == want);
  }
}

// Loops below a microsecond have their sizes compiled in, and are not run block by block.
TEST_CASE("codegen: many cheap loops over the same elements, in place too, run once") {
  if (!plugin()) return;
  constexpr std::int64_t n = 5000, large = 1'000'000;
  constexpr std::uint32_t rows = 15;
  KernelBuilder builder(1, 0);
  const int x = builder.arg({float32}), y = builder.arg({float32, true});
  builder.begin_stage(false);
  const int v = builder.load(x);
  builder.store(y, builder.binary(Code::add, v, v));
  const auto kernel = std::make_shared<const Kernel>(builder.finish());
  const auto doubled = [&](std::uint32_t from, std::uint32_t to, std::int64_t size) {
    const auto bytes = static_cast<std::uint64_t>(size) * 4;
    return cpu_test::step(
        Loop{kernel, {{0, {size}, {0}, {{{from, 0}, {1}, bytes, 0}, {{to, 0}, {1}, bytes, 0}}}}});
  };
  auto program = std::make_shared<Program>();
  std::vector<std::vector<float>> memory = {std::vector<float>(n, 3), std::vector<float>(large, 5)};
  program->steps = {doubled(0, 0, n)};
  for (std::uint32_t k = 0; k < rows; k++) {  // each through three loops
    for (std::uint32_t i = 2 + 4 * k; i < 5 + 4 * k; i++) program->steps.push_back(doubled(i, i + 1, n));
    for (int i = 0; i < 4; i++) memory.emplace_back(n, static_cast<float>(k));
  }
  program->steps.push_back(doubled(1, 1, large));
  program->base_count = static_cast<std::uint32_t>(memory.size());
  const CodegenMode before = set_codegen_mode(CodegenMode::always);
  const auto executable = make_cpu_backend(1)->load(program);
  set_codegen_mode(before);
  std::vector<void*> bases;
  for (auto& m : memory) bases.push_back(m.data());
  executable->run(bases, nullptr);
  for (std::uint32_t k = 0; k < rows; k++)
    CHECK(memory[5 + 4 * k] == std::vector<float>(n, 8 * static_cast<float>(k)));
  CHECK(memory[0] == std::vector<float>(n, 6));
  CHECK(memory[1] == std::vector<float>(large, 10));
}

}  // namespace codegen_test
