// Which layout of C[m,n] = A[m,k] B[k,n] on a mesh is fastest: every way to cut A, B and C, measured in one run.
//
//   ./dev bench matmul_layouts --mesh x=8 --m 1024 --k 1024 --n 1024 --dtype bf16 --layouts all
//   ./dev bench matmul_layouts --mesh x=2,y=4 --layouts random:60 --top 12
//   ./dev bench matmul_layouts --layouts x.,.x              # A and B are laid out so: which C?
//   ./dev bench matmul_layouts --layouts x.,any,x. ..,x.,..
//   ./dev bench matmul_layouts --platform cuda --dtype tf32     # the mesh is of logical devices, all on the first GPU
//
// Installed it is shardarray-matmul-layouts, which contains the library. layouts.h has the spelling of layouts, --help the options.
//
// A and B are placed beforehand, C by out_shardings of jit; one call until the result is ready is timed. Collectives, bytes
// and flops per device are explain's. Results are whole numbers, so every sum has the same bits: each device's piece is
// compared with a plain product once, of f16 and bf16 rounded once. Replicas have memories and work of their own, as on separate
// machines, unless --share-replicas shows what sharing wins.
//
// peak:  share of the multiply-adds that all workers do in registers, best of this run. Without such a loop: none. f16 and bf16 are
//        computed in float32, so their peak is float32's.
// bound: math = flops of all devices / that peak; comm = bytes of all transfers / the rate of copies by all workers;
//        overhead = the rest of the measured time. The largest of the three.
// On a GPU the peak is what a product of --peak-size makes of one logical device, which has all of the GPU, and copies are values that
// all devices read, double and write.
// least: bytes / the fewest that a known strategy receives with no more arithmetic (strategies.h lists all cuts of m, k, n). What is
//        not yet summed up counts in float32 for f16 and bf16, what is in their own 2 bytes.
// floor: by these rates, the longer of arithmetic and transfers of the known strategy that is then fastest.
#include <shardarray/shardarray.h>

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <map>

#include "execute/launch.h"
#include "layout_shardings.h"
#include "layouts_files.h"
#include "layouts_limits.h"
#include "layouts_report.h"

namespace sa = shardarray;

namespace {

// Whole numbers from -3 to 3.
std::vector<float> whole_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<float> v(static_cast<std::size_t>(count));
  for (float& x : v) x = static_cast<float>(bits() % 7) - 3;
  return v;
}

// The product in plain loops: exact, as all sums stay below 2^24.
std::vector<float> plain_product(const std::vector<float>& a, const std::vector<float>& b,
                                 const bench::Product& p) {
  const auto m = static_cast<std::size_t>(p.m), k = static_cast<std::size_t>(p.k),
             n = static_cast<std::size_t>(p.n);
  constexpr std::size_t rows = 8;
  std::vector<float> c(m * n);
  bench::on_all_workers(static_cast<int>((m + rows - 1) / rows), [&](int block) {
    const std::size_t begin = static_cast<std::size_t>(block) * rows, end = std::min(m, begin + rows);
    for (std::size_t l = 0; l < k; l++)
      for (std::size_t i = begin; i < end; i++)
        for (std::size_t j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
  });
  return c;
}

// `all_gather` -> `ag`.
std::string initials(const std::string& kind) {
  const std::size_t second = kind.find('_');
  return second == kind.npos ? kind.substr(0, 2) : std::string{kind[0], kind[kind.rfind('_') + 1]};
}

class LayoutBench {
 public:
  explicit LayoutBench(bench::LayoutOptions o) { x_.o = std::move(o); }
  void run();

 private:
  using Inputs = std::map<std::string, sa::Array>;
  sa::Sharding sharding(const bench::Cut& c) const;
  sa::Array matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
                   const bench::Cut& cut, bool share);
  void prepare();
  void make_mesh();
  void add_layout(const bench::ProductLayout& layout);
  auto product(const bench::ProductLayout& layout) const;
  void explain(bench::LayoutRow& row);
  void find_picked(bench::LayoutRow& row);
  std::size_t add_case(const bench::LayoutRow& row, const bench::ProductLayout& asked, bool share);
  void check(const sa::Array& c, const std::string& name) const;

  bench::LayoutResults x_;
  std::optional<sa::Mesh> mesh_;
  std::vector<float> a_, b_, reference_;
  std::array<Inputs, 2> inputs_;  // of separate and of shared replicas
};

