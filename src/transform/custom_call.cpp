// The erased core of custom_jvp, custom_vjp and checkpoint.
#include "shardarray/detail/custom_call.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/per_thread.h"
#include "graph/custom_rule.h"
#include "graph/trace_state.h"
#include "ops/record.h"
#include "transform/trace.h"

namespace shardarray {

using core::CustomFunctions;
using core::PlacedLeaf;
using core::PlacedLeaves;

namespace {

// The functions whose derivatives this thread is tracing: calls to them in there get their derivative later.
struct OpenDerivatives {
  std::vector<const void*> ids;
};
std::vector<const void*>& open_derivatives() { return PerThread<OpenDerivatives>::get().ids; }
class OpenDerivative {
 public:
  explicit OpenDerivative(const void* id) { open_derivatives().push_back(id); }
  ~OpenDerivative() { open_derivatives().pop_back(); }
  OpenDerivative(const OpenDerivative&) = delete;
  OpenDerivative& operator=(const OpenDerivative&) = delete;
};

// The arrays among a tree's leaves, and the inverse: arrays put back in their places.
Arrays present(std::span<const Array> places) {
  Arrays r;
  std::copy_if(places.begin(), places.end(), std::back_inserter(r),
               [](const Array& a) { return a.has_value(); });
  return r;
}
Arrays in_places(Arrays places, const Arrays& given) {
  std::size_t next = 0;
  for (Array& x : places)
    if (x.has_value()) x = given[next++];
  return places;
}

bool floats(const Type& t) { return is_inexact(t.dtype); }

// Checks that derivatives have the places, shapes and dtypes of their primals and returns those of floating leaves; absent ones are zero.
Arrays checked_derivatives(const PlacedLeaves& given, const std::vector<std::optional<Type>>& places,
                           const char* function, const char* word, const char* of) {
  Arrays r;
  for (std::size_t k = 0; k < places.size(); k++) {
    const Array& a = given[k].array;
    const std::string place = given[k].path.empty() ? of : "'" + given[k].path + "' of " + of;
    if (!places[k] || !floats(*places[k])) {
      if (a.has_value() && (!places[k] || floats(type_of(a))))
        throw DTypeError(fmt::format(
            "{}: there is a {} for {}, which is {}. Only floating-point arrays have {}s. Leave it absent "
            "(Array()).",
            function, word, place, places[k] ? to_string(*places[k]) : "absent", word));
      continue;
    }
    const Type& want = *places[k];
    if (!a.has_value()) {
      r.push_back(zeros_of(want));
      continue;
    }
    const Type& got = type_of(a);
    if (!(got.shape == want.shape))
      throw ShapeError(fmt::format(
          "{}: the {} of {} has shape {}, the value {}. Both must have the same shape. Return it "
          "in that shape.",
          function, word, place, shardarray::to_string(got.shape), shardarray::to_string(want.shape)));
    if (got.dtype != want.dtype && !got.weak)
      throw DTypeError(fmt::format(
          "{}: the {} of {} is {}, the value {}. Both must have the same dtype. Convert it with astype().",
          function, word, place, name(got.dtype), name(want.dtype)));
    r.push_back(primitive::cast(a, want.dtype));
  }
  return r;
}

// The result that the derivative returns besides tangents or residuals must have the function's types.
void check_result(const PlacedLeaves& given, const std::vector<std::optional<Type>>& places,
                  const char* function) {
  for (std::size_t k = 0; k < places.size(); k++) {
    const Array& a = given[k].array;
    if (a.has_value() == places[k].has_value() &&
        (!places[k] || (type_of(a).shape == places[k]->shape && type_of(a).dtype == places[k]->dtype)))
      continue;
    throw ShapeError(fmt::format(
        "{}: the derivative gives {} for {}, the function {}. Both give the same result. Let it return what "
        "the function returns.",
        function, a.has_value() ? to_string(type_of(a)) : "nothing",
        given[k].path.empty() ? "the result" : "'" + given[k].path + "' of the result",
        places[k] ? to_string(*places[k]) : "nothing"));
  }
}

std::vector<std::optional<Type>> types_of_places(std::span<const Array> arrays) {
  std::vector<std::optional<Type>> r;
  for (const Array& a : arrays) r.push_back(a.has_value() ? std::optional<Type>(type_of(a)) : std::nullopt);
  return r;
}
std::vector<Type> floating_types(std::span<const Type> types) {
  std::vector<Type> r;
  std::copy_if(types.begin(), types.end(), std::back_inserter(r), floats);
  return r;
}

Graph without_effects(Graph g, const char* function, const char* what) {
  if (!g.effects.empty())
    throw TraceError(fmt::format(
        "{}: {} prints or calls the host ({}). It runs when derivatives do, on the devices only. Return what "
        "is to be seen.",
        function, what, called_in(g.effects[0])));
  return g;
}

// Captures are a graph's last inputs: moves them to position `at`.
void move_captured(Graph& g, std::size_t captured, std::size_t at) {
  const auto first = g.in.begin() + static_cast<std::ptrdiff_t>(at);
  std::rotate(first, g.in.end() - static_cast<std::ptrdiff_t>(captured), g.in.end());
}

// Traces a custom derivative for arguments of given types.
class CustomTrace {
 public:
  CustomTrace(const CustomFunctions& custom, std::vector<std::optional<Type>> results,
              std::vector<std::optional<Type>> argument_places)
      : custom_(custom), results_(std::move(results)), places_(std::move(argument_places)) {}

