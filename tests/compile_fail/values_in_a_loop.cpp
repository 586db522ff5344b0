// What is read has a C++ type, also where it is looped over.
// expect: to_vector: name the type that is read: x.to_vector<float>()
#include "shardarray/jit.h"

namespace sa = shardarray;

double misuse(const sa::Array& x) {
  double sum = 0;
  for (const float v : x.to_vector()) sum += v;
  return sum;
}
