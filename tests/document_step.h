// The document's training step (examples/autoparallelism.cpp) on eight devices of any platform.
#pragma once
#include <tuple>
#include <utility>
#include <vector>

#include "shardarray/shardarray.h"

namespace shardarray::testing {

struct DocumentStep {
  using Model = nn::MLP<>;
  using State = optim::AdamState<Model>;

  explicit DocumentStep(const std::vector<Device>& devices)
      : sharding(create_device_mesh({8, 1}, {devices.begin(), devices.begin() + 8})) {}

  PositionalSharding sharding;
  optim::Adam<> optim = shardarray::optim::adam(3e-4);
  Model model = filter_shard(Model::init(4, 4, 32, 1, random::PRNGKey(6789)), sharding.replicate());
  State state = filter_shard(optim.init(model), sharding.replicate());
  Array x = device_put(random::normal(random::key(1), {16, 4}), sharding), y = device_put(sin(x), sharding);

  auto compiled() const {
    return jit([optim = optim, sharding = sharding](Model m, State s, Array bx, Array by) {
      const auto replicated = sharding.replicate();
      std::tie(m, s) = filter_shard(std::tuple(m, s), replicated);
      std::tie(bx, by) = filter_shard(std::tuple(bx, by), sharding);
      const auto loss = [](const Model& q, const Array& a, const Array& b) {
        return mean(square(b - vmap(q)(a)));
      };
      const auto grads = grad(loss)(m, bx, by);
      const auto [updates, next] = optim.update(grads, s);
      m = apply_updates(m, updates);
      return filter_shard(std::tuple(m, next), replicated);
    });
  }
};

}  // namespace shardarray::testing
