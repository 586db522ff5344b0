// What all processes do together: it is done in all of them or fails in all.
#pragma once
#include <exception>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/processes.h"
#include "shardarray/detail/path.h"

namespace shardarray::checkpoints {

/// What `work` gives, for the others: or what went wrong in it, which is kept for this process.
class Attempt {
 public:
  Attempt() = default;
  Attempt(const char* function, shardarray::detail::FunctionRef<nlohmann::json()> work);
  bool has_failed() const { return failure_ != nullptr; }
  /// What all processes say, in their order; `all` null: this one. What went wrong in one is thrown in all. `what` is done, for those
  /// who wait.
  std::vector<nlohmann::json> agreed(const char* function, Processes* all, const char* what) const;

 private:
  nlohmann::json said_ = {{"done", nullptr}};
  std::exception_ptr failure_;
};

/// Whether all processes say so. They ask together, as often as wanted: none of them is silent for long then.
bool all_say(bool mine, const char* function, Processes* all, const char* what);

}  // namespace shardarray::checkpoints
