// Stable sorts of lines.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cpu/address.h"
#include "cpu/library/library_call.h"
#include "runtime/lines.h"

namespace shardarray {
namespace {

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
    case DType::uint8: return read_number<std::uint8_t>(p);
    case DType::uint16: return read_number<std::uint16_t>(p);
    case DType::uint32: return read_number<std::uint32_t>(p);
    case DType::uint64: return read_number<std::uint64_t>(p);
    case DType::int8: return static_cast<std::uint64_t>(std::int64_t{read_number<std::int8_t>(p)}) ^ low;
    case DType::int16: return static_cast<std::uint64_t>(std::int64_t{read_number<std::int16_t>(p)}) ^ low;
    case DType::int32: return static_cast<std::uint64_t>(std::int64_t{read_number<std::int32_t>(p)}) ^ low;
    case DType::int64: return static_cast<std::uint64_t>(read_number<std::int64_t>(p)) ^ low;
    case DType::float16: return float_key(read_number<std::uint16_t>(p), 16, 0x7c00);
    case DType::bfloat16: return float_key(read_number<std::uint16_t>(p), 16, 0x7f80);
    case DType::float32: return float_key(read_number<std::uint32_t>(p), 32, 0x7f800000);
    default: return float_key(read_number<std::uint64_t>(p), 64, 0x7ff0000000000000);
  }
}

/// Lines of `length` elements that stand `inner` apart.
struct Sort {
  LibraryCall::Item item;
  std::vector<DType> types;
  std::int64_t length = 0, inner = 1;

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    struct Entry {
      std::uint64_t key;
      std::int64_t from;
    };
    std::vector<Entry> order(static_cast<std::size_t>(length));
    std::vector<char> line;  // outputs may lie on the inputs
    for (std::int64_t u = begin; u < end; u++) {
      const std::int64_t first = u / inner * inner * length + u % inner;
      const auto key_size = static_cast<std::int64_t>(itemsize(types[0]));
      const char* const keys = address(bases, item.in[0]);
      for (std::int64_t i = 0; i < length; i++)
        order[i] = {sort_key(types[0], keys + (first + i * inner) * key_size), i};
      // The position makes equal keys differ: stable.
      std::sort(order.begin(), order.end(), [](const Entry& a, const Entry& b) {
        return a.key != b.key ? a.key < b.key : a.from < b.from;
      });
      for (std::size_t k = 0; k < types.size(); k++) {
        const auto size = static_cast<std::int64_t>(itemsize(types[k]));
        const char* const in = address(bases, item.in[k]);
        char* const out = address(bases, item.out[k]);
        line.resize(static_cast<std::size_t>(length * size));
        for (std::int64_t i = 0; i < length; i++) {
          std::memcpy(line.data() + i * size, in + (first + order[i].from * inner) * size,
                      static_cast<std::size_t>(size));
        }
        for (std::int64_t i = 0; i < length; i++) {
          std::memcpy(out + (first + i * inner) * size, line.data() + i * size,
                      static_cast<std::size_t>(size));
        }
      }
    }
  }
};

}  // namespace

LibraryPlan plan_sort(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType key = call.in_types[0];
  if (is_complex(key)) refuse_dtype("sort", key, "bool, integers and floats");
  const auto [count, length, inner] = lines_along(item.in_shapes[0], item.params[0]);
  Sort s{item, call.in_types, length, inner};
  const std::int64_t lines = length == 0 ? 0 : count;
  const auto n = static_cast<double>(s.length);
  const double cost =
      static_cast<double>(lines) * n * (5 + 3 * std::log2(n + 1) + 3 * static_cast<double>(s.types.size()));
  return {lines, cost, std::move(s)};
}

}  // namespace shardarray
