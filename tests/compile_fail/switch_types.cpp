// All branches give the same type.
// expect: switch_: all branches must return the same type
#include "shardarray/conditional.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  (void)sa::switch_(x, std::tuple([](sa::Array v) { return v; }, [](sa::Array v) { return std::pair(v, v); }),
                    x);
}
