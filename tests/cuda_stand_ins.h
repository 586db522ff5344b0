// Shared by the tests of CUDA's fakes: memory and streams of the fake driver, which they call directly.
#pragma once
#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "cuda_fake.h"

namespace shardarray::stand_ins_test {

using testing::fake_control;

inline const std::string two_gpus = "SHARDARRAY_FAKE_GPUS=2";

inline const cuda::Driver& driver() { return fake_control().driver(); }
inline void* memory(std::size_t bytes) {
  void* p = nullptr;
  REQUIRE(driver().malloc(&p, bytes) == 0);
  return p;
}
inline void* pinned_memory(std::size_t bytes) {
  void* p = nullptr;
  REQUIRE(driver().host_malloc(&p, bytes) == 0);
  return p;
}
inline cuda::Stream stream_on(int gpu) {
  cuda::Stream s = nullptr;
  REQUIRE((driver().set_device(gpu) == 0 && driver().stream_create(&s) == 0));
  return s;
}
template <class T> std::vector<T> content(const void* p, std::size_t n, cuda::Stream s) {
  std::vector<T> values(n);
  REQUIRE(driver().copy_async(values.data(), p, n * sizeof(T), s) == 0);
  return values;
}
template <class T> void* memory_of(const std::vector<T>& values, cuda::Stream s) {
  void* const p = memory(values.size() * sizeof(T));
  REQUIRE(driver().copy_async(p, values.data(), values.size() * sizeof(T), s) == 0);
  return p;
}
inline void* behind(void* p, std::size_t bytes) { return static_cast<std::byte*>(p) + bytes; }

}  // namespace shardarray::stand_ins_test
