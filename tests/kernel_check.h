// Kernels in all executors: the interpreter compared with known bits, generated code compared with the interpreter.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "codegen_helpers.h"
#include "cpu/loops/loop_nest.h"
#include "kernel_helpers.h"

namespace shardarray::test {

/// Every mode, table of loops and split gives `want`, the buffers after the run.
inline void check_interpreter(const KernelCase& c, const std::vector<std::vector<std::byte>>& want) {
  const Loop::Item item = item_of(c);
  verify(c.kernel);
  for (const LoopMode mode : {LoopMode::columns, LoopMode::rows}) {
    for (const Loops* loops : {&baseline_loops(), v3_loops()}) {
      if (!loops) continue;
      const LoopPlan plan(c.kernel, item, mode, *loops);
      const std::int64_t n = plan.units();
      std::vector<std::vector<std::int64_t>> all_cuts = {{n}, {n / 3, n / 3 * 2, n}};
      if (n > 1) all_cuts.push_back({1, n});
      for (const auto& cuts : all_cuts) {
        const auto got = run_plan(c, plan, cuts);
        CAPTURE(static_cast<int>(mode));
        CAPTURE(cuts.size());
        require_same(c, got, want);
      }
    }
  }
}

inline std::vector<std::vector<std::byte>> interpreted(const KernelCase& c) {
  const LoopPlan plan(c.kernel, item_of(c), LoopMode::columns, best_loops());
  return run_plan(c, plan, {plan.units()});
}

inline void check_nest(const KernelCase& c, const std::vector<std::vector<std::byte>>& want,
                       const LoopNest& nest, LoopNestFunction f) {
  const std::int64_t n = nest.units();
  std::vector<std::vector<std::int64_t>> all_cuts = {{n}, {n / 3, n / 3 * 2, n}};
  if (n > 1) all_cuts.push_back({1, n});
  for (const auto& cuts : all_cuts) {
    const auto got = run_pieces(c, cuts, [&](void* const* bases, std::int64_t begin, std::int64_t end) {
      nest.run(f, bases, begin, end);
    });
    CAPTURE(cuts.size());
    require_same(c, got, want);
  }
}

/// Generated code equals the interpreter: all cases in both modes, with numbers at run time and fixed, past the caches, as one
/// module, on every CPU.
inline void check_generated(const std::vector<KernelCase>& cases, CodeTier tier) {
  if (!testing::plugin()) return;
  std::vector<LoopNest> nests;
  std::vector<CodeSpec> specs;
  std::vector<const KernelCase*> of;
  for (const KernelCase& c : cases) {
    const auto kernel = std::make_shared<const Kernel>(c.kernel);
    for (const LoopMode mode : {LoopMode::columns, LoopMode::rows}) {
      bool inner = false;
      for (const Stage& s : c.kernel.stages) inner = inner || s.inner;
      if (mode == LoopMode::rows && !inner) continue;
      const LoopNest nest(kernel, item_of(c), mode);
      if (!nest.has_points()) continue;
      LoopNest fixed = nest;
      fixed.fix_numbers();
      LoopNest streamed = nest;
      streamed.stream();
      for (const LoopNest& n : {nest, fixed, streamed}) {
        nests.push_back(n);
        specs.push_back(n.spec());
        of.push_back(&c);
      }
    }
  }
  std::vector<std::vector<std::vector<std::byte>>> want;
  for (const KernelCase& c : cases) want.push_back(interpreted(c));
  for (const auto& generator : testing::generators()) {
    CAPTURE(generator->target());
    const auto code = generator->link(generator->compile(specs, tier), specs.size());
    for (std::size_t k = 0; k < nests.size(); k++) {
      const std::string shown = to_string(of[k]->kernel) + "extents " + to_string(of[k]->extents) + " mode " +
                                std::to_string(static_cast<int>(nests[k].spec().mode));
      CAPTURE(k);
      CAPTURE(shown);
      check_nest(*of[k], want[static_cast<std::size_t>(of[k] - cases.data())], nests[k], code->functions[k]);
    }
  }
}

}  // namespace shardarray::test
