#include "runtime/machine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/count_text.h"
#include "runtime/devices.h"
#include "runtime/platforms.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(const Machine& m, const std::string& what) {
  throw DeviceError(fmt::format("machine: '{}' {}. Correct its description.", m.name, what));
}

bool is_dtype(const std::string& name) {
  for (int t = 0; t <= static_cast<int>(DType::complex128); t++)
    if (name == shardarray::name(static_cast<DType>(t))) return true;
  return false;
}

class DescribedBackend final : public Backend {
 public:
  explicit DescribedBackend(const Machine& m) : machine_(m) {
    target_.split = {.min_points = 1 << 15,
                     .most_results = 1 << 14,
                     .parts = 1 << 13,
                     .part_points = 128,
                     .rows = 1 << 13};
    target_.fusion = {.most_operations = 96, .enough_rows = 2048, .few_points = 1 << 16};
    target_.half_products = true;
    target_.alignment = 64;
    target_.device_memory = static_cast<std::int64_t>(m.memory);
    // In bytes of the slowest links, where saving traffic pays most.
    if (m.links.empty()) return;
    const Link& slowest = *std::ranges::min_element(m.links, {}, &Link::bandwidth);
    const auto product = [&](DType t, bool tf32) { return slowest.bandwidth / flops_of(m, t, tf32); };
    target_.links = {
        .start = std::max(64.0, slowest.latency * slowest.bandwidth),
        .halo_start = std::max(64.0, slowest.latency * slowest.bandwidth),
        .operation = product(DType::float32, false),
        .float16_product = product(DType::float16, false),
        .bfloat16_product = product(DType::bfloat16, false),
        .float64_product = product(DType::float64, false),
        .tf32_product = product(DType::float32, true),
        .together = static_cast<std::int64_t>(std::min(0x1p20, slowest.latency * slowest.bandwidth))};
  }
  const char* platform() const override { return machine_.name.c_str(); }
  int device_count() const override { return machine_.device_count; }
  Device device(int local) const override {
    return {.id = local,
            .platform = machine_.name,
            .process_index = process_index(),  // every process can plan for it
            .kind = machine_.kind,
            .memory = local};
  }
  const Target& target() const override { return target_; }
  BufferRef allocate(int, std::size_t) override { refuse(); }
  void deallocate(Buffer*) override {}
  void copy_from_host(const BufferRef&, const void*, std::size_t) override { refuse(); }
  void copy_to_host(void*, const BufferRef&, std::size_t) override { refuse(); }
  std::unique_ptr<Executable> load(std::shared_ptr<const Program>) override { refuse(); }
  MemoryStats memory_stats(int) const override { return {}; }

 private:
  [[noreturn]] void refuse() const {
    throw DeviceError(fmt::format(
        "machine: {} is a description, whose devices hold no values. Give explain() arrays without values: "
        "shape_dtype_struct(shape, dtype, sharding).",
        machine_.name));
  }
  const Machine& machine_;
  Target target_;
};

struct Described {
  std::mutex mutex;
  std::map<std::string, Machine, std::less<>> machines;  // node-based: addresses are stable
};
Described& described() {
  static Described& all = *new Described;  // never destroyed: arrays may outlive static objects
  return all;
}

// ---------------------------------------------------------------- known machines

/// https://www.nvidia.com/en-us/data-center/h200/: SXM, dense; NVLink 900 GB/s, half of it each way; nodes joined by one 400 Gb/s NDR
/// adapter per GPU (DGX H200). Latencies from NCCL's tuning tables, rounded.
Machine h200(const char* name, int nodes, int gpus) {
  Machine m{
      .name = name,
      .kind = "NVIDIA H200",
      .device_count = nodes * gpus,
      .memory = 141e9,
      .memory_bandwidth = 4.8e12,
      .step_latency = 1e-6,
      .flops = {{"float64", 67e12},
                {"float32", 67e12},
                {"tf32", 494.5e12},
                {"bfloat16", 989.5e12},
                {"float16", 989.5e12}},
      .links = {},
      .source =
          "NVIDIA's data sheets of H200 and DGX H200, dense rates; a kernel of a graph as measured on one"};
  if (gpus > 1) m.links.push_back({"NVLink", gpus, 450e9, 2e-6});
  if (nodes > 1) m.links.push_back({"InfiniBand", nodes * gpus, 50e9, 5e-6});
  return m;
}

