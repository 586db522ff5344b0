// What a jitted function may be told.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

/// Which arguments jit may take over, besides those that are moved in: no others, all, all but the first (Equinox's name).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wshadow"  // g++ 12 takes the scoped `none` for one that hides shardarray::none
enum class Donate : std::uint8_t { none, all, all_except_first };
#pragma GCC diagnostic pop

/// Options of jit(): `jit(f, {.donate = Donate::all})`.
struct SHARDARRAY_API JitOptions {
  Donate donate = Donate::
      none;  ///< what is given up dies for every handle; what another thread uses at that moment is copied, and lives
  std::string name = "jit";      ///< in messages
  std::size_t max_entries = 64;  ///< of the cache; the least recently used goes first
  bool check = false;  ///< retrace on every hit and compare: finds captured values that changed (TraceError)
  std::vector<int> static_args =
      {};  ///< positions whose values are part of the key (they must hold no arrays)
  std::optional<Sharding> in_shardings = std::nullopt;  ///< of every array of the arguments; fits their ranks
  std::optional<Sharding> out_shardings = std::nullopt;  ///< of every array of the results; fits their ranks
  std::vector<int> donate_args = {};  ///< positions that are given away, besides what `donate` says
  bool relocate = false;              ///< arguments on other devices than the function's come over (pmap)
};

}  // namespace shardarray
