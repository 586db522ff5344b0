// Without a key the bounds have the places of shape and bound.
// expect: random: a key comes first, as in normal(key, {3, 4}); random::key(seed) makes one
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse() { return sa::random::randint({3}, 0, 10); }
