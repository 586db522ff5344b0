#include "cuda/printed_words.h"

#include <fmt/format.h>

namespace shardarray::cuda {

const char* printed_type(DType t) {
  switch (t) {
    case DType::bool_: return "bool";
    case DType::int8: return "std::int8_t";
    case DType::int16: return "std::int16_t";
    case DType::int32: return "std::int32_t";
    case DType::int64: return "std::int64_t";
    case DType::uint8: return "std::uint8_t";
    case DType::uint16: return "std::uint16_t";
    case DType::uint32: return "std::uint32_t";
    case DType::uint64: return "std::uint64_t";
    case DType::float32: return "float";
    default: return "double";
  }
}

std::string printed_bits(DType t, std::uint64_t bits) {
  if (t == bool_) return (bits & 1) != 0 ? "true" : "false";
  if (t == float32) return fmt::format("scalar::from_bits<float>({:#x}u)", bits);
  if (t == float64) return fmt::format("scalar::from_bits<double>({:#x}ull)", bits);
  return fmt::format("static_cast<{}>({:#x}{})", printed_type(t), bits, itemsize(t) == 8 ? "ull" : "u");
}

const char* printed_reducer(Reducer r) {
  switch (r) {
    case Reducer::sum: return "Sum";
    case Reducer::prod: return "Prod";
    case Reducer::max: return "Max";
    case Reducer::min: return "Min";
    case Reducer::any: return "Any";
    default: return "All";
  }
}

}  // namespace shardarray::cuda
