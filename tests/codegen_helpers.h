// The plug-in, for the CPUs that this machine can stand in for.
#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "cpu/codegen/codegen.h"
#include "cpu/loops/loops.h"
#include "shardarray/error.h"

namespace shardarray::testing {

/// Null where it was not built.
inline const CodePlugin* plugin() {
  static const CodePlugin* const p = [] {
    try {
      return &open_code_plugin(code_plugin_path());
    } catch (const CompileError& e) {
      MESSAGE("skipped: ", e.what());
      return static_cast<const CodePlugin*>(nullptr);
    }
  }();
  return p;
}

/// This machine and the ones that it can stand in for.
inline std::vector<std::unique_ptr<CodeGenerator>> generators() {
  std::vector<std::unique_ptr<CodeGenerator>> all;
  all.push_back(plugin()->make(nullptr, nullptr, nullptr));
#if defined(__x86_64__)
  all.push_back(plugin()->make("x86-64", "", nullptr));
  if (has_v3()) all.push_back(plugin()->make("x86-64-v3", "", nullptr));
#endif
  return all;
}

}  // namespace shardarray::testing
