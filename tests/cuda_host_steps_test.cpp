// Steps without CUDA kernels, on fake GPUs (tests/cuda/): the host factorises matrices between launches, with the CPU's bits.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "cuda/launch.h"
#include "cuda/one_kernel.h"
#include "cuda_fake.h"
#include "cuda_programs.h"
#include "platform_programs.h"
#include "shardarray/linalg.h"
#include "shardarray/shardarray.h"

namespace cuda_host_steps_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::Bits;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

/// Matrices that are far from singular: [8, 5, 5].
Array matrices() { return numbers({8, 5, 5}) * 0.01f + sa::eye(5) * 3; }

/// Every factorisation, between steps that have kernels.
std::vector<Array> factorised(const Array& a) {
  const Array symmetric = a + sa::swapaxes(a, -1, -2), chol = sa::linalg::cholesky(symmetric * 2);
  const auto [q, r] = sa::linalg::qr(a);
  const auto values = sa::linalg::eigvalsh(symmetric);
  return {chol * 2 + 1,
          sa::linalg::solve(a, symmetric),
          sa::linalg::inv(a) - a,
          sa::linalg::det(a),
          sa::linalg::solve_triangular(chol, a),
          sa::abs(q) + sa::abs(r),
          values,
          sa::linalg::svdvals(a)};
}
/// In a loop, a branch and another loop: programs that are called.
Array in_loops(const Array& a) {
  const auto step = [](const Array&, const Array& x) { return sa::linalg::inv(x) + sa::eye(5) * 2; };
  const Array looped = sa::fori_loop(0, 3, step, a);
  return sa::cond(
      sa::sum(looped) > 0, [](const Array& x) { return sa::linalg::cholesky(x + sa::swapaxes(x, -1, -2)); },
      [](const Array& x) { return x * 2; }, looped);
}

struct Results {
  std::vector<Bits> bits;
  std::uint64_t graphs = 0;  // that were launched meanwhile
};
Results results(const char* platform) {
  Results all;
  const auto f = sa::jit(factorised);
  const auto loops = sa::jit(in_loops);
  const auto slope = sa::jit([](const Array& a) {
    return sa::grad([](const Array& x) { return sa::sum(sa::linalg::slogdet(x).logabsdet); })(a);
  });
  for (const P& spec : {P(), P("x"), P("y", "x")}) {
    const Array a = sa::block_until_ready(put(matrices(), platform, spec));
    const std::uint64_t before = fake_control().graph_launches();
    for (int again = 0; again < 3; again++) {  // the third run would be a graph
      for (const Array& r : f(a)) all.bits.push_back(platform_test::bits(r));
      all.bits.push_back(platform_test::bits(loops(a)));
      all.bits.push_back(platform_test::bits(slope(a)));
    }
    all.graphs += fake_control().graph_launches() - before;
  }
  return all;
}

}  // namespace

TEST_CASE("cuda process: factorisations" * doctest::skip()) {
  const Results want = results("cpu"), got = results("cuda");
  REQUIRE(want.bits.size() == got.bits.size());
  for (std::size_t k = 0; k < want.bits.size(); k++) {
    CAPTURE(k);
    CHECK(got.bits[k] == want.bits[k]);
  }
  CHECK(got.graphs == 0);
}

TEST_CASE("cuda process: factorisations whose calls fail" * doctest::skip()) {
  const Array a = put(matrices(), "cuda", P("x"));
  const auto f = sa::jit([](const Array& x) { return sa::linalg::inv(x * 2) + 1; });
  const Bits want = platform_test::bits(f(put(matrices(), "cpu", P("x"))));
  for (const int status : {1, 2})
    for (int k = 0, reached = 1; reached != 0; k++) {
      const std::uint64_t calls = fake_control().calls();
      fake_control().fail_call(k, status);
      try {
        const bool right = platform_test::bits(f(a)) == want;
        CHECK(right);
      } catch (const sa::Error& e) {
        CHECK_MESSAGE(std::string(e.what()).find(fake_control().last_call()) != std::string::npos, e.what());
      }
      reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
      fake_control().fail_call(-1, 0);
    }
  CHECK(platform_test::bits(f(a)) == want);
}

TEST_CASE(
    "cuda host steps: factorisations on one GPU and several, in loops and branches, have the CPU's bits") {
  const std::string both = "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_PLATFORM=cuda SHARDARRAY_CACHE_DIR= ";
  text_on_fake("cuda process: factorisations", both + "SHARDARRAY_CUDA_LOGICAL_DEVICES=8");
  text_on_fake("cuda process: factorisations",
               both + "SHARDARRAY_FAKE_GPUS=4 SHARDARRAY_CUDA_LOGICAL_DEVICES=2");
}

TEST_CASE("cuda host steps: a call that fails is named and leaves no trace") {
  text_on_fake("cuda process: factorisations whose calls fail",
               "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_CACHE_DIR= ");
}

TEST_CASE("cuda host steps: they are no launches, and no part of a kernel") {
  const auto prepared = program_test::prepare(
      sa::jit([](const Array& x) { return sa::linalg::cholesky(x * 2) + 1; }), sa::eye(3));
  const auto program = sa::test::compiled_for(prepared, sa::cuda::cuda_target()).program;
  CHECK(sa::cuda::one_kernel_blocks(*program, 8) == 0);
  std::string said;
  try {
    sa::cuda::launches_of(*program);
  } catch (const sa::InternalError& e) { said = e.text(); }
  CHECK(said == "cuda: cholesky is no launch: the host does it. Please report this.");
}

}  // namespace cuda_host_steps_test
