// The erased core of scan and map: traces one step, and checks what a step must not change.
#include <fmt/core.h>

#include <algorithm>

#include "base/sizes.h"
#include "graph/branches.h"
#include "graph/iteration.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "shardarray/conditional.h"
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
                      "is taken at every step. Slice or pad them to one length.",
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

// Converts a step's carry for the next step. Its type must not change; a weak one is promoted with the step's result, as in JAX, which
// changes `before` so that the step is traced again.
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
  Graph graph;           // inputs: carries, elements, captures
  std::vector<Type> in;  // of the carries, then the elements
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
    if (types != s.in) {  // weak carry types were promoted: trace again, at most a few times
      for (Type& t : types) t.weak = t.weak && pass < 3;
      continue;
    }
    if (!s.graph.effects.empty())
      throw TraceError(
          fmt::format("{}: a step prints or calls the host ({}). Steps run on the devices only. Return what "
                      "is to be seen, and look at it behind the scan.",
                      function, called_in(s.graph.effects[0])));
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
  // Derivatives need the carries of every step; the compiler drops them if they are unused. Carries that never change are left out, as are
  // those whose sequence would exceed the size limit, possible only in a loop that is not differentiated.
  const auto all_steps_fit = [&](const Type& t) { return bytes_of(t.shape, t.dtype) < byte_limit / length; };
  if (core::tracing() || !trace_state().gradients.empty() || others_differentiate())
    for (std::size_t k = 0; k < it.carries; k++)
      if (!it.keeps(k) && all_steps_fit(s.in[k])) body->out.push_back(body->in[it.constants + k]);
  const Arrays given = record_iteration(it, operands);
  std::size_t next = 0;
  for (const Array& out : s.graph.out) result.push_back(out.has_value() ? given[next++] : Array());
  return result;
}

// A scalar as bool: true if not 0.
static Array is_true(const Array& x, const char* function, const char* what) {
  const Type& t = type_of(x, function);
  if (!t.shape.empty())
    throw ShapeError(fmt::format(
        "{}: {} is {}. It is one number for all: a scalar. Reduce it with all() or any(), or choose "
        "elements with where().",
        function, what, to_string(t)));
  return t.dtype == DType::bool_ ? x : primitive::binary(op_ne, x, primitive::like(x, 0));
}

core::Arrays core::while_loop(MapBody condition, MapBody body, std::span<const ScanLeaf> init, Where w) {
  constexpr const char* function = "while_loop";
  const Site site(w, function);
  std::vector<Type> types;
  for (const ScanLeaf& c : init)
    if (c.array.has_value()) types.push_back(type_of(c.array, function));
  TracedStep s = trace_step(body, init, std::move(types), function);
  Arrays asked;
  Graph asks = traced(
      [&](std::span<const Array> x) {
        const Array answer = condition(x)[0];
        const Site named({}, function);
        return Arrays{is_true(answer, function, "the condition")};
      },
      s.in, asked, function);
  if (!asks.effects.empty())
    throw TraceError(
        fmt::format("{}: the condition prints or calls the host ({}). Steps run on the devices only. Return "
                    "what is to be seen in the carry.",
                    function, called_in(asks.effects[0])));
  const Site named({}, function);
  // The op expects constants first; tracing puts captures last.
  const auto ordered = [&](Graph& g) {
    std::rotate(g.in.begin(), g.in.begin() + std::ssize(s.in), g.in.end());
    return std::make_shared<const Graph>(std::move(g));
  };
  Repetition r;
  r.asked = asked.size();
  r.constants = s.captured.size();
  r.condition = ordered(asks);
  Graph steps{s.graph.in, {}, {}};
  for (const Array& out : s.graph.out)
    if (out.has_value()) steps.out.push_back(out);
  r.body = ordered(steps);
  Arrays operands = asked;
  operands.insert(operands.end(), s.captured.begin(), s.captured.end());
  std::size_t carry = 0;
  for (const ScanLeaf& c : init)
    if (c.array.has_value()) {
      const Type& t = s.in[carry++];
      operands.push_back(primitive::cast(c.array, t.dtype, t.weak));
    }
  Arrays given, result;
  if (carry > 0) given = record_repetition(std::move(r), operands);
  carry = 0;
  for (const ScanLeaf& c : init) result.push_back(c.array.has_value() ? given[carry++] : Array());
  return result;
}

