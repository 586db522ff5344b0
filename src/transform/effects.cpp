#include "transform/effects.h"

#include "graph/trace_state.h"
#include "ops/record.h"

namespace shardarray {

void add_host_call(HostCall call, Arrays operands, Where w) {
  const Site site(w);
  Attrs a;
  for (const auto& axis :
       trace_state().axes)  // once per device, even if its operands are the same everywhere
    if (axis->region) a.axes.insert(a.axes.begin(), axis);
  a.host = std::make_shared<const HostCall>(std::move(call));
  const Array effect = record(op_host_call, operands, std::move(a));
  if (trace_state().open.empty()) run_effect(*effect.node());
}

}  // namespace shardarray
