// Large products fused with the loop that follows on their elements: the same bits as product and loop separately.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cpu/codegen/compiled_work.h"
#include "program_of.h"
#include "scale.h"
#include "shardarray/nn.h"
#include "shardarray/random.h"
#include "with_codegen.h"

namespace codegen_followed_products_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

struct Operands {
  Array x, w, row, column, like,
      turned;  // [b, m, k], [k, n], [n], [m, 1], C's shape, its last two dimensions turned
};
struct Follower {
  const char* name;
  std::function<std::vector<Array>(const Array& c, const Operands& o)> of;
  bool joins = true;
};

/// What follows on C, in each way that a loop can touch its elements.
const std::vector<Follower>& followers() {
  static const std::vector<Follower> all = {
      {"one operation", [](const Array& c, const Operands&) { return std::vector{relu(c)}; }},
      {"a bias of columns", [](const Array& c, const Operands& o) { return std::vector{tanh(c + o.row)}; }},
      {"a factor of rows", [](const Array& c, const Operands& o) { return std::vector{c * o.column}; }},
      {"an array like it", [](const Array& c, const Operands& o) { return std::vector{o.like - c}; }},
      {"an array that is turned",
       [](const Array& c, const Operands& o) { return std::vector{c + swapaxes(o.turned, -1, -2)}; }},
      {"its position",
       [](const Array& c, const Operands&) {
         return std::vector{c * astype(arange(c.shape().back()), c.dtype())};
       }},
      {"another dtype",
       [](const Array& c, const Operands& o) { return std::vector{astype(c * 100 + o.row, int32)}; }},
      {"two results",
       [](const Array& c, const Operands& o) {
         return std::vector{c + o.row, greater(c, 0)};
       }},
      {"itself as well",
       [](const Array& c, const Operands& o) {
         return std::vector{exp(c - o.row), c};
       }},
      {"what is made of its rows, too",
       [](const Array& c, const Operands& o) {
         return std::vector{relu(c + o.row), sum(c, -1)};
       }},
      {"its sums alone", [](const Array& c, const Operands&) { return std::vector{sum(c * c, -1)}; }, false},
      {"turned", [](const Array& c, const Operands&) { return std::vector{swapaxes(c, -1, -2) * 2}; }},
      {"shifted", [](const Array& c, const Operands&) { return std::vector{c + roll(c, 1, -1)}; }, false},
  };
  return all;
}

struct Sizes {
  std::int64_t batch, m, k, n;
  bool tx = false, tw = false;
};

Operands draw(const Sizes& s, DType t) {
  auto normal = [t, key = 0](Shape shape) mutable {
    return astype(random::normal(random::key(key++), shape), t);
  };
  const auto with_batch = [&](Shape shape) {
    if (s.batch > 1) shape.insert(0, s.batch);
    return shape;
  };
  return {normal(with_batch(s.tx ? Shape{s.k, s.m} : Shape{s.m, s.k})),
          normal(with_batch(s.tw ? Shape{s.n, s.k} : Shape{s.k, s.n})),
          normal({s.n}),
          normal({s.m, 1}),
          normal(with_batch({s.m, s.n})),
          normal(with_batch({s.n, s.m}))};
}

std::vector<Array> followed(const Sizes& s, const Follower& f, const Operands& o) {
  const Array c = matmul(s.tx ? swapaxes(o.x, -1, -2) : o.x, s.tw ? swapaxes(o.w, -1, -2) : o.w);
  return f.of(c, o);
}

template <class F> std::vector<HostArray> hosts(CodegenMode mode, const F& f) {
  return with_codegen(mode, [&] {
    std::vector<HostArray> all;
    for (const Array& a : f()) all.push_back(host(a));
    return all;
  });
}

/// Compiled the product and what follows have the bits of the interpreter, which takes them one after the other.
void check_bits(const Sizes& s, DType t, const Follower& f) {
  const Operands o = draw(s, t);
  const auto make = [&] { return followed(s, f, o); };
  const auto apart = hosts(CodegenMode::off, make), together = hosts(CodegenMode::always, make);
  for (std::size_t k = 0; k < apart.size(); k++) {
    const std::string text = difference(together[k], apart[k], 0);
    CHECK_MESSAGE(text.empty(), f.name << ", " << s.batch << " x " << s.m << " x " << s.k << " x " << s.n
                                       << ", " << name(t) << ", result " << k << ": " << text);
  }
}

}  // namespace

