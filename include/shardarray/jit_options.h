// Options of jit().
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/export.h"

namespace shardarray {

/// Which arguments jit may take over, besides those moved in: no others, all, all but the first (Equinox's name).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wshadow"  // g++ 12 takes the scoped `none` for one that hides shardarray::none
enum class Donate : std::uint8_t { none, all, all_except_first };
#pragma GCC diagnostic pop

/// Options of jit(): `jit(f, {.donate = Donate::all})`.
struct SHARDARRAY_API JitOptions {
  Donate donate = Donate::
      none;  ///< donated memory is lost to every handle; memory that another thread is using is copied, and survives
  std::string name = "jit";      ///< used in messages
  std::size_t max_entries = 64;  ///< of the cache; the least recently used is evicted
  bool check = false;  ///< retrace on every hit and compare: finds captured values that changed (TraceError)
  std::vector<int> static_args =
      {};  ///< positions whose values are part of the cache key (they must hold no arrays)
  std::optional<Sharding> in_shardings = std::nullopt;  ///< of every array of the arguments; fits their ranks
  std::optional<Sharding> out_shardings = std::nullopt;  ///< of every array of the results; fits their ranks
  std::vector<int> donate_args = {};  ///< positions that are donated, besides those given by `donate`
  bool relocate = false;              ///< moves arguments on other devices to those of the function (pmap)
};

}  // namespace shardarray
