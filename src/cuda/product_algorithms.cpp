#include "cuda/product_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/object_cache.h"
#include "shardarray/dtype.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// What NVIDIA advises; Hopper and later need more.
std::size_t most_workspace(const Gpu& gpu) {
  constexpr int hopper = 9;
  return std::size_t{gpu.properties().major >= hopper ? 32u : 4u} << 20;
}

struct ProductChoice {
  CublasLt::Algorithm algorithm;
  std::uint64_t workspace = 0;
};

/// Memory on which a call is tried.
class ProductTrial {
 public:
  /// `workspace`: of the algorithm that needs most. Throws OutOfMemory.
  ProductTrial(CudaBackend& backend, Gpu& gpu, ReadyProduct product, std::size_t workspace)
      : product_(std::move(product)) {
    const ProductCall& c = product_.plan.call;
    const ProductMatrix* const matrices[] = {&c.first, &c.second, &c.result};
    for (int k = 0; k < 3; k++) {
      const std::size_t size = itemsize(k == 2 ? c.out : c.in), one = bytes_of(*matrices[k], size);
      const auto batch = static_cast<std::size_t>(c.batch);
      const std::size_t all = c.by_pointers()
                                  ? batch * one
                                  : one + (batch - 1) * static_cast<std::size_t>(matrices[k]->stride) * size;
      memory_[k] = backend.allocate_for_launches(gpu, all);
      if (c.by_pointers()) addresses_[k] = backend.allocate_for_launches(gpu, batch * sizeof(std::uint64_t));
    }
    if (workspace > 0) workspace_ = backend.allocate_for_launches(gpu, workspace);
    fill(gpu);
  }

  /// Seconds that a call takes; infinity where the algorithm is refused.
  double time(Gpu& gpu, const CublasLt::Candidate& candidate) {
    product_.plan.algorithm = candidate.algorithm;
    product_.plan.workspace = candidate.workspace;
    constexpr double enough = 2e10;  // multiply-adds, of a time that is long beside waiting for it
    const int calls = static_cast<int>(std::clamp(enough / product_.plan.call.multiply_adds(), 3.0, 20.0));
    Turn turn(gpu);
    if (!asked(turn)) return std::numeric_limits<double>::infinity();
    turn.wait();
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; k++)
      if (!asked(turn)) return std::numeric_limits<double>::infinity();
    turn.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
  }

 private:
  /// From one matrix to the next, which is as well aligned as any.
  static std::size_t bytes_of(const ProductMatrix& m, std::size_t size) {
    constexpr std::size_t line = 256;
    const std::size_t bytes = static_cast<std::size_t>(m.ld) * static_cast<std::size_t>(m.columns) * size;
    return (bytes + line - 1) / line * line;
  }
  void fill(Gpu& gpu) {
    constexpr unsigned char small_number = 0x3c;  // of every float, in all of its bytes
    const ProductCall& c = product_.plan.call;
    const ProductMatrix* const matrices[] = {&c.first, &c.second, &c.result};
    Turn turn(gpu);
    for (int k = 0; k < 3; k++) {
      turn.fill(memory_[k]->data, small_number, memory_[k]->bytes);
      if (!c.by_pointers()) continue;
      std::vector<std::uint64_t> all;
      for (std::int64_t b = 0; b < c.batch; b++)
        all.push_back(reinterpret_cast<std::uint64_t>(memory_[k]->data) +
                      static_cast<std::uint64_t>(b) *
                          bytes_of(*matrices[k], itemsize(k == 2 ? c.out : c.in)));
      turn.upload(addresses_[k]->data, all.data(), all.size() * sizeof all[0]);
    }
  }
  bool asked(Turn& turn) const {
    const auto place = [&](int k) { return addresses_[k] ? addresses_[k]->data : memory_[k]->data; };
    return multiply(*product_.library, product_.handle, product_.plan, place(0), place(1), place(2),
                    workspace_ ? workspace_->data : nullptr, turn.stream()) == 0;
  }

  ReadyProduct product_;
  BufferRef memory_[3], addresses_[3], workspace_;
};

/// The choices that this process knows, and a handle for each GPU. Never destroyed.
class ProductAlgorithms {
 public:
  CublasLt::Handle handle(Gpu& gpu, const CublasLt& library) {
    const std::lock_guard lock(mutex_);
    CublasLt::Handle& known = handles_[gpu.number()];
    if (known != nullptr) return known;
    const Turn turn(gpu);  // a library's handle is for the GPU that is set
    if (const int status = library.create(&known); status != 0)
      throw CompileError(
          fmt::format("cuda: cublasLtCreate failed on GPU {} ({}): {}. Large products are made by "
                      "cuBLASLt 13. Install one that works.",
                      gpu.number(), gpu.properties().name, library.status_name(status)));
    return known;
  }

  /// None: the library has no algorithm for it.
  std::optional<ProductChoice> choice(CudaBackend& backend, Gpu& gpu, const ReadyProduct& product) {
    const std::string key =
        algorithm_key(*product.library, product.plan.call, gpu.properties().name, most_workspace(gpu));
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    std::optional<ProductChoice> found = kept(product, key, most_workspace(gpu));
    if (!found) found = chosen(backend, gpu, product, key);
    constexpr std::size_t most_known = 4096;
    if (known_.size() >= most_known) known_.clear();
    if (found) known_[key] = *found;
    return found;
  }

