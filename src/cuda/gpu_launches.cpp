#include "cuda/gpu_launches.h"

#include <algorithm>
#include <utility>

#include "base/codegen_mode.h"
#include "cuda/product_parts.h"

namespace shardarray::cuda {
namespace {

constexpr std::size_t table_alignment = 64, sort_alignment = 256;
constexpr std::int64_t sort_nodes = 20;  // nodes of a graph: about as many as CUB launches

void* address_of(std::span<void* const> bases, const GpuLaunches::Workspace& w, const Ref& r) {
  void* const base = r.base == scratch_base ? w.scratch->data : bases[r.base];
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(base) + r.offset);
}
/// Calls f with each address that a pointer-array call reads from the GPU's memory, in their order there.
template <class F> void for_addresses(const ProductCall& call, const F& f) {
  if (!call.by_pointers()) return;
  for (const ProductMatrix* m : {&call.first, &call.second, &call.result})
    for (const Ref& r : m->refs) f(r);
}

}  // namespace

GpuLaunches::GpuLaunches(CudaBackend& backend, Gpu& gpu, std::vector<KernelLaunch> launches,
                         std::size_t bases, std::uint64_t staging)
    : backend_(backend), gpu_(gpu), base_count_(bases + (staging > 0 ? 1 : 0)), staging_bytes_(staging) {
  std::vector<std::byte> tables;
  const auto add_table = [&](const std::vector<std::byte>& table) {
    const std::size_t at = (tables.size() + table_alignment - 1) / table_alignment * table_alignment;
    tables.resize(at);
    tables.insert(tables.end(), table.begin(), table.end());
    return at;
  };
  bool done = false;  // by the previous launch
  for (KernelLaunch& l : launches) {
    launches_.push_back(
        {l.sort.count > 0 ? nullptr : gpu_.kernel(l.kernel),
         {l.blocks, l.items, l.threads},
         {l.printed_blocks, l.items, l.printed_threads},
         add_table(l.table),
         spelled(l.label, l.where),
         l.bases,
         l.products.empty() ? std::vector<ReadyProduct>() : ready_products(backend, gpu, l.products),
         {},
         std::exchange(done, false),
         l.sort});
    Ready& ready = launches_.back();
    if (ready.done) l.loop = nullptr;  // no kernel is printed
    if (!l.products_and_next.empty()) {
      auto both = ready_epilogues(backend, gpu, ready.products, l.products_and_next);
      done = !both.empty();
      if (done) ready.products = std::move(both);
    }
    if (l.sort.count > 0) {
      ready.own = (l.scratch_bytes + sort_alignment - 1) / sort_alignment * sort_alignment;
      ready.own_bytes = gpu_.sort_memory(l.sort);
    }
    scratch_bytes_ = std::max({scratch_bytes_, l.scratch_bytes, ready.own + ready.own_bytes});
    for (const ReadyProduct& p : ready.products) {
      scratch_bytes_ = std::max(scratch_bytes_, bytes_of_parts(p.plan.call) + p.plan.workspace);
      Sum& sum = ready.sums.emplace_back();
      if (p.plan.call.parts > 1) {
        const PartsSum s = sum_of_parts(p.plan.call);
        sum = {gpu_.kernel(s.kernel), s.grid, add_table(s.table)};
      }
      for_addresses(p.plan.call, [&](const Ref& r) { operands_.push_back(r); });
    }
  }
  if (launches.empty()) return;
  tables_ = backend_.allocate_for_launches(gpu_, tables.size() + device::table_margin);
  Turn(gpu_).upload(tables_->data, tables.data(), tables.size());
  if (codegen_mode_of_environment() != CodegenMode::off) printed_ = PrintedLoops::of(gpu_, launches);
}

std::int64_t GpuLaunches::graph_nodes() const {
  std::int64_t nodes = 0;
  for (const Ready& l : launches_) {
    nodes += l.done ? 0 : static_cast<std::int64_t>(std::max<std::size_t>(l.products.size(), 1));
    if (l.sort.count > 0) nodes += sort_nodes;
    nodes += std::ranges::count_if(l.sums, [](const Sum& s) { return s.kernel != nullptr; });
  }
  return nodes;
}

bool GpuLaunches::only_kernels() const {
  return std::all_of(launches_.begin(), launches_.end(),
                     [](const Ready& l) { return l.products.empty() && l.sort.count == 0; });
}