// The branch number, clamped to the valid range.
static Array branch_number(const Array& index, bool predicate, std::size_t branches, const char* function) {
  if (predicate) return primitive::cast(is_true(index, function, "the predicate"), DType::int32);
  const Type& t = type_of(index, function);
  if (!is_integer(t.dtype))
    throw DTypeError(fmt::format(
        "{}: the index is {}. It is the number of a branch: an integer. Convert it with astype(int32).",
        function, to_string(t)));
  if (!t.shape.empty())
    throw ShapeError(fmt::format(
        "{}: the index is {}. It is one number for all: a scalar. Choose elements with where() or choose().",
        function, to_string(t)));
  Array clamped = itemsize(t.dtype) < 8 ? primitive::cast(index, DType::int64) : index;  // holds any index
  clamped = primitive::binary(op_min, clamped,
                              primitive::like_whole(clamped, static_cast<std::int64_t>(branches) - 1));
  clamped = primitive::binary(op_max, clamped, primitive::like_whole(clamped, 0));
  return primitive::cast(clamped, DType::int32);
}

// The common type of results; a weak one adapts to the other.
static Type common_type(const Type& a, const Type& b, const std::string& first, const std::string& other,
                        const char* function) {
  if (!(a.shape == b.shape))
    throw ShapeError(
        fmt::format("{}: {} gives {} where {} gives {}. All branches give the same shapes. Pad or broadcast "
                    "them.",
                    function, first, to_string(a), other, to_string(b)));
  if (a.dtype == b.dtype) return {a.shape, a.dtype, a.weak && b.weak};
  if (a.weak || b.weak) {
    const WeakType both = promote_types({a.dtype, a.weak}, {b.dtype, b.weak});
    if ((a.weak || both.dtype == a.dtype) && (b.weak || both.dtype == b.dtype))
      return {a.shape, both.dtype, a.weak && b.weak};
  }
  throw DTypeError(fmt::format(
      "{}: {} gives {} where {} gives {}. All branches give the same dtypes. Convert with astype.", function,
      first, to_string(a), other, to_string(b)));
}

