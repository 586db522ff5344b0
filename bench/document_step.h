// The training step of examples/autoparallelism.cpp ("the document"), data-parallel over all devices.
#pragma once
#include <shardarray/shardarray.h>

#include <cstdint>
#include <functional>
#include <tuple>
#include <utility>

namespace bench {

/// Powers of two for which the step on 1 and 8 devices is one block, a cluster of blocks and (the smallest such) a graph of several
/// kernels (src/cuda/one_kernel.h). bench/peers/rows.py uses the last two.
constexpr std::int64_t block_batch = 16, cluster_batch = 512, least_graph_batch = 4096;

class DocumentStep {
 public:
  explicit DocumentStep(std::int64_t batch) {
    namespace sa = shardarray;
    const auto sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
    const auto replicated = sharding.replicate();
    const auto optim = sa::optim::adam(3e-4);
    model_ = sa::filter_shard(Model::init(4, 4, 32, 1, sa::random::PRNGKey(6789)), replicated);
    state_ = sa::filter_shard(optim.init(model_), replicated);
    x_ = sa::device_put(sa::random::normal(sa::random::key(1), {batch, 4}), sharding);
    y_ = sa::sin(x_);
    auto step = sa::jit([=](Model model, State state, sa::Array x, sa::Array y) {
      std::tie(model, state) = sa::filter_shard(std::tuple(model, state), replicated);
      std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);
      const auto loss = [](const Model& m, const sa::Array& a, const sa::Array& b) {
        return sa::mean(sa::square(b - sa::vmap(m)(a)));
      };
      const auto [updates, next] = optim.update(sa::grad(loss)(model, x, y), state);
      return sa::filter_shard(std::tuple(sa::apply_updates(model, updates), next), replicated);
    });
    ask_ = [this, step] { std::tie(model_, state_) = step(std::move(model_), std::move(state_), x_, y_); };
    explain_ = [this, step] { return sa::explain(step, sa::donated(model_), sa::donated(state_), x_, y_); };
  }
  DocumentStep(const DocumentStep&) = delete;
  DocumentStep& operator=(const DocumentStep&) = delete;

  /// Issues one step without waiting for it.
  void ask() { ask_(); }
  void wait() const {
    shardarray::block_until_ready(model_);
    shardarray::block_until_ready(state_);
  }
  shardarray::Explanation explain() const { return explain_(); }

 private:
  using Model = shardarray::nn::MLP<>;
  using State = shardarray::optim::AdamState<Model>;
  Model model_;
  State state_;
  shardarray::Array x_, y_;
  std::function<void()> ask_;
  std::function<shardarray::Explanation()> explain_;
};

}  // namespace bench
