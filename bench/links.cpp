// The cost of moving an array from device to device, for each pair: rates of large ones, times of small ones; compared with memcpy by all
// workers, the limit on the CPU. On the diagonal: an array negated on its device. Then what this_machine() measures.
#include <shardarray/shardarray.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "bench.h"
#include "workers.h"

namespace sa = shardarray;

namespace {

struct Options {
  std::int64_t bytes = 32 << 20;
  std::string json_file, machine_file;
  bool quick = false;
};

sa::Array on(const sa::Device& d, std::int64_t bytes) {
  return sa::device_put(sa::random::normal(sa::random::key(1), {bytes / 4}), d);
}

// By sender, then receiver.
std::vector<bench::Case> moves(const std::vector<sa::Device>& devices, std::int64_t bytes) {
  std::vector<bench::Case> cases;
  for (const sa::Device& from : devices) {
    const sa::Array x = on(from, bytes);
    for (const sa::Device& to : devices)
      cases.push_back({fmt::format("{} to {}, {} B", sa::to_string(from), sa::to_string(to), bytes),
                       [x, from, to] { (from == to ? -x : sa::device_put(x, to)).block_until_ready(); }});
  }
  return cases;
}

void print(const char* title, const std::vector<sa::Device>& devices, const std::vector<bench::Case>& cases,
           const std::function<double(double)>& figure) {
  fmt::print("{}\n{:>12}", title, "from \\ to");
  for (const sa::Device& d : devices) fmt::print("{:>10}", sa::to_string(d));
  for (std::size_t k = 0; k < cases.size(); k++) {
    if (k % devices.size() == 0) fmt::print("\n{:>12}", sa::to_string(devices[k / devices.size()]));
    fmt::print("{:>10.1f}", figure(cases[k].time()));
  }
  fmt::print("\n\n");
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app{"Rates and times of moving arrays between devices"};
  app.add_option("--bytes", o.bytes, "Of a large array")
      ->check(CLI::Range(std::int64_t{4}, std::int64_t{1} << 34));
  app.add_option("--json", o.json_file, "Write the results to this file");
  app.add_option(
      "--machine", o.machine_file,
      "Write this machine's numbers to this file, for machine(\"FILE.json\") and matmul_layouts --machine");
  app.add_flag("--quick", o.quick, "Few short samples: to see that it runs");
  CLI11_PARSE(app, argc, argv);
  o.bytes = o.bytes / 4 * 4;
  setenv("SHARDARRAY_SHARE_REPLICAS", "0", 0);  // devices that share a memory would share buffers
  const std::vector<sa::Device> devices = sa::devices();
  const std::size_t pairs = devices.size() * devices.size();
  std::vector<bench::Case> cases = moves(devices, o.bytes), small = moves(devices, 4);
  cases.insert(cases.end(), small.begin(), small.end());
  auto from = std::make_shared<std::vector<char>>(static_cast<std::size_t>(o.bytes), 1),
       to = std::make_shared<std::vector<char>>(*from);
  cases.push_back({"memcpy by all workers", [from, to] {
                     bench::on_all_workers(from->size(), [&](std::size_t at, std::size_t k) {
                       std::memcpy(to->data() + at, from->data() + at, k);
                     });
                     bench::keep(*to);
                   }});
  bench::measure(cases, o.quick ? 3 : 15, o.quick ? 1e-4 : 1e-2);
  const auto rate = [&](double seconds) { return static_cast<double>(o.bytes) / seconds * 1e-9; };
  print(fmt::format("GB/s, arrays of {:.1f} MB", static_cast<double>(o.bytes) * 1e-6).c_str(), devices,
        {cases.begin(), cases.begin() + static_cast<std::ptrdiff_t>(pairs)}, rate);
  print("us, arrays of 4 B", devices, {cases.begin() + static_cast<std::ptrdiff_t>(pairs), cases.end() - 1},
        [](double s) { return s * 1e6; });
  fmt::print("memcpy by all workers: {:.1f} GB/s\n", rate(cases.back().time()));
  const sa::Machine here = sa::this_machine();
  fmt::print(
      "{}, all at work: {:.1f} GFLOP/s of float32 and {:.2f} GB/s of memory a device, {:.2f} us to begin a "
      "step\n",
      here.name, here.flops.at("float32") * 1e-9, here.memory_bandwidth * 1e-9, here.step_latency * 1e6);
  if (!o.machine_file.empty()) std::ofstream(o.machine_file) << sa::machine_json(here) << "\n";
  if (!o.json_file.empty()) {
    nlohmann::json all = nlohmann::json::array();
    for (const bench::Case& c : cases)
      all.push_back({{"name", c.name}, {"value", c.time()}, {"unit", "s"}, {"spread", c.spread()}});
    std::ofstream(o.json_file) << all.dump(2) << "\n";
  }
}
