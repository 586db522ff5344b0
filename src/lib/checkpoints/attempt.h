// Attempts of which processes tell each other JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

#include "lib/attempt.h"

namespace shardarray::checkpoints {

/// As shardarray::Attempt; what goes wrong in another process is an IoError here.
class Attempt {
 public:
  Attempt() = default;
  Attempt(const char* function, shardarray::detail::FunctionRef<nlohmann::json()> work)
      : attempt_(function,
                 [&] { return work().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace); }) {}
  bool has_failed() const { return attempt_.has_failed(); }
  /// `what` is done, for those who wait.
  std::vector<nlohmann::json> agreed(const char* function, Processes* all, const char* what) const;

 private:
  shardarray::Attempt attempt_;
};

/// Whether all processes say so. They ask together, as often as wanted: none of them is silent for long then.
bool all_say(bool mine, const char* function, Processes* all, const char* what);

}  // namespace shardarray::checkpoints
