// Compiled with -march=x86-64-v3: nothing here may run before loops_baseline.cpp has checked the machine.
#include "cpu/loops/loops.inc"

namespace shardarray {

const Loops& v3_table();
const Loops& v3_table() {
  static const Loops table = [] {
    Loops t;
    fill(t);
    return t;
  }();
  return table;
}

}  // namespace shardarray
