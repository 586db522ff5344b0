#include "base/block_pool.h"

#include <new>

namespace shardarray {

namespace {

constexpr std::size_t kStep = 64, kClasses = 16, kMostKept = 4096;

struct Block {
  Block* next;
};
// Trivial, so that it may still be used while the thread's other objects are destroyed.
struct Lists {
  Block* first[kClasses];
  std::size_t kept[kClasses];
  bool closed;
};
thread_local Lists lists;

struct Closer {
  bool open = true;
  ~Closer() {
    lists.closed = true;
    for (Block*& b : lists.first)
      while (b) {
        Block* next = b->next;
        ::operator delete(b);
        b = next;
      }
  }
};
thread_local Closer closer;

}  // namespace

void* take_block(std::size_t bytes) {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  if (c >= kClasses) return ::operator new(bytes);
  if (Block* b = lists.first[c]) {
    lists.first[c] = b->next;
    lists.kept[c]--;
    return b;
  }
  return ::operator new((c + 1) * kStep);
}

void give_block(void* p, std::size_t bytes) noexcept {
  const std::size_t c = (bytes + kStep - 1) / kStep - 1;
  if (c >= kClasses || lists.closed || lists.kept[c] >= kMostKept || !closer.open)
    return ::operator delete(p);
  lists.first[c] = new (p) Block{lists.first[c]};
  lists.kept[c]++;
}

}  // namespace shardarray
