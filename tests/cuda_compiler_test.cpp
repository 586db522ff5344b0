// Printed kernels by NVRTC, which needs no GPU: to the code of several architectures.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "cpu_helpers.h"
#include "cuda/compiler.h"
#include "cuda/printer.h"
#include "cuda_launches.h"
#include "kernel_random.h"
#include "runtime/expand.h"
#include "scale.h"

namespace cuda_compiler_test {

using namespace shardarray;
using namespace shardarray::test;
using cpu_test::message_of;

namespace {

/// Every code that kernels may use with a dtype, each result stored.
Kernel every_code(DType t) {
  KernelBuilder b(2, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({t})), y = b.load(b.arg({t})), row = b.index(1);
  const auto store = [&](int v) { b.store(b.arg({b.type(v), true}), v); };
  store(b.load_at(b.arg({t, false, true}), row));
  for (const DType to : types) store(b.cast(x, to));
  for (int c = static_cast<int>(Code::eq); c <= static_cast<int>(Code::ge); c++)
    store(b.binary(static_cast<Code>(c), x, y));
  store(b.select(b.binary(Code::lt, x, y), x, y));
  if (!is_floating(t)) {
    store(b.unary(Code::not_, x));
    for (const Code c : {Code::and_, Code::or_, Code::xor_}) store(b.binary(c, x, y));
  }
  if (t == bool_) return b.finish();
  for (const Code c : {Code::neg, Code::abs}) store(b.unary(c, x));
  for (int c = static_cast<int>(Code::add); c <= static_cast<int>(Code::max); c++)
    store(b.binary(static_cast<Code>(c), x, y));
  if (is_floating(t)) {
    for (int c = static_cast<int>(Code::sqrt); c <= static_cast<int>(Code::trunc); c++)
      store(b.unary(static_cast<Code>(c), x));
    store(b.fma(x, y, x));
    store(b.bitcast(x, t == float32 ? int32 : int64));
  } else {
    for (const Code c : {Code::shl, Code::shr}) store(b.binary(c, x, y));
  }
  return b.finish();
}

/// Every reduction of a dtype over rows, and what they give in the rows again.
Kernel every_reducer(DType t) {
  KernelBuilder b(1, 2);
  b.begin_stage(true);
  const int x = b.arg({t});
  const int v = b.load(x);
  std::vector<int> results;
  if (t == bool_)
    for (const Reducer r : {Reducer::any, Reducer::all}) results.push_back(b.reduce(r, v));
  else
    for (const Reducer r : {Reducer::sum, Reducer::prod, Reducer::max, Reducer::min})
      results.push_back(b.reduce(r, v));
  b.begin_stage(false);
  for (const int r : results) b.store(b.arg({t, true}), r);
  b.begin_stage(true);
  b.store(b.arg({bool_, true}), b.binary(Code::eq, b.load(x), results[0]));
  return b.finish();
}

Kernel every_function() {
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({float64})), y = b.load(b.arg({float64}));
  for (int f = 0; f < function_count; f++) {
    const bool two = operand_count(Code::call, static_cast<std::uint64_t>(f)) == 2;
    b.store(b.arg({float64, true}), b.call(static_cast<Function>(f), x, two ? y : -1));
  }
  return b.finish();
}

/// float32 functions, which are written out.
Kernel every_expansion() {
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({float32})), y = b.load(b.arg({float32}));
  using Expand = int (*)(KernelBuilder&, int);
  for (const Expand f : {Expand(expand::exp), Expand(expand::log), Expand(expand::sin), Expand(expand::erf),
                         Expand(expand::tanh), Expand(expand::lgamma)})
    b.store(b.arg({float32, true}), f(b, x));
  b.store(b.arg({float32, true}), expand::pow(b, x, y));
  return b.finish();
}

/// A contiguous item with every kind of place: rows, columns, single numbers.
cuda::KernelLaunch launch_of(const Kernel& k) {
  Loop loop;
  loop.kernel = std::make_shared<const Kernel>(k);
  Loop::Item item;
  const auto rank = static_cast<std::size_t>(k.outer + k.inner);
  item.extents = Shape::filled(rank, 7);
  item.start = Shape::filled(rank, 0);
  for (std::size_t a = 0; a < k.args.size(); a++) {
    LoopArg arg;
    arg.ref = {static_cast<std::uint32_t>(a), 0};
    arg.strides = Shape::filled(rank, 0);
    std::int64_t stride = 1;
    for (std::size_t d = rank; d-- > 0; stride *= 7 + static_cast<std::int64_t>(a % 2))
      arg.strides[d] = stride;
    item.args.push_back(arg);
  }
  loop.items = {item};
  return launches_of_step(loop).at(0);
}

