// Environment variables, checked.
#pragma once
#include <cstdint>

namespace shardarray {

/// The integer in the variable `name`, or `fallback` if it is unset or empty. Throws Error naming variable and value unless it is a decimal
/// integer in [lo, hi].
std::int64_t env_int(const char* name, std::int64_t fallback, std::int64_t lo, std::int64_t hi);
/// The boolean in the variable `name` (1, true, on, yes or 0, false, off, no), or `fallback` if it is unset or empty. Throws Error for
/// anything else.
bool env_flag(const char* name, bool fallback);
/// How long to wait for other processes, in milliseconds: SHARDARRAY_COMM_TIMEOUT, which is in seconds. 0: forever.
std::int64_t comm_timeout();
/// Whether SHARDARRAY_DEBUG is `word`.
bool debug_is(const char* word);

}  // namespace shardarray
