// Works that are not loops or products, and so small that calling them takes longer than their work: they have code only as parts of sequences.
#pragma once
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "cpu/codegen/code_spec.h"
#include "cpu/work_list.h"

namespace shardarray {

using SmallSpec = std::variant<UpdateSpec, MoveSpec>;
/// With its arguments; none if the work is of another kind, or larger.
std::optional<std::pair<SmallSpec, std::vector<Ref>>> small_work(const Work& w);

}  // namespace shardarray
