// Which programs are one kernel, and that they give the bits of their launches: compiled for the host, then on the fake GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <future>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cuda/compiler.h"
#include "cuda/one_kernel.h"
#include "cuda/program_text.h"
#include "cuda_fake.h"
#include "cuda_launches.h"
#include "cuda_program_texts.h"
#include "cuda_programs.h"
#include "document_step.h"
#include "kernels/program_table.cuh"
#include "op_data.h"
#include "platform_programs.h"
#include "random_grow_maps.h"
#include "random_run.h"
#include "scale.h"

namespace cuda_one_kernel_test {

using namespace shardarray;
using namespace shardarray::test;
using namespace shardarray::testing;
using program_test::numbers;

namespace {

// ---------------------------------------------------------------- programs by hand, of which only sizes matter

Step loop_over(std::int64_t points) {
  Loop loop;
  loop.items = {{0, {points / 2}, {0}, {}}, {1, {points - points / 2}, {0}, {}}};
  return {loop, "a loop", {}};
}
Step product_of(std::int64_t m, std::int64_t n, std::int64_t k, bool fixed_order) {
  Gemm gemm;
  gemm.fixed_order = fixed_order;
  gemm.items = {{0, {0, 0}, {1, 0}, {2, 0}, m, n, k, 1, k, n, n, 0, 0, 0, false, false}};
  return {gemm, "a product", {}};
}
Step sort_of(std::int64_t elements) {
  LibraryCall call{"sort", {float32}, {float32}, {}};
  call.items = {{0, {{0, 0}}, {{1, 0}}, {{elements}}, {{elements}}, {0}}};
  return {call, "a sort", {}};
}
std::shared_ptr<Program> program_of(std::size_t copies, const Step& step) {
  auto p = std::make_shared<Program>();
  p->steps.assign(copies, step);
  return p;
}
bool fits(std::size_t copies, const Step& step, const std::vector<Step>& more = {}) {
  const auto p = program_of(copies, step);
  p->steps.insert(p->steps.end(), more.begin(), more.end());
  return cuda::one_kernel_blocks(*p, 1) == 1;
}
Step call_of(std::shared_ptr<const Program> program, std::int64_t trip) {
  ProgramCall call;
  call.program = std::move(program);
  call.trip = trip;
  call.items.resize(1);
  return {call, "a call", {}};
}

// ---------------------------------------------------------------- programs that run

std::shared_ptr<const Program> cuda_program(const program_test::Prepared& prepared) {
  return compiled_for(prepared, cuda::cuda_target()).program;
}

Sharding over_eight(const P& spec) { return NamedSharding(make_mesh({{"x", 2}, {"y", 4}}), spec); }

/// Loops in loops, whose bases have every kind of place; library calls, exchanges with sums.
Array in_loops(const Array& v, const Array& xs) {
  const auto inner = [](const Array& c) {
    return fori_loop(
        0, 3, [](const Array& i, const Array& a) { return shardarray::tanh(a + sum(a, 0)) * i; }, c);
  };
  const auto outer = [&](const Array& c, const Array& x) {
    const Array next = inner(c) + sort(x, -1);
    return std::pair(next, cumsum(next, 0));
  };
  const auto [last, all] = scan(outer, v, xs);
  return last + sum(all, 0);
}

std::size_t lines_with(const std::string& part, const std::string& text) {
  return static_cast<std::size_t>(count_of(part, text));
}

}  // namespace

TEST_CASE("cuda one kernel: programs of little work are one kernel") {
  const cuda::OneKernelLimits most;
  CHECK(most.points_a_step == 4096);
  CHECK(fits(2, loop_over(10)));
  CHECK(!fits(1, loop_over(10)));  // it is a kernel already
  CHECK(fits(2, loop_over(4096)));
  CHECK(!fits(2, loop_over(4097)));
  CHECK(fits(15, loop_over(10), {loop_over(60000)}));  // on average
  CHECK(!fits(3, loop_over(10), {loop_over(60000)}));
  // Products: 8 multiply-adds are a point, and those that are cuBLASLt's are no step of a kernel.
  CHECK(fits(2, product_of(32, 32, 32, true)));
  CHECK(!fits(2, product_of(32, 33, 32, true)));
  CHECK(fits(8, loop_over(10), {product_of(64, 64, 64, false)}));
  CHECK(!fits(20, loop_over(10), {product_of(64, 64, 65, false)}));
  CHECK(fits(20, loop_over(10), {product_of(64, 64, 65, true)}));
  CHECK(!fits(2, product_of(200, 200, 0, true)));  // zeros are written too
  // Where a GPU has clusters of 8 blocks, these do 8 times as much.
  CHECK(cuda::one_kernel_blocks(*program_of(2, loop_over(4096)), 8) == 1);
  CHECK(cuda::one_kernel_blocks(*program_of(2, loop_over(4097)), 8) == 8);
  CHECK(cuda::one_kernel_blocks(*program_of(2, loop_over(8 * 4096)), 8) == 8);
  CHECK(cuda::one_kernel_blocks(*program_of(2, loop_over(8 * 4096 + 1)), 8) == 0);
  // But what a thread has to follow for long: a product of fixed order is made in tiles by a whole GPU.
  CHECK(cuda::one_kernel_blocks(*program_of(2, product_of(64, 32, 128, true)), 8) == 8);
  CHECK(cuda::one_kernel_blocks(*program_of(2, product_of(63, 32, 129, true)), 8) == 0);
  // A sort is as many launches as its runs are merged.
  CHECK(fits(4, loop_over(10), {sort_of(500)}));
  CHECK(!fits(4, loop_over(10), {sort_of(1 << 12)}));
}

TEST_CASE("cuda one kernel: neither are texts of any length, nor runs, arguments and loops in loops") {
  CHECK(fits(64, loop_over(10)));
  CHECK(!fits(65, loop_over(10)));
  const auto body = program_of(4, loop_over(10));
  CHECK(fits(1, call_of(body, 5)));
  CHECK(fits(0, {}, {call_of(body, 1 << 15)}));
  CHECK(!fits(0, {}, {call_of(body, (1 << 15) + 1)}));
  CHECK(!fits(1, call_of(program_of(4, loop_over(5000)), 5)));
  CHECK(!fits(1, call_of(program_of(64, loop_over(10)), 5)));  // with the call itself
  const auto two = program_of(2, call_of(body, 2)), three = program_of(2, call_of(two, 2));
  CHECK(fits(1, call_of(two, 2)));
  CHECK(!fits(1, call_of(three, 2)));
  const auto p = program_of(2, loop_over(10));
  p->base_count = 1000;
  CHECK(cuda::one_kernel_blocks(*p, 1) == 1);
  p->base_count++;
  CHECK(cuda::one_kernel_blocks(*p, 8) == 0);
}

TEST_CASE("cuda one kernel: every op, cut over eight devices, gives the bits of its launches") {
  ProgramTexts block, cluster(8);
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  for (const OpCase& op : launch_cases()) {
    const std::size_t seed = std::hash<std::string>()(op.name);
    if (!full_scale() && seed % 3 != 0) continue;
    Rng rng(seed);
    Arrays given = draw_operands(op, rng);
    const auto f = jit([&op](const Arrays& a) { return op.function(a); });
    for (int repeat = 0; repeat < (full_scale() ? 3 : 1); repeat++) {
      for (Array& a : given) {
        const auto shardings = every_sharding(mesh, a.shape().size());
        a = device_put(a, shardings[rng() % shardings.size()]);
      }
      ProgramTexts& texts = (seed + static_cast<std::size_t>(repeat)) % 2 == 0 ? block : cluster;
      texts.add(op.name, cuda_program(program_test::prepare(f, given)));
    }
  }
  CHECK(block.count() > 50);
  CHECK(cluster.count() > 50);
  block.check();
  cluster.check();
}

TEST_CASE("cuda one kernel: random programs give the bits of their launches") {
  const WithCodegen devices(CodegenMode::off);  // as many as these programs use
  ProgramTexts texts(8);
  for (std::uint64_t seed = 0; seed < (full_scale() ? 300 : 20); seed++) {
    const RandomProgram p = Generator(seed, WithCodegen::kDevices).run();
    const ProgramSettings settings(p);
    const auto f = jit([&](const Arrays& x) { return run_lines(p, x, true); });
    const auto program = cuda_program(program_test::prepare(f, make_leaves(p, true)));
    if (!host_decides(*program)) texts.add("seed " + std::to_string(seed), program);
  }
  CHECK(texts.count() > (full_scale() ? 20 : 10));
  texts.check();
}

TEST_CASE("cuda one kernel: products that lanes share are added as by their launches") {
  const auto f = jit([](const Array& a, const Array& b) { return matmul(a, b) + 1; });
  ProgramTexts block, cluster(8);
  for (const auto& [m, k, n] :
       {std::array{16, 128, 32}, {4, 512, 32}, {32, 512, 4}, {3, 70, 3}, {1, 5000, 1}, {40, 33, 50}}) {
    const Array a = sin(numbers({m, k})), b = cos(numbers({k, n}));  // no sum of them is exact
    for (const Array& x : {a, transpose(sin(numbers({k, m})))})
      for (ProgramTexts* texts : {&block, &cluster})
        texts->add("a product",
                   cuda_program(program_test::prepare(f, block_until_ready(x), block_until_ready(b))));
  }
  block.check();
  cluster.check();
}

TEST_CASE("cuda one kernel: operands of one step lie in arenas and in inputs") {
  ProgramTexts texts;
  const auto f = jit([](const Array& a, const Array& b) {
    return std::tuple(shardarray::tanh(a), shardarray::tanh(matmul(a, b)));  // all numbers are in the text
  });
  const Array a = numbers({8, 8});
  texts.add("one device", cuda_program(program_test::prepare(f, a, a + 1)));
  texts.add("eight", cuda_program(program_test::prepare(f, device_put(a, over_eight(P("y", "x"))), a + 1)));
  texts.check();
}

TEST_CASE("cuda one kernel: programs that are called are loops") {
  ProgramTexts texts;
  const Array v = numbers({8, 6}), xs = numbers({4, 8, 6});
  for (const P& spec : {P(), P("x"), P("y", "x"), P(none, "x")}) {
    const auto program = cuda_program(program_test::prepare(jit(in_loops), device_put(v, over_eight(spec)),
                                                            device_put(xs, over_eight(P(none, "y")))));
    CHECK(cuda::one_kernel_blocks(*program, 1) == 1);
    const std::string text = cuda::print_program(*program, cuda::buffer_alignment).text;
    CHECK(lines_with("for (std::int64_t run1 = 0; run1 < 4; run1++) {", text) == 1);
    CHECK(lines_with("for (std::int64_t run2 = 0; run2 < 3; run2++) {", text) == 1);
    texts.add("in loops", program);
  }
  texts.check();
}

TEST_CASE("cuda one kernel: a program as text") {
  const Array x = device_put(numbers({8, 4}), over_eight(P("x")));
  const auto f =
      jit([](const Array& a) { return sort(shardarray::tanh(matmul(transpose(a), a)), -1) + sum(a, 0); });
  const cuda::ProgramText printed =
      cuda::print_program(*cuda_program(program_test::prepare(f, x)), cuda::buffer_alignment);
  const std::string& text = printed.text;
  CAPTURE(text);
  CHECK(text.starts_with("#define SHARDARRAY_PROGRAM_BASES " + std::to_string(printed.bases) +
                         "\n#define SHARDARRAY_PROGRAM_BLOCKS 1\n#include \"kernels/program.cuh\"\nnamespace "
                         "shardarray::device {\n"));
  CHECK(text.ends_with("}\n}  // namespace shardarray\n"));
  CHECK(lines_with("SHARDARRAY_PROGRAM(shardarray_program) {\n", text) == 1);
  const std::string known = "shardarray_program_items::Known";
  CHECK(lines_with("run_step<ProgramStep<known_product<float, " + known, text) == 1);
  CHECK(lines_with("run_step<ProgramStep<known_move<device::SumFloats, " + known, text) >= 1);
  CHECK(lines_with("call_step<ProgramStep<device::sort_runs, 1>>(p0, ", text) == 1);
  CHECK(lines_with("run_step<shardarray_loop_0<KnownItem<" + known, text) == 1);
  CHECK(lines_with("TableCombine", text) == 0);
  CHECK(printed.scratch_bytes > 0);
}

// ---------------------------------------------------------------- NVRTC

TEST_CASE("cuda one kernel: the document's step becomes code of three architectures without spills") {
  const DocumentStep step(devices("cpu"));
  const auto program =
      cuda_program(program_test::prepare(step.compiled(), step.model, step.state, step.x, step.y));
  CHECK(cuda::one_kernel_blocks(*program, 1) == 1);
  const cuda::Nvrtc* nvrtc = nullptr;
  try {
    nvrtc = &cuda::nvrtc();
  } catch (const CompileError& e) { MESSAGE("SKIPPED, no text is compiled: " << e.what()); }
  if (nvrtc == nullptr) return;
  const std::pair<std::string, std::uint32_t> rows[] = {
      {"sm_80", 1}, {"sm_90", 1}, {"sm_90", 8}, {"sm_100", 8}};
  for (const auto& row : rows) {
    const auto& architecture = row.first;
    const auto& blocks = row.second;
    CAPTURE(architecture);
    CAPTURE(blocks);
    const std::string text = cuda::print_program(*program, cuda::buffer_alignment, blocks).text;
    const auto start = std::chrono::steady_clock::now();
    std::string log;
    REQUIRE(cuda::compile_text(*nvrtc, text, architecture, &log).size() > 1000);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    MESSAGE("the document's step, " << lines_with("_step<", text) << " steps, " << architecture << ": "
                                    << took.count() << " s");
    CHECK_MESSAGE(lines_with("bytes spill stores", log) > 0, log);
    CHECK_MESSAGE(lines_with("bytes spill stores", log) == lines_with(" 0 bytes spill stores", log), log);
    CHECK_MESSAGE(lines_with("bytes spill loads", log) == lines_with(" 0 bytes spill loads", log), log);
  }
}

// ---------------------------------------------------------------- on the fake GPU

namespace {

const std::string both =
    "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=8 SHARDARRAY_PLATFORM=cuda "
    "SHARDARRAY_CACHE_DIR= SHARDARRAY_FAKE_NVRTC=1 ";
const std::string step_by_step = " Programs of little work are launched step by step on CUDA devices.";
const std::string at_once = both + "SHARDARRAY_CODEGEN=always ";

/// What the model's and the state's numbers are after some steps, as text.
std::string trained(const char* platform, int steps, std::vector<std::uint64_t>* launches = nullptr) {
  DocumentStep s(devices(platform));
  s.model = filter_shard(s.model, s.sharding.replicate());
  s.x.block_until_ready();
  s.y.block_until_ready();
  const auto step = s.compiled();
  for (int k = 0; k < steps; k++) {
    const std::uint64_t before = launches ? fake_control().launches() : 0;
    std::tie(s.model, s.state) = step(std::move(s.model), std::move(s.state), s.x, s.y);
    if (launches) launches->push_back(fake_control().launches() - before);
  }
  std::string text;
  for (const Array& a : tree_leaves(std::tuple(s.model, s.state)))
    for (const double v : a.to_vector<double>())
      text += std::to_string(std::bit_cast<std::uint64_t>(v)) + " ";
  return text;
}

/// Rounds of v = f(v, x) whose results stay alive, so that addresses change; the results' bits.
template <class F>
std::vector<platform_test::Bits> changing(const F& f, const char* platform, std::size_t kept) {
  const shardarray::Mesh mesh = platform_test::mesh_on(platform);
  const Array x = platform_test::put(numbers({4, 8, 8}), mesh, P(none, "x"));
  Array v = platform_test::put(numbers({8, 8}), mesh, P("x", "y"));
  std::vector<platform_test::Bits> all;
  std::deque<Array> alive;
  for (int k = 0; k < 9; k++) {
    v = f(v, x);
    alive.push_back(v);
    if (alive.size() > kept) alive.pop_front();
    all.push_back(platform_test::bits(v));
  }
  return all;
}

}  // namespace

TEST_CASE("cuda process: the step of the document is one launch" * doctest::skip()) {
  const reproducible order(true);
  std::vector<std::uint64_t> launches;
  const std::string got = trained("cuda", 6, &launches);
  for (std::size_t k = 1; k < launches.size(); k++) CHECK(launches[k] == 1);  // the first one loads
  CHECK(fake_control().graph_launches() == 0);
  CHECK(got == trained("cpu", 6));
}

TEST_CASE("cuda process: a program of a cluster" * doctest::skip()) {
  const auto f = jit([](const Array& a) {
    const Array h = shardarray::tanh(a) + sum(a, 0);
    return h * expand_dims(sum(h, 1), 1);
  });
  const Array x = platform_test::put(numbers({128, 96}), "cuda", P("x"));
  const auto want = platform_test::bits(f(platform_test::put(numbers({128, 96}), "cpu", P("x"))));
  for (int k = 0; k < 3; k++) {
    const std::uint64_t before = fake_control().launches();
    const Array y = block_until_ready(f(x));
    if (k == 2) std::cout << "launches: " << fake_control().launches() - before << "\n";
    CHECK(platform_test::bits(y) == want);
  }
}

TEST_CASE("cuda process: what the step of the document gives" * doctest::skip()) {
  std::cout << "numbers: " << trained("cuda", 6) << "\n";
}

TEST_CASE("cuda process: one kernel later" * doctest::skip()) {
  const auto f = jit(in_loops);
  const auto want = changing(f, "cpu", 2);
  const auto start = std::chrono::steady_clock::now();
  for (int round = 0; fake_control().printed_launches() == 0; round++) {
    CHECK(changing(f, "cuda", 2) == want);
    if (round == 0) CHECK(fake_control().graph_launches() > 0);
    if (std::chrono::steady_clock::now() - start > std::chrono::minutes(5)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(fake_control().printed_launches() > 0);
  const std::uint64_t graphs = fake_control().graph_launches(), printed = fake_control().printed_launches(),
                      launches = fake_control().launches();
  CHECK(changing(f, "cuda", 3) == want);
  CHECK(fake_control().graph_launches() <= graphs + 2);  // which put the operands where they belong
  CHECK(fake_control().printed_launches() == printed + 9);
  CHECK(fake_control().launches() < launches + 18);  // beside them the operands are put where they belong
}

TEST_CASE("cuda process: one kernel at any addresses by several threads" * doctest::skip()) {
  const auto f = jit(in_loops);
  const auto g = jit([](Array v, const Array& x) { return in_loops(v, x) * 0.5f; });
  for (const std::size_t kept : {0, 1, 4, 9}) CHECK(changing(f, "cuda", kept) == changing(f, "cpu", kept));
  const auto donated = [&](const Array& v, const Array& x) { return g(Array(v * 1.0f), x); };
  CHECK(changing(donated, "cuda", 1) == changing(donated, "cpu", 1));
  const auto want = changing(f, "cpu", 2);
  std::vector<std::future<bool>> all;
  for (std::size_t k = 0; k < 4; k++)
    all.push_back(std::async(std::launch::async, [&, k] { return changing(f, "cuda", k) == want; }));
  for (auto& t : all) CHECK(t.get());
  CHECK(fake_control().graph_launches() <= 27);  // 81 runs are none; what puts and multiplies operands may be
}

TEST_CASE("cuda process: one kernel whose calls fail" * doctest::skip()) {
  const Array x = platform_test::put(numbers({8, 6}), "cuda", P("x", "y"));
  const auto on_cpu = platform_test::put(numbers({8, 6}), "cpu", P("x", "y"));
  int failed = 0;
  const int step = full_scale() ? 1 : 11;
  for (int k = 0, reached = 1; reached != 0; k += step) {
    // Another number is another text, which is compiled and loaded: that takes long.
    const auto f =
        jit([k](const Array& a) { return sort(a * (static_cast<float>(k) + 0.5f), -1) + sum(a, 0); });
    const auto want = platform_test::bits(f(on_cpu));
    const std::uint64_t calls = fake_control().calls();
    fake_control().fail_call(k, 1);
    try {
      for (int run = 0; run < 2; run++) {
        const bool right = platform_test::bits(f(x)) == want;
        CHECK(right);
      }
    } catch (const shardarray::Error& e) {
      CHECK_MESSAGE(std::string(e.what()).find(fake_control().last_call()) != std::string::npos, e.what());
      failed++;
    }
    reached = fake_control().calls() - calls > static_cast<std::uint64_t>(k) ? 1 : 0;
    fake_control().fail_call(-1, 0);
    CHECK(platform_test::bits(f(x)) == want);
  }
  CHECK(failed > 3 / step);
}

TEST_CASE("cuda process: no program is one kernel" * doctest::skip()) {
  const auto f = jit(in_loops);
  const std::uint64_t before = fake_control().launches();
  CHECK(changing(f, "cuda", 2) == changing(f, "cpu", 2));
  CHECK(fake_control().launches() - before > 100);
}

TEST_CASE("cuda process: loops are printed where no program can be one kernel" * doctest::skip()) {
  const auto f = jit(in_loops);
  const auto want = changing(f, "cpu", 3);
  const std::uint64_t printed = fake_control().printed_launches();
  CHECK(changing(f, "cuda", 3) == want);
  CHECK(fake_control().printed_launches() > printed);
}

TEST_CASE(
    "cuda one kernel: the document's step on eight devices is one launch, with the bits of its launches") {
  text_on_fake("cuda process: the step of the document is one launch", at_once);
  const auto numbers_of = [](const std::string& settings) {
    const std::string text = text_on_fake("cuda process: what the step of the document gives", settings);
    const std::size_t at = text.find("numbers: ");
    REQUIRE(at != text.npos);
    return text.substr(at, text.find('\n', at) - at);
  };
  if (!full_scale()) return;
  const std::string want = numbers_of(at_once);
  CHECK(numbers_of(at_once + "SHARDARRAY_FAKE_ONE_KERNEL=0") == want);
  CHECK(numbers_of(at_once + "SHARDARRAY_CODEGEN=off") == want);
}

TEST_CASE("cuda one kernel: of a cluster of blocks, where the GPU has room for one") {
  const std::string name = "cuda process: a program of a cluster";
  const auto launches = [](const std::string& text) { return text.substr(text.find("launches: "), 11); };
  const std::string here = text_on_fake(name, at_once),
                    none = text_on_fake(name, at_once + "SHARDARRAY_FAKE_CLUSTERS=0"),
                    old = text_on_fake(name, at_once + "SHARDARRAY_FAKE_ARCHITECTURE=8");
  CHECK(launches(here) == "launches: 1");
  CHECK(launches(none) != "launches: 1");
  CHECK_MESSAGE(count_of("has no room for 8 blocks that wait for each other.", none) == 1, none);
  CHECK_MESSAGE(count_of(step_by_step, none) == 1, none);
  CHECK(launches(old) == launches(none));
  CHECK(count_of(step_by_step, old) == 0);
}

TEST_CASE("cuda one kernel: at any addresses, donated, by several threads, at once or later") {
  text_on_fake("cuda process: one kernel at any addresses by several threads", at_once);
  text_on_fake("cuda process: one kernel at any addresses by several threads",
               at_once + "SHARDARRAY_SHARE_REPLICAS=0");
  text_on_fake("cuda process: one kernel later", both + "SHARDARRAY_CODEGEN=on");
}

TEST_CASE("cuda one kernel: a call that fails is named, or made up for by the launches one by one") {
  const std::string text = text_on_fake("cuda process: one kernel whose calls fail", at_once);
  CHECK_MESSAGE(count_of(step_by_step, text) == 1, text);
}

TEST_CASE("cuda one kernel: what cannot be built as one is printed loop by loop, and its cause is said") {
  const std::string text = text_on_fake("cuda process: loops are printed where no program can be one kernel",
                                        at_once + "SHARDARRAY_FAKE_NVRTC=loops");
  CHECK_MESSAGE(count_of("Please report this." + step_by_step, text) == 1, text);
  CHECK_MESSAGE(count_of("Loops on CUDA devices run in the interpreter.", text) == 0, text);
}

TEST_CASE("cuda one kernel: not over several GPUs, and not without NVRTC") {
  text_on_fake("cuda process: no program is one kernel",
               "SHARDARRAY_CPU_DEVICES=8 SHARDARRAY_CUDA_LOGICAL_DEVICES=4 SHARDARRAY_FAKE_GPUS=2 "
               "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CACHE_DIR= SHARDARRAY_CODEGEN=off");
  text_on_fake("cuda process: no program is one kernel", at_once + "SHARDARRAY_FAKE_NVRTC=broken");
}

}  // namespace cuda_one_kernel_test