/// https://cloud.google.com/tpu/docs/v5p: 4,800 Gb/s over the six links of a chip. A torus dimension has two of them.
Machine tpu_v5p() {
  constexpr double dimension = 2 * 4.8e12 / 8 / 6;
  return {.name = "tpu-v5p-64",
          .kind = "TPU v5p",
          .device_count = 64,
          .memory = 95e9,
          .memory_bandwidth = 2.765e12,
          .step_latency = 0,
          .flops = {{"float32", 459e12 / 6}, {"bfloat16", 459e12}},
          .links = {{"ICI x", 4, dimension, 1e-6},
                    {"ICI y", 16, dimension, 1e-6},
                    {"ICI z", 64, dimension, 1e-6}},
          .source = "Google Cloud's page of TPU v5p; float32 as six passes of bfloat16; a 4 x 4 x 4 torus"};
}

const std::vector<Machine>& known() {
  static const auto& all =
      *new std::vector<Machine>{h200("h200", 1, 1), h200("h200x8", 1, 8), h200("h200x64", 8, 8), tpu_v5p()};
  return all;
}

/// `what` names the text in messages.
Machine machine_of(std::string_view text, const std::string& what) {
  /// Checks that an object has exactly these members, and perhaps the optional one.
  const auto members = [&](const ordered_json& object, std::initializer_list<const char*> names,
                           const char* optional = "") {
    if (!object.is_object())
      throw DeviceError(
          fmt::format("machine: {} lacks an object. A machine and each of its links are one.", what));
    for (const auto& member : object.items())
      if (std::ranges::none_of(names, [&](const char* known) { return member.key() == known; }) &&
          member.key() != optional)
        throw DeviceError(fmt::format("machine: {} has '{}'. Its members are {}{}{}. Leave it out.", what,
                                      member.key(), fmt::join(names, ", "), *optional ? ", " : "", optional));
    for (const char* name : names)
      if (!object.contains(name))
        throw DeviceError(fmt::format("machine: {} lacks '{}'. Its members are {}. Give it.", what, name,
                                      fmt::join(names, ", ")));
  };
  const auto whole = [&](const ordered_json& number) {
    const auto n = number.is_number_integer() ? number.get<std::int64_t>() : -1;
    if (n < 0 || n > std::numeric_limits<int>::max())
      throw DeviceError(fmt::format("machine: {} has {} devices somewhere. It is a whole number. Correct it.",
                                    what, number.dump()));
    return static_cast<int>(n);
  };
  try {
    const ordered_json all = ordered_json::parse(text);
    members(all,
            {"name", "kind", "device_count", "memory", "memory_bandwidth", "step_latency", "flops", "links",
             "source"},
            "product_padding");
    Machine m{.name = all["name"],
              .kind = all["kind"],
              .device_count = whole(all["device_count"]),
              .memory = all["memory"],
              .memory_bandwidth = all["memory_bandwidth"],
              .step_latency = all["step_latency"],
              .flops = all["flops"],
              .product_padding = all.value("product_padding", std::array<double, 3>{}),
              .links = {},
              .source = all["source"]};
    for (const ordered_json& l : all["links"].get_ref<const ordered_json::array_t&>()) {
      members(l, {"name", "devices", "bandwidth", "latency"});
      m.links.push_back({l["name"], whole(l["devices"]), l["bandwidth"], l["latency"]});
    }
    check_machine(m);
    return m;
  } catch (const nlohmann::json::exception& e) {
    throw DeviceError(fmt::format("machine: {} is not as it has to be: {}. Compare it with machine_json().",
                                  what, e.what()));
  }
}

}  // namespace

