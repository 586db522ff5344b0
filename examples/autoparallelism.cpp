// Equinox's "Autoparallelism" page, cell by cell: an MLP trained by data parallelism over 8 devices.
#include <shardarray/shardarray.h>

#include <iostream>

namespace sa = shardarray;

// Hyperparameters
constexpr int dataset_size = 64, channel_size = 4, hidden_size = 32, depth = 1, num_steps = 10;
constexpr int batch_size = 16;  // any size works; a multiple of the number of devices keeps all of them busy
const auto optim = sa::optim::adam(3e-4);
using Model = sa::nn::MLP<>;
using State = sa::optim::AdamState<Model>;

// Loss function for a batch of data
sa::Array compute_loss(const Model& model, const sa::Array& x, const sa::Array& y) {
  return sa::mean(sa::square(y - sa::vmap(model)(x)));
}

// `sharding` is static: part of the compiled program.
std::tuple<Model, State> train_step(Model model, State state, sa::Array x, sa::Array y,
                                    sa::PositionalSharding sharding) {
  const auto replicated = sharding.replicate();
  std::tie(model, state) = sa::filter_shard(std::tuple(model, state), replicated);
  std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);

  const auto grads = sa::grad(compute_loss)(model, x, y);
  const auto [updates, next] = optim.update(grads, state);
  model = sa::apply_updates(model, updates);
  return sa::filter_shard(std::tuple(model, next), replicated);
}

sa::Array evaluate(Model model, sa::Array x, sa::Array y, sa::PositionalSharding sharding) {
  model = sa::filter_shard(model, sharding.replicate());
  std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);
  return compute_loss(model, x, y);
}

int main() {
  sa::set_cpu_device_count(8);

  // Some synthetic data, and a loader that shuffles it in every epoch
  const sa::Array xs = sa::random::normal(sa::random::key(0), {dataset_size, channel_size}), ys = sa::sin(xs);
  const auto train_data =
      sa::data::loader(std::tuple(xs, ys), {.batch = batch_size, .seed = 0, .drop_last = true});

  Model model = Model::init(channel_size, channel_size, hidden_size, depth, sa::random::PRNGKey(6789));
  State state = optim.init(sa::filter(model, sa::is_inexact_array));

  const auto sharding = sa::PositionalSharding(sa::create_device_mesh({sa::device_count(), 1}));
  const auto step = sa::jit(train_step);
  model = sa::filter_shard(model, sharding.replicate());

  // Evaluation keeps the model, so nothing is moved in (donated).
  const auto evaluate_batch = sa::jit(evaluate);
  const auto eval_data = sa::data::loader(std::tuple(xs, ys), {.batch = batch_size});
  const auto print_loss = [&] {
    double loss = 0;
    for (const auto& [x, y] : eval_data) loss += evaluate_batch(model, x, y, sharding).item<float>();
    std::cout << "train loss=" << loss / static_cast<double>(eval_data.size()) << "\n";
  };

  print_loss();
  int steps = 0;
  for (int epoch = 0; steps < num_steps; epoch++)
    for (auto [x, y] : train_data.epoch(epoch)) {
      if (steps++ == num_steps) break;
      std::tie(x, y) = sa::filter_shard(std::tuple(x, y), sharding);
      if (steps == 1) sa::visualize_array_sharding(x);  // two rows on each device
      std::tie(model, state) =
          step(std::move(model), std::move(state), x, y, sharding);  // moved in = donated
    }
  print_loss();

  const sa::Array& weight = model.layers[0].weight;
  std::cout << "the model is " << (weight.is_fully_replicated() ? "" : "not ") << "fully replicated:\n";
  sa::visualize_array_sharding(weight);
}
