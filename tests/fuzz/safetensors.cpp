// Any bytes as safetensors files.
#include "file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::with_file(
      data, size, [](const std::string& path) { shardarray::eval(shardarray::load_safetensors(path)); });
}
