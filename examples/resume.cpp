// Training that can be killed at any moment: model, optimizer state, random key and data position are one tree, which is saved
// periodically. Resuming from the latest checkpoint gives the same bits as an uninterrupted run.
#include <shardarray/shardarray.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

namespace sa = shardarray;
namespace fs = std::filesystem;
using sa::Array;

using Model = sa::nn::MLP<>;
const auto optim = sa::optim::adam(1e-3);

// Everything the next step depends on. Numbers are saved like arrays.
struct Training {
  Model model;
  sa::optim::AdamState<Model> state;
  Array key;
  int epoch = 0, batch = 0;  // the loader's next batch
  int step = 0;
};

Training fresh(const sa::Sharding& place) {
  const Model model = sa::device_put(Model::init(64, 10, 64, 1, sa::random::key(0)), place);
  return {model, optim.init(model), sa::random::key(1)};
}

// The noise makes every step depend on the key.
Array compute_loss(const Model& model, const Array& x, const Array& y, const Array& key) {
  const Array noisy = x + sa::random::normal(key, x.shape()) / 10;
  return sa::mean(sa::losses::softmax_cross_entropy_with_integer_labels(sa::vmap(model)(noisy), y));
}

std::pair<Training, Array> train_step(const Training& t, const Array& x, const Array& y) {
  const auto [key, own] = sa::random::split<2>(t.key);
  const auto [loss, grads] = sa::value_and_grad(compute_loss)(t.model, x, y, own);
  const auto [updates, next] = optim.update(grads, t.state);
  return {{sa::apply_updates(t.model, updates), next, key, t.epoch, t.batch, t.step}, loss};
}

// Resumes from the latest checkpoint, if any; saves every `save_every` steps and at the end. Kills itself after `kill_after` steps.
void train(const std::string& folder, int epochs, int save_every, int kill_after) {
  const Array table = sa::data::load_csv(SHARDARRAY_EXAMPLE_DATA "/digits.csv.gz");
  const sa::Mesh mesh = sa::make_mesh({{"data", 8}});
  const sa::NamedSharding by_example(mesh, sa::P("data")), everywhere(mesh, sa::P());
  const auto batches = sa::data::loader(
      std::tuple(table[{sa::all, sa::slice(0, 64)}] / 16, table[{sa::all, 64}].astype(sa::int32)),
      {.batch = 128, .seed = 0, .sharding = by_example});
  const auto step = sa::jit(
      [](const Model& m, const sa::optim::AdamState<Model>& s, const Array& key, const Array& x,
         const Array& y) {
        const auto [next, loss] = train_step({m, s, key}, x, y);
        return std::tuple(next.model, next.state, next.key, loss);
      },
      {.out_shardings = everywhere});

  Training now = fresh(everywhere);
  if (sa::checkpoints::latest(folder))
    now = sa::checkpoints::restore(folder, now);  // with the shardings of `now`
  std::printf("  from epoch %d, batch %d\n", now.epoch, now.batch);
  std::fflush(stdout);  // a killed process flushes nothing
  Array loss;
  int steps = 0;
  while (now.epoch < epochs) {
    const auto epoch = batches.epoch(now.epoch);
    for (auto at = std::next(epoch.begin(), now.batch); at != epoch.end(); ++at) {
      const auto [x, y] = *at;
      std::tie(now.model, now.state, now.key, loss) =
          step(std::move(now.model), std::move(now.state), std::move(now.key), x, y);
      now.batch++, now.step++;
      if (++steps % save_every == 0)  // the previous one stays until this one is complete
        sa::checkpoints::save(folder, now.step, now, {.keep = 2});
      if (steps == kill_after) std::raise(SIGKILL);
    }
    now.epoch++;
    now.batch = 0;
  }
  sa::checkpoints::save(folder, now.step, now, {.keep = 2});
  if (loss.has_value()) std::printf("  done, the loss is %.4f\n", loss.item<double>());
}

// Runs this program again; returns whether it succeeded.
bool run_again(const char* program, const std::string& folder, int epochs, int kill_after) {
  const std::string command = "'" + std::string(program) + "' --train '" + folder + "' " +
                              std::to_string(epochs) + " " + std::to_string(kill_after);
  std::cout << "trains" << (kill_after ? ", and is killed\n" : "\n") << std::flush;
  return std::system(command.c_str()) == 0;
}

bool compare(const char* program, int epochs) {
  std::string name = fs::temp_directory_path() / "shardarray-resume-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) return false;
  const fs::path folder = name;
  const std::string whole = folder / "whole", parts = folder / "parts";
  bool ok = run_again(program, whole, epochs, 0);
  for (const int kill_after : {1, 12, 25, 7}) ok = !run_again(program, parts, epochs, kill_after) && ok;
  ok = run_again(program, parts, epochs, 0) && ok;

  const Training like = fresh(sa::SingleDeviceSharding(sa::devices()[0]));
  const Training a = sa::checkpoints::restore(whole, like), b = sa::checkpoints::restore(parts, like);
  int different = 0, arrays = 0;
  const std::vector<std::string> paths = sa::tree_paths(a);
  const std::vector<Array> of_a = sa::tree_leaves(a), of_b = sa::tree_leaves(b);
  for (std::size_t k = 0; k < paths.size(); k++, arrays++)
    if (!sa::array_equal(of_a[k], of_b[k])) {
      std::cout << paths[k] << " differs\n";
      different++;
    }
  std::printf("%d arrays, %d differ; epoch %d and %d\n", arrays, different, a.epoch, b.epoch);
  fs::remove_all(folder);
  return ok && different == 0 && arrays > 10 && a.epoch == epochs && b.epoch == epochs;
}

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  sa::set_cpu_device_count(8);
  try {
    if (argc == 5 && std::string_view(argv[1]) == "--train") {
      train(argv[2], std::atoi(argv[3]), 10, std::atoi(argv[4]));
      return 0;
    }
    return compare(argv[0], quick ? 6 : 20) ? 0 : 1;
  } catch (const sa::Error& e) {
    std::cerr << "resume: " << e.what() << "\n";
    return 1;
  }
}
