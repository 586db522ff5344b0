#include "execute/effects.h"

#include <algorithm>

#include "base/host_memory.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "runtime/devices.h"
#include "shardarray/sharding.h"

namespace shardarray {

namespace {

// One operand on the host. Its leading dimensions are those of the maps that map it, outermost first.
struct HostOperand {
  Type type;
  std::vector<std::byte> bytes;
  std::vector<int> levels;  // the map of each leading dimension

  // The part at these positions of the maps (-1: the whole dimension).
  Array part(const std::vector<std::int64_t>& position) const {
    Shape shape;
    std::vector<std::int64_t> stride(type.shape.size(), 1), keep;
    for (std::size_t d = type.shape.size(); d-- > 1;) stride[d - 1] = stride[d] * type.shape[d];
    std::int64_t first = 0;
    for (std::size_t d = 0; d < type.shape.size(); d++) {
      const std::int64_t at = d < levels.size() ? position[static_cast<std::size_t>(levels[d])] : -1;
      if (at >= 0) {
        first += at * stride[d];
      } else {
        shape.push_back(type.shape[d]);
        keep.push_back(stride[d]);
      }
    }
    const std::size_t item = itemsize(type.dtype);
    std::vector<std::byte> out = host_bytes("debug::callback", bytes_of(shape, type.dtype));
    for (std::int64_t k = 0; k < num_elements(shape); k++) {
      std::int64_t rest = k, from = first;
      for (std::size_t d = shape.size(); d-- > 0;) {
        from += rest % shape[d] * keep[d];
        rest /= shape[d];
      }
      std::copy_n(bytes.data() + static_cast<std::size_t>(from) * item, item,
                  out.data() + static_cast<std::size_t>(k) * item);
    }
    return leaf_array({shape, type.dtype},
                      host_value(out.data(), {shape, type.dtype}, current_default_device()), {});
  }
};

// The device at these positions of the maps; none outside of pmap and shard_map.
std::optional<Device> device_at(const HostCall& call, const std::vector<std::int64_t>& position) {
  std::vector<std::pair<const Axis*, std::int64_t>> axes;  // outermost first
  for (std::size_t k = call.levels.size(); k-- > 0;)
    if (call.levels[k].axis->region) axes.emplace_back(call.levels[k].axis.get(), position[k]);
  if (axes.empty()) return std::nullopt;
  const Region& r = *axes[0].first->region;
  if (r.mesh) {
    std::int64_t at = 0;
    for (const auto& [name, size] : r.mesh->shape()) {
      const auto it = std::find_if(axes.begin(), axes.end(),
                                   [&wanted = name](const auto& a) { return a.first->name == wanted; });
      at = at * size + (it == axes.end() ? 0 : it->second);
    }
    return r.mesh->devices()[static_cast<std::size_t>(at)];
  }
  std::int64_t stride = axes[0].first->size * r.inside, at = 0;
  for (const auto& [axis, k] : axes) {
    stride /= axis->size;
    at += k * stride;
  }
  const std::vector<Device> list = r.devices.empty() ? devices() : r.devices;
  return list[static_cast<std::size_t>(at)];
}

bool has_part_in(const Value& v, int process) {
  return std::ranges::any_of(v.layout->order()->devices(),
                             [&](const Device& d) { return d.process_index == process; });
}
// A call belongs to the processes that have a part of every committed operand. If there is no such process, the operands cannot be read.
bool is_of_others(std::span<const ValueRef> values) {
  const auto has_all = [&](int process) {
    return std::ranges::all_of(values,
                               [&](const ValueRef& v) { return !v->committed || has_part_in(*v, process); });
  };
  if (has_all(process_index())) return false;
  for (int p = 0; p < process_count(); p++)
    if (has_all(p)) return true;
  return false;
}

// Replicates a value that is spread over several processes. All of them take part, as none knows what the others have.
ValueRef whole_in_each(const ValueRef& v, const Type& t) {
  const std::vector<Device>& devices = v->layout->order()->devices();
  if (!in_several_processes(devices) || !has_part_in(*v, process_index()) ||
      v->sharding.is_fully_replicated(static_cast<int>(t.shape.size())))
    return v;
  return reshard_value(v, t, PositionalSharding(devices).replicate(), "debug::callback");
}

void run_host_call(const HostCall& call, std::span<const Type> types, std::span<const ValueRef> values) {
  if (is_of_others(values)) return;
  std::vector<HostOperand> operands;
  for (std::size_t k = 0; k < values.size(); k++) {
    HostOperand o{types[k], host_bytes("debug::callback", bytes_of(types[k].shape, types[k].dtype)), {}};
    gather_to_host(*values[k], types[k], o.bytes.data());
    for (std::size_t level = call.levels.size(); level-- > 0;)
      if (call.levels[level].mapped[k]) o.levels.push_back(static_cast<int>(level));
    operands.push_back(std::move(o));
  }
  const std::size_t depth = call.levels.size();
  std::vector<std::int64_t> position(depth, 0);
  const auto walked = [&](std::size_t level) {
    const HostCall::Level& l = call.levels[level];
    return l.axis->region ||
           (!call.whole_vmap && std::find(l.mapped.begin(), l.mapped.end(), true) != l.mapped.end());
  };
  for (std::size_t level = 0; level < depth; level++) {
    if (!walked(level)) position[level] = -1;
    else if (call.levels[level].axis->size == 0) return;  // there are no rows
  }
  while (true) {
    HostValues v;
    v.device = device_at(call, position);
    if (!v.device || v.device->process_index == process_index()) {
      for (const HostOperand& o : operands) v.arrays.push_back(o.part(position));
      const detail::UserSite user;
      call.function(v);
    }
    std::size_t level = 0;  // the innermost map varies fastest
    while (level < depth && (position[level] < 0 || ++position[level] == call.levels[level].axis->size)) {
      if (position[level] > 0) position[level] = 0;
      level++;
    }
    if (level == depth) return;
  }
}

}  // namespace

void run_effects(std::span<const HostEffect> effects, std::span<const ValueRef> operands, bool inspects) {
  std::vector<ValueRef> values(operands.begin(), operands.end());
  const auto each = [&](const auto& then) {
    std::size_t k = 0;
    for (const HostEffect& e : effects) {
      then(e, std::span(values).subspan(k, e.types.size()));
      k += e.types.size();
    }
  };
  // Before any call: a call that throws in one process would leave the others waiting.
  each([](const HostEffect& e, std::span<ValueRef> of) {
    for (std::size_t k = 0; k < of.size() && !e.call->inspect; k++) of[k] = whole_in_each(of[k], e.types[k]);
  });
  each([&](const HostEffect& e, std::span<ValueRef> of) {
    if (!e.call->inspect) run_host_call(*e.call, e.types, of);
    else if (inspects) e.call->inspect(e.types[0].shape, of[0]->sharding);
  });
}

void run_effect(const Node& n) {
  HostEffect effect{n.attrs().host, {}};
  evaluate(n.in(), n.op->name);
  std::vector<ValueRef> values;
  for (const Array& a : n.in()) {
    effect.types.push_back(type_of(a));
    values.push_back(value_of(a));
  }
  run_effects({&effect, 1}, values, true);
}

}  // namespace shardarray
