#include "cuda/printed_loops.h"

#include <string>

#include "cuda/loop_texts.h"
#include "cuda/printer.h"

namespace shardarray::cuda {

std::shared_ptr<PrintedLoops> PrintedLoops::of(Gpu& gpu, const std::vector<KernelLaunch>& launches) {
  std::shared_ptr<PrintedLoops> all(new PrintedLoops(gpu, launches.size()));
  for (std::size_t k = 0; k < launches.size(); k++)
    if (launches[k].loop) all->loops_.push_back({k, launches[k].loop, launches[k].shape});
  return all->loops_.empty() ? nullptr : all;
}

void PrintedLoops::build() {
  LoopTexts texts;
  std::vector<const std::string*> names;
  for (const Loop& l : loops_) names.push_back(&texts.add(*l.kernel, l.shape));
  const Library library = loaded_text(gpu_, printed_prelude() + texts.text());
  for (std::size_t k = 0; k < loops_.size(); k++)
    kernels_[loops_[k].launch] = gpu_.kernel(names[k]->c_str(), library);
  ready_.store(&kernels_, std::memory_order_release);
}

}  // namespace shardarray::cuda
