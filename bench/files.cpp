// Saving and loading 1 GiB (16 MiB with --quick, or --megabytes), compared with `cp` of a file of that size in the same folder: by default
// /dev/shm if it exists, so that no disk is measured. For a small file `cp` measures the start of a process.
#include <shardarray/shardarray.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <string_view>

#include "bench.h"

namespace sa = shardarray;
namespace fs = std::filesystem;

namespace {

/// A temporary folder, removed at the end; that of a killed process when the next one begins.
struct Folder {
  static constexpr std::string_view name = "shardarray_bench_files.";
  fs::path path;
  explicit Folder(const fs::path& in) : path(in / fmt::format("{}{}", name, getpid())) {
    for (const fs::directory_entry& entry : fs::directory_iterator(in)) {
      const std::string left = entry.path().filename();
      if (left.starts_with(name) && !fs::exists("/proc/" + left.substr(name.size())))
        fs::remove_all(entry.path());
    }
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return path / name; }
};

}  // namespace

int main(int argc, char** argv) {
  setenv("SHARDARRAY_CPU_DEVICES", "8", 0);
  // The cases depend on these options, before the suite parses them.
  const auto given = [&](std::string_view option) -> const char* {
    char** const at = std::find(argv, argv + argc, option);
    return at + 1 < argv + argc ? at[1] : nullptr;
  };
  const bool quick = std::find(argv, argv + argc, std::string_view("--quick")) != argv + argc;
  const fs::path shared = "/dev/shm";
  const char* const named = given("--folder");
  const fs::path parent = named                      ? fs::path(named)
                          : fs::is_directory(shared) ? shared
                                                     : fs::temp_directory_path();
  const char* const size = given("--megabytes");
  const std::int64_t megabytes = size ? std::max(1, std::atoi(size)) : quick ? 16 : 1024;
  const Folder folder(parent);
  bench::Suite suite;
  std::string ignored;
  suite.app().add_option("--folder", ignored, "Where the files are written: " + parent.string());
  suite.app().add_option("--megabytes", ignored, "Of the arrays: " + std::to_string(megabytes));

  const std::int64_t rows = megabytes * 64, columns = 1 << 12;
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const sa::Sharding by_rows = sa::NamedSharding(mesh, sa::P("x"));
  const sa::Sharding by_columns = sa::NamedSharding(mesh, sa::P(sa::none, "x"));
  const sa::Array x = sa::random::uniform(sa::random::key(0), {rows, columns}),
                  cut = sa::device_put(x, by_rows);
  std::map<std::string, sa::Array> layers;
  for (const sa::Array& layer : sa::split(x, 16))
    layers.emplace(fmt::format("layers[{}]", layers.size()), layer);
  sa::eval(std::tuple(x, cut, layers));

  const std::string npy = folder.file("x.npy"), npz = folder.file("x.npz"),
                    tensors = folder.file("x.safetensors");
  const std::string out = folder.file("out");
  sa::save_npy(npy, x);
  sa::save_npz(npz, layers);
  sa::save_safetensors(tensors, layers);
  const std::string copy = fmt::format("cp --reflink=never '{}' '{}'", npy, folder.file("copy"));
  suite.add("cp", [&] {
    if (std::system(copy.c_str()) != 0) std::abort();
  });
  const bench::CaseOptions beside{.floor = "cp"}, aimed{.floor = "cp", .aim = 1.25};
  const auto load = [&](const std::string& name, const auto& read, const bench::CaseOptions& options) {
    suite.add(
        name, [=] { sa::block_until_ready(read()); }, options);
  };
  suite.add(
      "save_npy", [&] { sa::save_npy(out, x); }, aimed);
  suite.add(
      "save_npy, rows on 8 devices", [&] { sa::save_npy(out, cut); }, aimed);
  suite.add(
      "save_npz", [&] { sa::save_npz(out, layers); }, beside);
  suite.add(
      "save_safetensors", [&] { sa::save_safetensors(out, layers); }, aimed);
  const std::string run = folder.file("run");
  suite.add(
      "checkpoints::save, rows on 8 devices", [&] { sa::checkpoints::save(run, 0, cut); }, beside);
  // Steps during a save, compared with steps alone, and with steps while `cp` copies as much at the priority of such a save.
  const std::int64_t width = quick ? 256 : 2048;
  const sa::Array weights = sa::random::normal(sa::random::key(2), {width, width}) /
                            (0.7f * std::sqrt(static_cast<float>(width)));  // values stay near 1
  const auto step = sa::jit([&](const sa::Array& v) { return sa::tanh(sa::matmul(v, weights)); });
  const auto seconds_of_step = [&](const auto& is_last) {
    sa::Array v = sa::block_until_ready(step(weights));
    int steps = 0;
    const auto start = std::chrono::steady_clock::now();
    do {
      v = sa::block_until_ready(step(v));
      steps++;
    } while (!is_last(steps));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps;
  };
  std::vector<double> beside_save, beside_cp;
  for (int turn = 0; turn < (quick ? 2 : 5); turn++) {
    const double alone = seconds_of_step([&](int steps) { return steps == (quick ? 10 : 20); });
    auto saving = sa::checkpoints::async_save(run, 1, cut);
    beside_save.push_back(seconds_of_step([&](int) { return saving.is_written(); }) / alone);
    saving.wait();
    auto copying =
        std::async(std::launch::async, [&] { return std::system(("nice -n 15 " + copy).c_str()); });
    beside_cp.push_back(seconds_of_step([&](int) {
                          return copying.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
                        }) /
                        alone);
  }
  suite.add_count("a step while async_save writes", bench::median(beside_save), "of one alone", 1.03);
  suite.add_count("a step while cp copies", bench::median(beside_cp), "of one alone");
  load(
      "load_npy", [=] { return sa::load_npy(npy); }, aimed);
  load(
      "load_npy, rows to 8 devices", [=] { return sa::load_npy(npy, by_rows); }, aimed);
  load(
      "load_npy, columns to 8 devices", [=] { return sa::load_npy(npy, by_columns); }, aimed);
  load(
      "load_npz", [=] { return sa::load_npz(npz); }, beside);
  load(
      "load_safetensors", [=] { return sa::load_safetensors(tensors).arrays; }, aimed);
  load(
      "load_safetensors, rows to 8 devices",
      [=] { return sa::load_safetensors(tensors, {.sharding = by_rows}).arrays; }, aimed);
  return suite.main(argc, argv);
}
