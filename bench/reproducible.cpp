// The cost of the same bits on any number of devices: each case with and without `reproducible`, and how many results have the same bits on
// 8 devices as on one.
#include <shardarray/shardarray.h>

#include <cstring>
#include <tuple>

#include "bench.h"

namespace sa = shardarray;
using sa::Array;

struct Bench {
  bench::Suite suite;
  sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  int cases = 0, same = 0, same_plain = 0;

  sa::Sharding cut(const sa::P& spec) const { return sa::NamedSharding(mesh, spec); }

  // run(args...) gives an Array; `place` puts the arguments on the devices.
  template <class F>
  void add(const std::string& name, F run, std::vector<std::pair<Array, sa::P>> args, double flops = 0) {
    std::vector<Array> one, many;
    for (const auto& [x, spec] : args) {
      one.push_back(x);
      many.push_back(sa::device_put(x, cut(spec)));
    }
    const auto f = sa::jit(run);
    const auto bits_agree = [&](bool on) {
      const sa::reproducible mode(on);
      return f(one).template to_vector<float>() == f(many).template to_vector<float>();
    };
    cases++;
    same += bits_agree(true);
    same_plain += bits_agree(false);
    suite.add(name, [=] { f(many).block_until_ready(); }, {.flops = flops});
    suite.add(name + ", reproducible",
              [=] {
                const sa::reproducible mode(true);
                f(many).block_until_ready();
              },
              {.floor = name, .flops = flops});
  }
};

static Array normal(int seed, const sa::Shape& shape) {
  return sa::random::normal(sa::random::key(seed), shape);
}

// Loss after a step of adam on an MLP of these sizes.
static auto training_step(int in, int width, int depth) {
  using Model = sa::nn::MLP<>;
  return [model = Model::init(in, in, width, depth, sa::random::key(0))](const std::vector<Array>& data) {
    const auto optim = sa::optim::adam(1e-3);
    const auto loss = [](const Model& m, const Array& x, const Array& y) {
      return sa::mean(sa::square(y - sa::vmap(m)(x)));
    };
    const auto grads = sa::grad(loss)(model, data[0], data[1]);
    const auto [updates, state] = optim.update(grads, optim.init(model));
    std::vector<Array> all;
    for (const Array& leaf : sa::tree_leaves(sa::apply_updates(model, updates)))
      all.push_back(leaf.reshape({-1}));
    return sa::concatenate(all);
  };
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  Bench b;
  using sa::P;
  b.add("sum of 1e7", [](const std::vector<Array>& x) { return sa::sum(x[0]); },
        {{normal(1, {10'000'000}), P("x")}});
  b.add("column sums 4096x1024", [](const std::vector<Array>& x) { return sa::sum(x[0], 0); },
        {{normal(1, {4096, 1024}), P("x")}});
  b.add("softmax 4096x1024", [](const std::vector<Array>& x) { return sa::softmax(x[0], 1); },
        {{normal(1, {4096, 1024}), P("x")}});
  const auto product = [](const std::vector<Array>& x) { return sa::matmul(x[0], x[1]); };
  for (const std::int64_t n : {64, 256, 1024}) {
    const auto work = 2.0 * static_cast<double>(n * n * n);
    const Array x = normal(1, {n, n}), y = normal(2, {n, n});
    b.add(fmt::format("matmul {}^3, rows cut", n), product, {{x, P("x")}, {y, P()}}, work);
    b.add(fmt::format("matmul {}^3, inner cut", n), product, {{x, P(sa::none, "x")}, {y, P("x")}}, work);
  }
  b.add("MLP 4-32-4 step, batch 16", training_step(4, 32, 1),
        {{normal(1, {16, 4}), P("x")}, {normal(2, {16, 4}), P("x")}});
  b.add("MLP 512 step, depth 8, batch 256", training_step(512, 512, 8),
        {{normal(1, {256, 512}), P("x")}, {normal(2, {256, 512}), P("x")}});
  b.suite.add_count("cases with the bits of one device, reproducible", b.same, fmt::format("of {}", b.cases));
  b.suite.add_count("cases with the bits of one device, else", b.same_plain, fmt::format("of {}", b.cases));
  return b.suite.main(argc, argv);
}
