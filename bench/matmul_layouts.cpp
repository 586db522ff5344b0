// Which layout of C[m,n] = A[m,k] B[k,n] on a mesh is fastest: every way to cut A, B and C, measured in one run.
//
//   ./dev bench matmul_layouts --mesh x=8 --m 1024 --k 1024 --n 1024 --dtype f32 --layouts all
//   ./dev bench matmul_layouts --mesh x=2,y=4 --layouts random:60 --top 12
//   ./dev bench matmul_layouts --layouts x.,any,x. ..,x.,..
//   ./dev bench matmul_layouts --platform cuda --dtype tf32     # the mesh is of logical devices, all on the first GPU
//
// A layout is spelled A,B,C, each matrix as rows and columns: `.` whole, `x` cut by axis x, `x+y` by both; `any` is every cut.
//
// A and B are placed beforehand, C by out_shardings of jit; one call until the result is ready is timed. Collectives, bytes
// and flops per device are explain's. Results are whole numbers, so every sum has the same bits: each device's piece is
// compared with a plain product once. Replicas have memories and work of their own, as on separate machines, unless
// --share-replicas shows what sharing wins.
//
// peak:  share of the multiply-adds that all workers do in registers, best of this run. Without such a loop: none.
// bound: math = flops of all devices / that peak; comm = bytes of all transfers / the rate of copies by all workers;
//        overhead = the rest of the measured time. The largest of the three.
// On a GPU the peak is what a product of --peak-size makes of one logical device, which has all of the GPU, and copies are values that
// all devices read, double and write.
// least: bytes / the fewest that a known strategy receives with no more arithmetic (layouts.h lists all cuts of m, k, n).
#include <shardarray/shardarray.h>

#include <fmt/format.h>

#include <array>
#include <map>

#include "bench.h"
#include "execute/launch.h"
#include "layouts.h"
#include "layouts_report.h"
#include "machine.h"

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

class LayoutBench {
 public:
  explicit LayoutBench(bench::LayoutOptions o) { x_.o = std::move(o); }
  void run();

 private:
  using Inputs = std::map<std::string, sa::Array>;
  bool f32() const { return x_.o.dtype != "f64"; }
  sa::Sharding sharding(const bench::Cut& c) const;
  sa::Array matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
                   const bench::Cut& cut, bool share);
  void prepare();
  void add_cpu_cases();
  void add_gpu_cases();
  template <class T> void add_blas_case();
  void add_layout(const bench::ProductLayout& layout);
  std::size_t add_case(const bench::LayoutRow& row, bool share);
  void check(const sa::Array& c, const std::string& name) const;

  bench::LayoutResults x_;
  std::optional<sa::Mesh> mesh_;
  std::vector<float> a_, b_, reference_;
  std::array<Inputs, 2> inputs_;  // of separate and of shared replicas
};

sa::Sharding LayoutBench::sharding(const bench::Cut& c) const {
  auto entry = [&](const std::vector<int>& axes) -> sa::SpecEntry {
    if (axes.empty()) return sa::none;
    sa::AxisNames names;
    for (int a : axes) names.names.emplace_back(1, x_.product.mesh[static_cast<std::size_t>(a)].name);
    return names;
  };
  return sa::NamedSharding(*mesh_, sa::P(entry(c.rows), entry(c.columns)));
}

sa::Array LayoutBench::matrix(const std::vector<float>& values, std::int64_t rows, std::int64_t columns,
                              const bench::Cut& cut, bool share) {
  const std::string key =
      fmt::format("{} {}", values.data() == a_.data(), bench::to_text(cut, x_.product.mesh));
  sa::Array& x = inputs_[share][key];
  if (!x.has_value()) {
    sa::set_share_replicas(share);
    const auto whole = sa::array(values, {rows, columns});
    x = sa::device_put(f32() ? whole : whole.astype(sa::float64), sharding(cut));
    x.block_until_ready();
  }
  return x;
}

