// Completion: work that a backend was asked for.
#pragma once
#include <memory>

namespace shardarray {

class Completion {
 public:
  virtual ~Completion() = default;
  /// Returns when the work is done; throws what it failed with, every time. From any thread, as often as one likes.
  virtual void wait() const = 0;
};
/// Null: the work was done before its asker went on.
using CompletionRef = std::shared_ptr<const Completion>;

inline void wait(const CompletionRef& c) {
  if (c) c->wait();
}

}  // namespace shardarray
