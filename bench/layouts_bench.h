// Plans, places and measures the layouts of matmul_layouts, or predicts them for a described machine.
#pragma once
#include <shardarray/shardarray.h>

#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "execute/launch.h"
#include "layout_shardings.h"
#include "layouts_limits.h"
#include "layouts_results.h"

namespace bench {

// Integers from -3 to 3.
inline std::vector<float> whole_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 bits(seed);
  std::vector<float> v(static_cast<std::size_t>(count));
  for (float& x : v) x = static_cast<float>(bits() % 7) - 3;
  return v;
}

// The product by plain loops: exact, as all sums stay below 2^24.
inline std::vector<float> plain_product(const std::vector<float>& a, const std::vector<float>& b,
                                        std::int64_t rows_of_a, std::int64_t columns_of_a,
                                        std::int64_t columns_of_b) {
  const auto m = static_cast<std::size_t>(rows_of_a), k = static_cast<std::size_t>(columns_of_a),
             n = static_cast<std::size_t>(columns_of_b);
  constexpr std::size_t rows = 8;
  std::vector<float> c(m * n);
  on_all_workers(static_cast<int>((m + rows - 1) / rows), [&](int block) {
    const std::size_t begin = static_cast<std::size_t>(block) * rows, end = std::min(m, begin + rows);
    for (std::size_t l = 0; l < k; l++)
      for (std::size_t i = begin; i < end; i++)
        for (std::size_t j = 0; j < n; j++) c[i * n + j] += a[i * k + l] * b[l * n + j];
  });
  return c;
}

class LayoutBench {
 public:
  explicit LayoutBench(LayoutOptions o) { x_.o = std::move(o); }
  /// Everything that was asked for.
  LayoutResults run();

 private:
  using Array = shardarray::Array;
  using Inputs = std::map<std::string, Array>;
  shardarray::Sharding sharding(const Cut& c) const { return sharding_of(x_.product, *mesh_, c); }
  /// The operands of a layout, without and with values.
  std::vector<Array> placeholders(const ProductLayout& layout) const;
  std::vector<Array> operands(const ProductLayout& layout, bool share);
  Array matrix(std::size_t which, const Cut& cut, bool share);
  /// Rows and columns of A, B and V.
  std::array<std::int64_t, 2> sides(std::size_t which) const {
    if (which == 0) return {x_.o.m, x_.o.k};
    if (which == 1) return {x_.o.k, x_.o.n};
    return {x_.o.n, x_.o.k};
  }
  static std::vector<Cut> cuts(const ProductLayout& l) {
    std::vector<Cut> all{l.a, l.b};
    if (l.v) all.push_back(*l.v);
    return all;
  }
  void make_matrices();
  void make_mesh();
  void plan(const ProductLayout& layout);
  shardarray::JitOptions asked(const ProductLayout& layout) const;
  std::function<Array()> call(const ProductLayout& layout, std::vector<Array> of) const;
  void explain(LayoutRow& row);
  void find_picked(LayoutRow& row);
  void add_limits();
  void keep_fastest();
  std::size_t add_case(const LayoutRow& row, bool share);
  void check(const Array& c, const std::string& name) const;

  LayoutResults x_;
  std::optional<shardarray::Mesh> mesh_;
  shardarray::Machine machine_;               ///< whose rates times are predicted with
  std::array<std::vector<float>, 3> values_;  // of A, B and V
  std::vector<float> reference_;
  std::array<Inputs, 2> inputs_;  // with separate and with shared replicas

  static Array one(const Array& a, const Array& b) { return shardarray::matmul(a, b); }
  static Array two(const Array& a, const Array& b, const Array& v) {
    return shardarray::matmul(shardarray::matmul(a, b), v);
  }
};

inline LayoutResults LayoutBench::run() {
  const shardarray::tf32 mode(x_.o.dtype == "tf32");
  x_.product = x_.o.product();
  if (!x_.o.described()) x_.load = load_average();
  x_.workers = shardarray::ThreadPool::instance().worker_count();
  make_mesh();
  if (!x_.o.described()) make_matrices();
  for (const ProductLayout& l : select_layouts(x_.o.layouts, x_.product.mesh, x_.o.chain)) plan(l);
  if (!x_.o.described()) {
    add_limits();
    if (x_.o.most > 0) keep_fastest();
    for (LayoutRow& r : x_.rows) {
      r.timed = add_case(r, false);
      if (x_.o.share) r.shared = add_case(r, true);
    }
    measure(x_.cases, x_.o.rounds, x_.o.sample);
    shardarray::set_share_replicas(true);
    x_.find_rates();
  }
  x_.sort();
  return std::move(x_);
}

