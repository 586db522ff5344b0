#include "execute/constraint.h"

#include <fmt/core.h>

#include "layout/spelling.h"
#include "ops/record.h"
#include "runtime/devices.h"

namespace shardarray::core {

void check_fits(const Array& x, const Sharding& s, const std::string& path, const char* function,
                const char* whose) {
  const Type& t = type_of(x, function);
  need_devices(function, s.device_assignment());
  try {
    layout_of(s, static_cast<int>(t.shape.size()));
  } catch (const ShardingError& e) {
    throw ShardingError(
        fmt::format("{}: One of its {} is incompatible with its sharding annotation {}: {}{}: {}", function,
                    whose, s.to_string(), path.empty() ? "" : path + " ", to_string(t), e.text()));
  }
}

Array constrain(const Array& x, const Sharding& s, Where w) {
  Attrs attrs;
  attrs.sharding = std::make_shared<const Sharding>(s);
  return record(op_constraint, {x}, std::move(attrs), w);
}

}  // namespace shardarray::core
