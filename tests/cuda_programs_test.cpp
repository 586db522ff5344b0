// Whole programs by CUDA's kernels, compiled for the host: what the compiler makes, for its CPU and for its CUDA target, gives the
// bits of the CPU backend.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <random>

#include "cuda_launches.h"
#include "cuda_programs.h"
#include "host_decides.h"
#include "kernel_helpers.h"
#include "op_data.h"
#include "program_of.h"
#include "random_grow_maps.h"
#include "random_run.h"
#include "runtime/devices.h"

namespace cuda_programs_test {

using namespace shardarray;
using namespace shardarray::testing;
using program_test::Prepared;

namespace {

/// Empty when launches give the CPU's bits: for the CPU's target, for CUDA's, and where products take 16-bit floats as they are,
/// since their sums are the same.
std::string changed_by_cuda(const Prepared& prepared) {
  const auto launched = [](const Program& p, const test::BlockOrder& order) {
    const auto launches = cuda::launches_of(p);
    return test::outputs_of(
        p, [&](const std::vector<void*>& bases) { test::run_launches(launches, bases, order); });
  };
  const Target halves = cuda::cuda_target();
  Target widened = halves;
  widened.half_products = false;
  std::vector<std::vector<std::byte>> want;
  Compiled wide;
  for (const Target& target : {backend("cpu").target(), widened}) {
    wide = test::compiled_for(prepared, target);
    const auto& program = wide.program;
    want = test::outputs_of(*program, [&](const std::vector<void*>& bases) {
      backend("cpu").load(program)->run(bases, nullptr);
    });
    for (const test::BlockOrder& order : test::block_orders)
      if (std::string text = test::difference_of(*program, launched(*program, order), want); !text.empty())
        return text;
  }
  const Compiled narrow = test::compiled_for(prepared, halves);
  if (!test::same_plan(narrow, wide)) return "";  // other dtypes move other bytes
  const auto& program = narrow.program;
  std::string text = test::difference_of(*program, launched(*program, {}), want);
  return text.empty() ? text : text + " with products of 16-bit floats";
}

}  // namespace

TEST_CASE("cuda programs: every op, on one device and cut over eight") {
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  int cases = 0;
  for (LeftOut left_out(4, 2); const OpCase& row : launch_cases()) {
    if (left_out()) continue;
    Rng rng(std::hash<std::string>()(row.name));
    const Arrays x = draw_operands(row, rng);
    const auto f = jit([&row](const Arrays& a) { return row.function(a); });
    for (int repeat = 0; repeat < (full_scale() ? 10 : 2); repeat++) {
      Arrays given = x;
      if (repeat > 0) {
        for (Array& a : given) {
          const auto shardings = every_sharding(mesh, a.shape().size());
          a = device_put(a, shardings[rng() % shardings.size()]);
        }
      }
      cases++;
      const std::string text = changed_by_cuda(program_test::prepare(f, given));
      CHECK_MESSAGE(text.empty(), row.name << ", placement " << repeat << ": " << text);
    }
  }
  CHECK(cases > (is_sanitized() ? 50 : 200));
}

TEST_CASE("cuda programs: random programs") {
  const WithCodegen devices(CodegenMode::off);  // as many as these programs use
  const int programs = full_scale() ? 1000 : 30;
  int launched = 0;
  for (int seed = 0; seed < programs; seed++) {
    const RandomProgram p = Generator(seed, WithCodegen::kDevices).run();
    const ProgramSettings settings(p);
    const auto f = jit([&](const Arrays& x) { return run_lines(p, x, true); });
    const Prepared prepared = program_test::prepare(f, make_leaves(p, true));
    if (host_decides(*test::compiled_for(prepared, backend("cpu").target()).program))
      continue;  // no list of launches
    const std::string text = changed_by_cuda(prepared);
    CHECK_MESSAGE(text.empty(), "seed " << seed << ": " << text << "\n" << p.to_string());
    launched++;
  }
  CHECK(launched > programs / 2);
}

}  // namespace cuda_programs_test