inline void LayoutBench::make_mesh() {
  const int count = x_.product.devices();
  if (x_.o.described()) {
    machine_ = shardarray::machine(x_.o.machine);
    x_.machine = fmt::format("{}: {}", machine_.name, machine_.kind);
    std::vector<shardarray::Device> devices = machine_.devices();
    if (static_cast<int>(devices.size()) < count)
      throw std::invalid_argument(fmt::format(
          "--machine {} --mesh {}: the machine has {} device{}, the mesh needs {}. Make the mesh smaller.",
          x_.o.machine, x_.o.mesh, devices.size(), devices.size() == 1 ? "" : "s", count));
    devices.resize(static_cast<std::size_t>(count));
    shardarray::Shape sizes;
    std::vector<std::string> names;
    for (const MeshAxis& a : x_.product.mesh) {
      sizes.push_back(a.size);
      names.emplace_back(1, a.name);
    }
    mesh_ = shardarray::Mesh(shardarray::DeviceGrid{sizes, devices}, names);
    return;
  }
  if (x_.o.cuda()) {
    setenv("SHARDARRAY_CUDA_LOGICAL_DEVICES", std::to_string(count).c_str(), 0);
    x_.machine = shardarray::devices("cuda")[0].kind;
  } else {
    shardarray::set_cpu_device_count(count);
    x_.machine =
        fmt::format("{} worker{} on {}", x_.workers, x_.workers == 1 ? "" : "s", shardarray::cpu_model());
  }
  mesh_ = mesh_of(x_.product);
  machine_ = shardarray::this_machine(mesh_->devices());
}

inline void LayoutBench::make_matrices() {
  const auto rounded = [&](std::vector<float> v) {
    for (float& x : v) x = static_cast<float>(x_.o.type().rounded(x));
    return v;
  };
  for (std::size_t k = 0; k < (x_.o.chain ? 3 : 2); k++) {
    const auto [rows, columns] = sides(k);
    values_[k] = whole_numbers(rows * columns, static_cast<unsigned>(k + 1));
  }
  reference_ = plain_product(values_[0], values_[1], x_.o.m, x_.o.k, x_.o.n);
  if (x_.o.chain) reference_ = plain_product(rounded(reference_), values_[2], x_.o.m, x_.o.n, x_.o.k);
}
inline std::vector<shardarray::Array> LayoutBench::placeholders(const ProductLayout& layout) const {
  std::vector<Array> all;
  for (const Cut& cut : cuts(layout)) {
    const auto [rows, columns] = sides(all.size());
    all.push_back(shardarray::shape_dtype_struct({rows, columns}, x_.o.type().dtype, sharding(cut)));
  }
  return all;
}
inline std::vector<shardarray::Array> LayoutBench::operands(const ProductLayout& layout, bool share) {
  std::vector<Array> all;
  for (const Cut& cut : cuts(layout)) all.push_back(matrix(all.size(), cut, share));
  return all;
}
inline shardarray::Array LayoutBench::matrix(std::size_t which, const Cut& cut, bool share) {
  Array& x = inputs_[share][fmt::format("{} {}", which, to_text(cut, x_.product.mesh))];
  if (!x.has_value()) {
    shardarray::set_share_replicas(share);
    const auto [rows, columns] = sides(which);
    x = shardarray::device_put(shardarray::array(values_[which], {rows, columns}).astype(x_.o.type().dtype),
                               sharding(cut));
    x.block_until_ready();
  }
  return x;
}

inline shardarray::JitOptions LayoutBench::asked(const ProductLayout& layout) const {
  shardarray::JitOptions options;
  if (!layout.picked) options.out_shardings = sharding(layout.c);
  return options;
}
inline std::function<shardarray::Array()> LayoutBench::call(const ProductLayout& layout,
                                                            std::vector<Array> of) const {
  if (layout.v) return [f = shardarray::jit(two, asked(layout)), of] { return f(of[0], of[1], of[2]); };
  return [f = shardarray::jit(one, asked(layout)), of] { return f(of[0], of[1]); };
}

