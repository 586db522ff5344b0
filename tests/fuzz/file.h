// Bytes of a fuzzer as a file that nobody else sees.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "shardarray/shardarray.h"

namespace fuzz {

/// load(path) of a file with these bytes. What it may throw ends there: bad files are errors of the library, and shapes that no
/// memory holds; everything else ends the fuzzer.
template <class F> int with_file(const std::uint8_t* data, std::size_t size, const F& load) {
  const int file = memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || write(file, data, size) != static_cast<ssize_t>(size)) __builtin_trap();
  try {
    load("/proc/self/fd/" + std::to_string(file));
  } catch (const shardarray::IoError&) {
  } catch (const shardarray::TreeError&) {
  } catch (const shardarray::ShapeError&) {
  } catch (const shardarray::DTypeError&) {}
  close(file);
  return 0;
}

}  // namespace fuzz
