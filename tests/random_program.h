// Random programs: lines of ops over random shapes, with random placements. For random_programs_test.cpp.
#pragma once
#include "op_data.h"
#include "shardarray/grad.h"
#include "shardarray/jit.h"
#include "shardarray/vmap.h"
#include "transform/launch.h"

namespace shardarray::testing {

/// One value of a program: a leaf, or a function of earlier ones.
struct Line {
  std::string text;
  std::vector<int> in;
  std::function<Array(std::span<const Array>)> apply;  ///< null: a leaf
  Shape shape;
  DType dtype = DType::float32;
  std::vector<double> data;          ///< of a leaf
  std::optional<Sharding> sharding;  ///< where a leaf lies, or a constraint; none: uncommitted
  bool sums = false;                 ///< adds floats up: its bits depend on the sharding
};

struct RandomProgram {
  std::uint64_t seed = 0;
  Policy policy = Policy::auto_;
  bool share = true, donate = false, reproducible = false;
  std::vector<Line> lines;
  std::vector<int> outputs;

  /// Per line: a sum of floats stands above it.
  std::vector<bool> rounded() const {
    std::vector<bool> r;
    for (const Line& l : lines) {
      bool any_above = l.sums;
      for (int v : l.in) any_above = any_above || r[static_cast<std::size_t>(v)];
      r.push_back(any_above);
    }
    return r;
  }
  std::string to_string() const;
};

inline std::string RandomProgram::to_string() const {
  std::string s = "seed " + std::to_string(seed) + ", policy " +
                  (policy == Policy::auto_ ? "auto" : "follow") + (share ? "" : ", separate replicas") +
                  (donate ? ", donated" : "") + (reproducible ? ", reproducible" : "") + "\n";
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

/// Values of a leaf.
inline std::vector<double> leaf_data(const Shape& shape, DType t, Rng& rng) {
  const double most = t == DType::bool_ ? 1 : is_floating(t) ? 2 : 9;
  return draw({shape, t == DType::bool_ ? 0 : -most, most, t}, rng);
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng_(seed) {
    p_.seed = seed;
    p_.policy = chance(2) ? Policy::auto_ : Policy::follow;
    p_.share = !chance(4);
    p_.donate = chance(3);
    p_.reproducible = chance(4);
    make_meshes();
    make_sizes();
  }
  /// A program of about `ops` ops.
  RandomProgram run(int ops);

 private:
  using F = Array (*)(const Array&);
  using F2 = Array (*)(const Array&, const Array&);
  using Apply = std::function<Array(std::span<const Array>)>;
  struct Unary {
    const char* name;
    F f;
  };
  struct Binary {
    const char* name;
    F2 f;
  };
  using Step = void (Generator::*)();

  std::int64_t below(std::int64_t n) { return whole_between(rng_, 0, n - 1); }
  bool chance(std::int64_t one_in) { return below(one_in) == 0; }
  template <class C> auto& any_of(C& list) {
    return list[static_cast<std::size_t>(below(static_cast<std::int64_t>(std::size(list))))];
  }

  void make_meshes();
  void make_sizes();
  Sharding random_sharding(std::size_t rank);
  Shape random_shape(std::size_t least_rank);
  int leaf(const Shape& shape, DType t);
  int add(std::string text, std::vector<int> in, Apply f, bool sums = false);
  const Shape& shape(int v) const { return p_.lines[static_cast<std::size_t>(v)].shape; }
  DType dtype(int v) const { return p_.lines[static_cast<std::size_t>(v)].dtype; }
  bool is_rounded(int v) const { return rounded_[static_cast<std::size_t>(v)]; }

  // A line that `fits`, mostly a late one, or a new leaf.
  int pick(const std::function<bool(int)>& fits, const std::function<int()>& otherwise);
  int floats(std::size_t least_rank = 0);
  int exact_floats(std::size_t least_rank = 0);
  int integers(std::size_t least_rank = 0);
  int truths();
  int anything(std::size_t least_rank = 0);
  int like(int v, bool exact);           // of its shape and dtype
  int broadcastable(int v, bool exact);  // or of one that is broadcast to it
  std::size_t some_dim(int v) {
    return static_cast<std::size_t>(below(static_cast<std::int64_t>(shape(v).size())));
  }

  void smooth_unary();
  void breaking_unary();
  void float_binary();
  void breaking_binary();
  void ternary();
  void whole_numbers();
  void logic();
  void rearrange();
  void reshape_some();
  void slice_some();
  void join();
  void reduce_some();
  void reduce_exact();
  void product();
  void positions();
  void order();
  void place();
  void transformed();
  void mapped();
  void made();

  Rng rng_;
  RandomProgram p_;
  std::vector<bool> rounded_;
  Arrays values_;  // recorded on one device: their types
  std::vector<Mesh> meshes_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace shardarray::testing
