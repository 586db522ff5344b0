// The compiler: a flat graph with placed inputs -> a Program, and all that explain() reports. The passes are listed in pipeline.cpp.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compile/cost.h"
#include "graph/flat.h"
#include "layout/layout.h"
#include "layout/spelling.h"
#include "runtime/program.h"
#include "runtime/target.h"

namespace shardarray {

struct CompileInput {
  explicit CompileInput(const Target& t);
  FlatGraph graph;
  const DeviceOrder* order = nullptr;
  std::vector<const Layout*> inputs;  ///< fixed; on the devices of `order`
  std::vector<bool> donated;          ///< per input: its buffers may be overwritten
  /// Requested layouts; null: open. One with partial sums: where the result would be, whatever is left to combine there.
  std::vector<const Layout*> outputs;
  std::vector<std::string> input_names;  ///< for messages
  bool share_replicas = true;
  /// Of a program that a step calls: no result is an input itself, and moving a carry to where the next iteration reads it counts as
  /// implicit (policy::strict).
  bool is_run = false;
  bool is_draft = false;          ///< one of several drafts to compare, each with fewer trials
  bool is_explained = false;      ///< it will not run: transfers between layouts have no pieces
  bool tells_runner_ups = false;  ///< notes name the second-best strategy of nodes that move something
  /// Of a program that a step calls, by result: the only donated input whose buffers it may take. -1: none; empty: any.
  std::vector<int> written_over = {};
  std::shared_ptr<struct PlacedIterations>
      placed;                  ///< programs that steps call, if already compiled; never null
  const Target* target;        ///< of the devices' backend
  CostModel cost;              ///< by which placements are chosen
  const Mesh* mesh = nullptr;  ///< names for messages
};

/// What became of a value, for explain().
struct PlacedValue {
  Type type;
  const Layout* layout = nullptr;
  std::string op;
  Where where;
  std::string note;     ///< how it is made
  std::vector<int> in;  ///< values that it is made of; only if tells_runner_ups
};
struct DonationVerdict {
  bool reused = false;
  std::string reason;
};
/// Memory of the device that holds most, at its peak.
struct HeldMemory {
  enum class Kind : std::uint8_t { argument, result, temporary, scratch } kind;
  int number;  ///< of an argument or a result
  int value;   ///< index into Compiled::values; of a called program's scratch: the first result of its step
  std::uint64_t bytes;
};
struct Compiled {
  std::shared_ptr<const Program> program;
  std::vector<int> forwarded;  ///< per output: the input that it equals, or -1
  std::vector<const Layout*> output_layouts;
  std::vector<int> program_output;  ///< per output: index into Program::outputs, or -1 when forwarded
  std::vector<PlacedValue> values;
  std::vector<DonationVerdict> donations;  ///< per input
  std::vector<HeldMemory> largest;         ///< the ten largest pieces, the largest first
  double flops = 0;                        ///< of the busiest device
};

/// Throws ShardingError (policy strict), CompileError.
Compiled compile(CompileInput input);

}  // namespace shardarray
