// The inputs of code generation: single kernels, and sequences of small ones.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "base/key.h"
#include "cpu/loops/loop_nest.h"
#include "cpu/products/gemm_spec.h"

namespace shardarray {

using KernelSpec = std::variant<LoopNestSpec, GemmSpec>;

/// Kernels that a program runs in this order, as one function whose `args` are the program's base pointers. Loops have fixed numbers;
/// products run their whole batch.
struct SequenceSpec {
  struct Call {
    std::size_t kernel = 0;             ///< index into `kernels`
    std::vector<Ref> args;              ///< the arguments of the kernel's function
    std::vector<std::int64_t> numbers;  ///< of a loop
  };
  std::vector<KernelSpec> kernels;  ///< without duplicates
  std::vector<Call> calls;

  std::vector<std::uint64_t> key() const;
};

/// The input of one function. All functions have the same signature.
using CodeSpec = std::variant<LoopNestSpec, GemmSpec, SequenceSpec>;
/// Equal keys, equal code.
Words key_of(const KernelSpec& s);
Words key_of(const CodeSpec& s);

}  // namespace shardarray
