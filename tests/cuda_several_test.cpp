// Programs over several GPUs, whichever there are: the kit runs these where the machine has some, and cuda_nccl_test.cpp on fakes.
#include <doctest/doctest.h>

#include <vector>

#include "cuda_gpus.h"
#include "shardarray/shardarray.h"

namespace cuda_several_test {

namespace sa = shardarray;
using platform_test::bits;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;

TEST_CASE("cuda several GPUs: numbers" * doctest::skip()) {
  REQUIRE(sa::devices("cuda").size() >= 8);
  REQUIRE(sa::devices("cuda")[7].memory > 0);
  sa::gpus_test::check_numbers();
}

// A tile a GPU, beyond the size from which NCCL moves it.
TEST_CASE("cuda several GPUs: large tiles" * doctest::skip()) {
  std::vector<sa::Device> gpus;
  for (const sa::Device& d : sa::devices("cuda"))
    if (gpus.empty() || d.memory != gpus.back().memory) gpus.push_back(d);
  const auto n = static_cast<std::int64_t>(gpus.size());
  REQUIRE(n > 1);
  std::vector<sa::Device> cpus = sa::devices("cpu");
  cpus.resize(gpus.size());
  const sa::Mesh there({{n}, gpus}, {"x"}), here({{n}, cpus}, {"x"});
  constexpr std::int64_t columns = 1 << 15;  // 128 KiB a row
  const auto both = [&](const Array& x, const auto& f) {
    const auto got = bits(f(put(x, there, P("x")), there)), want = bits(f(put(x, here, P("x")), here));
    return std::pair(std::vector<platform_test::Bits>{got}, std::vector<platform_test::Bits>{want});
  };
  const auto same = [&](const Array& x, const auto& f) {
    const auto [got, want] = both(x, f);
    CHECK(got == want);
  };
  const auto gathered = [](const Array& v, const sa::Mesh& m) { return put(v, m, P()); };
  const auto turned = [](const Array& v, const sa::Mesh& m) { return put(v, m, P(sa::none, "x")); };
  const auto summed = [](const Array& v, const sa::Mesh&) { return sa::sum(v, 0); };
  const auto scattered = [](const Array& v, const sa::Mesh& m) { return put(sa::sum(v, 0), m, P("x")); };
  for (const sa::DType t : {sa::int32, sa::float32, sa::bfloat16}) {
    const Array x = numbers({2 * n, columns}, t);
    same(x, gathered);
    same(x, turned);
  }
  same(numbers({2 * n, columns}, sa::int32), summed);
  same(numbers({2 * n, columns}, sa::int32), scattered);
  const Array x = sa::sin(numbers({2 * n, columns}));
  for (int run = 0; run < 3; run++) {
    const auto [got, want] = both(x, summed);
    CHECK(sa::gpus_test::near(got, want));
  }
  const sa::reproducible on(true);
  same(x, summed);
  same(x, scattered);
}

}  // namespace cuda_several_test
