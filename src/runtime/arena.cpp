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

/// The bytes of the block that holds `bytes`.
std::size_t block_bytes(std::size_t bytes) {
  if (bytes > largest_class) return (bytes + huge_page - 1) / huge_page * huge_page;
  if (bytes <= 64) return 64;
  const std::size_t power = std::bit_ceil(bytes);
  return power > 128 && bytes <= power / 4 * 3 ? power / 4 * 3 : power;
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
      static_cast<int>(std::bit_width(block)) - 1;  // 64 -> 6; 1.5 times a power sits behind that power
  const bool power =
      (block & (block - 1)) == 0;  // not has_single_bit, which calls a function where popcnt is missing
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
      b->retain();  // from zero: it was given back with its last count
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

/// Null when the system refuses, or the limit, even after free large blocks went back to it.
void* Arena::fresh_block(std::size_t block) {
  if (slabs_.size() == slabs_.capacity()) slabs_.reserve(2 * slabs_.size() + 8);
  if (block > largest_in_slab) {
    // Sizes that change from step to step must not pile up: never hold more than twice what was in use.
    if (stats_.held + block > 2 * std::max(stats_.high_water, stats_.in_use + block)) trim_locked();
    void* const p = map(block);
    if (p != nullptr && block <= largest_class) slabs_.emplace_back(p, block);
    return p;
  }
  if (slab_left_ < block) {
    void* const p = map(slab_bytes);
    if (p == nullptr) return nullptr;
    slabs_.emplace_back(p, slab_bytes);
    slab_ = static_cast<char*>(p);
    slab_left_ = slab_bytes;
  }
  void* const p = slab_;
  slab_ += block;
  slab_left_ -= block;
  return p;
}

void* Arena::map(std::size_t bytes) {
  void* p = within_limit(bytes) ? source().map(bytes) : nullptr;
  if (p == nullptr) {
    trim_locked();
    if (within_limit(bytes)) p = source().map(bytes);
  }
  if (p != nullptr) stats_.held += bytes;
  return p;
}

void Arena::trim() noexcept {
  const std::lock_guard lock(mutex_);
  trim_locked();
}

void Arena::trim_locked() noexcept {
  for (auto& [block, c] : large_) {
    for (Buffer* b : c.free) {
      source().unmap(b->data, block);
      delete b;
      stats_.held -= block;
      c.blocks--;
    }
    c.free.clear();
  }
}

void Arena::refuse(std::size_t bytes) const {
  const std::size_t block = bytes > most_bytes ? bytes : block_bytes(bytes);
  const bool limited = !within_limit(block > largest_in_slab ? block : slab_bytes);
  throw OutOfMemory(fmt::format(
      "allocate: {} refused {} bytes for {}:{} ({} bytes in use, {} held). All memory of a program is taken "
      "before it runs. Free arrays, donate inputs (std::move) or spread the arrays over more memory{}.",
      limited ? fmt::format("the limit {}={}", limit_.variable, limit_.bytes) : "the system", bytes,
      owner_ ? owner_->platform() : "cpu", device_, stats_.in_use, stats_.held,
      limited ? ", or raise the limit" : ""));
}

MemoryStats Arena::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

Arena::~Arena() {
  trim();
  for (Class& c : small_) {
    for (Buffer* b : c.free) delete b;
  }
  for (const auto& [p, bytes] : slabs_) source().unmap(p, bytes);
}

}  // namespace shardarray
