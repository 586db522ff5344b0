// A mixture of experts: 8 small networks on 8 devices, and a router that sends every example to one of them.
#include <shardarray/shardarray.h>

#include <cmath>
#include <cstdio>
#include <iostream>

namespace sa = shardarray;
using sa::Array;

constexpr int experts = 8, features = 64, hidden = 32, classes = 10;

// The weights of all experts are stacked along a leading dimension, which is sharded over the devices.
struct Model {
  Array router;    // [features, experts]
  Array up, down;  // [experts, features, hidden], [experts, hidden, classes]

  static Model init(const Array& key) {
    const auto [a, b, c] = sa::random::split<3>(key);
    return {0.01 * sa::random::normal(a, {features, experts}),
            sa::random::normal(b, {experts, features, hidden}) / std::sqrt(features),
            sa::random::normal(c, {experts, hidden, classes}) / std::sqrt(hidden)};
  }
};

// Applies each expert to its own examples, [e, n, features] -> [e, n, classes].
Array experts_of(const Array& x, const Array& up, const Array& down) {
  return sa::matmul(sa::gelu(sa::matmul(x, up)), down);
}

// Routes examples: [n, features] -> `places` [n, experts, capacity], 1 at an example's expert and its slot there. What exceeds the
// capacity of an expert is dropped. `weights` is `places` times the router's probability, which is how the router learns. `balance`
// is 1 if all experts are chosen equally often, and usually larger otherwise (Fedus et al., 2021).
struct Route {
  Array places, weights, chosen, balance;
};
Route route(const Array& x, const Array& router, std::int64_t capacity) {
  const Array p = sa::softmax(sa::matmul(x, router)), chosen = sa::argmax(p, 1);
  const Array one = sa::one_hot(chosen, experts);
  const Array place = sa::sum((sa::cumsum(one, 0) - 1) * one, 1);  // earlier examples of this expert
  const Array places = sa::einsum("ne,nc->nec", one, sa::one_hot(place.astype(sa::int32), capacity));
  return {places, places * sa::max(p, 1).reshape(-1, 1, 1), chosen,
          experts * sa::sum(sa::mean(one, 0) * sa::mean(p, 0))};
}

// The layer as if there were one device; the compiler inserts the transfers.
std::pair<Array, Array> layer(const Model& m, const Array& x, std::int64_t capacity) {
  const Route r = route(x, m.router, capacity);
  const Array sent = sa::einsum("nec,nf->ecf", r.places, x);
  return {sa::einsum("nec,eck->nk", r.weights, experts_of(sent, m.up, m.down)), r.balance};
}

// The same by hand, in a shard_map: a device routes its own examples, sends each to its expert's device, and gets the result back.
// Every device has its own slots at each expert.
auto layer_by_hand(const sa::Mesh& mesh, std::int64_t capacity) {
  const auto local = [=](const Model& m, const Array& x) {
    const Route r = route(x, m.router, capacity);
    const Array sent = sa::einsum("nec,nf->ecf", r.places, x);
    const Array mine = sa::all_to_all(sent, "e", {.split_axis = 0, .concat_axis = 1, .tiled = true});
    const Array made = experts_of(mine, m.up, m.down);  // [1, devices * capacity, classes]
    const Array back = sa::all_to_all(made, "e", {.split_axis = 1, .concat_axis = 0, .tiled = true});
    return std::pair(sa::einsum("nec,eck->nk", r.weights, back), sa::pmean(r.balance, "e"));
  };
  const sa::P cut("e");
  return sa::shard_map(local,
                       {.mesh = mesh, .in_specs = {{sa::P(), cut, cut}, cut}, .out_specs = {cut, sa::P()}});
}

// The number of examples of each expert.
Array load_of(const Model& m, const Array& x) { return sa::bincount(route(x, m.router, 1).chosen, experts); }

// Reference: every expert computes all examples, and the result of the chosen expert is taken.
Array without_routing(const Model& m, const Array& x) {
  const Array p = sa::softmax(sa::matmul(x, m.router)), one = sa::one_hot(sa::argmax(p, 1), experts);
  const Array all = experts_of(x[sa::newaxis], m.up, m.down);
  return sa::einsum("ne,ne,enk->nk", one, p, all);
}

