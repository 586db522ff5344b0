// From a program's addresses to memory.
#pragma once
#include <cstring>
#include <span>
#include <vector>

#include "runtime/program.h"

namespace shardarray {

inline char* address(void* const* bases, const Ref& r) {
  return static_cast<char*>(bases[r.base]) + r.offset;
}

/// The T at p, aligned or not.
template <class T> T read_number(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

/// The addresses of a function's arguments; a few need no allocation.
class ArgumentAddresses {
 public:
  ArgumentAddresses(void* const* bases, std::span<const Ref> refs)
      : many_(refs.size() > few ? refs.size() : 0) {
    void** to = many_.empty() ? few_ : many_.data();
    for (const Ref& r : refs) *to++ = address(bases, r);
  }
  void* const* data() const { return many_.empty() ? few_ : many_.data(); }
  void set(std::size_t k, void* p) { (many_.empty() ? few_ : many_.data())[k] = p; }

 private:
  static constexpr std::size_t few = 64;
  void* few_[few];  // left uninitialized
  std::vector<void*> many_;
};

}  // namespace shardarray
