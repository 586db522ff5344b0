// Emits a MoveSpec as one LLVM function.
#pragma once
#include <string>

#include "cpu/codegen/llvm/row_access.h"
#include "cpu/exchange/move_spec.h"

namespace shardarray::codegen {

/// Adds `void name(args, ...)`.
llvm::Function* emit_move(llvm::Module& module, const MoveSpec& spec, const std::string& name);

}  // namespace shardarray::codegen
