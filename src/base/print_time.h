// SHARDARRAY_DEBUG=time: how long each part of a compilation takes, on stderr.
#pragma once
#include <chrono>

namespace shardarray {

bool prints_times();

/// Times its own lifetime.
class PrintTime {
 public:
  explicit PrintTime(const char* what) : what_(what), start_(std::chrono::steady_clock::now()) {}
  ~PrintTime() {
    if (prints_times()) print();
  }
  PrintTime(const PrintTime&) = delete;
  PrintTime& operator=(const PrintTime&) = delete;

 private:
  void print() const;
  const char* what_;
  std::chrono::steady_clock::time_point start_;
};

/// f(), timed.
template <class F> auto timed(const char* what, F f) {
  const PrintTime time(what);
  return f();
}

}  // namespace shardarray