sa::Sharding LayoutBench::sharding(const bench::Cut& c) const {
  return bench::sharding_of(x_.product, *mesh_, c);
}

sa::Array LayoutBench::matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
                              const bench::Cut& cut, bool share) {
  const std::string key =
      fmt::format("{} {}", values.data() == a_.data(), bench::to_text(cut, x_.product.mesh));
  sa::Array& x = inputs_[share][key];
  if (!x.has_value()) {
    sa::set_share_replicas(share);
    const auto whole = sa::array(values, {rows, columns});
    x = sa::device_put(whole.astype(x_.o.type().dtype), sharding(cut));
    x.block_until_ready();
  }
  return x;
}

void LayoutBench::make_mesh() {
  if (x_.o.cuda()) {
    setenv("SHARDARRAY_CUDA_LOGICAL_DEVICES", std::to_string(x_.product.devices()).c_str(), 0);
    x_.machine = sa::devices("cuda")[0].kind;
  } else {
    sa::set_cpu_device_count(x_.product.devices());
    x_.machine = fmt::format("{} worker{} on {}", x_.workers, x_.workers == 1 ? "" : "s", sa::cpu_model());
  }
  mesh_ = bench::mesh_of(x_.product);
}

void LayoutBench::prepare() {
  x_.product = x_.o.product();
  make_mesh();
  a_ = whole_numbers(x_.o.m * x_.o.k, 1);
  b_ = whole_numbers(x_.o.k * x_.o.n, 2);
  reference_ = plain_product(a_, b_, x_.product);
  if (x_.o.cuda()) bench::add_gpu_limits(x_, *mesh_);
  else bench::add_cpu_limits(x_);
  for (const bench::ProductLayout& l : bench::select_layouts(x_.o.layouts, x_.product.mesh)) add_layout(l);
}

auto LayoutBench::product(const bench::ProductLayout& layout) const {
  std::optional<sa::Sharding> c;
  if (!layout.picked) c = sharding(layout.c);
  return sa::jit([](sa::Array x, sa::Array y) { return sa::matmul(x, y); }, {.out_shardings = c});
}

std::size_t LayoutBench::add_case(const bench::LayoutRow& row, const bench::ProductLayout& asked,
                                  bool share) {
  const sa::Array a = matrix(a_, x_.o.m, x_.o.k, asked.a, share),
                  b = matrix(b_, x_.o.k, x_.o.n, asked.b, share);
  x_.cases.push_back({row.name, [=, this, f = product(asked), name = row.name, checked = false]() mutable {
                        sa::set_share_replicas(share);
                        const sa::Array c = f(a, b);
                        c.block_until_ready();
                        if (!checked) check(c, name);
                        checked = true;
                      }});
  return x_.cases.size() - 1;
}

// What the call would move and compute, and what known strategies would.
void LayoutBench::explain(bench::LayoutRow& row) {
  const sa::Array a = matrix(a_, x_.o.m, x_.o.k, row.layout.a, false),
                  b = matrix(b_, x_.o.k, x_.o.n, row.layout.b, false);
  const sa::Explanation plan = sa::explain(product(row.layout), a, b);
  for (const sa::TransferInfo& t : plan.transfers()) {
    std::string names = t.axes;
    std::erase_if(names, [](char c) { return c == '{' || c == '}'; });
    const std::string axes = names.empty() ? "" : "(" + names + ")",
                      space = row.collectives.empty() ? "" : " ";
    row.collectives.append(space).append(t.kind).append(axes);
    row.short_collectives.append(space).append(initials(t.kind)).append(axes);
    row.bytes += static_cast<double>(t.bytes_per_device);
    row.moved += static_cast<double>(t.moved_bytes);
  }
  row.flops = static_cast<double>(plan.flops);
}

