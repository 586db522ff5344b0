// Kernels that cannot be compiled: only they fall back to the interpreter, for a while; the others are cached one by one.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen_helpers.h"
#include "cpu/codegen/code_store.h"
#include "cpu/codegen/compiled_work.h"
#include "cpu_helpers.h"
#include "kernel_helpers.h"
#include "kernel_random.h"
#include "process_helpers.h"
#include "program_of.h"
#include "scale.h"
#include "shardarray/shardarray.h"
#include "with_codegen.h"

namespace codegen_failures_test {

namespace fs = std::filesystem;
namespace sa = shardarray;
using namespace shardarray;
using cpu_test::message_of;
using testing::plugin;

namespace {

using Folder = testing::TemporaryFolder;

/// Specs of so many different kernels.
std::vector<CodeSpec> some_specs(std::size_t count) {
  std::vector<CodeSpec> specs;
  for (std::uint64_t seed = 12; specs.size() < count; seed++) {
    const shardarray::test::KernelCase c = shardarray::test::random_case(seed);
    const LoopNest nest(std::make_shared<const Kernel>(c.kernel), item_of(c), LoopMode::columns);
    if (nest.has_points()) specs.emplace_back(nest.spec());
  }
  return specs;
}

#if defined(__x86_64__)
/// LLVM ends the process for these: by its handler of fatal errors; by an error in a diagnostic.
const std::pair<const char*, const char*> deadly_features[] = {
    {"-64bit",
     "code generation: LLVM gave up: 64-bit code requested on a subtarget that doesn't support it!. Please "
     "report this."},
    {"-sse,-sse2",
     "code generation: <unknown>:0:0: in function k0 void (ptr, ptr, ptr): SSE register return with SSE "
     "disabled. Please "
     "report this."}};

/// An exception leaves LLVM's fatal errors, over frames that free nothing: what they held is leaked.
void compile_deadly(CodeGenerator& generator, const std::vector<CodeSpec>& specs, CodeTier tier) {
  const testing::LostMemory lost;
  (void)generator.compile(specs, tier);
}
#endif

bool has_code(const Kernel& k, Code code) {
  return std::any_of(k.code.begin(), k.code.end(), [&](const Instr& in) { return in.code == code; });
}
bool has_code(const CodeSpec& s, Code code) {
  struct Look {
    Code code;
    bool operator()(const LoopNestSpec& n) const { return has_code(*n.kernel, code); }
    bool operator()(const GemmSpec& g) const { return g.epilogue && has_code(*g.epilogue->kernel, code); }
    bool operator()(const UpdateSpec&) const { return false; }
    bool operator()(const MoveSpec&) const { return false; }
    bool operator()(const SequenceSpec& q) const {
      bool found = std::any_of(q.kernels.begin(), q.kernels.end(),
                               [&](const KernelSpec& k) { return std::visit(*this, k); });
      each_inner(q, [&](const SequenceSpec::Inner& inner) { found = found || (*this)(*inner.sequence); });
      return found;
    }
  };
  return std::visit(Look{code}, s);
}

/// Fails where a kernel has this instruction.
class FailingGenerator final : public CodeGenerator {
 public:
  FailingGenerator(Code code, std::function<void()> failure)
      : real_(plugin()->make(nullptr, nullptr, nullptr)), code_(code), failure_(std::move(failure)) {}
  const std::string& target() const override { return real_->target(); }
  std::vector<char> compile(std::span<const CodeSpec> specs, CodeTier tier) override {
    for (const CodeSpec& s : specs)
      if (broken && has_code(s, code_)) failure_();
    if (tier == CodeTier::full) full += static_cast<int>(specs.size());
    return real_->compile(specs, tier);
  }
  std::shared_ptr<const LinkedCode> link(std::span<const char> object, std::size_t count) override {
    return real_->link(object, count);
  }
  std::atomic<bool> broken{true};
  std::atomic<int> full{0};  ///< kernels compiled in the full tier

