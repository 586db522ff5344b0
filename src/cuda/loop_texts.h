// The printed kernels of several loops as one text.
#pragma once
#include <deque>
#include <string>

#include "cuda/loop_shape.h"
#include "runtime/kernel.h"

namespace shardarray::cuda {

class LoopTexts {
 public:
  /// The name of the kernel for this loop, which is printed where none was for its equal.
  const std::string& add(const Kernel& k, const LoopShape& shape);
  /// Of all that were added; without printed_prelude().
  const std::string& text() const { return text_; }

 private:
  struct Printed {
    const Kernel* kernel;  // the caller's
    LoopShape shape;
    std::string name;
  };
  std::deque<Printed> printed_;
  std::string text_;
};

}  // namespace shardarray::cuda