void LayoutBench::prepare() {
  x_.product = {bench::parse_mesh(x_.o.mesh), x_.o.m, x_.o.k, x_.o.n, f32() ? 4 : 8};
  for (const auto& [name, size] : {std::pair{"m", x_.o.m}, {"k", x_.o.k}, {"n", x_.o.n}})
    if (size < 1 || size > 1'000'000)
      throw std::invalid_argument(
          fmt::format("--{} {}: a size is a whole number from 1 to 1,000,000.", name, size));
  if (const std::int64_t largest = std::max({x_.o.m * x_.o.k, x_.o.k * x_.o.n, x_.o.m * x_.o.n});
      largest >= std::int64_t{1} << 31)
    throw std::invalid_argument(
        fmt::format("a matrix of {} elements is too large: fewer than 2^31, please.", largest));
  const std::vector<bench::ProductLayout> layouts = bench::select_layouts(x_.o.layouts, x_.product.mesh);
  if (x_.o.cuda()) {
    setenv("SHARDARRAY_CUDA_LOGICAL_DEVICES", std::to_string(x_.product.devices()).c_str(), 0);
    x_.machine = sa::devices("cuda")[0].kind;
  } else {
    sa::set_cpu_device_count(x_.product.devices());
    x_.machine = fmt::format("{} worker{} on {}", x_.workers, x_.workers == 1 ? "" : "s", sa::cpu_model());
  }
  std::vector<std::pair<std::string, std::int64_t>> axes;
  for (const bench::MeshAxis& a : x_.product.mesh) axes.emplace_back(std::string(1, a.name), a.size);
  mesh_ = sa::make_mesh(axes);
  a_ = whole_numbers(x_.o.m * x_.o.k, 1);
  b_ = whole_numbers(x_.o.k * x_.o.n, 2);
  reference_ = plain_product(a_, b_, x_.product);
  if (x_.o.cuda()) add_gpu_cases();
  else add_cpu_cases();
  for (const bench::ProductLayout& l : layouts) add_layout(l);
}

template <class T> void LayoutBench::add_blas_case() {
  const sa::Blas* blas = sa::blas();
  if (blas == nullptr) return;
  x_.blas = x_.cases.size();
  auto product = std::make_shared<bench::BlasProduct<T>>(static_cast<int>(x_.o.m), static_cast<int>(x_.o.k),
                                                         static_cast<int>(x_.o.n));
  x_.cases.push_back({"BLAS, one device", [=] { (*product)(*blas); }, {}});
}

void LayoutBench::add_gpu_cases() {
  const sa::DType dtype = f32() ? sa::float32 : sa::float64;
  const auto product = [&](const std::string& name, std::int64_t m, std::int64_t k, std::int64_t n) {
    const sa::Array a = sa::random::normal(sa::random::key(1), {m, k}, dtype),
                    b = sa::random::normal(sa::random::key(2), {k, n}, dtype);
    const auto f = sa::jit([](const sa::Array& x, const sa::Array& y) { return sa::matmul(x, y); });
    x_.cases.push_back(
        {name,
         [=] { f(a, b).block_until_ready(); },
         {.flops = 2 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n)}});
    return x_.cases.size() - 1;
  };
  const std::int64_t side = x_.o.peak_size;
  x_.peaks.push_back(product(fmt::format("a product of {0} x {0} on one device", side), side, side, side));
  x_.blas = product("one device", x_.o.m, x_.o.k, x_.o.n);
  const std::int64_t largest = std::max({x_.o.m * x_.o.k, x_.o.k * x_.o.n, x_.o.m * x_.o.n});
  sa::AxisNames all;
  for (const bench::MeshAxis& a : x_.product.mesh) all.names.emplace_back(1, a.name);
  const sa::Array x =
      sa::device_put(sa::ones({x_.product.devices(), largest}, dtype), sa::NamedSharding(*mesh_, sa::P(all)));
  const auto doubled = sa::jit([](const sa::Array& v) { return v * 2; });
  x_.copied = static_cast<double>(x.size() * x_.product.itemsize);
  x_.copies = x_.cases.size();
  x_.cases.push_back({"copies", [=] { doubled(x).block_until_ready(); }, {}});
}

void LayoutBench::add_cpu_cases() {
  constexpr long turns = 20'000;
  for (const bench::FmaLoop& loop : bench::fma_loops(static_cast<int>(x_.product.itemsize))) {
    x_.peaks.push_back(x_.cases.size());
    const int parts = 4 * x_.workers;
    x_.cases.push_back({loop.name,
                        [=] { bench::on_all_workers(parts, [&](int) { loop.run(turns); }); },
                        {.flops = loop.flops * static_cast<double>(turns) * parts}});
  }
  if (f32()) add_blas_case<float>();
  else add_blas_case<double>();
  const std::int64_t largest =
      std::max({x_.o.m * x_.o.k, x_.o.k * x_.o.n, x_.o.m * x_.o.n}) * x_.product.itemsize;
  auto copies = std::make_shared<bench::Copies>(largest, x_.product.devices());
  x_.copied = copies->bytes();
  x_.copies = x_.cases.size();
  x_.cases.push_back({"copies", [=] { (*copies)(); }, {}});
}

std::size_t LayoutBench::add_case(const bench::LayoutRow& row, bool share) {
  const sa::Array a = matrix(a_, x_.o.m, x_.o.k, row.layout.a, share),
                  b = matrix(b_, x_.o.k, x_.o.n, row.layout.b, share);
  const auto f = sa::jit([](sa::Array x, sa::Array y) { return sa::matmul(x, y); },
                         {.out_shardings = sharding(row.layout.c)});
  x_.cases.push_back({row.name, [=, this, name = row.name, checked = false]() mutable {
                        sa::set_share_replicas(share);
                        const sa::Array c = f(a, b);
                        c.block_until_ready();
                        if (!checked) check(c, name);
                        checked = true;
                      }});
  return x_.cases.size() - 1;
}