 private:
  static bool works(const ReadyProduct& p, const ProductChoice& c, std::size_t most_workspace) {
    CublasLt::Candidate now;
    const int status = p.library->check_algorithm(p.handle, &p.plan.product, &p.plan.first, &p.plan.second,
                                                  &p.plan.result, &p.plan.result, &c.algorithm, &now);
    return status == 0 && now.workspace <= c.workspace && c.workspace <= most_workspace;
  }
  /// From the disk.
  std::optional<ProductChoice> kept(const ReadyProduct& product, const std::string& key, std::size_t most) {
    const auto object = cache_.find(key);
    ProductChoice c;
    if (!object || object->size() != sizeof c) return std::nullopt;
    std::memcpy(&c, object->data(), sizeof c);
    if (!works(product, c, most)) return std::nullopt;
    return c;
  }

  std::optional<ProductChoice> chosen(CudaBackend& backend, Gpu& gpu, const ReadyProduct& p,
                                      const std::string& key) {
    constexpr int most = 8;
    CublasLt::Candidate all[most];
    int found = 0;
    const CublasLt::Preference preference = product_preference(*p.library, p.plan.call, most_workspace(gpu));
    const int status =
        p.library->find_algorithms(p.handle, &p.plan.product, &p.plan.first, &p.plan.second, &p.plan.result,
                                   &p.plan.result, &preference, most, all, &found);
    std::vector<CublasLt::Candidate> good;
    for (int k = 0; status == 0 && k < found; k++)
      if (all[k].status == 0) good.push_back(all[k]);
    if (good.empty()) return std::nullopt;
    const CublasLt::Candidate* best = &good[0];
    if (p.plan.call.multiply_adds() > product_limits().guessed) {
      best = fastest(backend, gpu, p, good);
      if (best == nullptr) best = &good[0];
      else keep(key, *best);
    }
    return ProductChoice{best->algorithm, best->workspace};
  }
  /// Null where there is no memory to try them, or none runs.
  static const CublasLt::Candidate* fastest(CudaBackend& backend, Gpu& gpu, const ReadyProduct& p,
                                            const std::vector<CublasLt::Candidate>& good) {
    std::size_t workspace = 0;
    for (const auto& c : good) workspace = std::max(workspace, c.workspace);
    const CublasLt::Candidate* best = nullptr;
    try {
      ProductTrial trial(backend, gpu, p, workspace);
      double least = std::numeric_limits<double>::infinity();
      for (const auto& c : good) {
        const double seconds = trial.time(gpu, c);
        if (seconds >= least) continue;
        least = seconds;
        best = &c;
      }
    } catch (const OutOfMemory&) { return nullptr; }
    return best;
  }
  void keep(const std::string& key, const CublasLt::Candidate& c) {
    const ProductChoice choice{c.algorithm, c.workspace};
    cache_.put(key, {reinterpret_cast<const char*>(&choice), sizeof choice});
  }

  std::mutex mutex_;
  ObjectCache cache_{object_cache_folder()};
  std::unordered_map<int, CublasLt::Handle> handles_;
  std::unordered_map<std::string, ProductChoice> known_;
};
ProductAlgorithms& product_algorithms() {
  static ProductAlgorithms& all = *new ProductAlgorithms;
  return all;
}

/// False where the library has no algorithm for it.
bool make_ready(CudaBackend& backend, Gpu& gpu, const CublasLt& library, const ProductCall& call,
                std::vector<ReadyProduct>& to) {
  ReadyProduct p{&library, product_algorithms().handle(gpu, library), describe_product(library, call)};
  if (const auto choice = product_algorithms().choice(backend, gpu, p)) {
    p.plan.algorithm = choice->algorithm;
    p.plan.workspace = choice->workspace;
    to.push_back(std::move(p));
    return true;
  }
  if (!call.by_pointers()) return false;
  for (const ProductCall& single : single_products(call))
    if (!make_ready(backend, gpu, library, single, to)) return false;
  return true;
}

void say_slow_products(std::atomic<bool>& said, const std::string& why) {
  if (!said.exchange(true))
    fmt::print(stderr, "shardarray: {} Products on CUDA devices run in a slower kernel.\n", why);
}

}  // namespace

std::vector<ReadyProduct> ready_products(CudaBackend& backend, Gpu& gpu,
                                         const std::vector<ProductCall>& calls) {
  static std::atomic<bool> said_missing = false, said_refused = false;
  std::vector<ReadyProduct> ready;
  try {
    for (const ProductCall& c : calls) {
      if (make_ready(backend, gpu, cublas_lt(), c, ready)) continue;
      say_slow_products(said_refused,
                        fmt::format("cuda: cuBLASLt has no algorithm for products {} x {} x {} of {}. "
                                    "It has them for what its GPU knows. Please report this.",
                                    c.result.columns, c.depth(), c.result.rows, name(c.in)));
      return {};
    }
  } catch (const CompileError& e) {
    say_slow_products(said_missing, e.what());
    return {};
  }
  return ready;
}

}  // namespace shardarray::cuda
