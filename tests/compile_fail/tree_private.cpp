// Private members cannot be reflected.
// expect: this class has constructors or private members
#include "shardarray/jit.h"

namespace sa = shardarray;

class Module {
 public:
  Module();

 private:
  sa::Array w_;
};
void misuse(const Module& x) {
  sa::jit([](const auto& t) { return t; })(x);
}
