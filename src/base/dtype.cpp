#include "shardarray/dtype.h"

#include <array>
#include <iterator>
#include <ostream>
#include <string>

#include "shardarray/error.h"

namespace shardarray {
namespace {

struct Info {
  const char *name, *short_name;
  std::size_t itemsize;
};
constexpr Info infos[] = {
    {"bool", "bool", 1},   {"int8", "i8", 1},       {"int16", "i16", 2},        {"int32", "i32", 4},
    {"int64", "i64", 8},   {"uint8", "u8", 1},      {"uint16", "u16", 2},       {"uint32", "u32", 4},
    {"uint64", "u64", 8},  {"float16", "f16", 2},   {"bfloat16", "bf16", 2},    {"float32", "f32", 4},
    {"float64", "f64", 8}, {"complex64", "c64", 8}, {"complex128", "c128", 16},
};
const Info& info(DType t) {
  const auto number = static_cast<std::size_t>(t);
  if (number >= std::size(infos))  // possible if read from a file
    throw DTypeError("dtype: number " + std::to_string(number) +
                     ". There is no such dtype. Take one of float32, int32, ...");
  return infos[number];
}

// JAX's promotion lattice: the dtypes and the three kinds of weak scalars. a op b is their least upper bound.
constexpr int weak_int = 15, weak_float = 16, weak_complex = 17, node_count = 18;
constexpr int node(DType t) { return static_cast<int>(t); }
constexpr std::pair<int, int> edges[] = {
    {node(bool_), weak_int},         {weak_int, node(uint8)},           {weak_int, node(int8)},
    {node(uint8), node(int16)},      {node(uint8), node(uint16)},       {node(uint16), node(int32)},
    {node(uint16), node(uint32)},    {node(uint32), node(int64)},       {node(uint32), node(uint64)},
    {node(int8), node(int16)},       {node(int16), node(int32)},        {node(int32), node(int64)},
    {node(int64), weak_float},       {node(uint64), weak_float},        {weak_float, node(bfloat16)},
    {weak_float, node(float16)},     {weak_float, weak_complex},        {node(bfloat16), node(float32)},
    {node(float16), node(float32)},  {node(float32), node(float64)},    {node(float32), node(complex64)},
    {weak_complex, node(complex64)}, {node(float64), node(complex128)}, {node(complex64), node(complex128)},
};

// Bit b of above[a]: b is reachable from a. The least upper bound of a and b is the node whose set is the intersection of theirs.
constexpr std::array<std::uint32_t, node_count> reachable() {
  std::array<std::uint32_t, node_count> above{};
  for (int a = 0; a < node_count; a++) above[a] = 1u << a;
  for (int round = 0; round < node_count; round++)
    for (auto [from, to] : edges) above[from] |= above[to];
  return above;
}
constexpr auto above = reachable();

int least_upper_bound(int a, int b) {
  const std::uint32_t common = above[a] & above[b];
  for (int n = 0; n < node_count; n++)
    if (above[n] == common) return n;
  return node(complex128);
}

int lattice_node(WeakType t) {
  if (!t.weak || t.dtype == bool_) return node(t.dtype);
  return is_complex(t.dtype) ? weak_complex : is_floating(t.dtype) ? weak_float : weak_int;
}

bool is_64_bit(DType t) { return t == int64 || t == uint64 || t == float64 || t == complex128; }

DType narrowed(DType t) {
  switch (t) {
    case DType::int64: return int32;
    case DType::uint64: return uint32;
    case DType::float64: return float32;
    case DType::complex128: return complex64;
    default: return t;
  }
}

}  // namespace

std::size_t itemsize(DType t) { return info(t).itemsize; }
const char* name(DType t) { return info(t).name; }
const char* short_name(DType t) { return info(t).short_name; }

WeakType promote_types(WeakType a, WeakType b) {
  const bool wide = is_64_bit(a.dtype) || is_64_bit(b.dtype), weak = a.weak && b.weak;
  if (a.dtype == b.dtype && !weak) return {a.dtype, false};
  // Two weak types are promoted as their strong counterparts are.
  const int bound = weak ? least_upper_bound(node(a.dtype), node(b.dtype))
                         : least_upper_bound(lattice_node(a), lattice_node(b));
  const bool weak_bound = bound >= weak_int;
  const DType full = bound == weak_int       ? int64
                     : bound == weak_float   ? float64
                     : bound == weak_complex ? complex128
                                             : static_cast<DType>(bound);
  const DType dtype = wide ? full : narrowed(full);
  return {dtype, (weak || weak_bound) && dtype != bool_};
}

DType promote_types(DType a, DType b) { return promote_types(WeakType{a, false}, WeakType{b, false}).dtype; }

std::ostream& operator<<(std::ostream& os, DType t) { return os << name(t); }

}  // namespace shardarray
