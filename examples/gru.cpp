// A GRU reads pictures of digits row by row and classifies them: a scan over the rows, batches are sharded over 8 devices.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace sa = shardarray;
using sa::Array;

constexpr int inputs = 8, hidden = 32, classes = 10, rows = 8;

// A gated recurrent unit. The weights of all gates form one matrix for the input, and one for the hidden state.
struct Gru {
  sa::nn::Linear input, memory;  // -> [3 * hidden]: reset, update, candidate

  static Gru init(const Array& key) {
    const auto [a, b] = sa::random::split<2>(key);
    return {sa::nn::Linear::init(inputs, 3 * hidden, a), sa::nn::Linear::init(hidden, 3 * hidden, b)};
  }
  // h: [hidden], x: [inputs] -> [hidden]
  Array operator()(const Array& h, const Array& x) const {
    const auto of_x = sa::split(input(x), 3), of_h = sa::split(memory(h), 3);
    const Array reset = sa::sigmoid(of_x[0] + of_h[0]), update = sa::sigmoid(of_x[1] + of_h[1]);
    return update * h + (1 - update) * sa::tanh(of_x[2] + reset * of_h[2]);
  }
};

struct Model {
  Gru cell;
  sa::nn::Linear head;

  static Model init(const Array& key) {
    const auto [a, b] = sa::random::split<2>(key);
    return {Gru::init(a), sa::nn::Linear::init(hidden, classes, b)};
  }
  // picture: [rows, inputs] -> logits [classes]. The step is compiled once, and runs once for each row.
  Array operator()(const Array& picture) const {
    const auto step = [&](const Array& h, const Array& x) { return std::pair(cell(h, x), sa::none); };
    return head(sa::scan(step, sa::zeros(hidden), picture).first);
  }
};

const auto optim = sa::optim::adam(5e-3);
using State = sa::optim::AdamState<Model>;

Array compute_loss(const Model& model, const Array& x, const Array& y) {
  return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(sa::vmap(model)(x), y));
}

// All batches of an epoch, [n, batch, ..], in one program: a scan that carries model and state. Returns the losses too.
std::tuple<Model, State, Array> train_epoch(const Model& model, const State& state, const Array& xs,
                                            const Array& ys) {
  const auto step = [](const std::pair<Model, State>& now, const std::pair<Array, Array>& batch) {
    const auto [loss, grads] = sa::value_and_grad(compute_loss)(now.first, batch.first, batch.second);
    const auto [updates, next] = optim.update(grads, now.second);
    return std::pair(std::pair(sa::apply_updates(now.first, updates), next), loss);
  };
  const auto [last, losses] = sa::scan(step, std::pair(model, state), std::pair(xs, ys));
  return {last.first, last.second, losses};
}

// Reference: the logits of one picture by plain loops in float64.
std::vector<double> plain_logits(const Model& m, const std::vector<float>& picture) {
  const auto linear = [](const sa::nn::Linear& l, const std::vector<double>& x) {
    const std::vector<float> w = l.weight.to_vector<float>(), b = l.bias.to_vector<float>();
    std::vector<double> y(b.begin(), b.end());
    for (std::size_t i = 0; i < y.size(); i++)
      for (std::size_t k = 0; k < x.size(); k++) y[i] += w[i * x.size() + k] * x[k];
    return y;
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  std::vector<double> h(hidden, 0);
  for (std::size_t row = 0; row < rows; row++) {
    const auto x = picture.begin() + static_cast<std::ptrdiff_t>(row * inputs);
    const std::vector<double> of_x = linear(m.cell.input, {x, x + inputs}), of_h = linear(m.cell.memory, h);
    for (std::size_t i = 0; i < hidden; i++) {
      const double reset = sigmoid(of_x[i] + of_h[i]), update = sigmoid(of_x[hidden + i] + of_h[hidden + i]);
      h[i] = update * h[i] + (1 - update) * std::tanh(of_x[2 * hidden + i] + reset * of_h[2 * hidden + i]);
    }
  }
  return linear(m.head, h);
}

bool run(bool quick) {
  const Array table = sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz");
  const Array pictures = table[{sa::all, sa::slice(0, rows * inputs)}].reshape(-1, rows, inputs) / 16;
  const Array labels = table[{sa::all, rows * inputs}].astype(sa::int32);
  constexpr int batch = 64, batches = 22, train = batch * batches;  // the other 389 are held out for testing

  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const sa::NamedSharding by_example(mesh, sa::P(sa::none, "data")), everywhere(mesh, sa::P());
  const Array xs = sa::device_put(pictures[sa::slice(0, train)].reshape(batches, batch, rows, inputs),
                                  by_example),
              ys = sa::device_put(labels[sa::slice(0, train)].reshape(batches, batch), by_example);
  std::cout << "batches are " << xs.type_string() << "\n";
  sa::visualize_array_sharding(ys[0]);

  Model model = sa::device_put(Model::init(sa::random::key(0)), everywhere);
  State state = optim.init(model);
  const auto epoch = sa::jit(train_epoch, {.out_shardings = everywhere});
  double first = 0, last = 0;
  for (int i = 0; i < (quick ? 4 : 30); i++) {
    Array losses;
    std::tie(model, state, losses) = epoch(std::move(model), std::move(state), xs, ys);
    last = sa::mean(losses).item<double>();
    if (i == 0) first = last;
    if (i % (quick ? 1 : 5) == 0) std::printf("epoch %2d: loss %.3f\n", i, last);
  }

  const Array test_x = pictures[sa::slice(train, sa::none)], test_y = labels[sa::slice(train, sa::none)];
  const Array logits = sa::jit([](const Model& m, const Array& x) { return sa::vmap(m)(x); })(model, test_x);
  const double right = sa::mean(sa::argmax(logits, 1) == test_y).item<double>();
  double difference = 0;
  const std::vector<double> plain = plain_logits(model, test_x[0].to_vector<float>());
  for (std::size_t k = 0; k < classes; k++)
    difference = std::max(difference, std::abs(plain[k] - logits[{0, k}].item<double>()));
  std::printf("loss %.3f, %.1f %% of the test are right; plain loops differ by %.1g\n", last, 100 * right,
              difference);
  return difference < 1e-3 && last < first / 2 && right > (quick ? 0.5 : 0.85);
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  try {
    return run(argc > 1 && std::string_view(argv[1]) == "--quick") ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "gru: " << e.what() << "\n";
    return 1;
  }
}
