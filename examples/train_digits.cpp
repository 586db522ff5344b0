// Trains an MLP on 8 x 8 pictures of digits: batches are sharded over 8 devices, the model is replicated.
#include <shardarray/shardarray.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>

namespace sa = shardarray;

using Model = sa::nn::MLP<>;
using State = sa::optim::AdamState<Model>;
const auto optim = sa::optim::adam(1e-3);

sa::Array compute_loss(const Model& model, const sa::Array& x, const sa::Array& y) {
  return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(sa::vmap(model)(x), y));
}

// Returns the next model and state, and the loss.
std::tuple<Model, State, sa::Array> train_step(const Model& model, const State& state, const sa::Array& x,
                                               const sa::Array& y) {
  const auto [loss, grads] = sa::value_and_grad(compute_loss)(model, x, y);
  const auto [updates, next] = optim.update(grads, state);
  return {sa::apply_updates(model, updates), next, loss};
}

sa::Array accuracy(const Model& model, const sa::Array& x, const sa::Array& y) {
  return sa::mean(sa::argmax(sa::vmap(model)(x), 1) == y);
}

// Pixels in [0, 1] and labels of the given rows.
std::tuple<sa::Array, sa::Array> examples(const sa::Array& table, const std::vector<std::int32_t>& rows) {
  const sa::Array chosen = sa::take(table, sa::array(rows), 0);
  return {chosen[{sa::all, sa::slice(0, 64)}] / 16, chosen[{sa::all, 64}].astype(sa::int32)};
}

// Returns whether the test accuracy is high enough.
bool train(const std::string& path, bool quick) {
  const sa::Array table = sa::data::load_csv(path);
  std::vector<std::int32_t> train_rows, test_rows;  // every fifth row is held out for testing
  for (int k = 0; k < table.shape()[0]; k++) (k % 5 == 0 ? test_rows : train_rows).push_back(k);
  const auto [test_x, test_y] = examples(table, test_rows);

  const sa::Mesh mesh = sa::make_mesh({{"data", sa::device_count()}});
  const sa::NamedSharding by_example(mesh, sa::P("data")), replicated(mesh, sa::P());
  Model model = sa::filter_shard(Model::init(64, 10, 128, 1, sa::random::key(0)), replicated);
  State state = sa::filter_shard(optim.init(model), replicated);

  const int epochs = quick ? 4 : 40;
  const auto batches =
      sa::data::loader(examples(table, train_rows), {.batch = 64, .seed = 0, .sharding = by_example});
  const auto step = sa::jit(train_step, {.out_shardings = replicated});
  {
    const auto [x, y] = *batches.begin();
    std::cout << "a batch:\n";
    sa::visualize_array_sharding(x);
    std::cout << "the first weight:\n";
    sa::visualize_array_sharding(model.layers[0].weight);
    const sa::Explanation plan = sa::explain(step, sa::donated(model), sa::donated(state), x, y);
    std::cout << "a step: " << plan.flops << " flops, peak " << plan.peak_bytes_per_device
              << " B per device, " << plan.transfers().size() << " transfers\n";
    for (const sa::TransferInfo& t : plan.transfers())
      std::cout << "  " << t.kind << " over " << t.axes << ": " << t.dtype << t.shape << ", "
                << t.bytes_per_device << " B per device\n";
  }
  sa::Progress progress(epochs * batches.size());
  sa::Array loss;
  for (int epoch = 0; epoch < epochs; epoch++)
    for (const auto& [x, y] : batches.epoch(epoch)) {
      std::tie(model, state, loss) = step(std::move(model), std::move(state), x, y);
      progress.step([&] {
        char text[32];
        std::snprintf(text, sizeof text, "loss %.4f", static_cast<double>(loss.item<float>()));
        return std::string(text);
      });
    }
  const double share = static_cast<double>(sa::jit(accuracy)(model, test_x, test_y).item<float>());
  std::printf("test accuracy %.1f %%\n", 100 * share);
  return share > (quick ? 0.8 : 0.95);
}

int main(int argc, char** argv) {
  CLI::App app{"Trains an MLP on digits, data-parallel over 8 virtual devices."};
  bool quick = false;
  std::string path = SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz";
  app.add_flag("--quick", quick, "a few epochs only");
  app.add_option("--data", path, "64 pixels and a label per row, gzip or plain")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  sa::set_cpu_device_count(8);
  try {
    return train(path, quick) ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "train_digits: " << e.what() << "\n";
    return 1;
  }
}
