// Emits a SequenceSpec as one LLVM function that calls its kernels.
#pragma once
#include <functional>
#include <string>

#include "cpu/codegen/code_spec.h"
#include "cpu/codegen/llvm/values.h"

namespace shardarray::codegen {

/// Adds `void name(bases, ...)`; `kernel(spec, name)` adds a function for one of its kernels.
llvm::Function* emit_sequence(
    llvm::Module& module, const SequenceSpec& spec, const std::string& name,
    const std::function<llvm::Function*(const KernelSpec& spec, const std::string& name)>& kernel);

}  // namespace shardarray::codegen
