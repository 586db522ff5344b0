// A convolutional network classifies 8 x 8 pictures of digits: batches are sharded over 8 devices, the model is replicated.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace sa = shardarray;
using sa::Array;

constexpr int side = 8, pixels = side * side, classes = 10, batch = 64;

// Three 3 x 3 convolutions, the last two followed by 2 x 2 pooling; layers take one picture, vmap adds the batch.
struct Model {
  sa::nn::Conv2d first, second, third;
  sa::nn::Linear head;

  static Model init(const Array& key) {
    const auto keys = sa::random::split(key, 4);
    const sa::nn::ConvLayerOptions same{.padding = "SAME"};
    return {sa::nn::Conv2d::init(1, 32, {3}, keys[0], same), sa::nn::Conv2d::init(32, 32, {3}, keys[1], same),
            sa::nn::Conv2d::init(32, 64, {3}, keys[2], same), sa::nn::Linear::init(256, classes, keys[3])};
  }
  // picture: [1, 8, 8] -> logits [classes]
  Array operator()(const Array& picture) const {
    const sa::nn::MaxPool2d pool{{2}, {2}};
    const Array shapes = pool(sa::relu(second(sa::relu(first(picture)))));  // [32, 4, 4]
    return head(pool(sa::relu(third(shapes))).reshape(256));                // pooled: [64, 2, 2]
  }
};

Array compute_loss(const Model& model, const Array& x, const Array& y) {
  return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(sa::vmap(model)(x), y));
}

// Reference: the logits of one picture by plain loops in float64.
std::vector<double> plain_logits(const Model& m, std::vector<double> picture) {
  const auto conv = [](const sa::nn::Conv2d& layer, const std::vector<double>& x, int n) {  // [in, n, n]
    const auto w = layer.weight.to_vector<double>(), b = layer.bias.to_vector<double>();
    const auto in = static_cast<int>(layer.in_channels), out = static_cast<int>(layer.out_channels);
    std::vector<double> y;
    for (int o = 0; o < out; o++)
      for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
          double sum = b[o];
          for (int c = 0; c < in; c++)
            for (int p = 0; p < 3; p++)
              for (int q = 0; q < 3; q++) {
                const int r = i + p - 1, s = j + q - 1;
                if (r < 0 || r >= n || s < 0 || s >= n) continue;
                sum += w[((o * in + c) * 3 + p) * 3 + q] * x[(c * n + r) * n + s];
              }
          y.push_back(std::max(0.0, sum));
        }
    return y;
  };
  const auto pool = [](const std::vector<double>& x, int n) {  // 2 x 2 max pooling of each n x n channel
    std::vector<double> y;
    for (std::size_t k = 0; k < x.size(); k += 2 * n)
      for (int j = 0; j < n; j += 2)
        y.push_back(std::max({x[k + j], x[k + j + 1], x[k + n + j], x[k + n + j + 1]}));
    return y;
  };
  const std::vector<double> shapes = pool(conv(m.second, conv(m.first, picture, 8), 8), 8);
  const std::vector<double> last = pool(conv(m.third, shapes, 4), 4);
  std::vector<double> r = m.head.bias.to_vector<double>();
  const auto w = m.head.weight.to_vector<double>();
  for (std::size_t k = 0; k < r.size(); k++)
    for (std::size_t c = 0; c < last.size(); c++) r[k] += w[k * last.size() + c] * last[c];
  return r;
}

bool run(bool quick) {
  const Array table = sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz");
  const Array pictures = table[{sa::all, sa::slice(0, pixels)}].reshape(-1, 1, side, side) / 16;
  const Array labels = table[{sa::all, pixels}].astype(sa::int32);
  const Array is_test = sa::arange(labels.size()) % 5 == 0;  // every fifth picture is held out for testing
  const Array test_x = pictures[is_test], test_y = labels[is_test];

  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const sa::NamedSharding by_example(mesh, sa::P("data")), everywhere(mesh, sa::P());
  const auto batches =
      sa::data::loader(std::tuple(pictures[!is_test], labels[!is_test]),
                       {.batch = batch, .seed = 0, .sharding = by_example, .drop_last = true});
  const int epochs = quick ? 4 : 20;
  const auto optim = sa::optim::adamw(sa::optim::cosine_decay_schedule(6e-3, epochs * batches.size()),
                                      {.weight_decay = 0.1});
  Model model = sa::device_put(Model::init(sa::random::key(0)), everywhere);
  auto state = optim.init(model);
  const auto step = sa::jit(
      [=](const Model& m, const decltype(state)& s, const Array& x, const Array& y) {
        const auto [loss, grads] = sa::value_and_grad(compute_loss)(m, x, y);
        const auto [updates, next] = optim.update(grads, s, m);
        return std::tuple(sa::apply_updates(m, updates), next, loss);
      },
      {.out_shardings = everywhere});

  sa::Progress progress(epochs * batches.size());
  double first = 0, last = 0;
  int steps = 0;
  for (int epoch = 0; epoch < epochs; epoch++)
    for (const auto& [x, y] : batches.epoch(epoch)) {
      if (steps++ == 0)
        for (const sa::TransferInfo& t : sa::explain(step, model, state, x, y).transfers())
          std::cout << t.kind << " of " << t.dtype << t.shape << ": " << t.reason << "\n";
      Array loss;
      std::tie(model, state, loss) = step(std::move(model), std::move(state), x, y);
      progress.step([&] {
        last = loss.item<double>();
        if (first == 0) first = last;
        return "loss " + std::to_string(last);
      });
    }

  const Array logits = sa::jit([](const Model& m, const Array& x) { return sa::vmap(m)(x); })(model, test_x);
  const double right = sa::mean(sa::argmax(logits, 1) == test_y).item<double>();
  double difference = 0;
  const std::vector<double> plain = plain_logits(model, test_x[0].to_vector<double>());
  for (std::size_t k = 0; k < classes; k++)
    difference = std::max(difference, std::abs(plain[k] - logits[{0, k}].item<double>()));
  std::printf("test accuracy %.1f %%; plain loops differ by %.1g\n", 100 * right, difference);
  return difference < 1e-3 && last < first && right > (quick ? 0.85 : 0.98);
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  try {
    return run(argc > 1 && std::string_view(argv[1]) == "--quick") ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "cnn_digits: " << e.what() << "\n";
    return 1;
  }
}
