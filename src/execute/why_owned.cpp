#include "execute/why_owned.h"

#include <fmt/format.h>

#include "execute/evaluate.h"
#include "execute/launch.h"

namespace shardarray {

std::string why_owned(std::span<const Array> arguments, const std::vector<std::string>& paths,
                      bool share_replicas, std::size_t k) {
  if (const char* const kept = keeps_its_memory(*value_of(arguments[k]), share_replicas)) return kept;
  for (std::size_t j = 0; j < arguments.size(); j++)
    if (j != k && arguments[j].has_value() && arguments[j].node() == arguments[k].node() &&
        arguments[j].index() == arguments[k].index())  // not by value: that of j may be donated by now
      return fmt::format(
          "it is argument {} as well. Pass it once; where both begin as one array and go on apart, only this "
          "call "
          "copies",
          j < paths.size() ? paths[j] : std::to_string(j));
  return "another handle owns it. Let that one go before the call: y = device_put(x, s) shares memory with x "
         "where x "
         "lies there, y = device_put(std::move(x), s) leaves no x";
}

}  // namespace shardarray
