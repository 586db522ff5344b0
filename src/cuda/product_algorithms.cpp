#include "cuda/product_algorithms.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include "cuda/product_parts.h"
#include "cuda/product_trial.h"
#include "runtime/object_cache.h"
#include "shardarray/dtype.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

/// NVIDIA's recommendation; Hopper and later need more.
std::size_t most_workspace(const Gpu& gpu) {
  constexpr int hopper = 9;
  return std::size_t{gpu.properties().major >= hopper ? 32u : 4u} << 20;
}

struct ProductChoice {
  CublasLt::Algorithm algorithm;
  std::uint64_t workspace = 0;
  /// 0: an epilogue, but the plain product and the loop are faster; more than 1: split into so many parts.
  std::uint64_t taken = 1;
};

/// The process's known choices, and a handle per GPU. Never destroyed.
class ProductAlgorithms {
 public:
  CublasLt::Handle handle(Gpu& gpu, const CublasLt& library) {
    const std::lock_guard lock(mutex_);
    CublasLt::Handle& known = handles_[gpu.number()];
    if (known != nullptr) return known;
    const Turn turn(gpu);  // a handle is for the current GPU
    CublasLt::Handle fresh = nullptr;
    int status = library.create(&fresh);
    if (status != 0) {  // whatever the status: what it needs most is memory
      gpu.make_room();
      status = library.create(&fresh);
    }
    if (status != 0)
      throw CompileError(
          fmt::format("cuda: cublasLtCreate failed on GPU {} ({}): {}. Large products are made by "
                      "cuBLASLt 13. Install one that works.",
                      gpu.number(), gpu.properties().name, library.status_name(status)));
    return known = fresh;
  }

  /// Gives the product its algorithm, or replaces it by its parts. False: the library has no algorithm for it.
  bool choose(CudaBackend& backend, Gpu& gpu, ReadyProduct& product) {
    std::string key =
        algorithm_key(*product.library, product.plan.call, gpu.properties().name, most_workspace(gpu));
    const auto counts = part_counts(product.plan.call, gpu.properties().multiprocessors);
    if (!counts.empty()) key += "whole or in parts\n";
    const auto choice = known_or(product, key, most_workspace(gpu),
                                 [&] { return chosen(backend, gpu, product, counts, key); });
    if (!choice) return false;
    if (choice->taken > 1) product = parts_of(product, static_cast<std::int64_t>(choice->taken));
    product.plan.algorithm = choice->algorithm;
    product.plan.workspace = choice->workspace;
    return true;
  }
  /// For the product with the loop as its epilogue. None: separate ones are as fast, or it could not be measured.
  std::optional<ProductChoice> epilogue_choice(CudaBackend& backend, Gpu& gpu, const ReadyProduct& plain,
                                               const ReadyProduct& both) {
    const auto key_of = [&](const ReadyProduct& p) {
      return algorithm_key(*p.library, p.plan.call, gpu.properties().name, most_workspace(gpu));
    };
    const std::string key = key_of(plain) + "and its loop: " + key_of(both);
    const auto found = known_or(both, key, most_workspace(gpu), [&]() -> std::optional<ProductChoice> {
      try {
        return compared(backend, gpu, plain, both, key);
      } catch (const OutOfMemory&) { return std::nullopt; }
    });
    return found && found->taken != 0 ? found : std::nullopt;
  }

 private:
  template <class Find>
  std::optional<ProductChoice> known_or(const ReadyProduct& product, const std::string& key, std::size_t most,
                                        const Find& find) {
    const std::lock_guard lock(mutex_);
    if (const auto it = known_.find(key); it != known_.end()) return it->second;
    std::optional<ProductChoice> found = kept(product, key, most);
    if (!found) found = find();
    constexpr std::size_t most_known = 4096;
    if (known_.size() >= most_known) known_.clear();
    if (found) known_[key] = *found;
    return found;
  }
  static ReadyProduct parts_of(const ReadyProduct& p, std::int64_t parts) {
    return {p.library, p.handle, describe_product(*p.library, in_parts(p.plan.call, parts))};
  }
  static bool works(const ReadyProduct& p, const ProductChoice& c, std::size_t most_workspace) {
    CublasLt::Candidate now;
    const int status = p.library->check_algorithm(p.handle, &p.plan.product, &p.plan.first, &p.plan.second,
                                                  &p.plan.result, &p.plan.result, &c.algorithm, &now);
    return status == 0 && now.workspace <= c.workspace && c.workspace <= most_workspace;
  }
  /// From the disk cache.
  std::optional<ProductChoice> kept(const ReadyProduct& product, const std::string& key, std::size_t most) {
    const auto object = cache_.find(key);
    ProductChoice c;
    if (!object || object->size() != sizeof c) return std::nullopt;
    std::memcpy(&c, object->data(), sizeof c);
    if (c.taken == 0) return c;
    const auto parts = static_cast<std::int64_t>(c.taken);
    if (parts > 1 && (parts > product.plan.call.depth() || product.plan.call.depth() % parts != 0))
      return std::nullopt;
    if (!works(parts > 1 ? parts_of(product, parts) : product, c, most)) return std::nullopt;
    return c;
  }

