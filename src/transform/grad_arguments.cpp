// Misuse of grad, vjp and jvp that can only be detected at run time.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/count_text.h"
#include "graph/node.h"
#include "shardarray/grad.h"

namespace shardarray::detail {

void check_argnums(std::span<const int> argnums, std::span<const void* const> tags,
                   std::span<const void* const> wanted, const char* function) {
  for (std::size_t k = 0; k < argnums.size(); k++) {
    const int a = argnums[k];
    if (a < 0 || static_cast<std::size_t>(a) >= tags.size())
      throw TreeError(fmt::format(
          "{}: argnums names argument {}, the call has {}. Positions count from 0. Correct argnums.",
          function, a, count_text(tags.size(), "argument")));
    if (std::count(argnums.begin(), argnums.end(), a) > 1)
      throw TreeError(fmt::format(
          "{}: argnums names argument {} twice. Every argument has one gradient. Correct argnums.", function,
          a));
    if (tags[static_cast<std::size_t>(a)] != wanted[k])
      throw TreeError(
          fmt::format("{0}: argnums names argument {1} in place {2}, and its type is not that of "
                      "argument {2}. The type of the result is fixed at compile time. Write "
                      "{0}<{3}>(f) instead of argnums.",
                      function, a, k, fmt::join(argnums, ", ")));
  }
}

void check_aux(bool has_aux, bool returns_aux, const char* function) {
  if (has_aux == returns_aux) return;
  throw TreeError(
      has_aux ? fmt::format("{}: has_aux is set and the function returns one Array. With has_aux it returns "
                            "(loss, aux). Return a std::pair, or leave has_aux out.",
                            function)
              : fmt::format("{}: the function returns (loss, aux) and has_aux is not set. Without has_aux it "
                            "returns one Array. Say {{.has_aux = true}}.",
                            function));
}

void check_tangent(const Array& primal, const Array& tangent, const Path& path, const char* function) {
  if (!tangent.has_value()) return;
  // cotangents belong to results, tangents to arguments
  const bool back = std::string_view(function) == "vjp";
  const char* const word = back ? "cotangent" : "tangent";
  const std::string place = path.text(),
                    of = place.empty() ? back ? "the result" : "the argument" : "`" + place + "`";
  if (!is_inexact_array(primal))
    throw DTypeError(
        fmt::format("{}: there is a {} for {}, which is {}. Only floating-point arrays have {}s. Leave "
                    "it absent (Array()).",
                    function, word, of, primal.has_value() ? to_string(type_of(primal)) : "absent", word));
  if (primal.dtype() != tangent.dtype())
    throw DTypeError(
        fmt::format("{}: the {} of {} is {}, the value {}. Both must have the same dtype. "
                    "Convert it with astype().",
                    function, word, of, name(tangent.dtype()), name(primal.dtype())));
  if (primal.shape() != tangent.shape())
    throw ShapeError(fmt::format(
        "{}: the {} of {} has shape {}, the value {}. Both must have the same "
        "shape. Broadcast it first.",
        function, word, of, shardarray::to_string(tangent.shape()), shardarray::to_string(primal.shape())));
}

}  // namespace shardarray::detail
