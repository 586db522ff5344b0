// Programs run on memory of this process: what the tests of CUDA's programs share.
#pragma once
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "kernel_helpers.h"
#include "program_of.h"

namespace shardarray::test {

/// Memory as backends hand it out.
class ProgramBlock {
 public:
  explicit ProgramBlock(std::uint64_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(data_, 0xff, bytes);
  }
  ~ProgramBlock() { ::operator delete (data_, std::align_val_t{64}); }
  ProgramBlock(const ProgramBlock&) = delete;
  ProgramBlock& operator=(const ProgramBlock&) = delete;
  std::byte* data() const { return data_; }
  std::vector<std::byte> content() const { return {data_, data_ + bytes_}; }

 private:
  std::uint64_t bytes_;
  std::byte* data_;
};

/// Any numbers that a dtype has; whole ones are small: they may be rows.
inline void fill_block(const ProgramBlock& to, DType t, std::uint64_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const std::size_t size = itemsize(t);
  for (std::uint64_t at = 0; at + size <= bytes; at += size) {
    std::uint64_t bits = random() % 4;
    const double x = std::ldexp(static_cast<double>(random() >> 11), -51) - 1.5;
    if (t == bool_) bits &= 1;
    else if (t == float16) bits = 0x3800 + random() % 0x800;
    else if (t == bfloat16) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
    else if (t == float32) bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
    else if (t == float64) bits = std::bit_cast<std::uint64_t>(x);
    std::memcpy(to.data() + at, &bits, std::min<std::size_t>(size, 8));
  }
}

using ProgramRun = std::function<void(const std::vector<void*>&)>;
/// The outputs after a run, by port and instance. Inputs are always the same numbers.
inline std::vector<std::vector<std::byte>> outputs_of(const Program& p, const ProgramRun& run) {
  std::vector<std::uint64_t> bytes(p.base_count, 0);
  std::copy(p.scratch_bytes.begin(), p.scratch_bytes.end(), bytes.begin());
  for (const auto* ports : {&p.inputs, &p.outputs})
    for (const Port& port : *ports)
      for (std::size_t k = 0; k < port.bases.size(); k++) bytes[port.bases[k]] = port.bytes[k];
  std::deque<ProgramBlock> blocks;
  std::vector<void*> bases;
  for (const std::uint64_t n : bytes) bases.push_back(blocks.emplace_back(n).data());
  for (std::size_t i = 0; i < p.inputs.size(); i++)
    for (const std::uint32_t b : p.inputs[i].bases) fill_block(blocks[b], p.inputs[i].dtype, bytes[b], i);
  run(bases);
  std::vector<std::vector<std::byte>> out;
  for (const Port& port : p.outputs)
    for (const std::uint32_t b : port.bases) out.push_back(blocks[b].content());
  return out;
}

inline Compiled compiled_for(const program_test::Prepared& prepared, const Target& target) {
  std::vector<ValueRef> values;
  for (const LaunchLeaf& l : prepared.leaves) values.push_back(l.value);
  const auto& entry = *prepared.entry;
  CompileInput in =
      compile_input(entry.flat, place_leaves(entry.flat, values, {}, entry.paths, *entry.modes, "test"),
                    std::vector<bool>(values.size(), false), {}, entry.paths, values);
  in.target = &target;
  in.cost = CostModel(target);
  return compile(std::move(in));
}

/// Whether two programs put their results in the same places and move the same on the way, so that their sums have one order.
inline bool same_plan(const Compiled& a, const Compiled& b) {
  const auto &x = a.program->transfers, &y = b.program->transfers;
  return a.output_layouts == b.output_layouts &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), [](const Transfer& s, const Transfer& t) {
           return s.kind == t.kind && s.axes == t.axes && s.shape == t.shape;
         });
}

inline bool same_number(DType t, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (!is_floating(t) || itemsize(t) > 2) return same_values(t, a, b);
  for (std::size_t i = 0; i < a.size(); i += 2) {
    std::uint16_t x, y;
    std::memcpy(&x, &a[i], 2);
    std::memcpy(&y, &b[i], 2);
    const int infinity = t == float16 ? 0x7c00 : 0x7f80;
    if (x != y && ((x & 0x7fff) <= infinity || (y & 0x7fff) <= infinity)) return false;
  }
  return true;
}

inline std::string difference_of(const Program& p, const std::vector<std::vector<std::byte>>& got,
                                 const std::vector<std::vector<std::byte>>& want) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < p.outputs.size(); i++)
    for (std::size_t n = 0; n < p.outputs[i].bases.size(); n++, k++)
      if (!same_number(p.outputs[i].dtype, got[k], want[k]))
        return "result " + std::to_string(i) + ", instance " + std::to_string(n) + " " +
               name(p.outputs[i].dtype);
  return got.size() == want.size() ? "" : "another number of results";
}

}  // namespace shardarray::test
