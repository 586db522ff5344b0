#include "lib/checkpoints/attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "shardarray/error.h"

namespace shardarray::checkpoints {

using nlohmann::json;

std::vector<json> Attempt::agreed(const char* function, Processes* all, const char* what) const {
  std::vector<json> r;
  for (const std::string& text : attempt_.agreed<IoError>(fmt::format("{}: {}", function, what), all))
    r.push_back(text.empty() ? json() : json::parse(text));
  return r;
}

bool all_say(bool mine, const char* function, Processes* all, const char* what) {
  const auto said = Attempt(function, [&] { return mine; }).agreed(function, all, what);
  return std::all_of(said.begin(), said.end(), [](const json& x) { return x.get<bool>(); });
}

}  // namespace shardarray::checkpoints
