// There is something to switch between.
// expect: switch_: there must be one branch or more
#include "shardarray/conditional.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) { (void)sa::switch_(0, std::tuple(), x); }
