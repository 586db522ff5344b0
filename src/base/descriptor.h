// Open files: descriptors that close themselves, and writes that fail instead of ending the process.
#pragma once
#include <csignal>
#include <span>
#include <string>
#include <utility>

namespace shardarray {

/// A file descriptor, closed at its end.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { (void)close(); }
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  /// False where the system reports that something was not written (errno says what).
  bool close();

 private:
  int fd_;
};

/// While it lives, a write beyond the limit of file sizes only fails: this thread gets no SIGXFSZ.
class NoSizeSignal {
 public:
  NoSizeSignal();
  ~NoSizeSignal();
  NoSizeSignal(const NoSizeSignal&) = delete;
  NoSizeSignal& operator=(const NoSizeSignal&) = delete;

 private:
  sigset_t signal_, before_;
  bool pending_;
};

/// All bytes, however often the system is interrupted; false with errno where it fails.
bool write_all(int file, std::span<const char> bytes);
/// The disk has the names in the folder when this returns; false with errno where that fails. A folder that may not be read, or a file
/// system that knows no such thing, cannot be asked.
[[nodiscard]] bool sync_folder(const std::string& folder);
/// A name that no other thread or process takes, also in another container on the same disk.
std::string unfinished_name(const std::string& name);

}  // namespace shardarray