  /// Appends its captures to `captured`.
  CustomGraphs run(std::span<const Type> arguments, Arrays& captured) const {
    const OpenDerivative open(custom_.id.get());
    const ValueAlone derivatives(false);
    return custom_.push ? forward_mode(arguments, captured) : reverse_mode(arguments, captured);
  }

 private:
  CustomGraphs forward_mode(std::span<const Type> arguments, Arrays& captured) const {
    std::vector<Type> in(arguments.begin(), arguments.end());
    for (const Type& t : floating_types(arguments)) in.push_back(t);
    const auto body = [&](std::span<const Array> x) {
      return checked_derivatives(custom_.push(x.first(arguments.size()), x.subspan(arguments.size())),
                                 results_, custom_.function, "tangent", "the result");
    };
    CustomGraphs r;
    r.forward =
        without_effects(traced(body, in, captured, custom_.function), custom_.function, "its derivative");
    move_captured(r.forward, captured.size(), arguments.size());
    return r;
  }

  CustomGraphs reverse_mode(std::span<const Type> arguments, Arrays& captured) const {
    CustomGraphs r;
    Arrays of_forward, of_backward;
    std::vector<Type> in;
    core::CustomForward made;
    const auto forward = [&](std::span<const Array> x) {
      made = custom_.forward(x);
      check_result(made.result, results_, custom_.function);
      for (const Array& a : made.residuals) in.push_back(type_of(a));
      return made.residuals;
    };
    r.forward = without_effects(traced(forward, arguments, of_forward, custom_.function), custom_.function,
                                "its forward function");
    const std::size_t residuals = in.size();
    for (const std::optional<Type>& t : results_)
      if (t && floats(*t)) in.push_back(*t);
    const auto backward = [&](std::span<const Array> x) {
      return checked_derivatives(made.backward(x.first(residuals), x.subspan(residuals)), places_,
                                 custom_.function, "cotangent", "the arguments");
    };
    r.backward = without_effects(traced(backward, in, of_backward, custom_.function), custom_.function,
                                 "its backward function");
    move_captured(r.backward, of_backward.size(), 0);
    // Both graphs take the captures of either.
    for (const Array& a : of_backward) r.forward.in.push_back(placeholder(type_of(a)));
    Arrays more;
    for (const Array& a : of_forward) more.push_back(placeholder(type_of(a)));
    r.backward.in.insert(r.backward.in.begin(), more.begin(), more.end());
    captured.insert(captured.end(), of_forward.begin(), of_forward.end());
    captured.insert(captured.end(), of_backward.begin(), of_backward.end());
    return r;
  }

