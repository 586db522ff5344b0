// The program that a call of a jitted function runs, for tests that look inside.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <utility>
#include <vector>

#include "shardarray/shardarray.h"
#include "transform/jit.h"
#include "transform/launch.h"

namespace program_test {

struct Prepared {
  std::shared_ptr<const shardarray::core::JitEntry> entry;
  std::vector<shardarray::LaunchLeaf> leaves;
  std::shared_ptr<const shardarray::LoadedProgram> loaded;
  const shardarray::Program& program() const { return *loaded->compiled.program; }
};
/// Traces and compiles f(args...); runs nothing, takes nothing.
template <class F, class... A> Prepared prepare(const F& f, A&&... args) {
  shardarray::core::ReusedCall call("test");
  Prepared p;
  p.entry = f.lower(*call, std::forward<A>(args)...);
  shardarray::core::launch_leaves(*p.entry, *call, p.leaves);
  p.loaded = shardarray::core::program_for(*p.entry, p.leaves, "test");
  return p;
}

/// Runs f(args...) and compares what the executor received, transfer by transfer, with the plan.
template <class F, class... A> void check_received(const F& f, const A&... args) {
  const Prepared p = prepare(f, args...);
  std::vector<shardarray::ValueRef> results;
  shardarray::RunReport report;
  shardarray::launch(*p.loaded, p.leaves, results, nullptr, &report);
  const auto& planned = p.program().transfers;
  REQUIRE((report.received.size() == planned.size() || planned.empty()));
  for (std::size_t k = 0; k < planned.size(); k++) CHECK(report.received[k] == planned[k].moved_bytes);
}

}  // namespace program_test
