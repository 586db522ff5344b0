// Attempts whose results are exchanged as JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/attempt.h"

namespace shardarray::checkpoints {

/// As shardarray::Attempt; a failure in another process is an IoError here.
class Attempt {
 public:
  Attempt() = default;
  Attempt(const char* function, shardarray::detail::FunctionRef<nlohmann::json()> work)
      : attempt_(function,
                 [&] { return work().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }) {}
  bool has_failed() const { return attempt_.has_failed(); }
  /// `what`: what is being done, for messages to processes that wait.
  std::vector<nlohmann::json> agreed(const char* function, Processes* all, const char* what) const;

 private:
  shardarray::Attempt attempt_;
};

/// Whether it is true in all processes. All call this together, repeatedly, so that none of them is silent for long.
bool all_say(bool mine, const char* function, Processes* all, const char* what);

}  // namespace shardarray::checkpoints