void check_machine(const Machine& m) {
  const auto may_be_in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (m.name.empty() || !std::ranges::all_of(m.name, may_be_in_name))
    refuse(m, "is no name: letters, digits, `_`, `-` and `.` make one");
  if (m.name == "gpu") refuse(m, "is the name of a platform that is here");
  if (m.device_count < 1 || m.device_count > 4096)
    refuse(m, fmt::format("has {}; 1 to 4,096 can be", count_text(m.device_count, "device")));
  const auto positive = [&](double number, const std::string& what) {
    if (!(number > 0 && number <= 1e18))
      refuse(m, fmt::format("has {} {}; it is a number above 0, 1e18 at most", what, number));
  };
  positive(m.memory, "a memory of");
  positive(m.memory_bandwidth, "a memory_bandwidth of");
  if (!(m.step_latency >= 0 && m.step_latency < 1e6))
    refuse(m, fmt::format("has a step_latency of {}; it is a number of seconds", m.step_latency));
  if (!m.flops.contains("float32")) refuse(m, "has no flops of float32");
  for (const auto& [dtype, rate] : m.flops) {
    if (dtype != "tf32" && !is_dtype(dtype))
      refuse(m, fmt::format("has flops of '{}', which is no dtype", dtype));
    positive(rate, fmt::format("flops of {} of", dtype));
  }
  for (const double more : m.product_padding)
    if (!(more >= 0 && more <= 1e6))
      refuse(m, fmt::format("has a product_padding of {}; it is a number from 0 to 1e6", more));
  int before = 1;
  for (const Link& l : m.links) {
    positive(l.bandwidth, fmt::format("links '{}' with a bandwidth of", l.name));
    if (!(l.latency >= 0 && l.latency < 1e6))
      refuse(m, fmt::format("has links '{}' with a latency of {}; it is a number of seconds", l.name,
                            l.latency));
    if (l.devices <= before || l.devices % before != 0)
      refuse(m, fmt::format("has links '{}' between {}, behind groups of {}; groups are made of whole groups "
                            "of the links before",
                            l.name, count_text(l.devices, "device"), before));
    before = l.devices;
  }
  if (before != m.device_count)
    refuse(m, fmt::format("has {} and links between {}; the last links join all",
                          count_text(m.device_count, "device"), before));
}

const Machine* described_machine(std::string_view platform) {
  Described& all = described();
  const std::lock_guard lock(all.mutex);
  const auto at = all.machines.find(platform);
  return at == all.machines.end() ? nullptr : &at->second;
}

double flops_of(const Machine& m, DType dtype, bool tf32) {
  auto at = m.flops.find(tf32 && dtype == DType::float32 ? "tf32" : std::string(shardarray::name(dtype)));
  if (at == m.flops.end()) at = m.flops.find("float32");
  return at->second;
}

std::vector<Device> Machine::devices(Where w) const {
  const Site site(w, "machine");
  check_machine(*this);
  Described& all = described();
  {
    const std::lock_guard lock(all.mutex);
    const auto [at, is_new] = all.machines.try_emplace(name, *this);
    const Machine& kept = at->second;
    if (!(kept == *this))
      throw DeviceError(
          fmt::format("machine: there is a machine '{}' with other numbers already. Names are unique. Give "
                      "it another name.",
                      name));
    if (is_new) try {
        add_platform(name, [&kept] { return std::make_unique<DescribedBackend>(kept); });
      } catch (const DeviceError&) {
        all.machines.erase(at);
        throw DeviceError(fmt::format(
            "machine: '{}' is the name of a platform that is here. Names are unique. Give it another name.",
            name));
      }
  }
  return platform_devices("machine", name);
}

std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const Machine& m : known()) names.push_back(m.name);
  return names;
}

Machine machine(const std::string& name, Where w) {
  const Site site(w, "machine");
  for (const Machine& m : known())
    if (m.name == name) return m;
  if (!name.ends_with(".json"))
    throw DeviceError(fmt::format(
        "machine: '{}' is not known. There are {}. Take one of them, or name a file that ends with "
        ".json.",
        name, fmt::join(machine_names(), ", ")));
  std::ifstream file(name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad())
    throw IoError(fmt::format("machine: {} cannot be read. Look whether it is there.", name));
  return machine_of(text, name);
}

std::string machine_json(const Machine& m) {
  ordered_json links = ordered_json::array();
  for (const Link& l : m.links)
    links.push_back(
        {{"name", l.name}, {"devices", l.devices}, {"bandwidth", l.bandwidth}, {"latency", l.latency}});
  return ordered_json{{"name", m.name},
                      {"kind", m.kind},
                      {"device_count", m.device_count},
                      {"memory", m.memory},
                      {"memory_bandwidth", m.memory_bandwidth},
                      {"step_latency", m.step_latency},
                      {"flops", m.flops},
                      {"product_padding", m.product_padding},
                      {"links", links},
                      {"source", m.source}}
      .dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

Machine machine_from_json(std::string_view text, Where w) {
  const Site site(w, "machine_from_json");
  return machine_of(text, "the text");
}

}  // namespace shardarray
