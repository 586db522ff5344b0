// Generated code: equal to the interpreter, bit for bit, on every kernel, cut and CPU.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cpu/codegen.h"
#include "kernel_helpers.h"
#include "kernel_random.h"
#include "shardarray/error.h"

using namespace shardarray;
using namespace shardarray::test;

namespace {

bool full_size() {
  const char* scale = std::getenv("SHARDARRAY_TEST_SCALE");
  return scale && std::string(scale) == "full";
}

/// The plug-in, null where it was not built.
const CodePlugin* plugin() {
  static const CodePlugin* const p = [] {
    try {
      return &open_code_plugin(code_plugin_path());
    } catch (const CompileError& e) {
      MESSAGE("skipped: ", e.what());
      return static_cast<const CodePlugin*>(nullptr);
    }
  }();
  return p;
}

/// This machine and the ones that it can stand in for.
std::vector<std::unique_ptr<CodeGenerator>> generators() {
  std::vector<std::unique_ptr<CodeGenerator>> all;
  all.push_back(plugin()->make(nullptr, nullptr));
#if defined(__x86_64__)
  all.push_back(plugin()->make("x86-64", ""));
  if (v3_loops()) all.push_back(plugin()->make("x86-64-v3", ""));
#endif
  return all;
}

struct Built {
  LoopNest nest;
  NestFunction function;
};

/// The buffers after a nest ran in pieces that end at `cuts`.
std::vector<std::vector<std::byte>> run_nest(const KernelCase& c, const LoopNest& nest, NestFunction f,
                                             const std::vector<std::int64_t>& cuts) {
  auto memory = c.inputs;
  std::vector<void*> bases;
  for (auto& m : memory) bases.push_back(m.data());
  std::int64_t begin = 0;
  for (const std::int64_t end : cuts) {
    nest.run(f, bases.data(), begin, end);
    begin = end;
  }
  for (std::size_t a = 0; a < c.args.size(); a++) {
    if (c.args[a].alias >= 0) memory[a] = memory[static_cast<std::size_t>(c.args[a].alias)];
  }
  return memory;
}

std::vector<std::vector<std::byte>> interpreted(const KernelCase& c) {
  const LoopPlan plan(c.kernel, item_of(c), LoopMode::columns, best_loops());
  return run_plan(c, plan, {plan.units()});
}

void check_nest(const KernelCase& c, const std::vector<std::vector<std::byte>>& want, const LoopNest& nest, NestFunction f) {
  const std::int64_t n = nest.units();
  std::vector<std::vector<std::int64_t>> all_cuts = {{n}, {n / 3, n / 3 * 2, n}};
  if (n > 1) all_cuts.push_back({1, n});
  for (const auto& cuts : all_cuts) {
    const auto got = run_nest(c, nest, f, cuts);
    for (std::size_t a = 0; a < c.args.size(); a++) {
      bool aliased = false;
      for (const ArgMemory& m : c.args) aliased = aliased || m.alias == static_cast<int>(a);
      if (aliased) continue;
      CAPTURE(a);
      CAPTURE(cuts.size());
      REQUIRE(same_values(c.kernel.args[a].type, got[a], want[a]));
    }
  }
}

/// All cases in both modes, as one module, on every CPU.
void check_cases(const std::vector<KernelCase>& cases, CodeTier tier) {
  if (!plugin()) return;
  std::vector<LoopNest> nests;
  std::vector<NestSpec> specs;
  std::vector<const KernelCase*> of;
  for (const KernelCase& c : cases) {
    const auto kernel = std::make_shared<const Kernel>(c.kernel);
    for (const LoopMode mode : {LoopMode::columns, LoopMode::rows}) {
      bool inner = false;
      for (const Stage& s : c.kernel.stages) inner = inner || s.inner;
      if (mode == LoopMode::rows && !inner) continue;
      const LoopNest nest(kernel, item_of(c), mode);
      if (!nest.has_points()) continue;
      nests.push_back(nest);
      specs.push_back(nest.spec());
      of.push_back(&c);
    }
  }
  std::vector<std::vector<std::vector<std::byte>>> want;
  for (const KernelCase& c : cases) want.push_back(interpreted(c));
  for (const auto& generator : generators()) {
    CAPTURE(generator->target());
    const auto code = generator->link(generator->compile(specs, tier), specs.size());
    for (std::size_t k = 0; k < nests.size(); k++) {
      const std::string shown = to_string(of[k]->kernel) + "extents " + to_string(of[k]->extents) + " mode " +
                                std::to_string(static_cast<int>(specs[k].mode));
      CAPTURE(k);
      CAPTURE(shown);
      check_nest(*of[k], want[static_cast<std::size_t>(of[k] - cases.data())], nests[k], code->functions[k]);
    }
  }
}

std::vector<KernelCase> random_cases(std::uint64_t first, std::uint64_t count) {
  std::vector<KernelCase> cases;
  for (std::uint64_t i = 0; i < count; i++) cases.push_back(random_case(first + i));
  return cases;
}

}  // namespace

TEST_CASE("codegen: random kernels equal the interpreter in every mode, tier, cut and on every CPU") {
  const char* from = std::getenv("CODEGEN_FROM");
  const std::uint64_t count = full_size() ? 1000 : 40, first = from ? std::strtoull(from, nullptr, 10) : 5000;
  for (std::uint64_t i = 0; i < count; i += 10) {
    CAPTURE(i);
    check_cases(random_cases(first + i, 10), i % 20 == 0 ? CodeTier::full : CodeTier::quick);
  }
}
