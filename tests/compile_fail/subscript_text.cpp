// Python's colon as a text.
// expect: a text is no index; a whole dimension is x[{all, 1}], a part slice(2, 5)
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) { return x[{":", 1}]; }