GpuLaunches::Workspace GpuLaunches::take_workspace() const {
  Workspace w;
  if (scratch_bytes_ > 0) w.scratch = backend_.allocate_for_launches(gpu_, scratch_bytes_);
  if (base_count_ > device::few_bases && !launches_.empty())
    w.addresses = backend_.allocate_for_launches(gpu_, base_count_ * sizeof(std::uint64_t));
  if (staging_bytes_ > 0) w.staging = backend_.allocate_for_launches(gpu_, staging_bytes_);
  if (!operands_.empty())
    w.operands = backend_.allocate_for_launches(gpu_, operands_.size() * sizeof(std::uint64_t));
  return w;
}

device::Bases GpuLaunches::bind(Turn& turn, std::span<void* const> bases, const Workspace& w) const {
  device::Bases bound{};
  std::vector<std::uint64_t> all;
  for (void* const b : bases) all.push_back(reinterpret_cast<std::uint64_t>(b));
  if (w.staging) all.push_back(reinterpret_cast<std::uint64_t>(w.staging->data));
  if (w.addresses) {
    turn.upload(w.addresses->data, all.data(), all.size() * sizeof all[0]);
    bound.many = static_cast<const std::uint64_t*>(w.addresses->data);
  } else if (all.size() <= device::few_bases) {
    std::copy(all.begin(), all.end(), bound.few);
  }
  if (w.operands) {
    all.clear();
    for (const Ref& r : operands_) all.push_back(reinterpret_cast<std::uint64_t>(address_of(bases, w, r)));
    turn.upload(w.operands->data, all.data(), all.size() * sizeof all[0]);
  }
  return bound;
}

void GpuLaunches::ask(Turn& turn, std::size_t first, std::size_t last, std::span<void* const> bases,
                      const device::Bases& bound, const Workspace& w, std::size_t& operand) const {
  const std::vector<KernelHandle>* const printed = printed_ ? printed_->kernels() : nullptr;
  for (std::size_t k = first; k < last; k++) {
    const Ready& l = launches_[k];
    if (l.done) continue;
    if (!l.products.empty()) {
      ask_products(turn, l, bases, bound, w, operand);
      continue;
    }
    if (l.sort.count > 0) {
      std::byte* const memory = static_cast<std::byte*>(w.scratch->data);
      turn.sort_pairs(l.sort, memory, memory + l.own, l.own_bytes, l.step);
      continue;
    }
    Arguments arguments = arguments_of(l.table, bound, w);
    turn.launch(kernel_of(k, printed), grid_of(k, printed), arguments.addresses().data(), l.step);
  }
}

void GpuLaunches::ask_products(Turn& turn, const Ready& launch, std::span<void* const> bases,
                               const device::Bases& bound, const Workspace& w, std::size_t& operand) const {
  for (std::size_t k = 0; k < launch.products.size(); k++) {
    const ReadyProduct& p = launch.products[k];
    const ProductCall& call = p.plan.call;
    const auto place = [&](const ProductMatrix& m) -> void* {
      if (!call.by_pointers()) return address_of(bases, w, m.refs[0]);
      operand += m.refs.size();
      return static_cast<std::uint64_t*>(w.operands->data) + (operand - m.refs.size());
    };
    const void* const first = place(call.first);
    const void* const second = place(call.second);
    void* const memory =
        w.scratch ? static_cast<std::byte*>(w.scratch->data) + bytes_of_parts(call) : nullptr;
    const void* const bias = call.has_bias() ? address_of(bases, w, call.bias.refs[0]) : nullptr;
    void* const result = place(call.result);
    const auto make = [&] {
      return multiply(*p.library, p.handle, p.plan, first, second, bias, result, memory,
                      turn.library_stream());
    };
    int status = make();
    if (status == CublasLt::no_memory) {
      gpu_.make_room();
      status = make();
    }
    if (status != 0)
      turn.fail("cublasLtMatmul", p.library->status_name(status), launch.step, status == CublasLt::no_memory);
    const Sum& sum = launch.sums[k];
    if (sum.kernel == nullptr) continue;
    Arguments arguments = arguments_of(sum.table, bound, w);
    turn.launch(sum.kernel, sum.grid, arguments.addresses().data(), launch.step);
  }
}

}  // namespace shardarray::cuda
