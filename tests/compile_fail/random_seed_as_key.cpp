// A number is a seed and no key.
// expect: random: a key comes first, as in normal(key, {3, 4}); random::key(seed) makes one
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse() { return sa::random::normal(0, {3}); }
