// wrap_return of tpmap cannot change the type of the result.
// expect: wrap_return must return the type that it takes
#include "shardarray/tpmap.h"

namespace sa = shardarray;

struct Loss {
  sa::Array value;
};
void misuse(const sa::Array& x) {
  sa::tpmap([](sa::Array v) { return v; },
            {.args = {sa::shard}, .wrap_return = [](sa::Array v) { return Loss{v}; }})(x);
}