void LayoutBench::add_layout(const bench::ProductLayout& layout) {
  bench::LayoutRow row;
  row.layout = layout;
  row.name = bench::to_text(layout, x_.product.mesh);
  sa::set_share_replicas(false);
  const auto f = sa::jit([](sa::Array x, sa::Array y) { return sa::matmul(x, y); },
                         {.out_shardings = sharding(layout.c)});
  const sa::Explanation plan = sa::explain(f, matrix(a_, x_.o.m, x_.o.k, layout.a, false),
                                           matrix(b_, x_.o.k, x_.o.n, layout.b, false));
  for (const sa::TransferInfo& t : plan.transfers()) {
    std::string names = t.axes;
    std::erase_if(names, [](char c) { return c == '{' || c == '}'; });
    const std::string axes = names.empty() ? "" : "(" + names + ")",
                      space = row.collectives.empty() ? "" : " ";
    row.collectives.append(space).append(t.kind).append(axes);
    row.short_collectives.append(space).append(bench::initials(t.kind)).append(axes);
    row.bytes += static_cast<double>(t.bytes_per_device);
    row.moved += static_cast<double>(t.moved_bytes);
  }
  row.flops = static_cast<double>(plan.flops);
  row.known = bench::strategies(x_.product, layout);
  row.least = bench::least_bytes(row.known, row.flops);
  row.timed = add_case(row, false);
  if (x_.o.share) row.shared = add_case(row, true);
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
        const float expected = reference_[static_cast<std::size_t>(i * x_.o.n + j)];
        if (values.at(at) != static_cast<double>(expected))
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
  const bench::Report report(x_);
  report.print();
  if (!x_.o.json_file.empty()) report.write_json();
  if (!x_.o.csv_file.empty()) report.write_csv();
}

}  // namespace

static void add_options(CLI::App& app, bench::LayoutOptions& o) {
  app.add_option(
         "--platform", o.platform,
         "cpu, or cuda: as many logical devices as the mesh has, unless SHARDARRAY_CUDA_LOGICAL_DEVICES\n"
         "says otherwise")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--mesh", o.mesh, "Axes of one letter with sizes, up to three: x=8 or x=2,y=4")
      ->capture_default_str();
  app.add_option("--m", o.m, "Rows of A and C")->capture_default_str();
  app.add_option("--k", o.k, "Columns of A, rows of B")->capture_default_str();
  app.add_option("--n", o.n, "Columns of B and C")->capture_default_str();
  app.add_option("--dtype", o.dtype, "f32, f64, or on a GPU tf32: float32 by way of TF32")
      ->check(CLI::IsMember({"f32", "f64", "tf32"}))
      ->capture_default_str();
  app.add_option("--peak-size", o.peak_size, "Rows of the square product that a GPU's peak is taken from")
      ->check(CLI::Range(1, 32768))
      ->capture_default_str();
  app.add_option(
         "--layouts", o.layouts,
         "all, random:N, or A,B,C ...: each matrix as rows and columns, '.' whole, x cut by axis x, x+y by\n"
         "both, 'any' every cut: x.,.y,xy is A in rows by x, B in columns by y, C by both")
      ->capture_default_str();
  app.add_option("--top", o.top, "Prints only the N fastest")->check(CLI::Range(1, 1'000'000));
  app.add_option("--rounds", o.rounds, "Samples of each layout, in rounds of shuffled order")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--min-time", o.sample, "Seconds that a sample lasts at least")
      ->check(CLI::Range(0.0, 60.0))
      ->capture_default_str();
  app.add_flag("--share-replicas", o.share,
               "Measures besides how fast it is when replicas share memory and work");
  app.add_option("--json", o.json_file, "Writes all figures to this file");
  app.add_option("--csv", o.csv_file, "Writes the table to this file");
}

int main(int argc, char** argv) {
  bench::LayoutOptions o;
  bool quick = false;
  CLI::App app{"Measures layouts of C[m,n] = A[m,k] B[k,n] on a mesh of virtual devices."};
  add_options(app, o);
  app.add_flag("--quick", quick, "Few short samples, and a small peak: to see that it runs");
  CLI11_PARSE(app, argc, argv);
  if (quick) o.rounds = 3, o.sample = 1e-4, o.peak_size = 256;
  setenv("SHARDARRAY_PLATFORM", o.platform.c_str(), 1);
  try {
    if (o.dtype == "tf32" && !o.cuda())
      throw std::invalid_argument("--dtype tf32: the CPU has no TF32. Add --platform cuda.");
    LayoutBench(std::move(o)).run();
  } catch (const std::exception& e) {
    fmt::print(stderr, "matmul_layouts: {}\n", e.what());
    return 1;
  }
}
