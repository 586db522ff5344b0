// Stable sorts of lines.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/per_thread.h"
#include "cpu/address.h"
#include "cpu/library/library_call.h"
#include "cpu/library/sort_entries.h"
#include "runtime/lines.h"

namespace shardarray {
namespace {

/// Calls f with a value of that size.
template <class F> void with_size(std::size_t size, const F& f) {
  switch (size) {
    case 1: return f(std::uint8_t{});
    case 2: return f(std::uint16_t{});
    case 4: return f(std::uint32_t{});
    case 8: return f(std::uint64_t{});
    default: return f(std::array<std::uint64_t, 2>{});
  }
}

/// Scratch memory for sorting a line. Large blocks are returned to the system.
class SortScratch {
 public:
  explicit SortScratch(std::size_t bytes) {
    static constexpr std::size_t most_kept = 32 << 20;
    auto& kept = PerThread<Kept>::get().memory;
    auto& memory = bytes > most_kept ? own_ : kept;
    memory.clear();
    memory.resize((bytes + sizeof(Word) - 1) / sizeof(Word));
    next_ = reinterpret_cast<char*>(memory.data());
  }
  /// The next `n` elements, 16-byte aligned.
  template <class T> T* take(std::int64_t n) {
    auto* const first = reinterpret_cast<T*>(next_);
    next_ += bytes<T>(n);
    return first;
  }
  template <class T> static std::size_t bytes(std::int64_t n) {
    return (static_cast<std::size_t>(n) * sizeof(T) + 15) / 16 * 16;
  }

 private:
  struct alignas(16) Word {
    Word() {}  // left uninitialized
    char bytes[16];
  };
  struct Kept {
    std::vector<Word> memory;
  };
  std::vector<Word> own_;
  char* next_;
};

/// A line of numbers of one size, `apart` bytes apart.
template <class Bits> struct Numbers {
  char* first;
  std::int64_t apart;
  Bits operator()(std::int64_t k) const {
    Bits b;
    std::memcpy(&b, first + k * apart, sizeof b);
    return b;
  }
  void set(std::int64_t k, const Bits& b) const { std::memcpy(first + k * apart, &b, sizeof b); }
};

/// Lines of `length` elements with stride `inner`. Key: wide enough for a key and for a position in a line.
template <class Key> struct Sort {
  LibraryCall::Item item;
  std::vector<DType> types;
  std::int64_t length = 0, inner = 1;

  void operator()(void* const* bases, std::int64_t begin, std::int64_t end) const {
    std::size_t widest = 0;
    for (DType t : types) widest = std::max(widest, itemsize(t));
    SortScratch memory(2 * SortScratch::bytes<Keyed<Key>>(length) +
                       SortScratch::bytes<char>(length * static_cast<std::int64_t>(widest)));
    auto* const entries = memory.take<Keyed<Key>>(length);
    auto* const spare = memory.take<Keyed<Key>>(length);
    char* const sorted = memory.take<char>(0);
    with_size(itemsize(types[0]), [&](auto bits) {
      if constexpr (sizeof bits <= sizeof(Key))
        for (std::int64_t u = begin; u < end; u++)
          sort_line<decltype(bits)>({bases, u}, entries, spare, sorted);
    });
  }

 private:
  struct Line {
    void* const* bases;
    std::int64_t number;
  };
  /// Operand or result k of a line.
  template <class Bits>
  Numbers<Bits> numbers(const Line& l, const std::vector<Ref>& refs, std::size_t k) const {
    constexpr auto size = static_cast<std::int64_t>(sizeof(Bits));
    const std::int64_t first = l.number / inner * inner * length + l.number % inner;
    return {address(l.bases, refs[k]) + first * size, inner * size};
  }

  template <class Bits>
  void sort_line(const Line& l, Keyed<Key>* entries, Keyed<Key>* spare, char* sorted) const {
    const Codes<Bits> codes(types[0]);
    const auto in = numbers<Bits>(l, item.in, 0), out = numbers<Bits>(l, item.out, 0);
    if (types.size() == 1) {  // the number can be recovered from its key
      auto* const keys = reinterpret_cast<Bits*>(entries);
      if (codes.each(length, in, [&](std::int64_t k, Bits key) { keys[k] = key; })) {
        const Bits* const order = sort_entries<Key>(keys, reinterpret_cast<Bits*>(spare), length);
        for (std::int64_t k = 0; k < length; k++) out.set(k, codes.number(order[k]));
        return;
      }
    }
    const bool exact = codes.each(length, in, [&](std::int64_t k, Bits key) {
      entries[k] = {static_cast<Key>(key), static_cast<Key>(k)};
    });
    if (exact && types.size() == 2 && itemsize(types[1]) <= sizeof(Key) && length >= short_line<Key>) {
      with_size(itemsize(types[1]), [&](auto rest) {
        if constexpr (sizeof rest <= sizeof(Key)) {
          using Rest = decltype(rest);
          const auto from = numbers<Rest>(l, item.in, 1), to = numbers<Rest>(l, item.out, 1);
          for (std::int64_t k = 0; k < length; k++) entries[k].rest = from(k);
          const Keyed<Key>* const order = sort_entries<Key>(entries, spare, length);
          for (std::int64_t k = 0; k < length; k++) {
            out.set(k, codes.number(static_cast<Bits>(order[k].key)));
            to.set(k, static_cast<Rest>(order[k].rest));
          }
        }
      });
      return;
    }
    const Keyed<Key>* const order = sort_entries<Key>(entries, spare, length);
    for (std::size_t k = 0; k < types.size(); k++) {
      with_size(itemsize(types[k]), [&](auto value) {
        using Value = decltype(value);
        const auto from = numbers<Value>(l, item.in, k), to = numbers<Value>(l, item.out, k);
        auto* const moved = reinterpret_cast<Value*>(sorted);  // outputs may alias inputs
        for (std::int64_t i = 0; i < length; i++) moved[i] = from(static_cast<std::int64_t>(order[i].rest));
        for (std::int64_t i = 0; i < length; i++) to.set(i, moved[i]);
      });
    }
  }
};

template <class Key> LibraryPlan plan_of(const LibraryCall& call, const LibraryCall::Item& item) {
  const auto [count, length, inner] = lines_along(item.in_shapes[0], item.params[0]);
  const auto n = static_cast<double>(length), operands = static_cast<double>(call.in_types.size());
  const double keys = length < short_line<Key> ? 5 + 3 * std::log2(n + 1) : 3 + 1.5 * sizeof(Key);
  const std::int64_t lines = length == 0 ? 0 : count;
  return {lines, static_cast<double>(lines) * n * (keys + 2 * operands),
          Sort<Key>{item, call.in_types, length, inner}};
}

}  // namespace

LibraryPlan plan_sort(const LibraryCall& call, const LibraryCall::Item& item) {
  const DType key = call.in_types[0];
  if (is_complex(key)) refuse_dtype("sort", key, "bool, integers and floats");
  const bool wide = itemsize(key) == 8 || lines_along(item.in_shapes[0], item.params[0]).length >
                                              std::numeric_limits<std::uint32_t>::max();
  return wide ? plan_of<std::uint64_t>(call, item) : plan_of<std::uint32_t>(call, item);
}

}  // namespace shardarray
