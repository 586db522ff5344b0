// host_call: an effect on the host with the operands' values. Never reaches the compiler: its operands become results of the
// program, and the call happens after the run.
#include "graph/host_call.h"
#include "ops/rules.h"
#include "ops/table.h"

namespace shardarray {

static Batched host_call_batch(const BatchArgs& b) {
  Attrs a = b.node.attrs();
  HostCall call = *a.host;
  call.levels.push_back({b.axis, b.mapped});
  a.host = std::make_shared<const HostCall>(std::move(call));
  return {{record(op_host_call, b.in, std::move(a))}, {false}};
}

constinit const Op op_host_call{.name = "host_call",
                                .form = Form::collective,
                                .rule = pointwise_rule,
                                .type =
                                    [](const Call&) {
                                      return Types{{{}, DType::bool_, false}};
                                    },
                                .jvp = [](const JvpArgs&) { return Arrays(1); },
                                .batch = host_call_batch,
                                .effect = true};

static constexpr const Op* host_table[] = {&op_host_call};
constinit const std::span<const Op* const> host_ops = host_table;

}  // namespace shardarray