// The C of a call that asks for none: as a cut if it is one, else what is known are the strategies to any C.
void LayoutBench::find_picked(bench::LayoutRow& row) {
  const sa::Array a = matrix(a_, x_.o.m, x_.o.k, row.layout.a, false),
                  b = matrix(b_, x_.o.k, x_.o.n, row.layout.b, false), c = product(row.layout)(a, b);
  const std::vector<bench::Cut> cuts = bench::ordered_cuts(x_.product.mesh);
  const auto found = std::find_if(cuts.begin(), cuts.end(), [&](const bench::Cut& cut) {
    return c.sharding().is_equivalent_to(sharding(cut), 2);
  });
  if (found != cuts.end()) row.layout = {row.layout.a, row.layout.b, *found};
  else row.c_spelling = c.type_string().substr(c.type_string().find('['));
}

void LayoutBench::add_layout(const bench::ProductLayout& layout) {
  bench::LayoutRow row;
  row.layout = layout;
  row.picked = layout.picked;
  row.name = bench::to_text(layout, x_.product.mesh);
  sa::set_share_replicas(false);
  explain(row);
  if (layout.picked) find_picked(row);
  if (row.picked)  // the same program need not be measured twice
    for (bench::LayoutRow& r : x_.rows)
      if (r.layout == row.layout && r.same_plan(row)) {
        r.picked = true;
        return;
      }
  row.known = bench::strategies(x_.product, row.layout);
  row.least = bench::least_bytes(row.known, row.flops);
  row.timed = add_case(row, layout, false);
  if (x_.o.share) row.shared = add_case(row, layout, true);
  x_.rows.push_back(std::move(row));
}

// Every device's piece against the plain product.
void LayoutBench::check(const sa::Array& c, const std::string& name) const {
  for (const sa::Shard& shard : c.addressable_shards()) {
    const auto rows = shard.index[0].whole ? sa::IndexRange{false, 0, x_.o.m} : shard.index[0];
    const auto columns = shard.index[1].whole ? sa::IndexRange{false, 0, x_.o.n} : shard.index[1];
    const std::vector<double> values = shard.data.to_vector<double>();
    std::size_t at = 0;
    for (std::int64_t i = rows.start; i < rows.stop; i++)
      for (std::int64_t j = columns.start; j < columns.stop; j++, at++) {
        const double expected =
            x_.o.type().rounded(static_cast<double>(reference_[static_cast<std::size_t>(i * x_.o.n + j)]));
        if (values.at(at) != expected)
          throw std::runtime_error(fmt::format("{}: element ({}, {}) on {} is {}, should be {}", name, i, j,
                                               sa::to_string(shard.device), values[at], expected));
      }
  }
}

void LayoutBench::run() {
  const sa::tf32 mode(x_.o.dtype == "tf32");
  x_.load = bench::load_average();
  x_.workers = sa::ThreadPool::instance().worker_count();
  prepare();
  bench::measure(x_.cases, x_.o.rounds, x_.o.sample);
  sa::set_share_replicas(true);
  x_.close();
  bench::Report(x_).print();
  if (!x_.o.json_file.empty()) bench::write_json(x_, x_.o.json_file);
  if (!x_.o.csv_file.empty()) bench::write_csv(x_, x_.o.csv_file);
}

// Installed, the plug-ins stand in the folder of libraries, not beside the program.
void find_plugins() {
  std::error_code ignored;
  const auto folder =
      (std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / BENCH_PLUGIN_FOLDER)
          .lexically_normal();
  for (const char* name : {"libshardarray_llvm.so", "libshardarray_cuda.so"})
    if (std::filesystem::exists(folder / name, ignored)) setenv("SHARDARRAY_PLUGIN_DIR", folder.c_str(), 0);
}

}  // namespace

int main(int argc, char** argv) {
  bench::LayoutOptions o;
  CLI::App app{"Measures layouts of C[m,n] = A[m,k] B[k,n] on a mesh of virtual devices."};
  bench::add_options(app, o);
  CLI11_PARSE(app, argc, argv);
  setenv("SHARDARRAY_PLATFORM", o.platform.c_str(), 1);
  find_plugins();
  try {
    bench::check(o);
    LayoutBench(std::move(o)).run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "matmul_layouts: {}\n", e.what());
    return 1;
  }
}
