// What explain gives has its type in any case.
// expect: the function cannot be called with these argument types
#include <iostream>

#include "shardarray/shardarray.h"

namespace sa = shardarray;

void misuse(const sa::Array& x) {
  auto plan = sa::explain([](const sa::Array& a, const sa::Array& b) { return a + b; }, x);
  for (const auto& t : plan.transfers()) std::cout << t.reason;
  std::cout << plan << sa::print_graph([](const sa::Array& a) { return a; }, x);
}
