// Open files: descriptors that close themselves, and writes that fail instead of killing the process.
#pragma once
#include <csignal>
#include <span>
#include <string>
#include <utility>

namespace shardarray {

/// A file descriptor, closed by the destructor.
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
  /// False if the system reports that something was not written (see errno).
  bool close();

 private:
  int fd_;
};

/// RAII: a write beyond the file size limit only fails; this thread gets no SIGXFSZ.
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

/// Writes all bytes, retrying after interruptions; false with errno on failure.
bool write_all(int file, std::span<const char> bytes);
/// Makes the directory entries of the folder durable; false with errno on failure. Counts as success if the folder may not be read or the
/// file system does not support it.
[[nodiscard]] bool sync_folder(const std::string& folder);
/// A name that no other thread or process uses, not even in another container on the same disk.
std::string unfinished_name(const std::string& name);

}  // namespace shardarray
