// What the sources of the code generator include from LLVM, compiled once.
#pragma once
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "precompiled.h"
