// Any bytes as the file of a tree.
#include "file.h"

namespace {
struct Model {
  shardarray::Array weight = shardarray::zeros({2, 3});
  int epoch = 0;
  float rate = 0;
  std::string text;
};
}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto& like = *new Model;
  return fuzz::with_file(data, size,
                         [](const std::string& path) { shardarray::eval(shardarray::load(path, like)); });
}
