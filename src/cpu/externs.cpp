#include "cpu/externs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/ceil_div.h"
#include "cpu/address.h"
#include "runtime/scalar.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::int64_t column_block = 64;

template <class T> T read(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// Floats of any width by sign and magnitude: `bits` has `width` bits, magnitudes above `infinity` are NaN.
/// All NaN are one key, the last; both zeros are one key.
std::uint64_t float_key(std::uint64_t bits, int width, std::uint64_t infinity) {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1), magnitude = bits & (sign - 1);
  if (magnitude > infinity) return ~std::uint64_t{0};
  return bits & sign ? sign - magnitude : sign + magnitude;
}

/// A number in the order of the values.
std::uint64_t sort_key(DType t, const char* p) {
  constexpr std::uint64_t low = std::uint64_t{1}
                                << 63;  // turns the order of signed numbers into that of unsigned ones
  switch (t) {
    case DType::bool_:
    case DType::uint8: return read<std::uint8_t>(p);
    case DType::uint16: return read<std::uint16_t>(p);
    case DType::uint32: return read<std::uint32_t>(p);
    case DType::uint64: return read<std::uint64_t>(p);
    case DType::int8: return static_cast<std::uint64_t>(std::int64_t{read<std::int8_t>(p)}) ^ low;
    case DType::int16: return static_cast<std::uint64_t>(std::int64_t{read<std::int16_t>(p)}) ^ low;
    case DType::int32: return static_cast<std::uint64_t>(std::int64_t{read<std::int32_t>(p)}) ^ low;
    case DType::int64: return static_cast<std::uint64_t>(read<std::int64_t>(p)) ^ low;
    case DType::float16: return float_key(read<std::uint16_t>(p), 16, 0x7c00);
    case DType::bfloat16: return float_key(read<std::uint16_t>(p), 16, 0x7f80);
    case DType::float32: return float_key(read<std::uint32_t>(p), 32, 0x7f800000);
    default: return float_key(read<std::uint64_t>(p), 64, 0x7ff0000000000000);
  }
}

std::int64_t read_index(DType t, const char* p) {
  switch (t) {
    case DType::int8: return read<std::int8_t>(p);
    case DType::int16: return read<std::int16_t>(p);
    case DType::int32: return read<std::int32_t>(p);
    case DType::uint8: return read<std::uint8_t>(p);
    case DType::uint16: return read<std::uint16_t>(p);
    case DType::uint32: return read<std::uint32_t>(p);
    default: return read<std::int64_t>(p);  // of uint64, what is too large is negative: no row
  }
}

[[noreturn]] void refuse(const char* what, DType t, const char* takes) {
  throw CompileError(fmt::format("{}: the CPU has no kernel for {}. It takes {}. Convert the operand first.",
                                 what, name(t), takes));
}

}  // namespace

ExternPlan::ExternPlan(const Extern& x, const Extern::Item& item) : item_(item), types_(x.in_types) {
  switch (x.kind) {
    case ExternKind::sort: plan_sort(); break;
    case ExternKind::scatter_add: plan_scatter_add(); break;
  }
}