inline void LayoutBench::plan(const ProductLayout& layout) {
  LayoutRow row;
  row.layout = layout;
  row.picked = layout.picked;
  row.name = to_text(layout, x_.product.mesh);
  shardarray::set_share_replicas(false);
  explain(row);
  if (layout.picked) find_picked(row);
  if (row.picked)  // the same program need not be measured twice
    for (LayoutRow& r : x_.rows)
      if (r.layout == row.layout && r.same_plan(row)) {
        r.picked = true;
        return;
      }
  row.known = strategies(x_.product, row.layout);
  row.least = least_bytes(row.known, row.flops);
  x_.rows.push_back(std::move(row));
}

// What the call would move, compute and hold, and what known strategies would need.
inline void LayoutBench::explain(LayoutRow& row) {
  const std::vector<Array> of = placeholders(row.layout);
  const shardarray::Explanation plan =
      (row.layout.v ? shardarray::explain(shardarray::jit(two, asked(row.layout)), of[0], of[1], of[2])
                    : shardarray::explain(shardarray::jit(one, asked(row.layout)), of[0], of[1]))
          .on(machine_);
  for (const shardarray::TransferInfo& t : plan.transfers()) {
    std::string names = t.axes;
    std::erase_if(names, [](char c) { return c == '{' || c == '}'; });
    const std::string axes = names.empty() ? "" : "(" + names + ")",
                      space = row.collectives.empty() ? "" : " ";
    row.collectives.append(space).append(t.kind).append(axes);
    row.short_collectives.append(space).append(initials(t.kind)).append(axes);
    row.moved += static_cast<double>(t.moved_bytes);
  }
  row.bytes = static_cast<double>(plan.received_bytes_per_device());
  row.flops = static_cast<double>(plan.flops);
  row.memory = static_cast<double>(plan.peak_bytes_per_device);
  row.result = plan.results().at(0);
  row.math = plan.compute_seconds;
  row.comm = plan.transfer_seconds;
}

// The C that the library picks: as a cut if it is one; otherwise the known strategies are those to any C.
inline void LayoutBench::find_picked(LayoutRow& row) {
  const std::string& type = row.result;
  const std::vector<Cut> all = ordered_cuts(x_.product.mesh);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Cut& cut) {
    return shardarray::shape_dtype_struct({x_.o.m, x_.product.columns()}, x_.o.type().dtype, sharding(cut))
               .type_string() == type;
  });
  if (found != all.end()) row.layout = {row.layout.a, row.layout.b, *found, false, row.layout.v};
  else row.c_spelling = type.substr(type.find('['));
}

inline void LayoutBench::add_limits() {
  if (x_.o.cuda()) add_gpu_limits(x_, *mesh_);
  else add_cpu_limits(x_);
}

// Keeps the layouts that are predicted to be the fastest.
inline void LayoutBench::keep_fastest() {
  x_.sort_by_prediction();
  const std::size_t kept = std::min(x_.rows.size(), static_cast<std::size_t>(x_.o.most));
  x_.not_measured = x_.rows.size() - kept;
  x_.rows.resize(kept);
}

inline std::size_t LayoutBench::add_case(const LayoutRow& row, bool share) {
  ProductLayout layout = row.layout;
  layout.picked = row.picked;
  x_.cases.push_back({row.name, [=, this, f = call(layout, operands(layout, share)), name = row.name,
                                 checked = false]() mutable {
                        shardarray::set_share_replicas(share);
                        const Array c = f();
                        c.block_until_ready();
                        if (!checked) check(c, name);
                        checked = true;
                      }});
  return x_.cases.size() - 1;
}

// Compares every device's shard with the plain product.
inline void LayoutBench::check(const Array& c, const std::string& name) const {
  for (const shardarray::Shard& shard : c.addressable_shards()) {
    const auto rows = shard.index[0].whole ? shardarray::IndexRange{false, 0, x_.o.m} : shard.index[0];
    const auto columns =
        shard.index[1].whole ? shardarray::IndexRange{false, 0, x_.product.columns()} : shard.index[1];
    const std::vector<double> values = shard.data.to_vector<double>();
    std::size_t at = 0;
    for (std::int64_t i = rows.start; i < rows.stop; i++)
      for (std::int64_t j = columns.start; j < columns.stop; j++, at++) {
        const double expected = x_.o.type().rounded(
            static_cast<double>(reference_[static_cast<std::size_t>(i * x_.product.columns() + j)]));
        if (values.at(at) != expected)
          throw std::runtime_error(fmt::format("{}: element ({}, {}) on {} is {}, should be {}", name, i, j,
                                               shardarray::to_string(shard.device), values[at], expected));
      }
  }
}

}  // namespace bench
