#include "cuda/loop_texts.h"

#include <fmt/format.h>

#include <algorithm>

#include "cuda/printer.h"

namespace shardarray::cuda {

const std::string& LoopTexts::add(const Kernel& k, const LoopShape& shape) {
  const auto equal = std::find_if(printed_.begin(), printed_.end(), [&](const Printed& p) {
    return p.shape == shape && (p.kernel == &k || *p.kernel == k);
  });
  if (equal != printed_.end()) return equal->name;
  printed_.push_back({&k, shape, fmt::format("shardarray_loop_{}", printed_.size())});
  text_ += print_kernel(k, shape, printed_.back().name);
  return printed_.back().name;
}

}  // namespace shardarray::cuda
