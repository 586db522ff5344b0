// Programs that run again and again, at other addresses and with other numbers each time, on whichever CUDA devices there are: launch
// by launch at first, then as CUDA graphs. The kit runs this on a GPU, and the cases below do on the fake one.
#include <doctest/doctest.h>

#include <cstdlib>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "cuda_fake.h"
#include "platform_programs.h"
#include "scale.h"
#include "shardarray/shardarray.h"

namespace cuda_replays_test {

namespace sa = shardarray;
using platform_test::Bits;
using platform_test::bits;
using platform_test::mesh_on;
using platform_test::put;
using program_test::numbers;
using sa::Array;
using sa::P;
using sa::testing::fake_control;
using sa::testing::text_on_fake;

namespace {

constexpr int runs = 10;  // of which the third is a graph; more than graphs are kept

/// The latest arrays: as many addresses are not free when the next ones are needed.
class Kept {
 public:
  explicit Kept(std::size_t most) : most_(most) {}
  void add(const Array& x) {
    arrays_.push_back(x);
    while (arrays_.size() > most_ + 1) arrays_.pop_front();
  }
  const Array& latest() const { return arrays_.back(); }

 private:
  std::size_t most_;
  std::deque<Array> arrays_;
};

/// What every run gives. The model is donated, but for some runs.
std::vector<Bits> trained(const sa::Mesh& mesh, std::int64_t rows, std::size_t kept) {
  const sa::reproducible on(true);
  const auto step = platform_test::training_step();
  platform_test::Model m = platform_test::model_on(mesh);
  Kept alive(kept);
  std::vector<Bits> all;
  for (int k = 0; k < 2 * runs; k++) {
    const Array x = put(numbers({rows, 6}, sa::float32, k) * 0.2f, mesh, P("x")),
                y = put(numbers({rows, 3}, sa::float32, k), mesh, P("x"));
    if (k % 4 == 3) m = step(m, x, y);
    else m = step(std::move(m), x, y);
    for (const Array& a : {m.w1, m.b1, m.w2}) all.push_back(bits(a));
    alive.add(x);
  }
  return all;
}

/// Of whole numbers, whose sums are exact in any order.
std::vector<Bits> of_all_steps(const sa::Mesh& mesh, std::int64_t rows, std::size_t kept) {
  const auto f =
      sa::jit([mesh](const Array& x, const Array& v) { return platform_test::results_of(x, v, mesh); });
  const auto g = sa::jit(platform_test::looped);
  Kept alive(kept);
  std::vector<Bits> all;
  for (int k = 0; k < 2 * runs; k++) {
    Array x = put(numbers({rows, rows / 16 + 6}, sa::float32, k), mesh, P("x", "y"));
    const Array v = put(numbers({rows}, sa::float32, k), mesh, P("y")), repeated = g(x);
    std::vector<Array> results = k % 2 == 0 ? f(x, v) : f(std::move(x), v);
    results.push_back(repeated);
    for (const Array& r : results) {
      all.push_back(bits(r));
      alive.add(r);
    }
  }
  return all;
}

/// A product so large that a library makes it, beside steps of the library's own.
std::vector<Bits> multiplied(const sa::Mesh& mesh, std::int64_t rows, std::size_t kept) {
  const auto f = sa::jit([](const Array& x, const Array& w) { return sa::flip(sa::matmul(x, w), 0) + w[0]; });
  Kept alive(kept);
  std::vector<Bits> all;
  for (int k = 0; k < runs; k++) {
    const Array x = put(numbers({256 + rows, 200}, sa::float32, k), mesh, P("x")),
                w = put(numbers({200, 176}, sa::float32, k + 1), mesh, P(sa::none, "y"));
    alive.add(f(x, w));
    all.push_back(bits(alive.latest()));
  }
  return all;
}

void check_numbers(const std::vector<std::size_t>& all_kept) {
  // Kernels that are compiled beside the first rounds make new graphs. The larger programs are kernels of clusters, the largest none.
  for (int round = 0; round < 2; round++)
    for (const std::int64_t rows : {16, 520, 4200})
      for (const std::size_t kept : all_kept) {
        CAPTURE(round);
        CAPTURE(rows);
        CAPTURE(kept);
        for (const auto& program : {trained, of_all_steps, multiplied}) {
          if (rows > 520 && program != trained) continue;
          const auto got = program(mesh_on("cuda"), rows, kept), want = program(mesh_on("cpu"), rows, kept);
          REQUIRE(got.size() == want.size());
          for (std::size_t k = 0; k < want.size(); k++) CHECK_MESSAGE(got[k] == want[k], "result " << k);
        }
      }
}

}  // namespace

TEST_CASE("cuda process: runs again" * doctest::skip()) { check_numbers({0, 3, 40}); }

// What the fake GPU was asked for.
TEST_CASE("cuda process: counted runs" * doctest::skip()) {
  check_numbers({runs});  // no address returns, so that each run asks for its products
  CHECK(fake_control().graph_launches() > 50);
  CHECK(fake_control().early_launches() > 50);
  CHECK(fake_control().products(0) == 4 * runs);
  const bool compiled = std::getenv("SHARDARRAY_CODEGEN") == std::string("always");
  CHECK((fake_control().printed_launches() > 50) == compiled);
}

TEST_CASE("cuda graphs: programs run again with other numbers at other addresses, interpreted and printed") {
  const std::string settings =
      "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_CACHE_DIR= "
      "SHARDARRAY_FAKE_CUBLASLT=1 SHARDARRAY_CODEGEN=";
  text_on_fake("cuda process: counted runs", settings + "off");
  if (sa::testing::full_scale())
    text_on_fake("cuda process: counted runs", settings + "always SHARDARRAY_FAKE_NVRTC=1");
}

}  // namespace cuda_replays_test