TEST_CASE("codegen: a large product and what follows on its elements have the bits of both apart") {
  const std::vector<Sizes> sizes = {{1, 256, 64, 96},
                                    {1, 200, 40, 700},
                                    {1, 130, 500, 131},
                                    {1, 1030, 16, 48},
                                    {1, 17, 33, 2000},
                                    {3, 130, 40, 50},
                                    {1, 128, 900, 130, true},
                                    {1, 300, 70, 100, false, true},
                                    {2, 257, 31, 65, true, true}};
  for (const Sizes& s : sizes)
    for (const DType t : {float32, float64})
      for (const Follower& f : followers()) check_bits(s, t, f);
}

// Rows of one element are neighbours, which code knows: apart from C they would not be.
TEST_CASE("codegen: products of one column and what follows, by the own kernel") {
  struct WithoutBlas {
    BlasOpener before = set_blas_opener([](Blas&) { return false; });
    ~WithoutBlas() { set_blas_opener(before); }
  } const none;
  for (const Sizes& s : {Sizes{1, 20'000, 64, 1},
                         {5, 5000, 63, 1},
                         {1, 1, 40, 20'000},
                         {3, 1, 33, 9001},
                         {1, 20'000, 5, 1, true, true}})
    for (const DType t : {float32, float64})
      for (const Follower& f : followers()) check_bits(s, t, f);
}

TEST_CASE("codegen: results that go past the caches are those of a product and a loop apart") {
  struct FewBytes {
    std::int64_t before = set_cache_bytes(1);
    ~FewBytes() { set_cache_bytes(before); }
  } const few;
  for (const Sizes& s :
       {Sizes{1, 260, 64, 96}, {1, 131, 40, 701}, {2, 259, 31, 65, true, true}})  // of no other case
    for (const Follower& f : followers()) check_bits(s, float32, f);
}

TEST_CASE("codegen: one work is a large product and the loop over its elements, where there is one") {
  const Sizes s{1, 256, 64, 96};
  for (const Follower& f : followers())
    with_codegen(CodegenMode::always, [&] {
      const Operands o = draw(s, float32);
      const auto function = [&](const Array& x, const Array& w, const Array& row, const Array& column,
                                const Array& like, const Array& turned) {
        return followed(s, f, {x, w, row, column, like, turned});
      };
      const WorkList works(
          program_test::prepare(jit(function), o.x, o.w, o.row, o.column, o.like, o.turned).program());
      const auto compiled = CompiledWork::make(works, CodeTier::quick);
      REQUIRE(compiled != nullptr);
      std::size_t products = 0, alone = 0;
      for (const Work& w : compiled->all()) {
        products += w.gemm != nullptr;
        alone += w.gemm != nullptr && w.units.object == w.gemm;
      }
      INFO(f.name);
      CHECK(products == 1);
      CHECK((alone == 0) == f.joins);
    });
}

TEST_CASE(
    "codegen: what follows large products, cut over devices, in gradients and steps, has the bits of the "
    "interpreter") {
  const nn::MLP<> model = nn::MLP<>::init(40, 300, 200, 2, random::key(1));
  const Array x = random::normal(random::key(2), {264, 40});
  const auto loss = [](const nn::MLP<>& m, const Array& data) { return mean(square(vmap(m)(data))); };
  for (const std::int64_t devices : {1, 2, 8}) {
    const auto make = [&] {
      const Mesh mesh = make_mesh({{"x", devices}});
      const auto rows = device_put(x, NamedSharding(mesh, P("x")));
      const auto [value, gradient] = jit(value_and_grad(loss))(model, rows);
      std::vector<Array> all = {value};
      for (const Array& leaf : tree_leaves(gradient)) all.push_back(leaf);
      return all;
    };
    const auto apart = hosts(CodegenMode::off, make), together = hosts(CodegenMode::always, make);
    REQUIRE(apart.size() == together.size());
    for (std::size_t k = 0; k < apart.size(); k++) {
      const std::string text = difference(together[k], apart[k], 0);
      CHECK_MESSAGE(text.empty(), devices << " devices, leaf " << k << ": " << text);
    }
  }
}

}  // namespace codegen_followed_products_test
