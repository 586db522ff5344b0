#include "base/key.h"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace shardarray {

void put_text(std::string_view text, Words& words) {
  words.push_back(text.size());
  for (std::size_t i = 0; i < text.size(); i += 8) {
    std::uint64_t w = 0;
    std::memcpy(&w, text.data() + i, std::min<std::size_t>(8, text.size() - i));
    words.push_back(w);
  }
}

std::uint64_t unique_id() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace shardarray
