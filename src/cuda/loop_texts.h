// The printed kernels of several loops in one text.
#pragma once
#include <deque>
#include <string>

#include "cuda/loop_shape.h"
#include "runtime/kernel.h"

namespace shardarray::cuda {

class LoopTexts {
 public:
  /// The name of the loop's kernel, which is printed unless an equal one was.
  const std::string& add(const Kernel& k, const LoopShape& shape);
  /// All added kernels, without printed_prelude().
  const std::string& text() const { return text_; }

 private:
  struct Printed {
    const Kernel* kernel;  // owned by the caller
    LoopShape shape;
    std::string name;
  };
  std::deque<Printed> printed_;
  std::string text_;
};

}  // namespace shardarray::cuda
