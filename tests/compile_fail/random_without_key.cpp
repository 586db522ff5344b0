// A draw needs a key, of which the shape has the place here.
// expect: random: a key comes first, as in normal(key, {3, 4}); random::key(seed) makes one
#include "shardarray/jit.h"
#include "shardarray/random.h"

namespace sa = shardarray;

sa::Array misuse() { return sa::random::normal({3, 4}); }