bool run(bool quick) {
  const Array table = sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz");
  const Array pixels = sa::standardize(table[{sa::all, sa::slice(0, features)}]),
              labels = table[{sa::all, features}].astype(sa::int32);
  constexpr int train = 1408, batch = 128;

  const sa::Mesh mesh = sa::make_mesh({{"e", 8}});
  const sa::NamedSharding cut(mesh, sa::P("e")), everywhere(mesh, sa::P());
  const Array x = sa::device_put(pixels[sa::slice(0, train)], cut),
              test_x = sa::device_put(pixels[sa::slice(train, 1792)], cut);
  const Array y = labels[sa::slice(0, train)], test_y = labels[sa::slice(train, 1792)];

  Model model = sa::device_put(Model::init(sa::random::key(0)), std::tuple(everywhere, cut, cut));
  std::cout << "an expert on each device:\n";
  sa::visualize_array_sharding(model.up);
  std::cout << "examples of each: " << load_of(model, x) << "\n";

  // With slots for all examples, none is dropped.
  const auto global = sa::jit([](const Model& m, const Array& v) { return layer(m, v, v.shape()[0]).first; });
  const auto by_hand = sa::jit(
      [=](const Model& m, const Array& v) { return layer_by_hand(mesh, v.shape()[0] / 8)(m, v).first; });
  const auto print_transfers = [&](const char* way, const auto& f) {
    for (const sa::TransferInfo& t : sa::explain(f, model, test_x).transfers())
      std::cout << way << ": " << t.kind << ", " << t.bytes_per_device << " B per device\n";
  };
  print_transfers("as on one device", global);
  print_transfers("by hand", by_hand);
  const Array truth = without_routing(model, test_x);
  const double off = sa::max(sa::abs(global(model, test_x) - truth)).item<double>(),
               off_by_hand = sa::max(sa::abs(by_hand(model, test_x) - truth)).item<double>();
  std::printf("from experts that compute everything: %.1g, by hand %.1g\n", off, off_by_hand);

  const auto optim = sa::optim::adam(1e-2);
  auto state = optim.init(model);
  const auto loss_of = [=](const Model& m, const Array& v, const Array& label) {
    const auto [logits, balance] =
        layer_by_hand(mesh, 2 * (batch / 8) / experts)(m, v);  // twice the capacity of an even load
    return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(logits, label)) + 0.3 * balance;
  };
  const auto step =
      sa::jit([=](Model m, const sa::optim::AdamState<Model>& s, const Array& v, const Array& label) {
        const auto [loss, grads] = sa::value_and_grad(loss_of)(m, v, label);
        const auto [updates, next] = optim.update(grads, s);
        return std::tuple(sa::apply_updates(m, updates), next, loss);
      });
  const auto batches =
      sa::data::loader(std::tuple(x, y), {.batch = batch, .seed = 0, .sharding = cut, .drop_last = true});
  double first = 0, last = 0;
  for (int epoch = 0; epoch < (quick ? 6 : 40); epoch++)
    for (const auto& [v, label] : batches.epoch(epoch)) {
      Array loss;
      std::tie(model, state, loss) = step(std::move(model), std::move(state), v, label);
      last = loss.item<double>();
      if (first == 0) first = last;
    }
  const Array load = load_of(model, x);
  std::cout << "examples of each: " << load << "\n";
  const double right = sa::mean(sa::argmax(by_hand(model, test_x), 1) == test_y).item<double>();
  std::printf("loss %.3f, then %.3f; %.1f %% of the test are right\n", first, last, 100 * right);
  return off < 1e-5 && off_by_hand < 1e-5 && right > (quick ? 0.6 : 0.9) &&
         sa::min(load) > train / experts / 4;
}

int main(int argc, char** argv) {
  sa::set_cpu_device_count(8);
  try {
    return run(argc > 1 && std::string_view(argv[1]) == "--quick") ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "moe: " << e.what() << "\n";
    return 1;
  }
}
