// Emits a small UpdateSpec as one LLVM function.
#pragma once
#include <string>

#include "cpu/codegen/llvm/row_access.h"
#include "cpu/library/update_spec.h"

namespace shardarray::codegen {

/// Adds `void name(args, ...)`.
llvm::Function* emit_update(llvm::Module& module, const UpdateSpec& spec, const std::string& name);

}  // namespace shardarray::codegen
