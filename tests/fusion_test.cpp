// What becomes one kernel.
#include <cmath>

#include "program_of.h"

namespace fusion_test {

namespace sa = shardarray;
using program_test::Array;
using program_test::numbers;
using program_test::prepare;

namespace {

template <class F, class... A> std::size_t steps(const F& f, const A&... args) {
  return prepare(sa::jit(f), args...).program().steps.size();
}
Array softmax(const Array& x) { return sa::softmax(x, -1); }
Array layer_norm(const Array& x) {
  const Array d = x - sa::mean(x, {.axis = -1, .keepdims = true});
  return d * sa::rsqrt(sa::mean(d * d, {.axis = -1, .keepdims = true}) + 1e-5);
}

}  // namespace

TEST_CASE("fusion: what follows a reduction on the same rows joins it") {
  sa::set_cpu_device_count(8);
  const Array x = numbers({40, 24}) / 3.0;
  CHECK(steps(softmax, x) == 1);
  CHECK(steps(layer_norm, x) == 1);
  CHECK(steps([](const Array& v) { return sa::softmax(v, 0); }, x) == 1);
  // Rows' own values are written as well where they are asked for.
  const auto both = [](const Array& v) {
    const Array most = sa::max(v, {.axis = 1});
    return std::tuple(sa::exp(v - most.reshape({40, 1})), most);
  };
  CHECK(steps(both, x) == 1);
  const auto [e, most] = sa::jit(both)(x);
  for (std::int64_t i = 0; i < 40; i += 13) {
    float m = -100;
    for (std::int64_t j = 0; j < 24; j++) m = std::max(m, x[{i, j}].item<float>());
    CHECK(most[i].item<float>() == m);
    CHECK(e[{i, std::int64_t{3}}].item<float>() ==
          doctest::Approx(std::exp(x[{i, std::int64_t{3}}].item<float>() - m)));
  }
  // A sum of everything has no rows to share among workers.
  CHECK(steps([](const Array& v) { return v / sa::sum(v); }, sa::ones({400, 100})) == 2);
  // Rows that are cut need each other's sums.
  CHECK(steps(softmax, sa::device_put(x, program_test::on_xy(sa::P(sa::none, "x")))) > 2);
}

TEST_CASE("fusion: fused and not, sharded and not, in place and not: one value") {
  sa::set_cpu_device_count(8);
  for (const auto& f : {softmax, layer_norm}) {
    const Array x = numbers({24, 40}) / 3.0;
    const Array apart = f(x);
    for (const sa::P& spec : {sa::P(), sa::P("x"), sa::P("x", "y"), sa::P(sa::none, "x")}) {
      Array y = sa::device_put(x, program_test::on_xy(spec));
      const auto step = sa::jit(f);
      CHECK(sa::allclose(step(y), apart, {.rtol = 1e-5, .atol = 1e-6}));
      CHECK(sa::allclose(step(std::move(y)), apart, {.rtol = 1e-5, .atol = 1e-6}));
    }
  }
}

TEST_CASE("fusion: a value kept for later is written beside the one that is used now") {
  const Array x = numbers({8, 16}), w = numbers({16, 16}), b = numbers({16});
  // h is used by the relu and again behind the product.
  const auto f = [](const Array& v, const Array& m, const Array& c) {
    const Array h = v + c;
    return sa::matmul(sa::relu(h), m) * sa::where(h > 0.0, 1.0, 0.5);
  };
  CHECK(steps(f, x, w, b) == 3);  // h and relu, product, the rest
  const auto plain = x.to_vector<float>(), weights = w.to_vector<float>(), shift = b.to_vector<float>();
  const auto got = sa::jit(f)(x, w, b).to_vector<float>();
  for (std::size_t i = 0; i < 8; i++)
    for (std::size_t j = 0; j < 16; j++) {
      float sum = 0;
      for (std::size_t k = 0; k < 16; k++)
        sum += std::max(0.0f, plain[i * 16 + k] + shift[k]) * weights[k * 16 + j];
      CHECK(got[i * 16 + j] == sum * (plain[i * 16 + j] + shift[j] > 0 ? 1.0f : 0.5f));
    }
}

TEST_CASE("fusion: products read transposes where they lie") {
  const Array x = numbers({6, 5}), y = numbers({6, 7}), q = numbers({2, 8, 3, 4}), k = numbers({2, 8, 3, 4});
  CHECK(steps([](const Array& a, const Array& b) { return sa::matmul(sa::transpose(a), b); }, x, y) == 1);
  CHECK(steps([](const Array& a, const Array& b) { return sa::matmul(sa::transpose(b), a); }, x, y) == 1);
  CHECK(steps([](const Array& a) { return sa::matmul(a, sa::transpose(a)); }, x) == 1);
  // What is turned back was never turned.
  const auto twice = [](const Array& a) { return sa::transpose(sa::transpose(a)) * 2; };
  CHECK(steps(twice, x) == 1);
  CHECK(sa::jit(twice)(x).to_vector<float>() == (x * 2).to_vector<float>());
  // [b, s, h, d]: heads come before positions, which a product cannot read; the last two may lie either way.
  const auto scores = [](const Array& a, const Array& b) {
    return sa::matmul(sa::transpose(a, {0, 2, 1, 3}),
                      sa::transpose(sa::transpose(b, {0, 2, 1, 3}), {0, 1, 3, 2}));
  };
  CHECK(steps(scores, q, k) == 3);
  const auto got = sa::jit(scores)(q, k).to_vector<float>(), a = q.to_vector<float>(),
             b = k.to_vector<float>();
  const auto at = [](const std::vector<float>& v, std::size_t n, std::size_t s, std::size_t h,
                     std::size_t d) { return v[((n * 8 + s) * 3 + h) * 4 + d]; };
  std::size_t wrong = 0, i = 0;
  for (std::size_t n = 0; n < 2; n++)
    for (std::size_t h = 0; h < 3; h++)
      for (std::size_t s = 0; s < 8; s++)
        for (std::size_t t = 0; t < 8; t++) {
          float sum = 0;
          for (std::size_t d = 0; d < 4; d++) sum += at(a, n, s, h, d) * at(b, n, t, h, d);
          wrong += got[i++] != sum;
        }
  CHECK(wrong == 0);
}

TEST_CASE("fusion: a sum over devices reads its terms where they lie") {
  sa::set_cpu_device_count(8);
  const auto total = sa::pmap([](const Array& v) { return sa::psum(v, "i"); }, {.axis_name = "i"});
  const Array x = sa::pmap([](const Array& v) { return v * 2; })(numbers({8, 16}));
  const auto loops = [](const auto& f, const Array& v) {
    const auto p = prepare(sa::jit([&](const Array& u) { return f(u); }), v);
    std::size_t n = 0;
    for (const sa::Step& s : p.program().steps) n += std::holds_alternative<sa::Loop>(s.body);
    return n;
  };
  CHECK(loops(total, x) == 1);  // the total to every device's row
  // Rows kept as dimensions of one: other names for the same memory.
  const auto mesh = sa::make_mesh({{"x", 8}});
  const auto manual = sa::shard_map(
      [](const Array& v) {
        return sa::psum(v.reshape({1, 16, 1}), "x").reshape({1, 16});
      },
      {.mesh = mesh, .in_specs = sa::P("x"), .out_specs = sa::P("x")});
  const Array y = sa::device_put(x, sa::NamedSharding(mesh, sa::P("x")));
  CHECK(loops(manual, y) == 1);
  CHECK(manual(y).to_vector<float>() == total(x).to_vector<float>());
  CHECK(total(x).to_vector<float>() == sa::broadcast_to(sa::sum(x, {.axis = 0}), {8, 16}).to_vector<float>());
}

TEST_CASE("fusion: a large sum has a part for every worker, and moves no more than its total") {
  sa::set_cpu_device_count(8);
  const auto total = [](const Array& v) { return sa::sum(v); };
  constexpr std::int64_t prime = 262'147;  // which has no parts
  for (const sa::Shape& shape :
       {sa::Shape{1 << 18}, sa::Shape{512, 512}, sa::Shape{(1 << 18) + 1}, sa::Shape{prime}}) {
    const Array x = numbers(shape);
    const std::vector<float> values = x.to_vector<float>();
    double want = 0;  // whole numbers: exact in any order
    for (const float v : values) want += v;
    CHECK(steps(total, x) == (shape[0] == prime ? 1u : 2u));
    CHECK(sa::jit(total)(x).item<float>() == want);
    const Array cut = sa::device_put(x, program_test::on_xy(sa::P("x")));
    CHECK(sa::jit(total)(cut).item<float>() == want);
    for (const auto& t : sa::explain(sa::jit(total), cut).transfers()) CHECK(t.kind == "all_reduce");
  }
}

}  // namespace fusion_test
