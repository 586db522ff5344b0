#include "cuda/product_trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "shardarray/dtype.h"

namespace shardarray::cuda {
namespace {

/// From one matrix to the next, which is as well aligned as any.
std::size_t bytes_of(const ProductMatrix& m, std::size_t size) {
  constexpr std::size_t line = 256;
  const std::size_t bytes = static_cast<std::size_t>(m.ld) * static_cast<std::size_t>(m.columns) * size;
  return (bytes + line - 1) / line * line;
}
/// All matrices of a call that is not by addresses.
std::size_t bytes_of_all(const ProductMatrix& m, std::int64_t batch, std::size_t size) {
  return bytes_of(m, size) + static_cast<std::size_t>(batch - 1) * static_cast<std::size_t>(m.stride) * size;
}

}  // namespace

ProductTrial::ProductTrial(CudaBackend& backend, Gpu& gpu, ReadyProduct product, std::size_t workspace,
                           bool copied)
    : product_(std::move(product)), gives_back_{backend, gpu} {
  const ProductCall& c = product_.plan.call;
  const ProductMatrix* const matrices[] = {&c.first, &c.second, &c.result};
  const std::size_t out = itemsize(c.out);
  for (int k = 0; k < 3; k++) {
    const std::size_t size = k == 2 ? out : itemsize(c.in);
    const auto batch = static_cast<std::size_t>(c.batch);
    memory_[k] =
        backend.allocate_for_launches(gpu, c.by_pointers() ? batch * bytes_of(*matrices[k], size)
                                                           : bytes_of_all(*matrices[k], c.batch, size));
    if (c.by_pointers()) addresses_[k] = backend.allocate_for_launches(gpu, batch * sizeof(std::uint64_t));
  }
  if (workspace > 0) workspace_ = backend.allocate_for_launches(gpu, workspace);
  if (c.has_bias())  // with room for its place
    bias_ = backend.allocate_for_launches(
        gpu, bytes_of_all(c.bias, c.batch, out) + std::size_t{4} * c.bias.alignment);
  result_bytes_ = static_cast<std::size_t>(c.batch * c.result.rows * c.result.columns) * out;
  if (copied) copy_ = backend.allocate_for_launches(gpu, result_bytes_);
  constexpr unsigned char small_number = 0x3c;  // of every float, in all of its bytes
  Turn turn(gpu);
  for (const BufferRef& m : {memory_[0], memory_[1], memory_[2], bias_})
    if (m) turn.fill(m->data, small_number, m->bytes);
  for (int k = 0; k < 3 && c.by_pointers(); k++) {
    std::vector<std::uint64_t> all;
    for (std::int64_t b = 0; b < c.batch; b++)
      all.push_back(reinterpret_cast<std::uint64_t>(memory_[k]->data) +
                    static_cast<std::uint64_t>(b) * bytes_of(*matrices[k], k == 2 ? out : itemsize(c.in)));
    turn.upload(addresses_[k]->data, all.data(), all.size() * sizeof all[0]);
  }
}

/// As aligned as the library was told, and no better: it may look.
void* ProductTrial::bias() const {
  if (!bias_) return nullptr;
  const std::uintptr_t aligned = product_.plan.call.bias.alignment, twice = 2 * aligned;
  const auto from = reinterpret_cast<std::uintptr_t>(bias_->data);
  return reinterpret_cast<void*>((from + twice - 1) / twice * twice + aligned);
}

bool ProductTrial::asked(Turn& turn) const {
  const auto place = [&](int k) { return addresses_[k] ? addresses_[k]->data : memory_[k]->data; };
  return multiply(*product_.library, product_.handle, product_.plan, place(0), place(1), bias(), place(2),
                  workspace_ ? workspace_->data : nullptr, turn.stream()) == 0;
}

double ProductTrial::time(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace) {
  product_.plan.algorithm = algorithm;
  product_.plan.workspace = workspace;
  constexpr double enough = 2e10;  // multiply-adds, of a time that is long beside waiting for it
  const int calls = static_cast<int>(std::clamp(enough / product_.plan.call.multiply_adds(), 3.0, 20.0));
  Turn turn(gpu);
  if (!asked(turn)) return std::numeric_limits<double>::infinity();
  turn.wait();
  const auto start = std::chrono::steady_clock::now();
  for (int k = 0; k < calls; k++) {
    if (!asked(turn)) return std::numeric_limits<double>::infinity();
    if (copy_) turn.copy(copy_->data, memory_[2]->data, result_bytes_);
  }
  turn.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

std::optional<bool> ProductTrial::keeps_nan(Gpu& gpu, const CublasLt::Algorithm& algorithm,
                                            std::size_t workspace) {
  product_.plan.algorithm = algorithm;
  product_.plan.workspace = workspace;
  constexpr unsigned char nan = 0xff;  // of every float, in all of its bytes
  const ProductCall& c = product_.plan.call;
  const std::size_t rows = static_cast<std::size_t>(c.result.rows);
  std::vector<std::byte> column(rows * itemsize(c.out));
  Turn turn(gpu);
  turn.fill(memory_[0]->data, nan, memory_[0]->bytes);
  turn.fill(memory_[2]->data, 0, memory_[2]->bytes);
  if (!asked(turn)) return std::nullopt;
  turn.read(column.data(), memory_[2]->data, column.size());
  for (std::size_t i = 0; i < rows; i++) {
    double wide = 0;
    float narrow = 0;
    if (c.out == float64) std::memcpy(&wide, &column[i * sizeof wide], sizeof wide);
    else std::memcpy(&narrow, &column[i * sizeof narrow], sizeof narrow);
    if (!std::isnan(wide) && !std::isnan(narrow)) return false;
  }
  return true;
}

}  // namespace shardarray::cuda
