// A draw needs a key.
// expect: random: a key comes first, as in normal(key, {3, 4}); random::key(seed) makes one
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse([[maybe_unused]] const sa::Array& x) { return sa::random::bernoulli(0.5, {3}); }
