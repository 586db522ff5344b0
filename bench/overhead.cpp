// The overhead of a call: the document's training step on 8 virtual devices against the same step written by hand, recording a lazy op,
// dispatching a compiled one.
#include <shardarray/shardarray.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "bench.h"
#include "execute/launch.h"
#include "hand_step.h"

namespace sa = shardarray;

static std::size_t allocations = 0;
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // both are ours
void* operator new(std::size_t n) {
  allocations++;
  if (void* p = std::malloc(n)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using Model = sa::nn::MLP<>;

static sa::Array compute_loss(const Model& model, const sa::Array& x, const sa::Array& y) {
  return sa::mean(sa::square(y - sa::vmap(model)(x)));
}

// The document's step with its state.
struct Training {
  sa::PositionalSharding sharding{sa::create_device_mesh({sa::device_count(), 1})};
  sa::optim::Adam<> optim = sa::optim::adam(3e-4);
  Model model = sa::filter_shard(Model::init(4, 4, 32, 1, sa::random::PRNGKey(6789)), sharding.replicate());
  decltype(optim.init(model)) state = sa::filter_shard(optim.init(model), sharding.replicate());
  sa::Array x = sa::device_put(sa::random::normal(sa::random::key(1), {16, 4}), sharding),
            y = sa::device_put(sa::sin(x), sharding);

  auto make_step() const {
    return sa::jit(
        [optim = optim, sharding = sharding](Model m, decltype(state) s, sa::Array bx, sa::Array by) {
          const auto replicated = sharding.replicate();
          std::tie(m, s) = sa::filter_shard(std::tuple(m, s), replicated);
          std::tie(bx, by) = sa::filter_shard(std::tuple(bx, by), sharding);
          const auto grads = sa::grad(compute_loss)(m, bx, by);
          const auto [updates, next] = optim.update(grads, s);
          m = sa::apply_updates(m, updates);
          return sa::filter_shard(std::tuple(m, next), replicated);
        });
  }
};

// Allocations of a call whose structs hold arrays only.
static std::size_t allocations_of_plain_call() {
  struct Pair {
    sa::Array a, b;
  };
  auto swap = sa::jit([](Pair p) { return Pair{p.b + 1.0, p.a * 2.0}; });
  Pair p{sa::ones({8}), sa::zeros({8})};
  std::size_t before = 0;
  for (int k = 0; k < 4; k++) {
    before = allocations;
    p = swap(std::move(p));
  }
  return allocations - before;
}

template <class Step> static std::size_t allocations_of_call(Step& step, Training& t) {
  for (int k = 0; k < 3; k++)
    std::tie(t.model, t.state) = step(std::move(t.model), std::move(t.state), t.x, t.y);
  const std::size_t before = allocations;
  std::tie(t.model, t.state) = step(std::move(t.model), std::move(t.state), t.x, t.y);
  return allocations - before;
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  bench::Suite suite;
  auto hand_devices = std::make_unique<hand::Device[]>(hand::devices);
  for (int k = 0; k < hand::devices; k++) {
    hand::Device& d = hand_devices[static_cast<std::size_t>(k)];
    d = {};
    for (int i = 0; i < hand::parameters; i++)
      d.p.flat()[i] = static_cast<float>(i * 7919 % 1000) / 1000.0f - 0.5f;
    for (int i = 0; i < hand::rows * hand::in; i++)
      d.x[i] = 0.1f * static_cast<float>(i + k), d.y[i] = std::sin(d.x[i]);
  }
  int t = 0;
  suite.add("step by hand, 8 memories", [&] {
    hand::step_separate(hand_devices.get(), ++t);
    bench::keep(hand_devices[0]);
  });
  suite.add("step by hand, shared memory", [&] {
    hand::step_shared(hand_devices.get(), ++t);
    bench::keep(hand_devices[0]);
  });

  auto shared = std::make_unique<Training>(), separate = std::make_unique<Training>(),
       one = std::make_unique<Training>();
  auto step = shared->make_step();
  suite.add_count("allocations of a cached call", static_cast<double>(allocations_of_plain_call()), "");
  suite.add_count("allocations of a cached step() call, its three std::vector results",
                  static_cast<double>(allocations_of_call(step, *shared)), "");
  suite.add("step(), replicas shared",
            [&] {
              std::tie(shared->model, shared->state) =
                  step(std::move(shared->model), std::move(shared->state), shared->x, shared->y);
            },
            {.floor = "step by hand, shared memory"});
  auto separate_step = separate->make_step();
  suite.add("step(), separate memories",
            [&] {
              sa::set_share_replicas(false);
              std::tie(separate->model, separate->state) = separate_step(
                  std::move(separate->model), std::move(separate->state), separate->x, separate->y);
              sa::set_share_replicas(true);
            },
            {.floor = "step by hand, 8 memories"});

  const sa::Array small = sa::array({1, 2, 3, 4, 5, 6, 7, 8}, sa::float32);
  suite.add("record a lazy op",
            [&] {
              sa::Array v = small;
              for (int k = 0; k < 100; k++) v = v + small;
              bench::keep(v);
            },
            {.per_call = 100});
  suite.add("record and evaluate x + 1, eager", [&] { (small + 1.0).block_until_ready(); });
  auto add_one = sa::jit([](sa::Array v) { return v + 1.0; });
  suite.add("jit dispatch of x + 1", [&] { bench::keep(add_one(small)); });
  return suite.main(argc, argv);
}
