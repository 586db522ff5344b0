// What becomes one kernel.
#include <cmath>
#include <functional>

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
  // Sharded rows need each other's sums.
  CHECK(steps(softmax, sa::device_put(x, program_test::on_xy(sa::P(sa::none, "x")))) > 2);
}

TEST_CASE("fusion: fused and not, sharded and not, in place and not: one value") {
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
  // A transpose and its inverse cancel.
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
  CHECK(sa::testing::read<float>(manual(y)) == sa::testing::read<float>(total(x)));
  CHECK(sa::testing::read<float>(total(x)) ==
        sa::testing::read<float>(sa::broadcast_to(sa::sum(x, {.axis = 0}), {8, 16})));
}

TEST_CASE("fusion: a large sum has a part for every worker, and moves no more than its total") {
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

namespace {

/// What a device holds beside its part of x while f(x) is computed, bytes; more than some partial results is a temporary.
template <class F> std::int64_t beside(const F& f, const Array& x, int devices) {
  const auto bytes = x.size() * static_cast<std::int64_t>(sa::itemsize(x.dtype()));
  return sa::explain(sa::jit(f), x).peak_bytes_per_device - bytes / devices;
}

struct Whole {
  const char* name;
  Array (*f)(const Array&);
  double (*want)(double sum, double sum_of_squares, double n);  // whole numbers 0 .. 6
};

}  // namespace

TEST_CASE("fusion: what is reduced as a whole is computed on the way, not stored, whatever is made of it") {
  constexpr std::int64_t n = 7 << 15, few = 4096;
  std::vector<int> whole(n);
  double sum = 0, squares = 0;
  for (std::size_t k = 0; k < whole.size(); k++) {
    const int v = whole[k] = static_cast<int>(k * 3 % 7);
    sum += v, squares += v * v;
  }
  const Whole rows[] = {
      {"sum", [](const Array& x) { return sa::sum(x); }, [](double s, double, double) { return s; }},
      {"how many are 3", [](const Array& x) { return sa::sum(x == 3); },
       [](double, double, double m) { return m / 7; }},
      {"any", [](const Array& x) { return sa::any(x + 1 == 7); }, [](double, double, double) { return 1.0; }},
      {"all", [](const Array& x) { return sa::all(x < 6); }, [](double, double, double) { return 0.0; }},
      {"largest", [](const Array& x) { return sa::max(x * 2); }, [](double, double, double) { return 12.0; }},
      {"least", [](const Array& x) { return sa::min(x + 2); }, [](double, double, double) { return 2.0; }},
      {"where", [](const Array& x) { return sa::argmax(x * 2); }, [](double, double, double) { return 2.0; }},
      {"product", [](const Array& x) { return sa::prod(sa::where(x == 3, 1, 1)); },
       [](double, double, double) { return 1.0; }},
      {"mean of halves", [](const Array& x) { return sa::mean(x / 2.0f); },
       [](double s, double, double m) { return s / 2 / m; }},
      {"mean in float32", [](const Array& x) { return sa::mean(x, {.dtype = sa::float32}); },
       [](double s, double, double m) { return s / m; }},
      {"mean of exp", [](const Array& x) { return sa::mean(sa::exp(x.astype(sa::float32))); },
       [](double, double, double) { return (1 - std::exp(7.0)) / (1 - std::exp(1.0)) / 7; }},
      {"variance", [](const Array& x) { return sa::var(x.astype(sa::float32)); },
       [](double s, double q, double m) { return q / m - s / m * (s / m); }},
      {"two at once", [](const Array& x) { return sa::sum(x * 2) + sa::sum(x + 1); },
       [](double s, double, double m) { return 3 * s + m; }},
      {"of a reshape",
       [](const Array& x) {
         return sa::sum(sa::reshape(x + 1, {8, -1}));
       },
       [](double s, double, double m) { return s + m; }},
      {"with what is not stored", [](const Array& x) { return sa::sum(x * 0 + sa::full(x.shape(), 2)); },
       [](double, double, double m) { return 2 * m; }},
      {"by position", [](const Array& x) { return sa::max(sa::arange(x.size()) + 0 * x.astype(sa::int32)); },
       [](double, double, double m) { return m - 1; }},
  };
  const Array all = sa::array(whole);
  for (const sa::DType t : {sa::uint8, sa::int8, sa::int32, sa::float32, sa::bfloat16})
    for (const bool reproducible : {false, true})
      for (const int devices : {1, 8}) {
        Array x = all.astype(t);
        if (devices > 1) x = sa::device_put(x, sa::NamedSharding(sa::make_mesh({{"x", 8}}), sa::P("x")));
        for (const Whole& row : rows) {
          const std::string name = row.name;
          CAPTURE(name);
          CAPTURE(sa::name(t));
          CAPTURE(reproducible);
          CAPTURE(devices);
          const auto f = [&](const Array& v) {
            const sa::reproducible mode(reproducible);
            return row.f(v);
          };
          // Where bfloat16 rounds between two sums, which is much work, its values are stored once.
          if (!(t == sa::bfloat16 && name == "where")) CHECK(beside(f, x, devices) <= few);
          const double want = row.want(sum, squares, n), got = sa::jit(f)(x).item<double>();
          CHECK(std::abs(got - want) <= std::abs(want) * (t == sa::bfloat16 ? 8e-3 : 1e-6));
          CHECK(std::abs(f(x).item<double>() - want) <= std::abs(want) * (t == sa::bfloat16 ? 8e-3 : 1e-6));
        }
      }
}

TEST_CASE("fusion: sums over some dimensions, under vmap, and of matrices store nothing either") {
  const auto exp = [](const Array& x) { return sa::exp(x); };
  const auto over = [&](const sa::AxisSet& axis) {
    return [=](const Array& x) { return sa::sum(exp(x), {.axis = axis}); };
  };
  const auto mapped = [&](const Array& x) {
    return sa::vmap([&](const Array& r) { return sa::mean(exp(r) > 2.0f, {.dtype = sa::float32}); })(x);
  };
  const auto place = [](const Array& x) { return sa::argmax(sa::abs(x - 3)); };
  for (const sa::Shape& shape : {sa::Shape{2, 1 << 18}, sa::Shape{1 << 18, 2}, sa::Shape{512, 1024}}) {
    const Array x = numbers(shape);
    const std::int64_t few = 4096 + 8 * (shape[0] == 512 ? 1024 : 2);
    CAPTURE(sa::to_string(shape));
    CHECK(beside(over(0), x, 1) <= (shape[0] == 2 ? 5 << 18 : few));
    CHECK(beside(over(1), x, 1) <= (shape[1] == 2 ? 5 << 18 : few));
    CHECK(beside(over({0, 1}), x, 1) <= few);
    if (shape[1] > 2) CHECK(beside(mapped, x, 1) <= few);
    const std::vector<float> v = x.to_vector<float>();
    std::size_t best = 0;
    for (std::size_t k = 1; k < v.size(); k++)
      if (std::abs(v[k] - 3) > std::abs(v[best] - 3)) best = k;
    CHECK(beside(place, x, 1) <= few);
    CHECK(sa::jit(place)(x).item<std::int64_t>() == static_cast<std::int64_t>(best));
    const Array cut = sa::device_put(x, program_test::on_xy(sa::P(sa::axes("x", "y"))));
    if (shape[0] > 2) CHECK(beside(place, cut, 8) <= few);
    CHECK(sa::jit(place)(cut).item<std::int64_t>() == static_cast<std::int64_t>(best));
  }
}

TEST_CASE("fusion: a reshape that splits dimensions is read where its operand stands") {
  const Array x = numbers({24, 10});
  const auto plain = x.to_vector<float>();
  const auto parts = [](const Array& v) { return sa::reshape(v * 2, {2, 12, 5, 1, 2}) + 1; };
  CHECK(steps(parts, x) == 1);
  std::vector<float> want;
  for (const float v : plain) want.push_back(v * 2 + 1);
  CHECK(sa::jit(parts)(x).to_vector<float>() == want);
  // Positions go the same way.
  const auto place = [](const Array& v) {
    return sa::sum(sa::reshape(sa::arange(24), {4, 6}) * sa::reshape(v, {4, 6}), {.axis = 1});
  };
  const Array y = numbers({24});
  const auto z = y.to_vector<float>();
  std::vector<float> sums(4);
  for (std::size_t k = 0; k < 24; k++) sums[k / 6] += static_cast<float>(k) * z[k];
  CHECK(sa::jit(place)(y).to_vector<float>() == sums);
  // Where it is gathered from, or a result, it is the operand's memory.
  const auto taken = [](const Array& v) {
    const Array r = sa::reshape(v * 2, {4, 6});
    return std::tuple(sa::take(r, sa::array({3, 0, 3}), 0) + 1, r);
  };
  const auto [rows, all] = sa::jit(taken)(y);
  CHECK(steps(taken, y) == 2);
  for (std::int64_t k = 0; k < 6; k++) {
    CHECK(rows[{std::int64_t{0}, k}].item<float>() == z[static_cast<std::size_t>(18 + k)] * 2 + 1);
    CHECK(rows[{std::int64_t{1}, k}].item<float>() == z[static_cast<std::size_t>(k)] * 2 + 1);
  }
  CHECK(all.to_vector<float>() == (y * 2).to_vector<float>());
}

TEST_CASE("fusion: loops that read one value and leave the program are one, and write over what is donated") {
  using Pair = std::pair<Array, Array>;
  using Two = Pair (*)(const Array&, const Array&);
  const std::vector<Two> programs = {
      [](const Array& a, const Array& b) { return Pair(a * 0.5, a + b); },
      [](const Array& a, const Array& b) { return Pair(a + b, a * 0.5); },
      [](const Array& a, const Array& b) { return Pair(a * 2 - b * 3, a * 3 + b * 2); },  // a rotation
      [](const Array& a, const Array& b) { return Pair(b * 2, a + b); },
      [](const Array& a, const Array& b) {  // Lion's step, and its momentum
        return Pair(a - 0.5 * sa::sign(0.5 * a + 0.25 * b), 0.5 * a + 0.25 * b);
      },
  };
  for (const sa::P& spec : {sa::P(), sa::P("x"), sa::P("x", "y")})
    for (std::size_t k = 0; k < programs.size(); k++) {
      CAPTURE(k);
      CAPTURE(spec.to_string());
      const Array a = numbers({40, 24}), b = numbers({40, 24}, sa::float32, 7);
      const Pair want = programs[k](a, b);
      const auto place = [&](const Array& x) {
        return sa::block_until_ready(sa::device_put(x * 1, program_test::on_xy(spec)));
      };
      const auto f = sa::jit(programs[k], {.donate = sa::Donate::all});
      const sa::Explanation plan = sa::explain(f, place(a), place(b));
      CHECK(plan.steps_per_device == 1);
      for (const sa::DonationInfo& d : plan.donations()) CHECK(d.reused);
      CHECK(plan.peak_bytes_per_device == 2 * 40 * 24 * 4 /
                                              (spec == sa::P()      ? 1
                                               : spec == sa::P("x") ? 4
                                                                    : 8));
      for (int call = 0; call < 3; call++) {
        const Pair got = f(place(a), place(b));
        CHECK(sa::allclose(got.first, want.first));
        CHECK(sa::allclose(got.second, want.second));
      }
    }
  // What somebody reads elsewhere is written over by the other loop, which comes behind it.
  const auto turned =
      sa::jit([](const Array& u, const Array& v) { return Pair(u.T() * v, u - v); }, {.donate_args = {0}});
  const auto square = [](int seed) {
    return sa::block_until_ready(numbers({32, 32}, sa::float32, seed) * 1);
  };
  CHECK(sa::explain(turned, square(1), square(2)).donations()[0].reused);
  CHECK(sa::allclose(turned(square(1), square(2)).first, square(1).T() * square(2)));
  // Loops that wait for values of their own do not keep these alive together.
  const auto waiting = [](const Array& x, const std::vector<Array>& all) {
    std::vector<Array> r;
    for (const Array& w : all) r.push_back(x > sa::matmul(x, w));
    return r;
  };
  std::vector<Array> several;
  for (int k = 0; k < 8; k++) several.push_back(square(k + 2));
  const std::int64_t item = 32 * 32 * 4;  // x, the operands, the results, a product or two
  CHECK(sa::explain(sa::jit(waiting), square(1), several).peak_bytes_per_device <=
        item * (1 + 8 + 2) + 8 * item / 4);
  // What is read elsewhere is computed where it was.
  const auto used = [](const Array& a, const Array& w) {
    const Array h = a * 2;
    return std::tuple(sa::matmul(h, w), a + 1, sa::sum(a * 3));
  };
  const Array a = numbers({24, 24}), w = numbers({24, 24}, sa::float32, 3);
  const auto [m, n, s] = sa::jit(used)(a, w);
  CHECK(sa::allclose(m, sa::matmul(a * 2, w)));
  CHECK(sa::allclose(n, a + 1));
  CHECK(sa::allclose(s, sa::sum(a * 3)));
}

// What a loop waits for is there together: a sum of many products, or of what is made of them, would hold all of them.
TEST_CASE("fusion: sums of many large products are added as they come") {
  const std::int64_t n = 512, tile = n * n * 4;
  const int count = 12;
  using Term = std::function<Array(const Array& product)>;
  const std::pair<const char*, Term> terms[] = {
      {"products", [](const Array& p) { return p; }},
      {"elements of products", [](const Array& p) { return sa::tanh(p); }},
      {"products of elements", [](const Array& p) { return p * p; }}};
  const Array a = numbers({n, 8}) / 64;
  for (const auto& [name, term] : terms)
    for (const bool cut : {false, true}) {
      CAPTURE(name);
      CAPTURE(cut);
      const auto f = [&](const Array& x, const Array& y) {
        Array s;
        for (int k = 0; k < count; k++) {
          const Array t = term(sa::matmul(x * (k + 1), y));
          s = k == 0 ? t : s + t;
        }
        return s;
      };
      // Each device has a part of every product.
      const Array x = cut ? sa::device_put(a, program_test::on_xy(sa::P(sa::none, "x"))) : a, y = x.T();
      const std::int64_t peak = sa::explain(sa::jit(f), x, y).peak_bytes_per_device;
      CHECK(peak <= (cut ? 6 : 4) * tile);
      CHECK(sa::allclose(sa::jit(f)(x, y), f(a, a.T()), {.rtol = 1e-4}));
    }
  // What reads one product, or several that others read as well, is one loop.
  const auto gelu = [](const Array& x, const Array& y) { return sa::gelu(sa::matmul(x, y)); };
  CHECK(prepare(sa::jit(gelu), a, a.T()).program().steps.size() == 2);
  const auto swiglu = [](const Array& x, const Array& y) {
    const Array gate = sa::matmul(x, y), up = sa::matmul(x * 2, y);
    return sa::silu(gate) * up + gate * sa::square(up);
  };
  CHECK(prepare(sa::jit(swiglu), a, a.T()).program().steps.size() <= 4);
  // Small ones are one loop.
  const auto small = [&](const Array& x) {
    Array s;
    for (int k = 0; k < count; k++) {
      const Array t = sa::matmul(x * (k + 1), x.T());
      s = k == 0 ? t : s + t;
    }
    return s;
  };
  CHECK(prepare(sa::jit(small), numbers({16, 16})).program().steps.size() <= 2 * count + 1);
}

}  // namespace fusion_test