  /// The usable ones, by estimated speed.
  static std::vector<CublasLt::Candidate> candidates(const Gpu& gpu, const ReadyProduct& p) {
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
    return good;
  }
  /// `counts`: the numbers of parts to try.
  std::optional<ProductChoice> chosen(CudaBackend& backend, Gpu& gpu, const ReadyProduct& p,
                                      const std::vector<std::int64_t>& counts, const std::string& key) {
    const auto good = candidates(gpu, p);
    if (good.empty()) return std::nullopt;
    ProductChoice choice{good[0].algorithm, good[0].workspace};
    if (p.plan.call.multiply_adds() <= product_limits().guessed && counts.empty()) return choice;
    double least = std::numeric_limits<double>::infinity();
    const auto try_all = [&](const ReadyProduct& tried, const std::vector<CublasLt::Candidate>& all) {
      ProductTrial trial(backend, gpu, tried, most_of(all));
      const auto [best, seconds] = fastest(gpu, trial, all);
      if (seconds >= least) return;
      least = seconds;
      choice = of(*best);
      choice.taken = static_cast<std::uint64_t>(tried.plan.call.parts);
    };
    try {
      try_all(p, good);
      for (const std::int64_t count : counts) {
        const ReadyProduct parts = parts_of(p, count);
        if (const auto all = candidates(gpu, parts); !all.empty()) try_all(parts, all);
      }
      if (!std::isinf(least)) keep(key, choice);
    } catch (const OutOfMemory&) {}  // keep the first guess, or the best of those that fit into memory
    return choice;
  }
  /// None if one of the two could not be tried.
  std::optional<ProductChoice> compared(CudaBackend& backend, Gpu& gpu, const ReadyProduct& plain,
                                        const ReadyProduct& both, const std::string& key) {
    const auto good = candidates(gpu, both);
    if (good.empty()) return std::nullopt;
    const double apart = ProductTrial(backend, gpu, plain, plain.plan.workspace, true)
                             .time(gpu, plain.plan.algorithm, plain.plan.workspace);
    ProductTrial trial(backend, gpu, both, most_of(good));
    const auto [best, seconds] = fastest(gpu, trial, good);
    if (best == nullptr || std::isinf(apart)) return std::nullopt;
    ProductChoice choice = of(*best);
    std::optional<bool> right = true;
    // Our relu keeps NaN; cuBLASLt documents nothing.
    if (both.plan.call.relu) right = trial.keeps_nan(gpu, choice.algorithm, choice.workspace);
    if (!right) return std::nullopt;
    choice.taken = *right && seconds < apart ? 1 : 0;
    keep(key, choice);
    return choice;
  }

  static ProductChoice of(const CublasLt::Candidate& c) { return {c.algorithm, c.workspace}; }
  static std::size_t most_of(const std::vector<CublasLt::Candidate>& all) {
    std::size_t most = 0;
    for (const auto& c : all) most = std::max(most, c.workspace);
    return most;
  }
  /// With its time; null: none runs.
  static std::pair<const CublasLt::Candidate*, double> fastest(Gpu& gpu, ProductTrial& trial,
                                                               const std::vector<CublasLt::Candidate>& good) {
    std::pair<const CublasLt::Candidate*, double> best(nullptr, std::numeric_limits<double>::infinity());
    for (const auto& c : good) {
      const double seconds = trial.time(gpu, c.algorithm, c.workspace);
      if (seconds < best.second) best = {&c, seconds};
    }
    return best;
  }
  void keep(const std::string& key, const ProductChoice& choice) {
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

/// False if the library has no algorithm for it.
bool make_ready(CudaBackend& backend, Gpu& gpu, const CublasLt& library, const ProductCall& call,
                std::vector<ReadyProduct>& to) {
  ReadyProduct p{&library, product_algorithms().handle(gpu, library), describe_product(library, call)};
  if (product_algorithms().choose(backend, gpu, p)) {
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

std::vector<ReadyProduct> ready_epilogues(CudaBackend& backend, Gpu& gpu,
                                          const std::vector<ReadyProduct>& plain,
                                          const std::vector<ProductCall>& calls) {
  std::vector<ReadyProduct> ready;
  if (plain.size() != calls.size()) return ready;  // the library is missing
  try {
    for (std::size_t k = 0; k < calls.size(); k++) {
      const ReadyProduct& p = plain[k];
      if (p.plan.call.multiply_adds() <= product_limits().guessed) return {};
      ReadyProduct both{p.library, p.handle, describe_product(*p.library, calls[k])};
      const auto choice = product_algorithms().epilogue_choice(backend, gpu, p, both);
      if (!choice) return {};
      both.plan.algorithm = choice->algorithm;
      both.plan.workspace = choice->workspace;
      ready.push_back(std::move(both));
    }
  } catch (const CompileError&) { return {}; }  // a library without this epilogue
  return ready;
}

}  // namespace shardarray::cuda
