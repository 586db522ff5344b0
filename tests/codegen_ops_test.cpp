// The interpreter and generated code beside each other, through the whole library: the same bits.
#include <memory>

#include "cpu/code_store.h"
#include "op_data.h"
#include "runtime/devices.h"
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace codegen_ops_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

/// A mode and a backend of its own, since programs are kept by backend.
class WithCodegen {
 public:
  explicit WithCodegen(CodegenMode m) : mode_(set_codegen_mode(m)), backend_(set_backend("cpu", of(m))) {}
  ~WithCodegen() {
    set_backend("cpu", backend_);
    set_codegen_mode(mode_);
  }

 private:
  static Backend* of(CodegenMode m) {
    static Backend* const all[3] = {make_cpu_backend(device_count()).release(),
                                    make_cpu_backend(device_count()).release(),
                                    make_cpu_backend(device_count()).release()};
    return all[static_cast<int>(m)];
  }
  CodegenMode mode_;
  Backend* backend_;
};

/// Where `f` gives other bits when its kernels are compiled; empty: nowhere.
template <class F> std::string changed(F f) {
  HostArray want, got;
  {
    const WithCodegen off(CodegenMode::off);
    want = host(f());
  }
  {
    const WithCodegen always(CodegenMode::always);
    got = host(f());
  }
  return difference(got, want, 0);
}

}  // namespace

TEST_CASE("codegen: every op has the bits of the interpreter") {
  for (const OpCase& row : op_cases()) {
    Rng rng(std::hash<std::string>()(row.name));
    const Arrays x = draw_operands(row, rng);
    std::string text = changed([&] { return row.function(x); });
    CHECK_MESSAGE(text.empty(), row.name << ": " << text);
  }
}

TEST_CASE("codegen: rows, columns and whole arrays of awkward sizes") {
  Rng rng(3);
  for (const Shape& shape : {Shape{1}, Shape{37}, Shape{300, 7}, Shape{7, 300}, Shape{130, 33},
                             Shape{5, 31, 9}, Shape{2, 1, 4099}}) {
    const Array x = draw_array({.shape = shape}, rng);
    const auto last = static_cast<std::int64_t>(shape.size()) - 1;
    const std::pair<const char*, std::function<Array()>> rows[] = {
        {"softmax", [&] { return softmax(x, -1); }},
        {"softmax of the first axis", [&] { return softmax(x, 0); }},
        {"normalised",
         [&] {
           return (x - mean(x, {.axis = last, .keepdims = true})) *
                  rsqrt(var(x, {.axis = last, .keepdims = true}) + 1e-5);
         }},
        {"sum", [&] { return sum(x); }},
        {"sums of columns", [&] { return sum(x, {.axis = 0}); }},
        {"largest", [&] { return max(x, {.axis = last}); }},
        {"turned", [&] { return transpose(x) * 2.0 + 1.0; }},
        {"random", [&] { return random::normal(random::key(7), shape); }},
    };
    for (const auto& [what, f] : rows) {
      const std::string text = changed(f);
      CHECK_MESSAGE(text.empty(), what << " of " << to_string(shape) << ": " << text);
    }
  }
}

TEST_CASE("codegen: small products of every shape, orientation and batch have the bits of the interpreter") {
  const std::int64_t sizes[] = {1, 2, 3, 5, 8, 13, 17, 32};
  for (const DType t : {DType::float32, DType::float64})
    for (const std::int64_t m : sizes)
      for (const std::int64_t n : sizes) {
        const std::int64_t k = sizes[static_cast<std::size_t>(m * 7 + n * 3) % std::size(sizes)];
        const auto draw = [&](std::uint64_t seed, const Shape& shape) {
          return random::normal(random::key(seed), shape).astype(t);
        };
        const Array a = draw(1, {m, k}), at = draw(2, {k, m}), b = draw(3, {k, n}), bt = draw(4, {n, k});
        const Array many = draw(5, {3, m, k}), others = draw(6, {3, n, k});
        const std::string text = changed([&] {
          return concatenate(std::vector<Array>{
              matmul(a, b).reshape({-1}), matmul(transpose(at), b).reshape({-1}),
              matmul(a, transpose(bt)).reshape({-1}), matmul(transpose(at), transpose(bt)).reshape({-1}),
              matmul(many, transpose(others, {0, 2, 1})).reshape({-1})});
        });
        CHECK_MESSAGE(text.empty(), m << " x " << n << " x " << k << ": " << text);
      }
}

TEST_CASE("codegen: float16 and bfloat16 have the bits of the interpreter, all patterns") {
  for (const DType t : {DType::float16, DType::bfloat16}) {
    const Array x = bitcast(arange(65536).astype(uint16), t), y = flip(x, 0);
    const auto check = [](auto f) { CHECK(changed(f) == ""); };
    check([&] { return bitcast(where(x != x, 0 * x, x + y), uint16); });
    check([&] { return bitcast(where(x != x, 0 * x, shardarray::exp(x)), uint16); });
    check([&] { return x.astype(float32); });
    check([&] { return (x.astype(float64) * 1.0001).astype(t).astype(float32); });
    check([&] { return sum(where(shardarray::abs(x) < 100, x, 0 * x)); });
  }
}

}  // namespace codegen_ops_test
