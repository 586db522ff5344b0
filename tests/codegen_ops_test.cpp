// The interpreter and generated code, compared through the whole library: the same bits.
#include <cmath>

#include "cpu/codegen/compiled_work.h"
#include "program_of.h"
#include "shardarray/random.h"
#include "with_codegen.h"

namespace codegen_ops_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

/// Where `f` gives other bits when its kernels are compiled; empty: nowhere.
template <class F> std::string changed(F f) {
  const HostArray want = with_codegen(CodegenMode::off, [&] { return host(f()); });
  return difference(with_codegen(CodegenMode::always, [&] { return host(f()); }), want, 0);
}

/// How many functions run f(args...) once it is compiled.
template <class F, class... A> std::size_t functions_of(const F& f, const A&... args) {
  return with_codegen(CodegenMode::always, [&] {
    const WorkList works(program_test::prepare(jit(f), args...).program());
    const auto compiled = CompiledWork::make(works, CodeTier::quick);
    return compiled ? compiled->all().size() : 0;
  });
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
    for (const auto& row : rows) {
      const auto& what = row.first;
      const auto& f = row.second;
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

// A loop that follows on a product's elements, while C may be read again before, beside or after it.
TEST_CASE("codegen: what follows small products has the bits of the interpreter") {
  using Follow = std::vector<Array> (*)(const Array& c, const Array& bias, const Array& full);
  const std::pair<const char*, Follow> follows[] = {
      {"bias, relu", [](const Array& c, const Array& b, const Array&) { return std::vector{relu(c + b)}; }},
      {"both kept",
       [](const Array& c, const Array& b, const Array&) {
         return std::vector{c + b, relu(c + b)};
       }},
      {"C kept",
       [](const Array& c, const Array& b, const Array&) {
         return std::vector{c, c * b};
       }},
      {"mask",
       [](const Array& c, const Array&, const Array& f) {
         return std::vector{where(f > 0, c, 0 * f), c > f};
       }},
      {"scaled",
       [](const Array& c, const Array&, const Array& f) { return std::vector{(f - c) * (f - c) * 0.125}; }},
      {"another product", [](const Array& c, const Array& b,
                             const Array&) { return std::vector{matmul(transpose(relu(c + b)), c)}; }},
      {"times a sum", [](const Array& c, const Array&, const Array& f) { return std::vector{c * sum(f)}; }},
      {"turned", [](const Array& c, const Array&, const Array&) { return std::vector{transpose(c) + 1.0}; }},
      {"its first row", [](const Array& c, const Array&, const Array&) { return std::vector{c - c[0]}; }},
  };
  const std::pair<std::int64_t, std::int64_t> sizes[] = {{1, 7}, {1, 36}, {2, 36},  {3, 3},  {7, 1},
                                                         {8, 8}, {17, 2}, {17, 17}, {36, 17}};
  for (const auto& row : sizes) {
    const auto& m = row.first;
    const auto& n = row.second;
    const DType t = m % 2 == 1 ? DType::float32 : DType::float64;
    const auto draw = [&](std::uint64_t seed, const Shape& shape) {
      return random::normal(random::key(seed), shape).astype(t);
    };
    const std::int64_t k = (m + n) % 5 + 1;
    const Array a = draw(1, {m, k}), at = draw(2, {k, m}), b = draw(3, {k, n}), bt = draw(4, {n, k});
    const Array bias = draw(5, {n}), full = draw(6, {m, n});
    for (const auto& follower : follows) {
      const auto& what = follower.first;
      const auto& f = follower.second;
      for (const bool turned : {false, true}) {
        const std::string text = changed([&, &f = f] {
          const auto g = jit([&](const Array& x, const Array& y, const Array& z, const Array& w) {
            return f(turned ? matmul(transpose(x), transpose(y)) : matmul(x, y), z, w);
          });
          std::vector<Array> flat;
          for (const Array& r : g(turned ? at : a, turned ? bt : b, bias, full))
            flat.push_back(r.astype(float64).reshape({-1}));
          return concatenate(flat);
        });
        CHECK_MESSAGE(text.empty(), what << " of " << m << " x " << n << ": " << text);
      }
    }
  }
}

TEST_CASE("codegen: a small program is one function, in which products take along what follows") {
  const auto layer = [](const Array& x, const Array& w, const Array& b) { return relu(matmul(x, w) + b); };
  const Array x = ones({16, 4}), w = ones({4, 32}), b = ones({32});
  if (functions_of(layer, x, w, b) == 0) return;  // without the plug-in
  const auto two = [&](const Array& v, const Array& u) {
    return layer(layer(v, u, b), transpose(u), ones({4}));
  };
  CHECK(functions_of(two, x, w) == 1);
  // The kernels of one product with bias and activation: large programs keep their tasks apart.
  const auto beside = [&](const Array& v, const Array& u, const Array& large) {
    return std::pair(layer(v, u, b), shardarray::exp(large));
  };
  const Array large = ones({1 << 20});
  CHECK(functions_of(beside, x, w, large) == 2);
  // In a large program, too, the updates of small parameters are one.
  const auto updates = [](const std::vector<Array>& p, const Array& v) {
    std::vector<Array> next;
    for (const Array& a : p) next.push_back(a - 0.1 * a * a);
    return std::pair(next, shardarray::exp(v));
  };
  const std::vector<Array> parameters = {ones({3}), ones({5, 7}), ones({64}), ones({9}), ones({100})};
  CHECK(functions_of(updates, parameters, large) == 2);
}

TEST_CASE(
    "codegen: sums over devices and what stands around them are one work, with the bits of the interpreter") {
  const auto mesh = make_mesh({{"x", 8}});
  const auto mapped = [&](auto f) {
    return shard_map(f, {.mesh = mesh, .in_specs = P("x"), .out_specs = P("x")});
  };
  const Array x = device_put(random::normal(random::key(1), {8 * 40'007}), NamedSharding(mesh, P("x")));
  const auto total = mapped([](const Array& v) { return psum(v, "x"); });
  const auto step = mapped([](const Array& v) { return v - 0.1 * pmean(v * v, "x"); });
  CHECK(changed([&] { return jit(total)(x); }) == "");
  CHECK(changed([&] { return jit(step)(x); }) == "");
  const auto in_place = [&] {
    Array v = x + 1.0;
    for (int k = 0; k < 3; k++) v = jit(step)(std::move(v));
    return v;
  };
  CHECK(changed(in_place) == "");
  if (functions_of(total, x) == 0) return;  // without the plug-in
  CHECK(functions_of(total, x) == 1);
  CHECK(functions_of(step, x) == 1);
}

TEST_CASE("codegen: kernels that differ only in which of their indices are alike have codes of their own") {
  const auto mesh = make_mesh({{"a", 4}, {"b", 2}});
  const Array x = device_put(random::normal(random::key(1), {4, 2, 8192}), NamedSharding(mesh, P("a", "b")));
  const auto number = [](int d) {
    return d == 0 ? arange(4).astype(float32).reshape({4, 1, 1})
                  : arange(2).astype(float32).reshape({1, 2, 1});
  };
  for (const int d : {0, 1})
    CHECK(changed([&] {
            return jit([&](const Array& v) {
              return shardarray::exp(v + number(d)) /
                     sum(shardarray::exp(v + number(0)), {.axis = 2, .keepdims = true});
            })(x);
          }) == "");
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

TEST_CASE("codegen: results that go past the caches are there for every reader") {
  const std::int64_t before = set_cache_bytes(0), n = 1'000'003;
  {
    const WithCodegen on(CodegenMode::always);
    const auto both = jit([](const Array& x) {
      const Array y = x * 2 + 1;  // read again by the sum, which is another loop
      return std::pair(y, sum(y));
    });
    const Array x = arange(n) % 7;
    for (int run = 0; run < 4; run++) {
      const auto [y, total] = both(x.astype(float32));
      const auto values = y.to_vector<float>();
      std::int64_t wrong = 0, want = 0;
      for (std::int64_t k = 0; k < n; k++) {
        wrong += values[static_cast<std::size_t>(k)] != static_cast<float>(k % 7 * 2 + 1);
        want += k % 7 * 2 + 1;
      }
      CHECK(wrong == 0);
      CHECK(total.item<float>() == static_cast<float>(want));
    }
  }
  set_cache_bytes(before);
}

}  // namespace codegen_ops_test
