// Whole programs by CUDA's kernels, compiled for the host: what the compiler makes, for its CPU and for its CUDA target, gives the
// bits of the CPU backend.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <new>
#include <random>

#include "cuda_launches.h"
#include "kernel_helpers.h"
#include "op_data.h"
#include "program_of.h"
#include "random_grow_maps.h"
#include "random_run.h"
#include "runtime/devices.h"

namespace cuda_programs_test {

using namespace shardarray;
using namespace shardarray::testing;
using program_test::Prepared;

namespace {

/// Memory as backends hand it out.
class Block {
 public:
  explicit Block(std::uint64_t bytes)
      : bytes_(bytes), data_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}))) {
    std::memset(data_, 0xff, bytes);
  }
  ~Block() { ::operator delete (data_, std::align_val_t{64}); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  std::byte* data() const { return data_; }
  std::vector<std::byte> content() const { return {data_, data_ + bytes_}; }

 private:
  std::uint64_t bytes_;
  std::byte* data_;
};

/// Any numbers that a dtype has; whole ones are small: they may be rows.
void fill(const Block& to, DType t, std::uint64_t bytes, std::uint64_t seed) {
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

using Run = std::function<void(const std::vector<void*>&)>;
/// The outputs after a run, by port and instance. Inputs are always the same numbers.
std::vector<std::vector<std::byte>> outputs_of(const Program& p, const Run& run) {
  std::vector<std::uint64_t> bytes(p.base_count, 0);
  std::copy(p.scratch_bytes.begin(), p.scratch_bytes.end(), bytes.begin());
  for (const auto* ports : {&p.inputs, &p.outputs})
    for (const Port& port : *ports)
      for (std::size_t k = 0; k < port.bases.size(); k++) bytes[port.bases[k]] = port.bytes[k];
  std::deque<Block> blocks;
  std::vector<void*> bases;
  for (const std::uint64_t n : bytes) bases.push_back(blocks.emplace_back(n).data());
  for (std::size_t i = 0; i < p.inputs.size(); i++)
    for (const std::uint32_t b : p.inputs[i].bases) fill(blocks[b], p.inputs[i].dtype, bytes[b], i);
  run(bases);
  std::vector<std::vector<std::byte>> out;
  for (const Port& port : p.outputs)
    for (const std::uint32_t b : port.bases) out.push_back(blocks[b].content());
  return out;
}

std::shared_ptr<const Program> compiled_for(const Prepared& prepared, const Target& target) {
  std::vector<ValueRef> values;
  for (const LaunchLeaf& l : prepared.leaves) values.push_back(l.value);
  const auto& entry = *prepared.entry;
  CompileInput in =
      compile_input(entry.flat, place_leaves(entry.flat, values, {}, entry.paths, *entry.modes, "test"),
                    std::vector<bool>(values.size(), false), {}, entry.paths, values);
  in.target = &target;
  in.cost = CostModel(target.links);
  return compile(std::move(in)).program;
}

bool same_number(DType t, const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (!is_floating(t) || itemsize(t) > 2) return test::same_values(t, a, b);
  for (std::size_t i = 0; i < a.size(); i += 2) {
    std::uint16_t x, y;
    std::memcpy(&x, &a[i], 2);
    std::memcpy(&y, &b[i], 2);
    const int infinity = t == float16 ? 0x7c00 : 0x7f80;
    if (x != y && ((x & 0x7fff) <= infinity || (y & 0x7fff) <= infinity)) return false;
  }
  return true;
}

std::string difference_of(const Program& p, const std::vector<std::vector<std::byte>>& got,
                          const std::vector<std::vector<std::byte>>& want) {
  std::size_t k = 0;
  for (std::size_t i = 0; i < p.outputs.size(); i++)
    for (std::size_t n = 0; n < p.outputs[i].bases.size(); n++, k++)
      if (!same_number(p.outputs[i].dtype, got[k], want[k]))
        return "result " + std::to_string(i) + ", instance " + std::to_string(n) + " " +
               name(p.outputs[i].dtype);
  return got.size() == want.size() ? "" : "another number of results";
}

/// Empty when launches give the CPU's bits: for the CPU's target, for CUDA's, and where products take 16-bit floats as they are,
/// since their sums are the same.
std::string changed_by_cuda(const Prepared& prepared) {
  const auto launched = [](const Program& p, const test::BlockOrder& order) {
    const auto launches = cuda::launches_of(p);
    return outputs_of(p,
                      [&](const std::vector<void*>& bases) { test::run_launches(launches, bases, order); });
  };
  const Target halves = cuda::cuda_target();
  Target widened = halves;
  widened.half_products = false;
  std::vector<std::vector<std::byte>> want;
  for (const Target& target : {backend("cpu").target(), widened}) {
    const auto program = compiled_for(prepared, target);
    want = outputs_of(*program, [&](const std::vector<void*>& bases) {
      backend("cpu").load(program)->run(bases, nullptr);
    });
    for (const test::BlockOrder& order : test::block_orders)
      if (std::string text = difference_of(*program, launched(*program, order), want); !text.empty())
        return text;
  }
  const auto program = compiled_for(prepared, halves);
  std::string text = difference_of(*program, launched(*program, {}), want);
  return text.empty() ? text : text + " with products of 16-bit floats";
}

}  // namespace

TEST_CASE("cuda programs: every op, on one device and cut over eight") {
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  int cases = 0;
  for (const OpCase& row : op_cases()) {
    Rng rng(std::hash<std::string>()(row.name));
    const Arrays x = draw_operands(row, rng);
    const auto f = jit([&row](const Arrays& a) { return row.function(a); });
    for (int repeat = 0; repeat < (full_scale() ? 10 : 2); repeat++) {
      Arrays given = x;
      if (repeat > 0) {
        for (Array& a : given) {
          const auto shardings = every_sharding(mesh, a.shape().size());
          a = device_put(a, shardings[rng() % shardings.size()]);
        }
      }
      cases++;
      const std::string text = changed_by_cuda(program_test::prepare(f, given));
      CHECK_MESSAGE(text.empty(), row.name << ", placement " << repeat << ": " << text);
    }
  }
  CHECK(cases > 200);
}

TEST_CASE("cuda programs: random programs") {
  const WithCodegen devices(CodegenMode::off);  // as many as these programs use
  for (std::uint64_t seed = 0; seed < (full_scale() ? 1000 : 60); seed++) {
    const RandomProgram p = Generator(seed, WithCodegen::kDevices).run();
    const ProgramSettings settings(p);
    const auto f = jit([&](const Arrays& x) { return run_lines(p, x, true); });
    const std::string text = changed_by_cuda(program_test::prepare(f, make_leaves(p, true)));
    CHECK_MESSAGE(text.empty(), "seed " << seed << ": " << text << "\n" << p.to_string());
  }
}

}  // namespace cuda_programs_test
