// Printed kernels that read transposed operands tile by tile, compiled for the host, and by NVRTC.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "cuda_launches.h"
#include "cuda_printed.h"
#include "cuda_programs.h"
#include "kernel_check.h"
#include "kernel_transposes.h"
#include "op_data.h"

namespace cuda_transposed_test {

using namespace shardarray;
using namespace shardarray::test;
using namespace shardarray::testing;

namespace {

bool in_tiles(const cuda::KernelLaunch& l) {
  return print_kernel(*l.loop, l.shape, "loop").find("read_transposed<") != std::string::npos;
}
std::uint32_t side_for(const TransposeOf& of) {
  return launches_of_case(transposes(of, 1)).at(0).shape.tile_side;
}
std::size_t count_for(const TransposeOf& of) {
  const KernelCase c = transposes(of, 1);
  return cuda::transposed(c.kernel, launches_of_case(c).at(0).shape).size();
}

}  // namespace

TEST_CASE("cuda transposed: operands that come in tiles give the interpreter's bits") {
  std::vector<KernelCase> cases;
  PrintedTexts texts;
  for (const TransposeOf& of : transposes_of_all_kinds()) {
    cases.push_back(transposes(of, cases.size()));
    const auto launches = launches_of_case(cases.back());
    CHECK(in_tiles(launches.at(0)));
    texts.add(launches);
  }
  texts.compile();
  for (std::size_t k = 0; k < cases.size(); k++) {
    CAPTURE(k);
    const KernelCase& c = cases[k];
    const auto launches = launches_of_case(c);
    check_blocks(c, interpreted(c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
      texts.run(launches, bases, order);
    });
  }
}

TEST_CASE("cuda transposed: items of different sizes, some of them empty, share a kernel") {
  Random random(7);
  KernelBuilder b(2, 0);
  const int x = b.arg({float32}), y = b.arg({float32}), out = b.arg({float32, true});
  b.begin_stage(false);
  b.store(out, b.binary(Code::sub, b.load(x), b.load(y)));
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(b.finish());
  Memory memory;
  struct Size {
    std::int64_t n, m, gap;
  };
  for (const auto& [n, m, gap] : {Size{128, 64, 0}, {70, 33, 5}, {0, 40, 1}, {16, 200, 4}, {40, 0, 0}}) {
    const auto base = static_cast<std::uint32_t>(memory.size());
    const std::int64_t row = n + gap;
    loop.items.push_back({0, {n, m}, {0, 0}, {}});
    loop.items.back().args.push_back({{base, 0}, {1, row}, static_cast<std::uint64_t>(row * m) * 4});
    loop.items.back().args.push_back({{base + 1, 0}, {m, 1}, static_cast<std::uint64_t>(n * m) * 4});
    loop.items.back().args.push_back({{base + 2, 0}, {m, 1}, static_cast<std::uint64_t>(n * m) * 4});
    memory.push_back(random_elements(random, float32, std::max<std::int64_t>(row * m, 1)));
    for (int k = 0; k < 2; k++)
      memory.push_back(random_elements(random, float32, std::max<std::int64_t>(n * m, 1)));
  }
  const auto launches = launches_of_step(loop);
  REQUIRE(in_tiles(launches.at(0)));
  CHECK(launches[0].printed_blocks == 4);  // tiles of 64 x 64: of the item with 16 x 200 elements
  PrintedTexts texts;
  texts.add(launches);
  texts.compile();
  Memory want = memory;
  cpu_test::run({cpu_test::step(loop)}, pointers(want));
  for (const BlockOrder& order : block_orders) {
    Memory got = memory;
    texts.run(launches, pointers(got), order);
    for (std::size_t base = 0; base < memory.size(); base++) {
      CAPTURE(base);
      REQUIRE(same_values(float32, got[base], want[base]));
    }
  }
}

TEST_CASE(
    "cuda transposed: programs of all floats, on one device and over eight, give the interpreting kernels' "
    "bits") {
  struct Row {
    std::string name;
    std::shared_ptr<const Program> program;
    std::vector<cuda::KernelLaunch> launches;
  };
  std::vector<Row> rows;
  PrintedTexts texts;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  int tiled = 0;
  const auto add = [&](const std::string& name, const program_test::Prepared& prepared) {
    auto program = compiled_for(prepared, cuda::cuda_target()).program;
    auto launches = cuda::launches_of(*program);
    for (const auto& l : launches) tiled += l.loop && in_tiles(l);
    texts.add(launches);
    rows.push_back({name, std::move(program), std::move(launches)});
  };
  for (const DType t : {float32, float64, float16, bfloat16, int32})
    for (const P& spec : {P(), P("x", "y"), P("y")}) {
      const Array x = device_put(astype(program_test::numbers({192, 132}), t), NamedSharding(mesh, spec));
      const Array y = device_put(astype(program_test::numbers({132, 192}), t), NamedSharding(mesh, spec));
      add("transpose + 1", program_test::prepare(jit([](const Array& a) { return transpose(a) + 1; }), x));
      add("transpose * y",
          program_test::prepare(jit([](const Array& a, const Array& b) { return transpose(a * 2) * b; }), x,
                                y));
    }
  CHECK(tiled >= 20);
  texts.compile();
  check_printed_programs(rows, texts);
}

TEST_CASE("cuda transposed: there are tiles where both axes are long and a block has the memory") {
  CHECK(side_for({float32, {16, 16}}) == 64);
  CHECK(side_for({float32, {15, 64}}) == 0);
  CHECK(side_for({float32, {64, 15}}) == 0);
  CHECK(side_for({float32, {3, 64, 64}, 1}) == 64);
  CHECK(side_for({float32, {3, 64, 64}, 0}) == 0);
  // 16,640 bytes each, of 64 x 65 elements; 4,224 of 32 x 33.
  CHECK(side_for({float32, {64, 64}, 0, 0, 0, 2}) == 64);
  CHECK(count_for({float32, {64, 64}, 0, 0, 0, 2}) == 2);
  CHECK(side_for({float32, {64, 64}, 0, 0, 0, 3}) == 32);
  CHECK(count_for({float32, {64, 64}, 0, 0, 0, 3}) == 3);
  CHECK(count_for({float32, {64, 64}, 0, 0, 0, 11}) == 11);
  CHECK(count_for({float32, {64, 64}, 0, 0, 0, 12}) == 11);  // one is read where it lies
  CHECK(side_for({uint8, {64, 64}, 0, 0, 0, 11}) == 64);     // of 64 x 68
  CHECK(side_for({uint8, {64, 64}, 0, 0, 0, 12}) == 32);

  // A result that lies across, as none of a program does.
  KernelCase c = transposes({float32, {64, 64}}, 1);
  std::swap(c.args[0].strides, c.args.back().strides);
  CHECK(launches_of_case(c).at(0).shape.tile_side == 0);
}

}  // namespace cuda_transposed_test
