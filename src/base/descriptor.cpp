#include "base/descriptor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <ctime>

#include "base/hash.h"

namespace shardarray {

bool Descriptor::close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

NoSizeSignal::NoSizeSignal() {
  sigemptyset(&signal_);
  sigaddset(&signal_, SIGXFSZ);
  sigset_t pending;
  sigemptyset(&pending);
  sigpending(&pending);
  pending_ = sigismember(&pending, SIGXFSZ) == 1;
  pthread_sigmask(SIG_BLOCK, &signal_, &before_);
}
NoSizeSignal::~NoSizeSignal() {
  const int error = errno;  // errno of the write, which the caller reports
  const timespec none{};
  if (!pending_)
    while (sigtimedwait(&signal_, nullptr, &none) < 0 && errno == EINTR) {}
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

bool write_all(int file, std::span<const char> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

bool sync_folder(const std::string& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened) return errno == EACCES;
  return fsync(opened.get()) == 0 || errno == EINVAL || errno == EROFS;
}

std::string unfinished_name(const std::string& name) {
  static std::atomic<unsigned> number{0};
  const auto now = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  return fmt::format("{}.{:016x}", name,
                     hash_mix(hash_mix(now, static_cast<std::uint64_t>(getpid())), number++));
}

}  // namespace shardarray
