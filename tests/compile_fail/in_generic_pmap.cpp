// In a function of any arguments that runs on every device.
// expect: x[i] = v would change a temporary and nothing else
#include "shardarray/pmap.h"

namespace sa = shardarray;

sa::Array misuse(const sa::Array& x) {
  return sa::pmap([](auto v) {
    v[0] = 5.0;
    return v;
  })(x);
}
