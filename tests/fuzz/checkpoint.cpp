// Any bytes as the index of a checkpoint behind a checksum that fits, whose pieces are those of tests/data/files/checkpoint.
#include <zlib.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "file.h"

namespace {
struct Model {
  shardarray::Array weight = shardarray::zeros({2, 3});
  shardarray::Array z = shardarray::zeros({3}, shardarray::complex64);
  shardarray::Array one = shardarray::zeros({}, shardarray::float64);
  shardarray::Array none = shardarray::zeros({0, 4}, shardarray::int8);
  int epoch = 0;
  float rate = 0;
  std::string text;
};

/// A copy of the checkpoint, whose index is another file each time.
const std::filesystem::path& folder() {
  static const auto& copy = *new std::filesystem::path("build/fuzz/checkpoint.copy");
  static const bool is_there = [] {
    std::filesystem::remove_all(copy);
    std::filesystem::create_directories(copy);
    std::filesystem::copy("tests/data/files/checkpoint", copy, std::filesystem::copy_options::recursive);
    return true;
  }();
  (void)is_there;
  return copy;
}
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto& like = *new Model;
  char sum[24];
  std::snprintf(sum, sizeof sum, "{\"crc32\":\"%08lx\",", crc32_z(0, data, size));
  const std::string text = sum + std::string(data, data + size);
  return fuzz::with_file(
      reinterpret_cast<const std::uint8_t*>(text.data()), text.size(), [](const std::string& path) {
        const std::filesystem::path index = folder() / "step_00000007/shardarray.index.json";
        std::filesystem::remove(index);
        std::filesystem::create_symlink(path, index);
        shardarray::eval(shardarray::checkpoints::restore(folder(), like));
      });
}