void ExternPlan::plan_sort() {
  if (is_complex(types_[0])) refuse("sort", types_[0], "bool, integers and floats");
  const Shape& shape = item_.in_shapes[0];
  const auto dim = static_cast<std::size_t>(item_.params[0]);
  length_ = shape[dim];
  inner_ = std::accumulate(shape.begin() + dim + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  units_ = length_ == 0 ? 0 : num_elements(shape) / length_;
  const auto n = static_cast<double>(length_);
  cost_ns_ =
      static_cast<double>(units_) * n * (5 + 3 * std::log2(n + 1) + 3 * static_cast<double>(types_.size()));
  run_ = &ExternPlan::sort;
}

void ExternPlan::sort(void* const* bases, std::int64_t begin, std::int64_t end) const {
  struct Entry {
    std::uint64_t key;
    std::int64_t from;
  };
  std::vector<Entry> order(static_cast<std::size_t>(length_));
  std::vector<char> line;  // outputs may lie on the inputs
  for (std::int64_t u = begin; u < end; u++) {
    const std::int64_t first = u / inner_ * inner_ * length_ + u % inner_;
    const auto key_size = static_cast<std::int64_t>(itemsize(types_[0]));
    const char* const keys = address(bases, item_.in[0]);
    for (std::int64_t i = 0; i < length_; i++)
      order[i] = {sort_key(types_[0], keys + (first + i * inner_) * key_size), i};
    // The position makes equal keys differ: stable.
    std::sort(order.begin(), order.end(), [](const Entry& a, const Entry& b) {
      return a.key != b.key ? a.key < b.key : a.from < b.from;
    });
    for (std::size_t k = 0; k < types_.size(); k++) {
      const auto size = static_cast<std::int64_t>(itemsize(types_[k]));
      const char* const in = address(bases, item_.in[k]);
      char* const out = address(bases, item_.out[k]);
      line.resize(static_cast<std::size_t>(length_ * size));
      for (std::int64_t i = 0; i < length_; i++) {
        std::memcpy(line.data() + i * size, in + (first + order[i].from * inner_) * size,
                    static_cast<std::size_t>(size));
      }
      for (std::int64_t i = 0; i < length_; i++) {
        std::memcpy(out + (first + i * inner_) * size, line.data() + i * size,
                    static_cast<std::size_t>(size));
      }
    }
  }
}

void ExternPlan::plan_scatter_add() {
  const DType index = types_[0], values = types_[1];
  if (!is_integer(index)) refuse("scatter_add", index, "rows of an integer dtype");
  switch (values) {
    case DType::int8: run_ = &ExternPlan::scatter_add<std::int8_t>; break;
    case DType::int16: run_ = &ExternPlan::scatter_add<std::int16_t>; break;
    case DType::int32: run_ = &ExternPlan::scatter_add<std::int32_t>; break;
    case DType::int64: run_ = &ExternPlan::scatter_add<std::int64_t>; break;
    case DType::uint8: run_ = &ExternPlan::scatter_add<std::uint8_t>; break;
    case DType::uint16: run_ = &ExternPlan::scatter_add<std::uint16_t>; break;
    case DType::uint32: run_ = &ExternPlan::scatter_add<std::uint32_t>; break;
    case DType::uint64: run_ = &ExternPlan::scatter_add<std::uint64_t>; break;
    case DType::float32: run_ = &ExternPlan::scatter_add<float>; break;
    case DType::float64: run_ = &ExternPlan::scatter_add<double>; break;
    default: refuse("scatter_add", values, "integers, float32 or float64");
  }
  const Shape& table = item_.out_shapes[0];
  batch_ = table[0];
  rows_ = table[1];
  columns_ = table[2];
  updates_ = item_.in_shapes[0][1];
  units_ = batch_ * rows_ == 0 ? 0 : ceil_div(columns_, column_block);
  cost_ns_ = static_cast<double>(batch_) * (static_cast<double>((rows_ + updates_) * columns_) * 0.5 +
                                            static_cast<double>(updates_ * units_) * 3);
}

template <class T>
void ExternPlan::scatter_add(void* const* bases, std::int64_t begin, std::int64_t end) const {
  const char* const rows = address(bases, item_.in[0]);
  const auto* const updates = reinterpret_cast<const T*>(address(bases, item_.in[1]));
  auto* const out = reinterpret_cast<T*>(address(bases, item_.out[0]));
  const auto index_size = static_cast<std::int64_t>(itemsize(types_[0]));
  const std::int64_t first = begin * column_block, count = std::min(columns_, end * column_block) - first;
  const std::int64_t first_row = item_.params[0];
  for (std::int64_t r = 0; r < batch_ * rows_; r++) std::fill_n(out + r * columns_ + first, count, T{});
  for (std::int64_t i = 0; i < batch_ * updates_; i++) {
    const std::int64_t row = read_index(types_[0], rows + i * index_size);
    if (row < first_row || row - first_row >= rows_) continue;
    T* const to = out + (i / updates_ * rows_ + row - first_row) * columns_ + first;
    const T* const update = updates + i * columns_ + first;
    for (std::int64_t c = 0; c < count; c++) to[c] = scalar::add(to[c], update[c]);
  }
}

}  // namespace shardarray
