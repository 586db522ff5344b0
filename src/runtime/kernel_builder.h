// KernelBuilder: writes kernel IR, one instruction per call; used by op definitions and the fusion pass.
//
// Equal instructions are merged where the first is visible, constants are folded (with the interpreter's arithmetic), and `finish` drops
// what no store needs.
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "runtime/kernel.h"

namespace shardarray {

class KernelBuilder {
 public:
  /// The numbers of outer and inner dimensions of the domain.
  KernelBuilder(int outer, int inner);

  /// Adds an argument and returns its number.
  int arg(KernelArg a);
  /// Opens a stage (also needed for the first). Instructions go to the last opened stage.
  void begin_stage(bool inner);

  /// `value` as `type`: floats are rounded to nearest, integers truncated and saturated.
  int constant(DType type, double value);
  int constant_bits(DType type, std::uint64_t bits);
  int index(int dim);
  int load(int arg);
  int load_at(int arg, int row);
  void store(int arg, int v);
  int reduce(Reducer r, int v);
  int cast(int v, DType type);
  int bitcast(int v, DType type);
  int unary(Code code, int a);
  /// Comparisons return bool, others the type of `a`.
  int binary(Code code, int a, int b);
  int fma(int a, int b, int c);
  int select(int condition, int a, int b);
  int call(Function f, int a, int b = -1);

  DType type(int v) const { return kernel_.code[v].type; }
  /// The instructions so far.
  const std::vector<Instr>& code() const { return kernel_.code; }
  /// Verified, without dead instructions and empty stages. The builder must not be used afterwards.
  Kernel finish();

 private:
  struct Hash {
    std::size_t operator()(const Instr& in) const;
  };
  int emit(Instr in);
  bool visible(int v) const;
  bool fold(Instr& in) const;

  Kernel kernel_;
  std::vector<int> stage_of_;  // instruction -> stage
  // Outer loads read inner coordinate 0, inner ones their own point: different values.
  std::unordered_map<Instr, int, Hash> numbers_[2];  // outer stages, inner stages
};

}  // namespace shardarray
