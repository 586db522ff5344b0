// Keys of tables: words that are equal exactly for equal things. A hash, or an address that may be reused, is not a key.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/hash.h"

namespace shardarray {

using Words = std::vector<std::uint64_t>;

struct WordsHash {
  std::size_t operator()(const Words& words) const {
    std::uint64_t h = words.size();
    for (std::uint64_t w : words) h = hash_mix(h, w);
    return h;
  }
};

/// Appends `n` words to be written; returns where.
inline std::uint64_t* more_words(std::size_t n, Words& words) {
  const std::size_t before = words.size();
  words.resize(before + n);
  return words.data() + before;
}
/// Appends the length, then the bytes.
void put_text(std::string_view text, Words& words);

/// A number unique in this process: a name for what has no value to compare.
std::uint64_t unique_id();

}  // namespace shardarray