/// The fixed list: every code, reducer and function, and random kernels.
std::string all_texts(int& count) {
  std::string text = cuda::printed_prelude();
  const auto add = [&](const cuda::KernelLaunch& l) {
    text += cuda::print_kernel(*l.loop, l.shape, "kernel_" + std::to_string(count++));
  };
  for (const DType t : types) add(launch_of(every_code(t)));
  for (const DType t : types) add(launch_of(every_reducer(t)));
  add(launch_of(every_function()));
  add(launch_of(every_expansion()));
  std::uint64_t seed = 0;
  while (count < 40) {
    const KernelCase c = random_case(seed++);
    Loop loop;
    loop.kernel = std::make_shared<const Kernel>(c.kernel);
    loop.items = {item_of(c)};
    for (const cuda::KernelLaunch& l : launches_of_step(loop)) add(l);
  }
  return text;
}

/// Null, said loudly, where there is no NVRTC.
const cuda::Nvrtc* found_nvrtc() {
  try {
    return &cuda::nvrtc();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, no text is compiled: " << e.what());
    return nullptr;
  }
}

}  // namespace

TEST_CASE("cuda compiler: a list of printed kernels becomes code of three architectures") {
  const cuda::Nvrtc* const nvrtc = found_nvrtc();
  if (nvrtc == nullptr) return;
  int count = 0;
  const std::string text = all_texts(count);
  CHECK(count == 40);
  for (const char* architecture : {"sm_90", "sm_80", "sm_100"}) {
    CAPTURE(architecture);
    if (!testing::full_scale() && std::string(architecture) != "sm_90") continue;  // 15 s each
    const std::vector<char> cubin = cuda::compile_text(*nvrtc, text, architecture);
    REQUIRE(cubin.size() > 1000);
    CHECK(std::memcmp(cubin.data(),
                      "\x7f"
                      "ELF",
                      4) == 0);
    const std::string bytes(cubin.begin(), cubin.end());
    for (int k = 0; k < count; k++)  // the name of each kernel's section
      CHECK(bytes.find(".text.kernel_" + std::to_string(k) + '\0') != bytes.npos);
  }
}

TEST_CASE("cuda compiler: a text that does not compile is refused with NVRTC's log") {
  const cuda::Nvrtc* const nvrtc = found_nvrtc();
  if (nvrtc == nullptr) return;
  CHECK(message_of<CompileError>([&] { cuda::compile_text(*nvrtc, "nonsense\n", "sm_90"); }) ==
        "cuda: NVRTC does not compile a printed kernel: NVRTC_ERROR_COMPILATION: kernels.cu(1): error: this "
        "declaration has no storage class or type specifier\n  nonsense\n  ^\n\nAt end of source: error: "
        "expected a \";\"\n\n2 errors detected in the compilation of \"kernels.cu\". Printed kernels compile "
        "for every GPU that NVRTC 13 knows. Please report this.");
}

TEST_CASE("cuda compiler: what NVRTC refuses, and a library that is not there") {
  cuda::Nvrtc broken{};
  broken.create_program = [](cuda::Nvrtc::Program* to, const char*, const char*, int, const char* const*,
                             const char* const*) {
    *to = nullptr;
    return 1;
  };
  broken.get_error_string = [](int) { return "NVRTC_ERROR_OUT_OF_MEMORY"; };
  CHECK(
      message_of<CompileError>([&] { cuda::compile_text(broken, "", "sm_90"); }) ==
      "cuda: nvrtcCreateProgram failed: NVRTC_ERROR_OUT_OF_MEMORY. Kernels are compiled by NVRTC 13. Install "
      "one that works.");
  CHECK(
      message_of<CompileError>(
          [] { cuda::open_cuda_library("libnvrtc.so.0", "Kernels are compiled by NVRTC 13"); }) ==
      "cuda: libnvrtc.so.0: cannot open shared object file: No such file or directory. Kernels are compiled "
      "by NVRTC 13. Install CUDA 13's toolkit, or name its folder in CUDA_HOME.");
}

TEST_CASE("cuda compiler: code is kept for its text, headers, options and NVRTC") {
  cuda::Nvrtc old{};
  old.version = [](int* major, int* minor) {
    *major = 13;
    *minor = 0;
    return 0;
  };
  cuda::Nvrtc fresh = old;
  fresh.version = [](int* major, int* minor) {
    *major = 13;
    *minor = 1;
    return 0;
  };
  const std::string key = cuda::code_key(old, "text", cuda::architecture_name(9, 0));
  CHECK(key == cuda::code_key(old, "text", "sm_90"));
  CHECK(key != cuda::code_key(fresh, "text", "sm_90"));
  CHECK(key != cuda::code_key(old, "texts", "sm_90"));
  CHECK(key != cuda::code_key(old, "text", "sm_80"));
  for (const cuda::PrintedHeader& h : cuda::printed_headers()) CHECK(key.find(h.text) != key.npos);
}

}  // namespace cuda_compiler_test
