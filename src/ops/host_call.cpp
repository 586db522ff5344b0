// host_call: an effect on the host with the operands' values. It never reaches the compiler: its operands become results of the program,
// and the call happens after the run.
#include "graph/host_call.h"
#include "ops/rules.h"

namespace shardarray {

using namespace rules;

static Batched host_call_batch(const BatchArgs& b) {
  Attrs a = b.node.attrs();
  HostCall call = *a.host;
  call.levels.push_back({b.axis, b.mapped});
  a.host = std::make_shared<const HostCall>(std::move(call));
  return {{record(op_host_call, b.in, std::move(a))}, {false}};
}

// Calls attrs.host with the operands' values; the result is a dummy.
SHARDARRAY_OP op_host_call{.name = "host_call",
                           .form = Form::collective,
                           .rule = pointwise_rule,
                           .type =
                               [](const Call&) {
                                 return Types{{{}, DType::bool_, false}};
                               },
                           .jvp = [](const JvpArgs&) { return Arrays(1); },
                           .batch = host_call_batch,
                           .effect = true};

}  // namespace shardarray
