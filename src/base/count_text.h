// Counts with their nouns, for messages.
#pragma once
#include <concepts>
#include <string>
#include <string_view>

namespace shardarray {

/// `processes`, `axes`, `entries`, `keys`.
inline std::string plural_of(std::string_view noun) {
  std::string r(noun);
  const auto ends = [&](std::string_view end) { return noun.ends_with(end); };
  if (ends("ss")) r += "es";
  else if (ends("is")) r.replace(r.size() - 2, 2, "es");
  else if (ends("y") && !ends("ay") && !ends("ey") && !ends("oy")) r.replace(r.size() - 1, 1, "ies");
  else r += 's';
  return r;
}
/// `1 entry`, `2 entries`, `0 axes`; pass `plural` for irregular nouns.
template <std::integral N> std::string count_text(N n, std::string_view noun, std::string_view plural = {}) {
  std::string r = std::to_string(n) + ' ';
  if (n == 1) return r.append(noun);
  return r += plural.empty() ? plural_of(noun) : std::string(plural);
}

}  // namespace shardarray