 private:
  std::unique_ptr<CodeGenerator> real_;
  Code code_;
  std::function<void()> failure_;
};

struct WithStore {
  CodeStore* before;
  explicit WithStore(CodeStore& s) : before(CodeStore::set_instance(&s)) {}
  ~WithStore() { CodeStore::set_instance(before); }
};

}  // namespace

#if defined(__x86_64__)
TEST_CASE("codegen: what LLVM ends a process for is an error of one compilation") {
  if (!plugin()) return;
  const auto specs = some_specs(2);
  const auto good = plugin()->make(nullptr, nullptr, nullptr);
  for (const auto& [features, message] : deadly_features) {
    const auto deadly = plugin()->make("x86-64", features, nullptr);
    for (const CodeTier tier : {CodeTier::quick, CodeTier::full, CodeTier::quick}) {
      CHECK(message_of<CompileError>([&] { compile_deadly(*deadly, specs, tier); }) == message);
      CHECK(good->link(good->compile(specs, tier), specs.size())->functions.size() == specs.size());
    }
    // From several threads, beside some that succeed.
    std::atomic<int> right{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
      threads.emplace_back([&, t] {
        for (int k = 0; k < 5; k++) {
          try {
            if (t % 2 == 0) compile_deadly(*deadly, specs, CodeTier::quick);
            else (void)good->compile(specs, CodeTier::quick);
            right += t % 2 == 1;
          } catch (const CompileError&) { right += t % 2 == 0; }
        }
      });
    for (auto& t : threads) t.join();
    CHECK(right == 20);
  }
}
#endif

TEST_CASE(
    "codegen: a kernel that cannot be compiled falls back alone, is reported once, and is tried again") {
  if (!plugin()) return;
  struct Failure {
    std::function<void()> run;
    std::string report;
  };
  std::vector<Failure> failures = {
      {[] { throw CompileError("code generation: no luck. Please report this."); },
       "shardarray: code generation: no luck. Please report this. A kernel runs in the interpreter for "
       "now.\n"},
      {[] { throw std::bad_alloc(); },
       "shardarray: code generation: std::bad_alloc. A kernel runs in the interpreter for now.\n"}};
#if defined(__x86_64__)
  const auto deadly = plugin()->make("x86-64", deadly_features[0].first, nullptr);
  const auto specs = some_specs(1);
  failures.push_back({[&] { compile_deadly(*deadly, specs, CodeTier::quick); },
                      std::string("shardarray: ") + deadly_features[0].second +
                          " A kernel runs in the interpreter for now.\n"});
#endif
  std::int64_t n = 21;
  // A loop of its own, a product with an epilogue, and kernels in a sequence: each has the instruction in turn.
  for (const Failure& f : failures) {
    for (const bool small : {true, false}) {
      if (!small && n > 23 && !testing::full_scale()) continue;
      n += 2;
      const std::int64_t rows = small ? 4 : 400;
      CAPTURE(f.report);
      CAPTURE(small);
      const auto program = [&] {
        return sa::jit([](Array x, Array w) {
          const Array h = sa::maximum(sa::matmul(x, w), sa::Array(0.25f));
          return std::tuple(sa::exp(x) * 3, h, sa::sum(h, 1) - 2, sa::matmul(h * 2, w));
        });
      };
      const Array x = sa::random::normal(sa::random::key(1), {rows, n}),
                  w = sa::random::normal(sa::random::key(2), {n, n});
      using Function = decltype(program());
      const auto values = [&](Function& g) {
        std::vector<std::vector<float>> all;
        const auto [a, b, c, d] = g(x, w);
        for (const Array& r : {a, b, c, d}) all.push_back(r.to_vector<float>());
        return all;
      };
      const auto want = testing::with_codegen(CodegenMode::off, [&] {
        auto g = program();
        return values(g);
      });
      auto owned = std::make_unique<FailingGenerator>(Code::max, f.run);
      FailingGenerator& generator = *owned;
      CodeStore store(std::move(owned), "");
      const WithStore chosen(store);
      const testing::WithCodegen always(CodegenMode::always);
      auto g = program();
      // It goes on failing in the full tier.
      const std::string said = cpu_test::stderr_of([&] {
        CHECK(values(g) == want);
        const int failed = store.stats().failed;
        CHECK(failed > 0);
        CHECK(store.stats().compiled > 0);
        for (int k = 0; k < 1'000'000 && store.stats().failed < 2 * failed; k++) g(x, w);
        CHECK(store.stats().failed >= 2 * failed);
        CHECK(values(g) == want);
      });
      CHECK(said == f.report);
      // And is healed.
      generator.broken = false;
      const CodeStore::Stats before = store.stats();
      for (int k = 0; k < 3'000'000 && store.stats().compiled == before.compiled; k++) g(x, w);
      CHECK(store.stats().compiled > before.compiled);
      CHECK(store.stats().failed == before.failed);
      CHECK(values(g) == want);
    }
  }
}

TEST_CASE("codegen: kernels on disk are found one by one, whatever they were compiled with") {
  if (!plugin()) return;
  const Folder folder;
  const auto specs = some_specs(3);
  const auto seen = [&](const std::vector<CodeSpec>& wanted) {  // in a new process, so to say
    CodeStore store(plugin()->make(nullptr, nullptr, nullptr), folder.path);
    const auto code = store.get(wanted, CodeTier::quick);
    for (const MachineCode& c : code) CHECK((c.function != nullptr));
    const CodeStore::Stats s = store.stats();
    return std::pair(s.compiled, s.loaded);
  };
  CHECK(seen({specs[0], specs[1], specs[0]}) == std::pair(2, 0));
  CHECK(seen({specs[1]}) == std::pair(0, 1));
  CHECK(seen({specs[1], specs[0]}) == std::pair(0, 2));
  CHECK(seen({specs[2], specs[0]}) == std::pair(1, 1));
  CHECK(seen({specs[0], specs[1], specs[2]}) == std::pair(0, 3));
}

namespace {

/// So many equal small steps that do not fuse.
auto long_program(int iterations) {
  return sa::jit([=](const Array& a, Array x) {
    for (int k = 0; k < iterations; k++) {
      x = sa::matmul(a, x);
      x = x / sa::sqrt(sa::sum(x * x));
    }
    return x;
  });
}

}  // namespace

TEST_CASE("codegen: equal parts of a long program have one code") {
  if (!plugin()) return;
  const Array a = sa::random::normal(sa::random::key(1), {24, 24}), x = sa::ones({24});
  const auto want =
      testing::with_codegen(CodegenMode::off, [&] { return long_program(300)(a, x).to_vector<float>(); });
  CodeStore store(plugin()->make(nullptr, nullptr, nullptr), "");
  const WithStore chosen(store);
  const testing::WithCodegen always(CodegenMode::always);
  CHECK(long_program(300)(a, x).to_vector<float>() == want);
  const int compiled = store.stats().compiled;
  CAPTURE(compiled);
  CHECK(compiled < 60);
}

TEST_CASE("codegen: a long program leaves the interpreter within 20 calls, at once with kernels on disk") {
  if (!plugin()) return;
  const Folder folder;
  const Array a = sa::random::normal(sa::random::key(1), {24, 24}), x = sa::ones({24});
  // How many kernels were compiled and loaded when `wanted` of them are there, or after 20 calls; in a new process, so to say.
  const auto kernels_of = [&](CodegenMode mode, int wanted) {
    CodeStore store(plugin()->make(nullptr, nullptr, nullptr), folder.path);
    const WithStore chosen(store);
    const testing::WithCodegen with(mode);
    auto f = long_program(600);
    CodeStore::Stats s;
    for (int k = 0; k < 20 && s.compiled + s.loaded < wanted; k++) {
      f(a, x).block_until_ready();
      s = store.stats();
    }
    return std::pair(s.compiled, s.loaded);
  };
  CHECK(kernels_of(CodegenMode::on, 1).first > 0);
  const auto [compiled, loaded] = kernels_of(CodegenMode::always, 1);
  CHECK(loaded > 0);
  // All that `always` has is on disk now: nothing is compiled, and all of it comes.
  const auto [compiled_again, all] = kernels_of(CodegenMode::on, compiled + loaded);
  CHECK(compiled_again == 0);
  CHECK(all == compiled + loaded);
}

namespace {

/// What of a program's work, by estimates, is the interpreter's where code is made for `runs` runs, or is there already.
double interpreted_of(const WorkList& works, double runs) {
  std::set<const void*> before;
  for (const Work& w : works.all()) before.insert(w.units.object);
  const auto code = CompiledWork::make(works, CodeTier::quick, runs);
  REQUIRE(code != nullptr);
  double ns = 0;
  for (const Work& w : code->all())
    if (before.contains(w.units.object)) ns += w.units.cost_ns;
  return ns;
}

}  // namespace

TEST_CASE("codegen: after 20 calls most of a long program's work is machine code") {
  if (!plugin()) return;
  const Array a = sa::random::normal(sa::random::key(1), {24, 24}), x = sa::ones({24});
  CodeStore store(plugin()->make(nullptr, nullptr, nullptr), "");
  const WithStore chosen(store);
  const testing::WithCodegen on(CodegenMode::on);
  const auto f = long_program(600);
  const auto prepared = program_test::prepare(f, a, x);
  const WorkList works(prepared.program());
  double whole = 0;
  for (const Work& w : works.all()) whole += w.units.cost_ns;
  CHECK(interpreted_of(works, 0) == whole);
  for (int k = 0; k < 20; k++) f(a, x).block_until_ready();
  CHECK(interpreted_of(works, 0) < 0.25 * whole);  // its first and last pieces are others than the rest
  CHECK(interpreted_of(works, CompiledWork::endless_runs) == 0);
}

TEST_CASE("codegen: a hot kernel reaches the full tier though another is not worth code") {
  if (!plugin()) return;
  auto generator = std::make_unique<FailingGenerator>(Code::store, [] {});
  generator->broken = false;
  const std::atomic<int>& full = generator->full;
  CodeStore store(std::move(generator), "");
  const WithStore chosen(store);
  const testing::WithCodegen on(CodegenMode::on);
  const auto f = sa::jit([](const Array& v) { return sa::sum(v * v); });  // of blocks, then of their sums
  const Array x = sa::ones({1 << 20});
  for (int k = 0; k < 100 && full == 0; k++) CHECK(f(x).item<float>() == 1 << 20);
  CHECK(full == 1);
}

TEST_CASE("codegen: a folder of kernels that others can change is reported and not used") {
  if (!plugin()) return;
  const Folder folder;
  chmod(folder.path.c_str(), 0777);
  const std::string cache = folder.path + "/cache";
  const std::string said = cpu_test::stderr_of([&] {
    CodeStore store(plugin()->make(nullptr, nullptr, nullptr), cache);
    CHECK((store.get(some_specs(1), CodeTier::quick)[0].function != nullptr));
  });
  CHECK(said == "shardarray: kernels are not kept: the folder '" + cache +
                    "' is not used: others can write to '" + folder.path +
                    "'. What is kept is executed, so nobody else may be able to change it. Let "
                    "SHARDARRAY_CACHE_DIR name a "
                    "folder that is yours alone, or nothing.\n");
  CHECK(!fs::exists(cache));
}

}  // namespace codegen_failures_test
