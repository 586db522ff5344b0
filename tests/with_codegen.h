// Compares the interpreter and generated code.
#pragma once
#include "cpu/codegen/code_store.h"
#include "op_data.h"
#include "runtime/devices.h"

namespace shardarray::testing {

/// Sets a mode while it lives, with a backend of its own (with more devices than devices() has), as programs are cached per backend.
class WithCodegen {
 public:
  static constexpr int kDevices = 24;
  explicit WithCodegen(CodegenMode m) : mode_(set_codegen_mode(m)), backend_(set_backend("cpu", of(m))) {}
  ~WithCodegen() {
    set_backend("cpu", backend_);
    set_codegen_mode(mode_);
  }
  WithCodegen(const WithCodegen&) = delete;
  WithCodegen& operator=(const WithCodegen&) = delete;

 private:
  static Backend* of(CodegenMode m) {
    static Backend* const all[3] = {make_cpu_backend(kDevices).release(),
                                    make_cpu_backend(kDevices).release(),
                                    make_cpu_backend(kDevices).release()};
    return all[static_cast<int>(m)];
  }
  CodegenMode mode_;
  Backend* backend_;
};

/// What `f` gives in a mode.
template <class F> auto with_codegen(CodegenMode m, F f) {
  const WithCodegen mode(m);
  return f();
}

}  // namespace shardarray::testing
