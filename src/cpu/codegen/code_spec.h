// What generated code is made of: single kernels, and small ones one after another.
#pragma once
#include <cstdint>
#include <variant>
#include <vector>

#include "cpu/loops/loop_nest.h"
#include "cpu/products/gemm_spec.h"

namespace shardarray {

using KernelSpec = std::variant<NestSpec, GemmSpec>;

/// Kernels that a program runs in this order, as one function: its `args` are the program's base pointers. Loops have fixed
/// numbers; products run their whole batch.
struct SequenceSpec {
  struct Call {
    std::size_t kernel = 0;             ///< index into `kernels`
    std::vector<Ref> args;              ///< of the kernel's function
    std::vector<std::int64_t> numbers;  ///< of a loop
  };
  std::vector<KernelSpec> kernels;  ///< each once
  std::vector<Call> calls;

  std::vector<std::uint64_t> key() const;
};

/// What a function is made of. All are called alike.
using CodeSpec = std::variant<NestSpec, GemmSpec, SequenceSpec>;
using CodeKey = std::vector<std::uint64_t>;
/// Equal keys, equal code.
CodeKey key_of(const KernelSpec& s);
CodeKey key_of(const CodeSpec& s);

}  // namespace shardarray
