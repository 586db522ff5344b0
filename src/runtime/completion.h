// Completion: work requested from a backend.
#pragma once
#include <memory>

namespace shardarray {

class Completion {
 public:
  virtual ~Completion() = default;
  /// Blocks until the work is done; throws its failure, every time. Thread-safe, may be repeated.
  virtual void wait() const = 0;
};
/// Null: the work finished before the call returned.
using CompletionRef = std::shared_ptr<const Completion>;

inline void wait(const CompletionRef& c) {
  if (c) c->wait();
}

}  // namespace shardarray
