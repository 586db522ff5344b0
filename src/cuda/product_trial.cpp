#include "cuda/product_trial.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "kernels/device.cuh"
#include "shardarray/dtype.h"

namespace shardarray::cuda {
namespace {

/// The stride between matrices, at the best alignment.
std::size_t bytes_of(const ProductMatrix& m, std::size_t size) {
  constexpr std::size_t line = 256;
  const std::size_t bytes = static_cast<std::size_t>(m.ld) * static_cast<std::size_t>(m.columns) * size;
  return (bytes + line - 1) / line * line;
}
/// All matrices of a strided call.
std::size_t bytes_of_all(const ProductMatrix& m, std::int64_t batch, std::size_t size) {
  return bytes_of(m, size) + static_cast<std::size_t>(batch - 1) * static_cast<std::size_t>(m.stride) * size;
}
/// For a pointer-array call: matrices of which each `parts` are parts of one.
class ApartMatrices {
 public:
  ApartMatrices(const ProductMatrix& m, std::int64_t parts, std::size_t size)
      : parts_(static_cast<std::size_t>(parts)), step_(static_cast<std::size_t>(m.part_stride) * size) {
    constexpr std::size_t line = 256;
    each_ = (bytes_of(m, size) + (parts_ - 1) * step_ + line - 1) / line * line;
  }
  std::size_t offset(std::size_t number) const { return number / parts_ * each_ + number % parts_ * step_; }
  std::size_t bytes(std::size_t count) const { return count / parts_ * each_; }

 private:
  const std::size_t parts_, step_;
  std::size_t each_;
};

/// Random numbers of either sign, random in all bits but the exponent's: with equal numbers a GPU draws less power, and so is faster.
void fill_with_numbers(Turn& turn, const BufferRef& to, std::size_t size) {
  std::vector<unsigned char> some(std::min(to->bytes, std::size_t{1} << 20));
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < some.size(); i++) {
    const auto byte = static_cast<unsigned char>(random() >> 8);
    some[i] = i % size == size - 1 ? static_cast<unsigned char>((byte & 0x80u) | 0x3cu) : byte;
  }
  auto* const first = static_cast<std::byte*>(to->data);
  turn.upload(first, some.data(), some.size());
  for (std::size_t done = some.size(); done < to->bytes; done *= 2)
    turn.copy(first + done, first, std::min(done, to->bytes - done));
}

}  // namespace

ProductTrial::ProductTrial(CudaBackend& backend, Gpu& gpu, ReadyProduct product, std::size_t workspace,
                           bool copied)
    : product_(std::move(product)), gives_back_{backend, gpu} {
  const ProductCall& c = product_.plan.call;
  const ProductMatrix* const matrices[] = {&c.first, &c.second, &c.result};
  const std::size_t out = itemsize(c.out);
  const auto batch = static_cast<std::size_t>(c.batch);
  // The results of all parts are contiguous.
  const auto apart = [&](int k) {
    const std::int64_t parts = k < 2 || c.parts == 1 ? c.parts : c.batch;
    return ApartMatrices(*matrices[k], parts, k == 2 ? out : itemsize(c.in));
  };
  for (int k = 0; k < 3; k++) {
    const std::size_t size = k == 2 ? out : itemsize(c.in);
    memory_[k] = backend.allocate_for_launches(
        gpu, c.by_pointers() ? apart(k).bytes(batch) : bytes_of_all(*matrices[k], c.batch, size));
    if (c.by_pointers()) addresses_[k] = backend.allocate_for_launches(gpu, batch * sizeof(std::uint64_t));
  }
  if (workspace > 0) workspace_ = backend.allocate_for_launches(gpu, workspace);
  if (c.has_bias())  // with room to place it at the wanted alignment
    bias_ = backend.allocate_for_launches(
        gpu, bytes_of_all(c.bias, c.batch, out) + std::size_t{4} * c.bias.alignment);
  result_bytes_ = static_cast<std::size_t>(c.batch / c.parts * c.result.rows * c.result.columns) * out;
  if (c.parts > 1) {
    sum_ = backend.allocate_for_launches(gpu,
                                         static_cast<std::size_t>(c.batch / c.parts) * bytes_of(c.sum, out));
    sum_table_ = backend.allocate_for_launches(gpu, sum_here().table.size() + device::table_margin);
  }
  if (copied) copy_ = backend.allocate_for_launches(gpu, result_bytes_);
  Turn turn(gpu);
  for (int k = 0; k < 3; k++) fill_with_numbers(turn, memory_[k], k == 2 ? out : itemsize(c.in));
  if (bias_) fill_with_numbers(turn, bias_, out);
  for (int k = 0; k < 3 && c.by_pointers(); k++) {
    std::vector<std::uint64_t> all;
    const ApartMatrices matrix = apart(k);
    for (std::size_t b = 0; b < batch; b++)
      all.push_back(reinterpret_cast<std::uint64_t>(memory_[k]->data) + matrix.offset(b));
    turn.upload(addresses_[k]->data, all.data(), all.size() * sizeof all[0]);
  }
  if (c.parts == 1) return;
  const PartsSum sum = sum_here();
  sum_kernel_ = gpu.kernel(sum.kernel);
  sum_grid_ = sum.grid;
  turn.upload(sum_table_->data, sum.table.data(), sum.table.size());
}

