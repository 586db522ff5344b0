// cond, switch_ and while_loop on fake GPUs (tests/cuda/), where the host reads the predicate: the CPU's numbers.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include "cuda_fake.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace cuda_branches_test {

namespace sa = shardarray;
using namespace sa::testing;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

namespace {

using Pair = std::pair<Array, Array>;

Array branches(const Array& k, const Array& x) {
  const auto sums = [](const Array& v) { return sa::tanh(v) + sa::sum(v, 0); };
  const auto sorted = [](const Array& v) { return sa::sort(v, -1) * 2; };
  const auto turned = [](const Array& v) { return sa::flip(v, 0); };
  return sa::switch_(k, std::tuple(sums, sorted, turned), x);
}
Pair halved(const Array& x, const Array& most) {
  return sa::while_loop([&](const Pair& c) { return sa::max(sa::abs(c.first)) > most; },
                        [](const Pair& c) {
                          const Array next = sa::cond(
                              sa::sum(c.first) > 0, [](const Array& v) { return v * 0.5f - sa::mean(v, 0); },
                              [](const Array& v) { return v * -0.75f; }, c.first);
                          return Pair(next, c.second + 1);
                        },
                        Pair(x, Array(0)));
}

std::vector<platform_test::Bits> all_results(const char* platform) {
  std::vector<platform_test::Bits> r;
  for (const P& spec : {P(), P("x"), P("y", "x")}) {
    const Array x = put(numbers({16, 8}), platform, spec);
    const auto f = sa::jit(branches);
    for (int k = -1; k < 4; k++)
      for (int again = 0; again < 3; again++)
        r.push_back(platform_test::bits(f(put(sa::array({k}), platform, P())[0], x)));
    const auto g = sa::jit(halved);
    for (const float most : {100.0f, 3.0f, 1.0f, 0.25f, 0.01f}) {
      const auto [v, count] = g(x, Array(most));
      r.push_back(platform_test::bits(v));
      r.push_back(platform_test::bits(count.astype(sa::float32)));
    }
  }
  return r;
}

}  // namespace

TEST_CASE("cuda process: branches" * doctest::skip()) {
  const auto want = all_results("cpu"), got = all_results("cuda");
  REQUIRE(want.size() == got.size());
  for (std::size_t k = 0; k < want.size(); k++) {
    CAPTURE(k);
    CHECK(got[k] == want[k]);
  }
}

TEST_CASE("cuda branches: one GPU and several give the numbers of the CPU") {
  const std::string both = "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_PLATFORM=cuda SHARDARRAY_CACHE_DIR= ";
  text_on_fake("cuda process: branches", both + "SHARDARRAY_CUDA_LOGICAL_DEVICES=8");
  text_on_fake("cuda process: branches", both + "SHARDARRAY_FAKE_GPUS=4 SHARDARRAY_CUDA_LOGICAL_DEVICES=2");
}

}  // namespace cuda_branches_test
