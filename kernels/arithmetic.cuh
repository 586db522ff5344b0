// One instruction of kernel IR on bits, shared by the interpreter's kernels. The arithmetic is scalar.h's.
#pragma once
#include "kernels/access.cuh"
// See device.cuh for how scalar.h is compiled.
#include "runtime/instruction_bits.h"

namespace shardarray::device {

using scalar::pack;
using scalar::value_of;
using scalar::with_type;

struct Instruction {
  Code code;
  DType type, from;     ///< of the result (store: of the value); of the first operand (select: of the values)
  std::uint8_t detail;  ///< call: the Function; load, load_at, store: bytes per element
  std::uint16_t dst, a, b, c;  ///< slots
  std::uint64_t imm;           ///< constant: its bits; index, load, load_at, store: the argument
};

/// The result of an instruction other than load, store, index or reduce.
SHARDARRAY_DEVICE SHARDARRAY_NOT_INLINE inline std::uint64_t evaluate(const Instruction& in, std::uint64_t a,
                                                                      std::uint64_t b, std::uint64_t c) {
  if (in.code == Code::constant) return in.imm;
  if (in.code == Code::call)
    return pack(
        scalar::call_function(static_cast<Function>(in.detail), value_of<double>(a), value_of<double>(b)));
  return scalar::evaluate_bits(in.code, in.type, in.from, a, b, c);
}

/// Combines two elements, as bits: by an instruction of the table; by one known at compile time; or not at all, where there is only one.
struct TableCombine {
  const Instruction& instruction;
  SHARDARRAY_DEVICE std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    return evaluate(instruction, a, b, 0);
  }
};
struct NoCombine {
  SHARDARRAY_DEVICE explicit NoCombine(const Instruction&) {}
  SHARDARRAY_DEVICE std::uint64_t operator()(std::uint64_t a, std::uint64_t) const { return a; }
};
template <class T, Code code> struct KnownCombine {
  SHARDARRAY_DEVICE explicit KnownCombine(const Instruction&) {}
  SHARDARRAY_DEVICE std::uint64_t operator()(std::uint64_t a, std::uint64_t b) const {
    const T x = value_of<T>(a), y = value_of<T>(b);
    if constexpr (code == Code::and_ || code == Code::or_) return scalar::on_bits(code, x, y);
    else return scalar::on_numbers(code, x, y);
  }
};

using SumFloats = KnownCombine<float, Code::add>;

SHARDARRAY_DEVICE inline std::uint64_t rounded_off_bits(DType t, std::uint64_t a, std::uint64_t b) {
  return t == DType::float32 ? pack(scalar::rounded_off(value_of<float>(a), value_of<float>(b)))
                             : pack(scalar::rounded_off(value_of<double>(a), value_of<double>(b)));
}
SHARDARRAY_DEVICE inline std::uint64_t with_rounded_off_bits(DType t, std::uint64_t total,
                                                             std::uint64_t lost) {
  return t == DType::float32
             ? pack(scalar::with_rounded_off(value_of<float>(total), value_of<float>(lost)))
             : pack(scalar::with_rounded_off(value_of<double>(total), value_of<double>(lost)));
}

/// Elements of 1, 2, 4 or 8 bytes.
SHARDARRAY_DEVICE inline std::uint64_t read_bits(const std::byte* p, std::uint32_t bytes) {
  check_aligned(p, bytes);
  switch (bytes) {
    case 1: return *reinterpret_cast<const std::uint8_t*>(p);
    case 2: return *reinterpret_cast<const std::uint16_t*>(p);
    case 4: return *reinterpret_cast<const std::uint32_t*>(p);
    default: return *reinterpret_cast<const std::uint64_t*>(p);
  }
}
SHARDARRAY_DEVICE inline void write_bits(std::byte* p, std::uint32_t bytes, std::uint64_t x) {
  check_aligned(p, bytes);
  switch (bytes) {
    case 1: *reinterpret_cast<std::uint8_t*>(p) = static_cast<std::uint8_t>(x); break;
    case 2: *reinterpret_cast<std::uint16_t*>(p) = static_cast<std::uint16_t>(x); break;
    case 4: *reinterpret_cast<std::uint32_t*>(p) = static_cast<std::uint32_t>(x); break;
    default: *reinterpret_cast<std::uint64_t*>(p) = x; break;
  }
}

/// 16-byte elements are complex numbers, which kernels only move.
struct alignas(16) Bytes16 {
  std::uint64_t low, high;
};
SHARDARRAY_DEVICE inline void copy_element(std::byte* to, const std::byte* from, std::uint32_t bytes) {
  if (bytes == 16) {
    check_aligned(to, 16);
    check_aligned(from, 16);
    *reinterpret_cast<Bytes16*>(to) = *reinterpret_cast<const Bytes16*>(from);
    return;
  }
  write_bits(to, bytes, read_bits(from, bytes));
}

}  // namespace shardarray::device
