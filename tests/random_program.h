// Random programs: lines of ops over random shapes, with random placements, which both the library and the plain evaluator can run. For
// random_programs_test.cpp.
#pragma once
#include <optional>

#include "compile/compile.h"
#include "erased.h"
#include "op_data.h"
#include "plain_maps.h"

namespace shardarray::testing {

/// One value of a program: a leaf, or a function of earlier ones.
struct Line {
  std::string text;
  std::vector<int> in;
  Erased<Array(std::span<const Array>)> apply;  ///< null: a leaf
  Erased<Plain(std::span<const Plain>)> plain;
  Plain leaf;                        ///< values of a leaf
  std::optional<Sharding> sharding;  ///< where a leaf lies, or a constraint; none: uncommitted
  Shape shape;
  DType dtype = DType::float32;
  bool sums = false;  ///< floats were added up above it: its bits depend on the sharding
};

struct RandomProgram {
  std::uint64_t seed = 0;
  Policy policy = Policy::auto_;
  bool share = true, donate = false, reproducible = false, lazy = false;
  std::vector<Line> lines;
  std::vector<int> outputs;
  std::optional<Mesh>
      mesh;  ///< none: axes are hard to tell, since devices are not in order or there are two views of them
  std::string to_string() const;
};

inline std::string RandomProgram::to_string() const {
  std::string s = "seed " + std::to_string(seed) + ", policy " +
                  (policy == Policy::auto_ ? "auto" : "follow") + (share ? "" : ", separate replicas") +
                  (donate ? ", donated" : "") + (reproducible ? ", reproducible" : "") +
                  (lazy ? ", not jitted" : "") + "\n";
  for (std::size_t k = 0; k < lines.size(); k++) {
    s += "  %" + std::to_string(k) + " " + short_name(lines[k].dtype) +
         shardarray::to_string(lines[k].shape) + " = " + lines[k].text;
    for (int v : lines[k].in) s += " %" + std::to_string(v);
    if (lines[k].sharding) {
      s += "   " + lines[k].sharding->to_string() + " on";
      for (const Device& d : lines[k].sharding->device_assignment()) s += " " + std::to_string(d.id);
    }
    s += "\n";
  }
  s += "  ->";
  for (int v : outputs) s += " %" + std::to_string(v);
  return s + "\n";
}

/// The values of all lines, by plain loops.
inline std::vector<Plain> plain_values(const RandomProgram& p) {
  std::vector<Plain> values;
  for (const Line& l : p.lines) {
    std::vector<Plain> in;
    for (int v : l.in) in.push_back(values[static_cast<std::size_t>(v)]);
    values.push_back(l.apply ? l.plain(in) : l.leaf);
  }
  return values;
}

template <class T> Array typed_array_of(const Plain& p) {
  std::vector<T> v;
  for (const Element& e : p.data) v.push_back(static_cast<T>(e.value));
  return array(v, p.shape);
}
/// The array of these values on the default device.
inline Array array_of(const Plain& p) {
  switch (p.dtype) {
    case DType::bool_: return typed_array_of<std::uint8_t>(p).astype(DType::bool_);
    case DType::int8: return typed_array_of<std::int8_t>(p);
    case DType::int16: return typed_array_of<std::int16_t>(p);
    case DType::int32: return typed_array_of<std::int32_t>(p);
    case DType::int64: return typed_array_of<std::int64_t>(p);
    case DType::uint8: return typed_array_of<std::uint8_t>(p);
    case DType::uint16: return typed_array_of<std::uint16_t>(p);
    case DType::uint32: return typed_array_of<std::uint32_t>(p);
    case DType::uint64: return typed_array_of<std::uint64_t>(p);
    case DType::float64: return typed_array_of<double>(p);
    default: return typed_array_of<float>(p).astype(p.dtype);  // 16-bit values are exact in float
  }
}

}  // namespace shardarray::testing
