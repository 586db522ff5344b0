// 16-bit floats in printed kernels: what kernel IR spells out in integers is a cast, with the same bits.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cuda/compiler.h"
#include "cuda/half_casts.h"
#include "cuda_printed.h"
#include "kernel_check.h"
#include "kernels/halves.cuh"
#include "runtime/half_floats.h"

namespace cuda_halves_test {

using namespace shardarray;
using namespace shardarray::test;

namespace {

template <class T> Bytes bytes_of(const std::vector<T>& v) {
  Bytes b(v.size() * sizeof(T));
  std::memcpy(b.data(), v.data(), b.size());
  return b;
}
template <class T> std::vector<T> values_of(const Bytes& b) {
  std::vector<T> v(b.size() / sizeof(T));
  std::memcpy(v.data(), b.data(), b.size());
  return v;
}

/// A kernel of one argument and one result over all of `in`.
template <class Build> KernelCase case_of(DType from, DType to, const Bytes& in, const Build& build) {
  KernelCase c;
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({from}));
  const int y = build(b, x);
  b.store(b.arg({to, true}), y);
  c.kernel = b.finish();
  const auto n = static_cast<std::int64_t>(in.size() / itemsize(from));
  c.extents = {n};
  c.start = {0};
  c.args = {{{1}, 0, n}, {{1}, 0, n}};
  c.inputs = {in, Bytes(static_cast<std::size_t>(n) * itemsize(to))};
  return c;
}

std::vector<std::uint16_t> every_half() {
  std::vector<std::uint16_t> all(1 << 16);
  for (std::size_t k = 0; k < all.size(); k++) all[k] = static_cast<std::uint16_t>(k);
  return all;
}
/// Every 16-bit float, what lies halfway to the next one, the floats beside that, and random ones.
std::vector<float> many_floats(DType t) {
  std::vector<float> all;
  const auto wide = [&](std::uint32_t bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    return t == float16 ? device::widen_float16(half) : device::widen_bfloat16(half);
  };
  for (std::uint32_t k = 0; k < 1 << 16; k++) {
    const float x = wide(k), between = static_cast<float>((static_cast<double>(x) + wide(k + 1)) / 2);
    for (const float v : {x, between, std::nextafter(between, 0.f), std::nextafter(between, 2 * between)})
      all.push_back(v);
  }
  std::mt19937 random(3);
  for (int k = 0; k < 200000; k++) all.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return all;
}

std::uint16_t narrowed(DType t, float x) {
  return t == float16 ? device::narrow_float16(x) : device::narrow_bfloat16(x);
}

/// A chain of roundings, as kernels of 16-bit floats are.
KernelCase chain_case(DType t) {
  return case_of(uint16, uint16, bytes_of(every_half()), [&](KernelBuilder& b, int x) {
    const int v = widen(b, x, t);
    const int w = round_to(b, b.binary(Code::mul, v, v), t);
    return narrow(b, b.binary(Code::add, w, b.constant(float32, 0.3)), t);
  });
}

std::string text_of(const KernelCase& c) {
  const cuda::KernelLaunch l = launches_of_case(c).at(0);
  return cuda::print_kernel(*l.loop, l.shape, "loop");
}
bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE(
    "cuda halves: the casts give the bits that kernel IR gives, for every 16-bit float and many floats") {
  for (const DType t : {float16, bfloat16}) {
    CAPTURE(name(t));
    const auto halves = every_half();
    const KernelCase up =
        case_of(uint16, float32, bytes_of(halves), [&](KernelBuilder& b, int x) { return widen(b, x, t); });
    const auto wide = values_of<std::uint32_t>(interpreted(up)[1]);
    int wrong = 0;
    for (std::size_t k = 0; k < halves.size(); k++) {
      const float x = t == float16 ? device::widen_float16(halves[k]) : device::widen_bfloat16(halves[k]);
      wrong += std::bit_cast<std::uint32_t>(x) != wide[k];
      if (!std::isnan(x)) wrong += narrowed(t, x) != halves[k];
    }
    CHECK(wrong == 0);
    const auto floats = many_floats(t);
    const KernelCase down =
        case_of(float32, uint16, bytes_of(floats), [&](KernelBuilder& b, int x) { return narrow(b, x, t); });
    const auto narrow_bits = values_of<std::uint16_t>(interpreted(down)[1]);
    for (std::size_t k = 0; k < floats.size(); k++) wrong += narrowed(t, floats[k]) != narrow_bits[k];
    CHECK(wrong == 0);
  }
}

TEST_CASE("cuda halves: printed kernels have a cast where kernel IR has integers, and the same bits") {
  PrintedTexts texts;
  std::vector<KernelCase> cases;
  for (const DType t : {float16, bfloat16}) {
    const KernelCase c = chain_case(t);
    const std::string text = text_of(c), type = name(t);
    CHECK(has(text, "narrow_" + type + "("));
    CHECK(has(text, "widen_" + type + "("));
    CHECK(has(text, "rounded_" + type + "("));  // narrowed and widened again
    for (const char* spelled : {"shl", "shr", "select", "and_", "or_"}) CHECK_FALSE(has(text, spelled));
    CHECK(has(text, "read_run<std::uint16_t, 8>"));  // casts are no long text
    cases.push_back(c);
    texts.add(launches_of_case(c));
  }
  texts.compile();
  for (const KernelCase& c : cases) {
    const auto launches = launches_of_case(c);
    check_blocks(c, interpreted(c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
      texts.run(launches, bases, order);
    });
  }
}

TEST_CASE("cuda halves: what was narrowed is narrowed once, and other bits of NaNs stay what they become") {
  for (const DType t : {float16, bfloat16}) {
    const auto floats = many_floats(t);
    const KernelCase twice = case_of(float32, uint16, bytes_of(floats), [&](KernelBuilder& b, int x) {
      return narrow(b, round_to(b, x, t), t);
    });
    const KernelCase loaded = case_of(uint16, uint16, bytes_of(every_half()),
                                      [&](KernelBuilder& b, int x) { return narrow(b, widen(b, x, t), t); });
    const std::string narrow_call = std::string("narrow_") + name(t) + "(";
    const auto in_point = [&](const KernelCase& c) {  // behind the runs
      const std::string text = text_of(c);
      return text.substr(text.rfind("for ("));
    };
    const std::string once = in_point(twice);
    CHECK(once.find(narrow_call) == once.rfind(narrow_call));
    CHECK(has(once, narrow_call));
    CHECK_FALSE(has(once, "widen_"));
    CHECK_FALSE(has(once, "rounded_"));
    CHECK(has(in_point(loaded), narrow_call));
    PrintedTexts texts;
    for (const KernelCase& c : {twice, loaded}) texts.add(launches_of_case(c));
    texts.compile();
    for (const KernelCase& c : {twice, loaded}) {
      const auto launches = launches_of_case(c);
      check_blocks(c, interpreted(c), [&](const std::vector<void*>& bases, const BlockOrder& order) {
        texts.run(launches, bases, order);
      });
    }
  }
}

TEST_CASE("cuda halves: what is no cast, or is used beside one, stays as it is") {
  KernelBuilder b(1, 0);
  b.begin_stage(false);
  const int x = b.load(b.arg({float32}));
  const int bits = narrow(b, x, float16);
  const int shifted = b.binary(Code::shr, b.bitcast(x, uint32), b.constant_bits(uint32, 13));
  b.store(b.arg({uint16, true}), bits);
  b.store(b.arg({uint32, true}), shifted);
  const int own = b.bitcast(b.binary(Code::shl, b.bitcast(x, uint32), b.constant_bits(uint32, 16)), float32);
  b.store(b.arg({float32, true}), own);
  const Kernel k = b.finish();
  const cuda::HalfCasts casts(k);
  int found = 0;
  for (std::size_t v = 0; v < k.code.size(); v++) {
    found += casts.is_cast(v);
    if (k.code[v].code == Code::load || k.code[v].code == Code::shl) CHECK(casts.is_needed(v));
    if (k.code[v].code == Code::select) CHECK_FALSE(casts.is_needed(v));  // of the cast alone
  }
  CHECK(found == 1);
}

TEST_CASE("cuda halves: a cast is one instruction of the device") {
  try {
    cuda::nvrtc();
  } catch (const CompileError& e) {
    MESSAGE("SKIPPED, no text is compiled: " << e.what());
    return;
  }
  std::string text = cuda::printed_prelude();
  for (const DType t : {float16, bfloat16}) {
    const cuda::KernelLaunch l = launches_of_case(chain_case(t)).at(0);
    text += cuda::print_kernel(*l.loop, l.shape, std::string("kernel_") + name(t));
  }
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"})
    CHECK(cuda::compile_text(cuda::nvrtc(), text, architecture).size() > 1000);
}

}  // namespace cuda_halves_test
