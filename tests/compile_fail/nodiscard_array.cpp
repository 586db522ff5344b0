// A new array does nothing by itself.
// options: -Werror
// expect: ignoring return value
#include "shardarray/jit.h"
#include "shardarray/placement.h"

namespace sa = shardarray;

void misuse(const std::vector<float>& values) { sa::array(values); }
