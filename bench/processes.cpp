// The cost of devices in several processes: each figure of two processes compared with one process with the same devices, or with MPI's own
// messages, measured in turns on this machine. It starts itself by mpirun, with `--side`.
#include <mpi.h>
#include <shardarray/shardarray.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <map>

#include "bench.h"

namespace sa = shardarray;
using sa::Array;
using sa::P;

namespace {

constexpr std::int64_t message_floats = 16 << 20;  // 64 MiB

/// The median of `count` calls, after an untimed one: the same number in every process.
template <class F> double seconds_of(int count, const F& call) {
  std::vector<double> all;
  for (int k = 0; k <= count; k++) {
    const auto start = std::chrono::steady_clock::now();
    call();
    if (k > 0) all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return bench::median(all);
}
void say(const char* name, double seconds) {
  if (sa::process_index() == 0) fmt::print("{} {}\n", name, seconds);
}

struct Model {
  std::vector<sa::nn::Linear> layers;
};

/// A step of data-parallel training: 3 layers of 4,096 x 4,096, 50 million parameters.
void training(const sa::Mesh& mesh, bool quick) {
  const std::int64_t width = quick ? 256 : 4096, batch = 64 * mesh.size();
  const sa::NamedSharding rows(mesh, P("x")), whole(mesh, P());
  Model model;
  for (const int k : {0, 1, 2})
    model.layers.push_back(sa::nn::Linear::init(width, width, sa::random::key(k)));
  model = sa::filter_shard(model, whole);
  const Array x = sa::device_put(sa::random::normal(sa::random::key(7), {batch, width}), rows);
  const auto loss = [](const Model& m, const Array& data) {
    Array y = data;
    for (const auto& layer : m.layers) y = sa::relu(sa::vmap(layer)(y));
    return sa::mean(sa::square(y));
  };
  const auto step = sa::jit([&](Model m, const Array& data) {
    return sa::tree_map([](const Array& p, const Array& g) { return p - 1e-3f * g; }, m,
                        sa::grad(loss)(m, data));
  });
  say("training", seconds_of(quick ? 2 : 6, [&] {
        model = step(std::move(model), x);
        sa::block_until_ready(model);
      }));
}

int side(bool quick) {
  const auto all = sa::devices();
  const sa::Mesh mesh({{static_cast<std::int64_t>(all.size())}, all}, {"x"});
  const sa::NamedSharding cut(mesh, P("x"));
  const auto map = [&](const auto& f) {
    return sa::jit(sa::shard_map(f, {.mesh = mesh, .in_specs = P("x"), .out_specs = P("x")}));
  };
  const auto put = [&](std::int64_t n) {
    return sa::device_put(sa::random::normal(sa::random::key(1), {n}), cut);
  };
  if (all.size() == 8) {
    const Array small = put(8 * 292);
    const auto sum = map([](const Array& v) { return sa::psum(v, "x"); });
    say("small all-reduce", seconds_of(quick ? 20 : 2000, [&] { sum(small).block_until_ready(); }));
    const Array data = sa::device_put(sa::random::normal(sa::random::key(2), {8, 292}), cut);
    const auto sums = sa::jit([](const Array& v) {
      std::vector<Array> r(16);
      for (std::size_t k = 0; k < r.size(); k++) r[k] = sa::sum(v * static_cast<int>(k), 0);
      return r;
    });
    say("small sums", seconds_of(quick ? 20 : 2000, [&] { sa::block_until_ready(sums(data)); }));
    return 0;
  }
  const Array large = put(2 * message_floats / (quick ? 64 : 1));
  const auto send = map([](const Array& v) { return sa::ppermute(v, "x", {{0, 1}}); });
  say("message", seconds_of(quick ? 3 : 20, [&] { send(large).block_until_ready(); }));
  training(mesh, quick);
  return 0;
}

/// MPI alone: half a round trip of 64 MiB; and a sum.
int ping_pong(bool quick) {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::vector<float> data(static_cast<std::size_t>(message_floats / (quick ? 64 : 1)), 1.0f);
  const auto turn = [&] {
    const int other = 1 - rank, count = static_cast<int>(data.size());
    if (rank == 0) MPI_Send(data.data(), count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
    MPI_Recv(data.data(), count, MPI_FLOAT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(data.data(), count, MPI_FLOAT, other, 0, MPI_COMM_WORLD);
  };
  const double large = seconds_of(quick ? 3 : 20, turn) / 2;
  std::vector<float> sum(292);
  const double reduced = seconds_of(quick ? 20 : 2000, [&] {
    MPI_Allreduce(data.data(), sum.data(), 292, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  const double all_reduced = seconds_of(quick ? 20 : 2000, [&] {
    for (int k = 0; k < 16; k++)
      MPI_Allreduce(data.data(), sum.data(), 292, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  });
  if (rank == 0) fmt::print("message {}\nsmall all-reduce {}\nsmall sums {}\n", large, reduced, all_reduced);
  MPI_Finalize();
  return 0;
}

/// The output of the first of `processes`: seconds by name.
std::map<std::string, double> run(const std::string& program, int processes, int devices,
                                  const std::string& how) {
  const std::string command = fmt::format(
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 SHARDARRAY_CPU_DEVICES={} mpirun "
      "--oversubscribe --bind-to none -np {} --mca btl self,vader '{}' {}",
      devices, processes, program, how);
  FILE* const pipe = popen(command.c_str(), "r");
  std::map<std::string, double> r;
  std::array<char, 256> line{};
  while (pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr) {
    const std::string text(line.data());
    if (const std::size_t at = text.rfind(' '); at != text.npos)
      r[text.substr(0, at)] = std::stod(text.substr(at));
  }
  if (pipe == nullptr || pclose(pipe) != 0) throw std::runtime_error("failed: " + command);
  return r;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What it costs that devices are in several processes");
  bool quick = false, is_side = false, is_ping_pong = false;
  std::string json_file;
  app.add_flag("--quick", quick, "Small sizes: to see that it runs");
  app.add_flag("--side", is_side, "One of the processes");
  app.add_flag("--ping-pong", is_ping_pong, "One of two processes that use MPI alone");
  app.add_option("--json", json_file, "Write the results to this file");
  CLI11_PARSE(app, argc, argv);
  if (is_side) return side(quick);
  if (is_ping_pong) return ping_pong(quick);

  std::string program(4096, '\0');
  program.resize(static_cast<std::size_t>(readlink("/proc/self/exe", program.data(), program.size())));
  const std::string size = quick ? " --quick" : "";
  struct Row {
    std::string title, name, peer;
    int devices, peer_processes;
    double limit;  ///< of the ratio
    std::vector<double> own = {}, other = {};
  };
  std::vector<Row> rows = {
      {"step of 50 million parameters", "training", "one process, two devices", 2, 1, 1.15},
      {"64 MiB to another device", "message", "MPI's ping-pong", 2, 0, 1.25},
      {"all-reduce of 8 x 292", "small all-reduce", "one process, eight devices", 8, 1, 0},
      {"all-reduce of 8 x 292", "small all-reduce", "MPI_Allreduce of 2 x 292", 8, 0, 0},
      {"16 sums of 8 x 292", "small sums", "16 MPI_Allreduce of 2 x 292", 8, 0, 0}};
  for (int turn = 0; turn < (quick ? 1 : 5); turn++)
    for (Row& r : rows) {
      r.own.push_back(run(program, 2, r.devices / 2, "--side" + size).at(r.name));
      r.other.push_back(r.peer_processes == 0 ? run(program, 2, 1, "--ping-pong" + size).at(r.name)
                                              : run(program, 1, r.devices, "--side" + size).at(r.name));
    }
  nlohmann::json json = nlohmann::json::array();
  fmt::print("{:<32} {:>14} {:>14}  {:>6} {:>6}  beside\n", "two processes", "time", "beside", "ratio",
             "aim");
  for (const Row& r : rows) {
    std::vector<double> ratios;
    for (std::size_t k = 0; k < r.own.size(); k++) ratios.push_back(r.own[k] / r.other[k]);
    const double ratio = bench::median(ratios);
    fmt::print("{:<32} {:>14} {:>14}  {:>6.2f} {:>6}  {}\n", r.title, bench::time_text(bench::median(r.own)),
               bench::time_text(bench::median(r.other)), ratio, r.limit > 0 ? fmt::format("{}", r.limit) : "",
               r.peer);
    json.push_back({{"name", r.title},
                    {"value", bench::median(r.own)},
                    {"unit", "s"},
                    {"floor", r.peer},
                    {"ratio", ratio}});
  }
  if (!json_file.empty()) std::ofstream(json_file) << json.dump(2) << "\n";
  return 0;
}
