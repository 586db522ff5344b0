// The inputs of code generation: single kernels, and sequences of small ones.
#pragma once
#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "base/key.h"
#include "cpu/exchange/move_spec.h"
#include "cpu/library/update_spec.h"
#include "cpu/loops/loop_nest.h"
#include "cpu/products/gemm_spec.h"
#include "runtime/program.h"

namespace shardarray {

using KernelSpec = std::variant<LoopNestSpec, GemmSpec, UpdateSpec, MoveSpec>;

/// Kernels that a program runs in this order, as one function whose `args` are the program's base pointers. Loops have fixed numbers;
/// products run their whole batch. An update's arguments are x, the part and its starts; a move's are
/// what is filled, and each piece's destination and source.
struct SequenceSpec {
  struct Call {
    std::size_t kernel = 0;             ///< index into `kernels`
    std::vector<Ref> args;              ///< the arguments of the kernel's function
    std::vector<std::int64_t> numbers;  ///< of a loop
  };
  /// Another sequence, with the address of each of its bases in each of its runs.
  struct Inner {
    std::shared_ptr<const SequenceSpec> sequence;
    std::vector<ProgramCall::Binding> bases;
  };
  /// The steps that call programs, as in program.h.
  struct Repeat {
    Inner body;
    std::int64_t trip = 1;
  };
  struct Choose {
    Ref index;
    std::vector<Inner> branches;
  };
  struct While {
    Inner condition, body;
    Ref answer;
    std::vector<ProgramLoop::Carry> carries;
  };
  using Step = std::variant<Call, Repeat, Choose, While>;
  std::vector<KernelSpec> kernels;  ///< without duplicates
  std::vector<Step> steps;

  std::vector<std::uint64_t> key() const;
};
/// Visits the addresses in a SequenceSpec::Step, constant or not, but not those in its inner sequences.
template <class Step, class Visit> void each_ref(Step& step, const Visit& visit) {
  const auto of_three = [&](auto& x) { visit(x.first), visit(x.even), visit(x.odd); };
  const auto of_bases = [&](auto& inner) {
    for (auto& b : inner.bases) of_three(b);
  };
  if (auto* const call = std::get_if<SequenceSpec::Call>(&step)) {
    for (auto& r : call->args) visit(r);
  } else if (auto* const repeat = std::get_if<SequenceSpec::Repeat>(&step)) {
    of_bases(repeat->body);
  } else if (auto* const choose = std::get_if<SequenceSpec::Choose>(&step)) {
    visit(choose->index);
    for (auto& branch : choose->branches) of_bases(branch);
  } else if (auto* const loop = std::get_if<SequenceSpec::While>(&step)) {
    of_bases(loop->condition);
    of_bases(loop->body);
    visit(loop->answer);
    for (auto& c : loop->carries) of_three(c);
  }
}

/// Visits the inner sequences of a sequence's steps.
template <class Visit> void each_inner(const SequenceSpec& sequence, const Visit& visit) {
  for (const SequenceSpec::Step& step : sequence.steps) {
    if (const auto* const repeat = std::get_if<SequenceSpec::Repeat>(&step)) {
      visit(repeat->body);
    } else if (const auto* const choose = std::get_if<SequenceSpec::Choose>(&step)) {
      for (const SequenceSpec::Inner& branch : choose->branches) visit(branch);
    } else if (const auto* const loop = std::get_if<SequenceSpec::While>(&step)) {
      visit(loop->condition);
      visit(loop->body);
    }
  }
}

/// The number of calls in it and in its inner sequences.
std::size_t call_count(const SequenceSpec& s);

/// The input of one function. All functions have the same signature.
using CodeSpec = std::variant<LoopNestSpec, GemmSpec, SequenceSpec>;
/// Equal keys, equal code.
Words key_of(const KernelSpec& s);
Words key_of(const CodeSpec& s);

}  // namespace shardarray
