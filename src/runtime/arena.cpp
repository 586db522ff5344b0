#include "runtime/arena.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>

#include "base/env.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::size_t largest_class = huge_page / 4 * 3;
constexpr std::size_t slab_bytes = std::size_t{1} << 20;
constexpr std::size_t largest_in_slab = slab_bytes / 16;
constexpr std::size_t most_bytes = std::size_t{1} << 47;  // user address space of x86-64

/// The size of the block that serves `bytes`.
std::size_t block_bytes(std::size_t bytes) {
  if (bytes > largest_class) return (bytes + huge_page - 1) / huge_page * huge_page;
  if (bytes <= 64) return 64;
  const std::size_t power = std::bit_ceil(bytes);
  return power > 128 && bytes <= power / 4 * 3 ? power / 4 * 3 : power;
}

/// The block size of class k.
constexpr std::size_t bytes_of_class(std::size_t k) {
  const std::size_t power = std::size_t{64} << k / 2;
  return k % 2 == 0 ? power : power + power / 2;
}

std::atomic<bool>& debug_fill() {
  static std::atomic<bool> on = env_flag("SHARDARRAY_DEBUG_FILL", false);
  return on;
}

}  // namespace

bool set_debug_fill(bool on) { return debug_fill().exchange(on); }

Arena::Class& Arena::class_of(std::size_t block) {
  if (block > largest_class) return large_[block];
  const int log2 =
      static_cast<int>(std::bit_width(block)) - 1;  // 64 -> 6; 1.5 times a power follows that power
  const bool power =
      (block & (block - 1)) == 0;  // not has_single_bit, which calls a function if popcnt is missing
  return small_[static_cast<std::size_t>(2 * (log2 - 6) + (power ? 0 : 1))];
}

Buffer* Arena::allocate(std::size_t bytes) {
  const bool fill = debug_fill().load(std::memory_order_relaxed);
  Buffer* b = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (bytes > most_bytes) refuse(bytes);
    const std::size_t block = block_bytes(bytes);
    Class& c = class_of(block);
    if (!c.free.empty()) {
      b = c.free.back();
      c.free.pop_back();
      b->retain();  // from zero: its last reference was dropped
    } else {
      if (c.free.capacity() <= c.blocks) c.free.reserve(2 * c.blocks + 4);
      auto fresh = std::make_unique<Buffer>();
      fresh->data = fresh_block(block);
      if (fresh->data == nullptr) refuse(bytes);
      fresh->owner = owner_;
      fresh->device = device_;
      c.blocks++;
      b = fresh.release();
    }
    b->bytes = bytes;
    stats_.in_use += bytes;
    stats_.high_water = std::max(stats_.high_water, stats_.in_use);
  }
  if (fill) source().fill(b->data, 0xff, bytes);
  return b;
}

void Arena::deallocate(Buffer* b) noexcept {
  const std::lock_guard lock(mutex_);
  stats_.in_use -= b->bytes;
  class_of(block_bytes(b->bytes)).free.push_back(b);
}

/// Null if the system or the limit refuses, even after all free memory was returned.
void* Arena::fresh_block(std::size_t block) {
  if (slabs_.size() == slabs_.capacity()) slabs_.reserve(2 * slabs_.size() + 8);
  if (block > largest_in_slab) {
    // Sizes that change from step to step must not pile up: hold at most twice what was in use.
    if (stats_.held + block > 2 * std::max(stats_.high_water, stats_.in_use + block)) trim_locked();
    return map(block);
  }
  if (slabs_.empty() || slab_bytes - slabs_.back().cut < block) {
    void* const p = map(slab_bytes);
    if (p == nullptr) return nullptr;
    slabs_.push_back({static_cast<char*>(p)});
  }
  Slab& slab = slabs_.back();
  void* const p = slab.data + slab.cut;
  slab.cut += block;
  return p;
}

void* Arena::map(std::size_t bytes) {
  void* p = within_limit(bytes) ? source().map(bytes) : nullptr;
  if (p == nullptr) {
    trim_locked();
    trim_slabs();
    if (within_limit(bytes)) p = source().map(bytes);
  }
  if (p != nullptr) stats_.held += bytes;
  return p;
}

void Arena::trim() noexcept {
  const std::lock_guard lock(mutex_);
  trim_locked();
  trim_slabs();
}

void Arena::trim_class(Class& c, std::size_t block) noexcept {
  for (Buffer* b : c.free) {
    source().unmap(b->data, block);
    delete b;
    stats_.held -= block;
    c.blocks--;
  }
  c.free.clear();
}

void Arena::trim_locked() noexcept {
  for (auto& [block, c] : large_) trim_class(c, block);
  for (std::size_t k = small_.size(); k-- > 0 && bytes_of_class(k) > largest_in_slab;)
    trim_class(small_[k], bytes_of_class(k));
}

void Arena::trim_slabs() noexcept {
  std::sort(slabs_.begin(), slabs_.end(), [](const Slab& a, const Slab& b) { return a.data < b.data; });
  const auto slab_of = [&](const Buffer* b) -> Slab& {
    return *std::prev(std::upper_bound(slabs_.begin(), slabs_.end(), static_cast<char*>(b->data),
                                       [](const char* p, const Slab& s) { return p < s.data; }));
  };
  const auto each_class = [&](auto f) {
    for (std::size_t k = 0; bytes_of_class(k) <= largest_in_slab; k++) f(small_[k], bytes_of_class(k));
  };
  for (Slab& s : slabs_) s.free = 0;
  each_class([&](const Class& c, std::size_t block) {
    for (const Buffer* b : c.free) slab_of(b).free += block;
  });
  each_class([&](Class& c, std::size_t) {
    const std::size_t before = c.free.size();
    std::erase_if(c.free, [&](Buffer* b) {
      const Slab& s = slab_of(b);
      if (s.free < s.cut) return false;
      delete b;
      return true;
    });
    c.blocks -= before - c.free.size();
  });
  std::erase_if(slabs_, [&](const Slab& s) {
    if (s.free < s.cut) return false;
    source().unmap(s.data, slab_bytes);
    stats_.held -= slab_bytes;
    return true;
  });
}

void Arena::refuse(std::size_t bytes) const {
  const std::size_t block = bytes > most_bytes ? bytes : block_bytes(bytes);
  const bool limited = !within_limit(block > largest_in_slab ? block : slab_bytes);
  throw OutOfMemory(fmt::format(
      "allocate: {} refused {} bytes for {}:{} ({} bytes in use, {} held; a block of {} was needed). All "
      "memory of a program is taken before it runs. Free arrays, donate inputs (std::move) or spread the "
      "arrays over more memory{}.",
      limited ? fmt::format("the limit {}={}", limit_.variable, limit_.bytes) : "the system", bytes,
      owner_ ? owner_->platform() : "cpu", device_, stats_.in_use, stats_.held, block,
      limited ? ", or raise the limit" : ""));
}

MemoryStats Arena::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Arena::~Arena() { trim(); }

}  // namespace shardarray