/// All sums in one block of memory, the only base.
PartsSum ProductTrial::sum_here() const {
  ProductCall c = product_.plan.call;
  const std::size_t each = bytes_of(c.sum, itemsize(c.out));
  c.sum.refs.clear();
  for (std::int64_t i = 0; i < c.batch / c.parts; i++)
    c.sum.refs.push_back({0, static_cast<std::uint64_t>(i) * each});
  return sum_of_parts(c);
}

/// Aligned exactly as the library was told, and no better: it may check.
void* ProductTrial::bias() const {
  if (!bias_) return nullptr;
  const std::uintptr_t aligned = product_.plan.call.bias.alignment, twice = 2 * aligned;
  const auto from = reinterpret_cast<std::uintptr_t>(bias_->data);
  return reinterpret_cast<void*>((from + twice - 1) / twice * twice + aligned);
}

bool ProductTrial::asked(Turn& turn) const {
  const auto place = [&](int k) { return addresses_[k] ? addresses_[k]->data : memory_[k]->data; };
  const int status = multiply(*product_.library, product_.handle, product_.plan, place(0), place(1), bias(),
                              place(2), workspace_ ? workspace_->data : nullptr, turn.library_stream());
  if (status != 0 || !sum_) return status == 0;
  const void* table = sum_table_->data;
  void* parts = memory_[2]->data;
  device::Bases bases{};
  bases.few[0] = reinterpret_cast<std::uint64_t>(sum_->data);
  void* arguments[] = {&table, &parts, &bases};
  turn.launch(sum_kernel_, sum_grid_, arguments, "trial of a product");
  return true;
}

double ProductTrial::time(Gpu& gpu, const CublasLt::Algorithm& algorithm, std::size_t workspace) {
  product_.plan.algorithm = algorithm;
  product_.plan.workspace = workspace;
  constexpr double enough = 3e-3;  // seconds: long compared with the wait; GPU clocks ramp up under load
  constexpr double none = std::numeric_limits<double>::infinity();
  Turn turn(gpu);
  const auto seconds = [&](int calls) {
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < calls; k++) {
      if (!asked(turn)) return none;
      if (copy_) turn.copy(copy_->data, (sum_ ? sum_ : memory_[2])->data, result_bytes_);
    }
    turn.wait();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  if (seconds(1) == none) return none;  // loads the kernels
  const int calls = static_cast<int>(std::clamp(enough / seconds(1), 3.0, 20.0));
  return seconds(calls) / calls;
}

std::optional<bool> ProductTrial::keeps_nan(Gpu& gpu, const CublasLt::Algorithm& algorithm,
                                            std::size_t workspace) {
  product_.plan.algorithm = algorithm;
  product_.plan.workspace = workspace;
  constexpr unsigned char nan = 0xff;  // in every byte, a NaN for every float type
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
