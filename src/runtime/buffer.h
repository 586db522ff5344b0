// Buffer: a reference-counted block of device memory.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace shardarray {

class Backend;

class Buffer {
 public:
  void* data = nullptr;
  std::size_t bytes = 0;  ///< as requested
  int device = 0;         ///< local index of the device within its backend
  Backend* owner = nullptr;
  /// For foreign memory: releases it and the Buffer. Such memory is read, never written.
  void (*give_back)(Buffer*) = nullptr;

  void retain() { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops a reference; the last one returns the block to its owner.
  void release();
  /// The only reference: the memory may be overwritten.
  bool unique() const { return give_back == nullptr && refs_.load(std::memory_order_acquire) == 1; }

 private:
  std::atomic<int> refs_{1};
};

/// A reference to a Buffer.
class BufferRef {
 public:
  BufferRef() = default;
  /// Takes over one reference.
  explicit BufferRef(Buffer* adopted) : p_(adopted) {}
  BufferRef(const BufferRef& o) : p_(o.p_) {
    if (p_) p_->retain();
  }
  BufferRef(BufferRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  BufferRef& operator=(BufferRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~BufferRef() {
    if (p_) p_->release();
  }
  Buffer* get() const { return p_; }
  Buffer* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  Buffer* p_ = nullptr;
};

/// `bytes` bytes of host memory at `data` as a buffer of a device whose backend computes in host memory. `keeper` is released with the last
/// reference, on any thread.
BufferRef foreign_buffer(Backend& owner, int device, const void* data, std::size_t bytes,
                         std::shared_ptr<const void> keeper);

/// Part of a buffer, for host copies through the backend's calls for whole buffers. Owns nothing: the buffer must outlive it.
class BufferPart {
 public:
  BufferPart(const BufferRef& whole, std::size_t first, std::size_t bytes) : ref_(&part_) {
    part_.retain();  // an extra reference: the backend never gets it back
    part_.data = static_cast<std::byte*>(whole->data) + first;
    part_.bytes = bytes;
    part_.device = whole->device;
    part_.owner = whole->owner;
  }
  BufferPart(const BufferPart&) = delete;
  BufferPart& operator=(const BufferPart&) = delete;
  const BufferRef& ref() const { return ref_; }

 private:
  Buffer part_;
  BufferRef ref_;
};

}  // namespace shardarray