  const CustomFunctions& custom_;
  std::vector<std::optional<Type>> results_, places_;
};

}  // namespace

// The value of a function with a custom derivative is not differentiated, so functions that it calls need no derivative there: tracing
// theirs as well would double the work with each level of calls.
bool core::may_be_derived() {
  const TraceState& state = trace_state();
  if (state.value_alone && state.gradients.size() == *state.value_alone) return false;
  return core::tracing() || !state.gradients.empty() || others_differentiate();
}

core::Arrays core::custom_call(MapBody f, std::span<const Array> arguments, CustomFunctions custom, Where w) {
  const Site site(w);
  std::vector<Type> types;
  for (const Array& a : arguments) types.push_back(type_of(a, custom.function));
  Arrays captured, places;
  const auto body = [&](std::span<const Array> x) {
    const ValueAlone alone(true);
    places = f(x);
    return present(places);
  };
  Graph primal = without_effects(traced(body, types, captured, custom.function), custom.function, "it");
  const std::vector<std::optional<Type>> results = types_of_places(places);
  const auto kept = std::make_shared<const CustomFunctions>(std::move(custom));
  const auto trace = [kept, results](std::span<const Type> of_arguments, Arrays& also) {
    // Arguments without an array have no cotangent: the user's function leaves them out.
    std::vector<std::optional<Type>> argument_places(of_arguments.begin(), of_arguments.end());
    return CustomTrace(*kept, results, std::move(argument_places)).run(of_arguments, also);
  };
  const auto rule = std::make_shared<CustomRule>();
  rule->function = kept->function;
  rule->is_vjp = kept->forward != nullptr;
  rule->arguments = arguments.size();
  Arrays operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  const auto& open = open_derivatives();
  if (std::find(open.begin(), open.end(), kept->id.get()) == open.end()) {
    Arrays also;
    rule->made = std::make_shared<const CustomGraphs>(trace(types, also));
    rule->captured = also.size();
    for (const Array& a : also) {
      operands.push_back(a);
      primal.in.push_back(placeholder(type_of(a)));
    }
  }
  rule->make = [trace, function = kept->function](std::span<const Type> of_arguments) {
    Arrays also;
    CustomGraphs graphs = trace(of_arguments, also);
    if (!also.empty())
      throw TraceError(fmt::format(
          "{0}: a function that is called in its own derivative is derived there again, and the derivative "
          "captures an array {1}. Only arguments are known there. Make it an argument of the function.",
          function, to_string(type_of(also[0]))));
    return graphs;
  };
  Attrs a;
  a.graphs = {std::make_shared<const CustomGraph>(std::move(primal), rule)};
  if (a.graphs[0]->out.empty()) return places;
  const Arrays given = record_all(op_custom, operands, std::make_shared<const Attrs>(std::move(a)), w);
  return in_places(std::move(places), given);
}

core::Arrays core::checkpoint(MapBody f, std::span<const Array> arguments, Where w) {
  const Site site(w, "checkpoint");
  std::vector<Type> types;
  for (const Array& a : arguments) types.push_back(type_of(a, "checkpoint"));
  Arrays captured, places;
  const auto body = [&](std::span<const Array> x) {
    places = f(x);
    return present(places);
  };
  Graph g = without_effects(traced(body, types, captured, "checkpoint"), "checkpoint", "the function");
  if (g.out.empty()) return places;
  Arrays operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  const Arrays given = primitive::call(std::move(g), operands, true);
  return in_places(std::move(places), given);
}

}  // namespace shardarray
