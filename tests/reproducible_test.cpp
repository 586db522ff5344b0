// One program on 1, 2, 4 and 8 devices, bit by bit.
#include <cstring>
#include <functional>

#include "program_of.h"
#include "scale.h"

namespace reproducible_test {

namespace sa = shardarray;
using sa::Array;
using sa::P;

namespace {

using Function = std::function<Array(const Array&)>;

std::vector<std::byte> bits(const Array& x) {
  std::vector<std::byte> r(static_cast<std::size_t>(x.size()) * sa::itemsize(x.dtype()));
  const auto v = sa::testing::values(x.astype(sa::float64));  // exact
  r.resize(v.size() * sizeof(double));
  if (!v.empty()) std::memcpy(r.data(), v.data(), r.size());
  return r;
}
sa::Sharding on(int devices, const P& spec) {
  return sa::NamedSharding(sa::make_mesh({{"x", devices}}), spec);
}
Array some(const sa::Shape& shape, int seed, sa::DType t = sa::float32) {
  return sa::random::normal(sa::random::key(seed), shape).astype(t);
}
Array variance(const Array& x) {
  return sa::mean(sa::square(x - sa::mean(x, {.axis = 0, .keepdims = true})));
}

const std::pair<const char*, Function> sums[] = {
    {"sum", [](const Array& x) { return sa::sum(x); }},
    {"sum of columns", [](const Array& x) { return sa::sum(x, 0); }},
    {"sum of rows", [](const Array& x) { return sa::sum(x, 1); }},
    {"scaled", [](const Array& x) { return sa::mean(x, 0) * 3.7f; }},
    {"product", [](const Array& x) { return sa::prod(1 + x / 1000, 0); }},
    {"variance", variance},
    {"softmax", [](const Array& x) { return sa::softmax(x, 0); }},
    {"logsumexp", [](const Array& x) { return sa::logsumexp(x, 1); }},
    {"gradient", [](const Array& x) { return sa::grad(variance)(x); }},
};

// Whether f gives the bits of one device wherever its operand lies.
bool same_everywhere(const Function& f, const Array& x) {
  const auto want = bits(sa::jit(f)(x));
  bool same = true;
  for (const int devices : {1, 2, 4, 8})
    for (const P& spec : {P("x"), P(sa::none, "x")}) {
      const Array placed = sa::device_put(x, on(devices, spec));
      same = same && bits(sa::jit(f)(placed)) == want;
    }
  return same;
}

}  // namespace

TEST_CASE("reproducible: sums have the bits of one device; without it they need not") {
  int differ = 0;
  sa::testing::LeftOut left_out(5);
  for (const auto& row : sums) {
    const auto& name = row.first;
    const auto& f = row.second;
    for (const sa::Shape& shape : {sa::Shape{1, 1}, sa::Shape{3, 2}, sa::Shape{9, 7}, sa::Shape{64, 64},
                                   sa::Shape{1000, 37}, sa::Shape{24, 4099}})
      for (const sa::DType t : {sa::float32, sa::float64}) {
        if (left_out()) continue;
        const Array x = some(shape, 1, t);
        differ += !same_everywhere(f, x);
        const sa::reproducible mode(true);
        CHECK_MESSAGE(same_everywhere(f, x), name << " of " << sa::to_string(shape));
        CHECK(std::abs(sa::sum(x).astype(sa::float64).item<double>() -
                       sa::sum(x.astype(sa::float64)).item<double>()) < 1e-2);
      }
  }
  CHECK(differ > 0);
  // More halvings than a kernel has dimensions.
  const sa::reproducible mode(true);
  const Function total = [](const Array& x) { return sa::sum(x); };
  CHECK(same_everywhere(total, some({5, 5, 5, 5, 5, 5, 5, 5, 5}, 2)));
}

TEST_CASE("reproducible: matrix products in every orientation, batches too") {
  const std::int64_t sizes[][3] = {{5, 7, 3},     {1, 100, 1},    {16, 8, 64},
                                   {33, 100, 65}, {65, 1000, 17}, {96, 512, 80}};
  for (const auto& [m, k, n] : sizes)
    for (const sa::DType t : {sa::float32, sa::float64}) {
      const Array a = some({m, k}, 1, t), b = some({k, n}, 2, t), many = some({4, m, k}, 3, t);
      const auto f = sa::jit([](const Array& x, const Array& y, const Array& z) {
        return std::tuple(sa::matmul(x, y), sa::matmul(sa::transpose(y), sa::transpose(x)),
                          sa::einsum("bmk,kn->bmn", z, y), sa::einsum("bmk,bmn->kn", z, z));
      });
      const sa::reproducible mode(true);
      const auto want = f(a, b, many);
      const Array exact = sa::matmul(a.astype(sa::float64), b.astype(sa::float64));
      CHECK(sa::max(sa::abs(std::get<0>(want).astype(sa::float64) - exact)).item<double>() < 1e-3);
      for (const int devices : {2, 4, 8})
        for (const P& pa : {P("x"), P(sa::none, "x")})
          for (const P& pb : {P("x"), P(sa::none, "x")}) {
            const Array x = sa::device_put(a, on(devices, pa)), y = sa::device_put(b, on(devices, pb));
            const Array z = sa::device_put(many, on(devices, P(sa::none, sa::none, "x")));
            const auto got = f(x, y, z);
            CHECK(bits(std::get<0>(got)) == bits(std::get<0>(want)));
            CHECK(bits(std::get<1>(got)) == bits(std::get<1>(want)));
            CHECK(bits(std::get<2>(got)) == bits(std::get<2>(want)));
            CHECK(bits(std::get<3>(got)) == bits(std::get<3>(want)));
          }
    }
}

TEST_CASE("reproducible: a whole training run, data and tensor parallel") {
  using Model = sa::nn::MLP<>;
  const auto optim = sa::optim::adam(1e-2);
  const auto loss = [](const Model& model, const Array& x, const Array& y) {
    return sa::mean(sa::square(y - sa::vmap(model)(x)));
  };
  const auto step =
      sa::jit([&](Model model, sa::optim::AdamState<Model> state, const Array& x, const Array& y) {
        auto [value, grads] = sa::value_and_grad(loss)(model, x, y);
        const auto [updates, next] = optim.update(grads, state);
        return std::tuple(sa::apply_updates(model, updates), next, value);
      });
  const auto train = [&](const std::function<Array(const Array&)>& place_data,
                         const std::function<Array(const Array&)>& place_weight) {
    const sa::reproducible mode(true);
    Model model = Model::init(12, 3, 40, 2, sa::random::key(0));
    model = sa::tree_map([&](const Array& w) { return w.shape().size() == 2 ? place_weight(w) : w; }, model);
    auto state = optim.init(sa::filter(model, sa::is_inexact_array));
    Array value;
    std::vector<std::byte> all;
    for (int k = 0; k < 5; k++) {
      const Array x = place_data(some({50, 12}, 10 + k)), y = place_data(some({50, 3}, 20 + k));
      std::tie(model, state, value) = step(std::move(model), std::move(state), x, y);
      for (const Array& leaf : sa::tree_leaves(std::tuple(model, value)))
        for (const std::byte b : bits(leaf)) all.push_back(b);
    }
    return all;
  };
  const auto as_it_is = [](const Array& x) { return x; };
  const auto want = train(as_it_is, as_it_is);
  for (const int n : {2, 4, 8}) {
    const auto put = [&](const P& spec) {
      return [=](const Array& x) { return sa::device_put(x, on(n, spec)); };
    };
    CHECK(train(put(P("x")), put(P())) == want);
    CHECK(train(put(P()), put(P("x"))) == want);
    CHECK(train(put(P()), put(P(sa::none, "x"))) == want);
  }
}

TEST_CASE("reproducible: guards nest, and jit keeps the two modes apart") {
  const auto total = sa::jit([](const Array& x) { return sa::sum(x) / 3; });
  const Array x = sa::device_put(some({64}, 5), on(8, P("x")));
  const std::string plain = program_test::transfers(sa::explain(total, x));
  CHECK(plain == "all_reduce{x} 7");
  {
    const sa::reproducible on(true);
    const auto pairs = sa::explain(total, x);
    CHECK(pairs.transfers().size() == 3);  // pairs of neighbours, of pairs, of fours
    {
      const sa::reproducible off(false);
      CHECK(program_test::transfers(sa::explain(total, x)) == plain);
    }
    CHECK(sa::explain(total, x).transfers().size() == 3);
  }
  CHECK(program_test::transfers(sa::explain(total, x)) == plain);
}

}  // namespace reproducible_test
