#include "runtime/system_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <mutex>

namespace shardarray {
namespace {

void* map_pages(std::size_t bytes) {
  const bool huge = bytes % huge_page == 0;
  const std::size_t mapped = huge ? bytes + huge_page : bytes;
  if (mapped < bytes) return nullptr;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (!huge) return p;
  // Cut the ends off so that what stays is aligned.
  auto* const first = static_cast<char*>(p);
  const std::size_t before = (huge_page - reinterpret_cast<std::uintptr_t>(p) % huge_page) % huge_page;
  if (before > 0) munmap(first, before);
  if (before < huge_page) munmap(first + before + bytes, huge_page - before);
  madvise(first + before, bytes, MADV_HUGEPAGE);  // a fresh 64 MB block: 14 instead of 48 ms
  return first + before;
}

void unmap_pages(void* p, std::size_t bytes) { munmap(p, bytes); }

std::mutex memory_mutex;
SystemMemory current_memory = {map_pages, unmap_pages};

}  // namespace

SystemMemory system_memory() {
  const std::lock_guard lock(memory_mutex);
  return current_memory;
}

SystemMemory set_system_memory(SystemMemory m) {
  const std::lock_guard lock(memory_mutex);
  const SystemMemory before = current_memory;
  current_memory = m;
  return before;
}

}  // namespace shardarray
