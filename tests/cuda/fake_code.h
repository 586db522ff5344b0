// Code of printed kernels for the fake GPU: the length of a shared object, then the object.
#pragma once
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace shardarray::testing {

inline std::string fake_code(const std::string& object) {
  const std::uint64_t bytes = object.size();
  return std::string(reinterpret_cast<const char*>(&bytes), sizeof bytes) + object;
}
/// Null where it is no code. The file stays open: the loader takes a library of the same name for the same.
inline void* open_fake_code(const void* image) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, image, sizeof bytes);
  const int file = memfd_create("kernels", 0);
  const bool written = file >= 0 && write(file, static_cast<const char*>(image) + sizeof bytes, bytes) ==
                                        static_cast<ssize_t>(bytes);
  void* const library =
      written ? dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  return library;
}

}  // namespace shardarray::testing
