// A part of an array, as of at(), is no place to add to.
// expect: x.at(i) += v would change a temporary and nothing else
#include "shardarray/jit.h"

namespace sa = shardarray;

sa::Array misuse(sa::Array x, const sa::Array& v) {
  x.at(0) += v;
  return x;
}
