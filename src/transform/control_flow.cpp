// scan's erased core: the trace of one step, and what a step may not change.
#include <fmt/core.h>

#include "base/sizes.h"
#include "graph/iteration.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "shardarray/control_flow.h"
#include "transform/trace.h"

namespace shardarray {

using core::ScanLeaf;

namespace {

std::string named(const char* what, const std::string& path) {
  return path.empty() ? fmt::format("the {}", what) : fmt::format("'{}' of the {}", path, what);
}

std::int64_t scan_length(std::span<const ScanLeaf> xs, const std::optional<std::int64_t>& length,
                         const char* function) {
  std::optional<std::int64_t> found;
  const ScanLeaf* first = nullptr;
  for (const ScanLeaf& x : xs) {
    if (!x.array.has_value()) continue;
    const Shape& shape = type_of(x.array, function).shape;
    if (shape.empty())
      throw ShapeError(
          fmt::format("{}: {} is {}: it has no leading dimension to step over. Reshape it, or capture it.",
                      function, named("sequence", x.path), to_string(type_of(x.array))));
    if (found && *found != shape[0])
      throw ShapeError(
          fmt::format("{}: the sequences have different lengths: {} has {}, {} has {}. One element of each "
                      "is taken at every step. "
                      "Slice or pad them to one length.",
                      function, named("sequence", first->path), *found, named("sequence", x.path), shape[0]));
    if (!found) first = &x;
    found = shape[0];
  }
  if (found && length && *found != *length)
    throw ShapeError(fmt::format("{}: the length is {}, but the sequences have {}. Leave the length out.",
                                 function, *length, *found));
  if (!found && !length)
    throw ShapeError(fmt::format(
        "{}: there is no sequence to step over, and no length. Give one: {{.length = 10}}.", function));
  if (!found && *length < 0)
    throw ShapeError(
        fmt::format("{}: the length is {}. A length is not negative. Give 0 or more.", function, *length));
  return found ? *found : *length;
}

// What a step makes of a carry, as the next one takes it. A carry keeps its type; one that is weak is promoted with what the step
// made of it, as in JAX, and all is traced again: `before` is changed then.
Array next_carry(const ScanLeaf& carry, Type& before, const Array& after, const char* function) {
  if (!after.has_value())
    throw TreeError(
        fmt::format("{}: {} has no array behind a step, but one before it. A step keeps the structure of "
                    "the carry. Return what it takes.",
                    function, named("carry", carry.path)));
  const Type& t = type_of(after);
  if (!(t.shape == before.shape))
    throw ShapeError(
        fmt::format("{}: {} is {} before a step and {} behind it. A carry keeps its shape. Return it as "
                    "it came, or begin with that shape.",
                    function, named("carry", carry.path), to_string(before), to_string(t)));
  if (before.weak) {
    const WeakType both = promote_types({before.dtype, before.weak}, {t.dtype, t.weak});
    before.dtype = both.dtype;
    before.weak = t.weak;
  }
  if (t.dtype != before.dtype)
    throw DTypeError(
        fmt::format("{}: {} is {} before a step and {} behind it. A carry keeps its dtype. Convert with "
                    "astype inside the step or before the first one.",
                    function, named("carry", carry.path), to_string(before), to_string(t)));
  return primitive::cast(after, before.dtype, before.weak);
}

struct TracedStep {
  Graph graph;           // placeholders of carries and elements, then of what is captured
  std::vector<Type> in;  // of the carries, then of the elements
  Arrays captured;
};

TracedStep trace_step(core::MapBody f, std::span<const ScanLeaf> init, std::vector<Type> types,
                      const char* function) {
  for (int pass = 0;; pass++) {
    TracedStep s;
    s.in = types;
    const auto body = [&](std::span<const Array> placeholders) {
      Arrays out = f(placeholders);
      for (std::size_t k = 0, present = 0; k < init.size(); k++) {
        if (init[k].array.has_value()) {
          out[k] = next_carry(init[k], types[present++], out[k], function);
        } else if (out[k].has_value()) {
          throw TreeError(
              fmt::format("{}: {} has an array behind a step, but none before it. A step keeps the "
                          "structure of the carry. Begin with an array.",
                          function, named("carry", init[k].path)));
        }
      }
      return out;
    };
    s.graph = traced(body, s.in, s.captured, function);
    if (types != s.in) {  // weak carries, which do not change for ever
      for (Type& t : types) t.weak = t.weak && pass < 3;
      continue;
    }
    if (!s.graph.effects.empty())
      throw TraceError(
          fmt::format("{}: a step prints or calls the host ({}). Steps run on the devices only. Return what "
                      "is to be seen, and look at it behind the scan.",
                      function, s.graph.effects[0].node()->op->name));
    return s;
  }
}

}  // namespace

void core::throw_carry_structure(const Path& path, const char* function) {
  throw TreeError(
      fmt::format("{}: the carry has other sizes, keys or static values behind a step{}. A carry keeps its "
                  "structure. Make what changes an Array, or capture what does not.",
                  function, path.text().empty() ? "" : fmt::format(": at `{}`", path.text())));
}

Array core::loop_counter(std::int64_t lo, std::int64_t hi) {
  const auto is_small = [](std::int64_t v) { return v == static_cast<std::int32_t>(v); };
  const DType t = is_small(lo) && is_small(hi) ? DType::int32 : DType::int64;
  return primitive::constant(t, primitive::bits_of(t, lo), true);
}
std::int64_t core::loop_length(std::int64_t lo, std::int64_t hi) {
  if (hi <= lo) return 0;
  std::int64_t length = 0;
  if (__builtin_sub_overflow(hi, lo, &length))
    throw ShapeError(fmt::format(
        "fori_loop: from {} to {} are 2^63 steps or more. A loop has fewer. Put one loop into another.", lo,
        hi));
  return length;
}

core::Arrays core::scan(MapBody f, std::span<const ScanLeaf> init, std::span<const ScanLeaf> xs,
                        const ScanOptions& options, const char* function, Where w) {
  const Site site(w, function);
  const std::int64_t length = scan_length(xs, options.length, function);
  std::vector<Type> types;
  Arrays carries, elements;
  for (const ScanLeaf& c : init)
    if (c.array.has_value()) {
      types.push_back(type_of(c.array, function));
      carries.push_back(c.array);
    }
  for (const ScanLeaf& x : xs)
    if (x.array.has_value()) {
      types.push_back(element_of(type_of(x.array)));
      elements.push_back(x.array);
    }
  TracedStep s = trace_step(f, init, std::move(types), function);
  const Site named({}, function);
  Iteration it;
  it.constants = s.captured.size();
  it.carries = carries.size();
  it.length = length;
  it.reverse = options.reverse;
  const auto body = std::make_shared<Graph>();
  it.body = body;
  Arrays operands = std::move(s.captured);
  body->in.assign(s.graph.in.begin() + static_cast<std::ptrdiff_t>(s.in.size()), s.graph.in.end());
  body->in.insert(body->in.end(), s.graph.in.begin(),
                  s.graph.in.begin() + static_cast<std::ptrdiff_t>(s.in.size()));
  for (std::size_t k = 0; k < carries.size(); k++)
    operands.push_back(primitive::cast(carries[k], s.in[k].dtype, s.in[k].weak));
  Arrays result;
  if (length == 0) {
    for (std::size_t k = 0, present = 0; k < s.graph.out.size(); k++) {
      const Array& out = s.graph.out[k];
      if (!out.has_value()) result.push_back(Array());
      else if (k < init.size()) result.push_back(operands[it.constants + present++]);
      else result.push_back(zeros_of(sequence_of(type_of(out), 0)));
    }
    return result;
  }
  operands.insert(operands.end(), elements.begin(), elements.end());
  for (const Array& out : s.graph.out)
    if (out.has_value()) body->out.push_back(out);
  // A derivative asks for the carries of every step, where nobody does the compiler leaves them out; what never changes is none,
  // and there is no array of so many as only a loop without derivative can have.
  const auto all_steps_fit = [&](const Type& t) { return bytes_of(t.shape, t.dtype) < byte_limit / length; };
  if (core::tracing() || !trace_state().gradients.empty())
    for (std::size_t k = 0; k < it.carries; k++)
      if (!it.keeps(k) && all_steps_fit(s.in[k])) body->out.push_back(body->in[it.constants + k]);
  const Arrays given = record_iteration(it, operands);
  std::size_t next = 0;
  for (const Array& out : s.graph.out) result.push_back(out.has_value() ? given[next++] : Array());
  return result;
}

}  // namespace shardarray
