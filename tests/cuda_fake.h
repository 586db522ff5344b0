// Processes whose CUDA devices are fakes (tests/cuda/).
#pragma once
#include <dlfcn.h>
#include <doctest/doctest.h>

#include <string>

#include "cuda/fake_control.h"
#include "process_helpers.h"
#include "scale.h"
#include "shardarray/device.h"

namespace shardarray::testing {

inline std::string fake_folder() { return (own_program().parent_path() / "fake").string(); }

/// A process whose CUDA devices are fakes.
inline Ended fake_process(const std::string& name, const std::string& settings) {
  return run_case(name, "SHARDARRAY_PLUGIN_DIR='" + fake_folder() + "' " + settings);
}
/// What the case, which passes, prints in such a process.
inline std::string text_on_fake(const std::string& name, const std::string& settings) {
  const Ended ended = fake_process(name, settings);
  CHECK_MESSAGE(ended.status == 0, ended.text);
  CHECK_MESSAGE(ended.text.find("1 passed | 0 failed |") != std::string::npos, ended.text);
  return ended.text;
}
/// Eight logical devices of one GPU are the default platform.
inline void on_fake(const std::string& name, const std::string& settings = "") {
  text_on_fake(name, "SHARDARRAY_PLATFORM=cuda SHARDARRAY_CUDA_LOGICAL_DEVICES=8 " + settings);
}
/// The same; at full scale also with other pauses and orders of what may go on side by side.
inline void on_fake_in_any_order(const std::string& name, const std::string& settings = "") {
  const int seeds = full_scale() ? 5 : 1;
  for (int seed = 0; seed < seeds; seed++)
    on_fake(name, settings + " SHARDARRAY_FAKE_SEED=" + std::to_string(seed));
}
/// How often `part` stands in the text.
inline int count_of(const std::string& part, const std::string& text) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) n++;
  return n;
}

inline const FakeCudaControl& fake_control() {
  static const auto* const found = [] {
    devices("cuda");
    void* const library = dlopen((fake_folder() + "/libshardarray_cuda.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    REQUIRE(library != nullptr);
    return static_cast<const FakeCudaControl*>(dlsym(library, fake_cuda_symbol));
  }();
  return *found;
}

}  // namespace shardarray::testing