core::Arrays core::choose(const Array& index, bool predicate, std::span<const MapBody> branches,
                          std::span<const Array> operands, const char* function, Where w) {
  const Site site(w, function);
  if (branches.empty())
    throw ShapeError(fmt::format("{}: there is no branch. One of several runs. Give one or more.", function));
  const Array number = branch_number(index, predicate, branches.size(), function);
  std::vector<Type> types;
  for (const Array& a : operands) types.push_back(type_of(a, function));
  const auto name_of = [&](std::size_t k) {
    return predicate ? std::string(k == 1 ? "if_true" : "if_false") : fmt::format("branch {}", k);
  };
  std::vector<Graph> graphs;
  std::vector<Arrays> captured;
  Arrays places;
  for (std::size_t k = 0; k < branches.size(); k++) {
    captured.emplace_back();
    const auto present = [&](std::span<const Array> x) {
      const Arrays all = branches[k](x);
      if (k == 0) places = all;
      Arrays some;
      for (std::size_t j = 0; j < all.size(); j++) {
        if (all[j].has_value() != places[j].has_value())
          throw TreeError(
              fmt::format("{}: {} gives {} array where {} gives {}. All branches give arrays in the same "
                          "places. Return zeros where there is nothing.",
                          function, name_of(0), places[j].has_value() ? "an" : "no", name_of(k),
                          all[j].has_value() ? "one" : "none"));
        if (all[j].has_value()) some.push_back(all[j]);
      }
      return some;
    };
    graphs.push_back(traced(present, types, captured.back(), function));
    if (!graphs.back().effects.empty())
      throw TraceError(
          fmt::format("{}: a branch prints or calls the host ({}). Branches run on the devices only. Return "
                      "what is to be seen.",
                      function, called_in(graphs.back().effects[0])));
  }
  const Site named({}, function);
  const RecordingWalk walk;
  std::vector<Type> results;
  for (std::size_t j = 0; j < graphs[0].out.size(); j++) {
    results.push_back(type_of(graphs[0].out[j]));
    for (std::size_t k = 1; k < graphs.size(); k++)
      results[j] = common_type(results[j], type_of(graphs[k].out[j]), name_of(0), name_of(k), function);
  }
  Choice c;
  Arrays all(operands.begin(), operands.end());
  ArrayMap<std::size_t> place;  // shared captures become one operand
  for (const Arrays& list : captured)
    for (const Array& a : list)
      if (place.try_emplace(key(a), all.size()).second) all.push_back(a);
  for (std::size_t k = 0; k < graphs.size(); k++) {
    Graph g{{graphs[k].in.begin(), graphs[k].in.begin() + std::ssize(operands)}, {}, {}};
    g.in.resize(all.size());
    for (std::size_t j = 0; j < captured[k].size(); j++)
      g.in[place.at(key(captured[k][j]))] = graphs[k].in[operands.size() + j];
    for (std::size_t j = operands.size(); j < all.size(); j++)
      if (!g.in[j].has_value()) g.in[j] = placeholder(type_of(all[j]));
    for (std::size_t j = 0; j < results.size(); j++)
      g.out.push_back(primitive::cast(graphs[k].out[j], results[j].dtype, results[j].weak));
    c.branches.push_back(std::make_shared<const Graph>(std::move(g)));
  }
  const Arrays given = record_choice(std::move(c), number, all);
  std::size_t next = 0;
  for (Array& a : places)
    if (a.has_value()) a = given[next++];
  return places;
}

core::Batches core::map_batches(std::span<const ScanLeaf> xs, std::int64_t size, Where w) {
  const Site site(w, "map");
  if (size < 1)
    throw ShapeError(fmt::format(
        "map: batch_size is {}. A batch has 1 element or more. Give more, or leave batch_size out.", size));
  const std::int64_t length = scan_length(xs, std::nullopt, "map");
  const std::int64_t batch = std::clamp<std::int64_t>(length, 1, size), whole = length / batch * batch;
  Batches r;
  for (const ScanLeaf& x : xs) {
    if (!x.array.has_value()) {
      r.whole.push_back(Array());
      continue;
    }
    Shape cut = x.array.shape();
    cut[0] = batch;
    cut.insert(0, whole / batch);
    r.whole.push_back(primitive::reshape(primitive::slice_dim(x.array, 0, 0, whole), cut));
  }
  for (const ScanLeaf& x : xs)
    if (whole < length)
      r.rest.push_back(x.array.has_value() ? primitive::slice_dim(x.array, 0, whole, length) : Array());
  return r;
}

core::Arrays core::join_batches(const Arrays& whole, const Arrays& rest, Where w) {
  const Site site(w, "map");
  Arrays r;
  for (std::size_t k = 0; k < whole.size(); k++) {
    if (!whole[k].has_value()) {
      r.push_back(Array());
      continue;
    }
    Shape shape = whole[k].shape();
    const std::int64_t batches = shape[0];
    shape.erase(0);
    shape[0] *= batches;
    const Array flat = primitive::reshape(whole[k], shape);
    if (rest.empty()) r.push_back(flat);
    else r.push_back(primitive::concatenate(std::vector<Array>{flat, rest[k]}, 0));
  }
  return r;
}

}  // namespace shardarray
