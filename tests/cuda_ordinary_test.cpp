// Quotients and roots of the points of a run, and limits: other ways to the same bits.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "cuda/compiler.h"
#include "cuda_launches.h"
#include "cuda_printed.h"
#include "kernel_check.h"
#include "kernels/ordinary.cuh"
#include "runtime/kernel_builder.h"

namespace cuda_ordinary_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }
float number(std::uint32_t x) { return std::bit_cast<float>(x); }

/// Numbers of every exponent and both signs, with what is special.
std::vector<float> all_kinds() {
  std::vector<float> all = {0.f, -0.f, 1.f, -1.f, -0.5f, std::numeric_limits<float>::quiet_NaN()};
  for (std::uint32_t exponent = 0; exponent < 256; exponent++)
    for (const std::uint32_t fraction : {0u, 1u, 0x2aaaaau, 0x7fffffu})
      for (const std::uint32_t sign : {0u, 0x80000000u})
        if (exponent < 255 || fraction == 0) all.push_back(number(sign | exponent << 23 | fraction));
  return all;
}
/// y = f(x) for float32.
template <class F> KernelCase case_of(const F& f) {
  KernelCase c;
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({float32}));
  b.store(b.arg({float32, true}), f(b, x));
  c.kernel = b.finish();
  const std::vector<float> all = all_kinds();
  const auto n = static_cast<std::int64_t>(all.size());
  c.extents = {n};
  c.start = {0};
  c.args = {{{1}, 0, n}, {{1}, 0, n}};
  c.inputs = {Bytes(all.size() * 4), Bytes(all.size() * 4)};
  std::memcpy(c.inputs[0].data(), all.data(), all.size() * 4);
  return c;
}

struct Row {
  const char* in_text;  // or no part of it
  bool there;
  KernelCase c;
};
std::vector<Row> rows() {
  const auto number_of = [](KernelBuilder& b, double v) { return b.constant(float32, v); };
  const auto over = [=](double c, double top) {  // top: of a constant; 0: x
    return case_of([=](KernelBuilder& b, int x) {
      const int sum = b.binary(Code::add, x, number_of(b, c));
      return b.binary(Code::div, top == 0 ? x : number_of(b, top), sum);
    });
  };
  const auto limited = [=](Code code, double bound, bool swapped) {
    return case_of([=](KernelBuilder& b, int x) {
      const int k = number_of(b, bound), question = b.binary(code, x, k);
      return swapped ? b.select(question, x, k) : b.select(question, k, x);
    });
  };
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<Row> all = {
      {"ratios<4>", true, over(1, 0)},
      {"ratios<4>", true, over(0.5, 0)},
      {"ratios<4>", true, over(1, 1)},
      {"ratios<4>", true, over(0.25, 2)},
      {"ratios<4>", false, over(3, 0)},
      {"ratios<4>", false, over(1, 3)},
      {"ratios<4>", false, over(-1, 0)},
      {"ratios<4>", false, over(0x1p-10, 0)},
      {"roots<4>", true, case_of([](KernelBuilder& b, int x) { return b.unary(Code::sqrt, x); })},
      {"scalar::max(", true, limited(Code::lt, -104, false)},
      {"scalar::min(", true, limited(Code::gt, 89, false)},
      {"scalar::min(", true, limited(Code::gt, infinity, false)},
      {"scalar::select(", true, limited(Code::lt, 0, false)},
      {"scalar::select(", true, limited(Code::gt, -0., false)},
      {"scalar::select(", true, limited(Code::gt, NAN, false)},
      {"scalar::select(", true, limited(Code::le, 2, false)},
      {"scalar::select(", true, limited(Code::lt, 2, true)},
  };
  all.push_back({"ratios<4>", true, case_of([=](KernelBuilder& b, int x) {  // as in 1 / (1 + exp(-x))
                   const int one = number_of(b, 1), top = b.select(b.binary(Code::lt, x, one), x, one);
                   return b.binary(Code::div, top, b.binary(Code::add, one, x));
                 })});
  return all;
}

std::string text_of(const KernelCase& c, const std::string& name) {
  const cuda::KernelLaunch l = launches_of_case(c).at(0);
  return cuda::print_kernel(*l.loop, l.shape, name);
}

}  // namespace

TEST_CASE("cuda ordinary: quotients and roots by a near reciprocal are those of IEEE") {
  int wrong = 0;
  for (std::uint32_t k = 0; k < bits(0x1p60f); k += 997) {  // all of them were tried once
    const float y = number(k);
    for (const float c : {1.f, 0.5f})
      for (const float a : {y, 1.f})
        wrong += bits(device::ratio_by(a, y + c, 1 / (y + c))) != bits(a / (y + c));
  }
  for (std::uint32_t k = bits(0x1p-101f); k < bits(std::numeric_limits<float>::infinity()); k += 997) {
    const float x = number(k), near = static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
    wrong += bits(device::root_by(x, near)) != bits(std::sqrt(x));
  }
  CHECK(wrong == 0);
}

TEST_CASE("cuda ordinary: printed kernels take them where they are right, with the interpreter's bits") {
  PrintedTexts texts;
  const std::vector<Row> all = rows();
  for (const Row& r : all) {
    const std::string text = text_of(r.c, "loop");
    CHECK_MESSAGE((text.find(r.in_text) != text.npos) == r.there, text);
    texts.add(launches_of_case(r.c));
  }
  texts.compile();
  for (const Row& r : all) {
    const auto launches = launches_of_case(r.c);
    check_blocks(r.c, interpreted(r.c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
      texts.run(launches, bases, order);
    });
  }
}

TEST_CASE("cuda ordinary: they compile for every architecture") {
  try {
    cuda::nvrtc();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, no text is compiled: " << e.what());
    return;
  }
  std::string text = cuda::printed_prelude();
  int number = 0;
  for (const Row& r : rows()) text += text_of(r.c, "kernel_" + std::to_string(number++));
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    std::string report;
    CHECK(cuda::compile_text(cuda::nvrtc(), text, architecture, &report).size() > 1000);
    CHECK(report.find("0 bytes spill stores") != report.npos);
    for (std::size_t at = report.find(" bytes spill stores"); at != report.npos;
         at = report.find(" bytes spill stores", at + 1))
      CHECK(report.substr(at - 2, 2) == " 0");
  }
}

}  // namespace cuda_ordinary_test
