#include "base/block_pool.h"

#include <new>
#include <utility>

#include "base/per_thread.h"

namespace shardarray {

namespace {

constexpr std::size_t kStep = 64, kClasses = 16, kMostKept = 4096;

struct Block {
  Block* next;
};
struct Lists {
  Block* first[kClasses] = {};
  std::size_t kept[kClasses] = {};
  ~Lists() {
    for (Block* b : first)
      while (b != nullptr) ::operator delete(std::exchange(b, b->next));
  }
};

}  // namespace

void* take_block(std::size_t bytes) {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  if (c >= kClasses) return ::operator new(bytes);
  Lists& lists = PerThread<Lists>::get();
  if (Block* b = lists.first[c]) {
    lists.first[c] = b->next;
    lists.kept[c]--;
    return b;
  }
  return ::operator new((c + 1) * kStep);
}

void give_block(void* p, std::size_t bytes) noexcept {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  Lists* const lists = PerThread<Lists>::find();  // a thread that never takes blocks keeps none
  if (c >= kClasses || lists == nullptr || lists->kept[c] >= kMostKept) return ::operator delete(p);
  lists->first[c] = new (p) Block{lists->first[c]};
  lists->kept[c]++;
}

}  // namespace shardarray
