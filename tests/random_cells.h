// What random programs must cover: every operand of every op, complete and as a partial sum over one and two mesh axes, with the op's
// dimension sharded and not, on meshes of one, two and three axes.
#pragma once
#include <map>
#include <numeric>
#include <set>

#include "compile/passes.h"
#include "plain_scalars.h"

namespace shardarray::testing {

/// An operand of an op.
struct Row {
  std::string op;
  int operand = 0;
  unsigned kinds = kAll;  ///< of dtypes that it may have
  friend auto operator<=>(const Row& a, const Row& b) {
    return std::pair(a.op, a.operand) <=> std::pair(b.op, b.operand);
  }
  friend bool operator==(const Row& a, const Row& b) { return a.op == b.op && a.operand == b.operand; }
};

/// 16-bit floats are widened before they are added up.
inline std::vector<Row> movement_rows() {
  return {{"slice"},
          {"reverse"},
          {"pad"},
          {"concatenate", 0},
          {"concatenate", 1},
          {"roll"},
          {"permute_rows"},
          {"transpose"},
          {"reshape"},
          {"broadcast"},
          {"constraint"},
          {"cast"},
          {"optimization_barrier", 0},
          {"optimization_barrier", 1},
          {"reduce", 0, kAll & ~kHalf},
          {"prefix_scan", 0, kNumbers & ~kHalf},
          {"sort", 0, kNumbers},
          {"sort", 1},
          {"where", 0, kBool},
          {"where", 1},
          {"where", 2},
          {"take", 0},
          {"take", 1, kIntegers},
          {"update", 0},
          {"update", 1},
          {"update_rows", 0},
          {"update_rows", 1, kIntegers},
          {"update_rows", 2},
          {"scatter", 0, kIntegers},
          {"scatter", 1, kIntegers | kFloat},
          {"dot", 0, kIntegers | kFloat},
          {"dot", 1, kIntegers | kFloat},
          {"conv", 0, kIntegers | kFloat},
          {"conv", 1, kIntegers | kFloat},
          {"bitcast", 0, kIntegers | kFloat},
          {"threefry", 0, kUnsigned},
          {"threefry", 1, kUnsigned},
          {"threefry", 2, kUnsigned},
          {"threefry", 3, kUnsigned},
          {"philox", 0, kUnsigned},
          {"philox", 1, kUnsigned},
          {"philox", 2, kUnsigned},
          {"philox", 3, kUnsigned},
          {"philox", 4, kUnsigned}};
}
inline const std::vector<Row>& rows() {
  static const std::vector<Row> list = [] {
    std::map<std::pair<std::string, int>, unsigned> kinds;
    for (const Scalar& s : scalars())
      for (std::size_t k = 0; k < s.operands.size(); k++) kinds[{s.op, static_cast<int>(k)}] |= s.kinds;
    std::vector<Row> r = movement_rows();
    for (const auto& [name, mask] : kinds) {
      const bool becomes_logic = name.first == "max" || name.first == "min";  // of bools: or, and
      r.push_back({name.first, name.second, becomes_logic ? mask & ~kBool : mask});
    }
    return r;
  }();
  return list;
}
/// Ops without operands, or gone before anything is placed (maps are applied, calls inlined), or the host's, or that only
/// say where a value lies; those that run other programs, whose operands are whole sums (programs have them all the same:
/// random_grow_maps.h); and factorisations of matrices, whose rounding grows with the matrix: linalg_test.cpp has those.
inline bool has_no_row(const Op& op) {
  static const std::set<std::string> names = {"input",       "constant",
                                              "identity",    "iota",
                                              "call",        "host_call",
                                              "scan",        "place",
                                              "underived",   "like",
                                              "beside",      "asked",
                                              "slope_of",    "stop_gradient",
                                              "cholesky",    "lu",
                                              "lu_solve",    "triangular_solve",
                                              "log_det",     "det",
                                              "qr",          "eigh",
                                              "svd",         "pinv",
                                              "real",        "imag",
                                              "complex",     "fft",
                                              "rfft",        "irfft",
                                              "cond",        "while_loop",
                                              "custom_call", "inverse_power",
                                              "known_slope"};
  return op.form == Form::collective || names.contains(op.name);
}

struct Cell {
  Row row;
  int pending = 0;   ///< over how many mesh axes the operand is a sum that is not combined yet
  bool cut = false;  ///< the dimension that the op works on is cut
  int rank = 1;      ///< of the mesh
  friend auto operator<=>(const Cell& a, const Cell& b) {
    return std::tuple(a.row, a.pending, a.cut, a.rank) <=> std::tuple(b.row, b.pending, b.cut, b.rank);
  }
  std::string to_string() const {
    return row.op + " operand " + std::to_string(row.operand) + ", " +
           (pending == 0 ? "no pending sum"
                         : "pending over " + std::to_string(pending) + (pending > 1 ? " axes" : " axis")) +
           (cut ? ", cut" : ", whole") + ", mesh of rank " + std::to_string(rank);
  }
};

/// All legal cells of meshes of this rank: an axis either has partial sums or shards.
inline const std::vector<Cell>& cells_of_rank(int rank) {
  static const std::array<std::vector<Cell>, 3> all_cells = [] {
    std::array<std::vector<Cell>, 3> r;
    for (int k = 1; k <= 3; k++)
      for (const Row& row : rows())
        for (int pending = 0; pending <= std::min(k, 2); pending++)
          for (bool cut : {false, true})
            if (pending + cut <= k) r[static_cast<std::size_t>(k - 1)].push_back({row, pending, cut, k});
    return r;
  }();
  return all_cells[static_cast<std::size_t>(rank - 1)];
}

/// And every kind of dtype that an operand may have, whole and pending. 16-bit types are summed in float32: no sum of them
/// is pending where it meets an op.
struct KindCell {
  Row row;
  unsigned kind = kFloat;
  bool pending = false;
  friend auto operator<=>(const KindCell& a, const KindCell& b) {
    return std::tuple(a.row, a.kind, a.pending) <=> std::tuple(b.row, b.kind, b.pending);
  }
  std::string to_string() const {
    const char* name = kind == kBool       ? "bool"
                       : kind == kSigned   ? "signed integers"
                       : kind == kUnsigned ? "unsigned integers"
                       : kind == kHalf     ? "16-bit floats"
                                           : "floats";
    return row.op + " operand " + std::to_string(row.operand) + " of " + name + (pending ? ", pending" : "");
  }
};
inline std::vector<unsigned> kinds_of(const Row& row, bool pending) {
  std::vector<unsigned> r;
  for (unsigned kind : {kBool, kSigned, kUnsigned, kHalf, kFloat})
    if ((row.kinds & kind) && !(pending && kind == kHalf)) r.push_back(kind);
  return r;
}
inline const std::vector<KindCell>& kind_cells() {
  static const std::vector<KindCell> list = [] {
    std::vector<KindCell> r;
    for (const Row& row : rows())
      for (bool pending : {false, true})
        for (unsigned kind : kinds_of(row, pending)) r.push_back({row, kind, pending});
    return r;
  }();
  return list;
}

/// The rank of the mesh of a seed's program, and what it aims at: the seeds of a rank go through its cells, again and again,
/// each time with another kind of dtype.
struct Aim {
  Cell cell;
  unsigned kind = kFloat;
};
inline int rank_of_seed(std::uint64_t seed) { return std::array{3, 2, 3, 1, 3, 2}[seed % 6]; }
inline constexpr std::uint64_t kAims = 4;
inline std::vector<Aim> aims_of_seed(std::uint64_t seed) {
  constexpr std::uint64_t before[] = {0, 0, 1, 0, 2, 1}, per_round[] = {1, 2, 3};
  const int rank = rank_of_seed(seed);
  const std::uint64_t nth = seed / 6 * per_round[rank - 1] + before[seed % 6];
  const std::vector<Cell>& cells = cells_of_rank(rank);
  std::uint64_t stride = 7;  // meets all of them
  while (std::gcd(stride, cells.size()) != 1) stride++;
  std::vector<Aim> r;
  for (std::uint64_t k = nth * kAims; k < (nth + 1) * kAims; k++) {
    const std::uint64_t at = k % cells.size() * stride % cells.size();
    const std::vector<unsigned> kinds = kinds_of(cells[at].row, cells[at].pending > 0);
    r.push_back(
        {cells[at], kinds[(at + k / cells.size() + static_cast<std::uint64_t>(rank)) % kinds.size()]});
  }
  return r;
}

// ---------------------------------------------------------------- what a program reached
class Coverage {
 public:
  /// Looks at every operand's layout when its op is reached: before it is combined or moved for the op.
  void count(const FlatGraph& g, const Partition& p, const Mesh& mesh) {
    const int rank = static_cast<int>(mesh.axis_names().size());
    for (const FlatNode& n : g.nodes)
      for (std::size_t k = 0; k < n.in.size(); k++) {
        const int part = p.of_value[static_cast<std::size_t>(n.in[k])];
        if (part < 0) continue;
        const Layout& l = *p.values[static_cast<std::size_t>(part)].layout;
        const int pending = std::min(2, axes_of(l.unreduced(), mesh));
        hits_[{{n.op->name, static_cast<int>(k)}, pending, works_cut(n, k, l), rank}]++;
        const DType t = p.values[static_cast<std::size_t>(part)].type.dtype;
        kinds_[{{n.op->name, static_cast<int>(k)}, kind_of(t), pending > 0}]++;
        dtypes_[{n.op->name, t}]++;
      }
  }
  /// Legal cells that were not covered.
  std::vector<Cell> empty_cells() const {
    std::vector<Cell> r;
    for (int rank = 1; rank <= 3; rank++)
      for (const Cell& c : cells_of_rank(rank))
        if (!hits_.contains(c)) r.push_back(c);
    return r;
  }
  std::vector<KindCell> empty_kind_cells() const {
    std::vector<KindCell> r;
    for (const KindCell& c : kind_cells())
      if (!kinds_.contains(c)) r.push_back(c);
    return r;
  }
  /// Whether an aim of the seed may reach what is not reached yet.
  bool needs(std::uint64_t seed) const {
    const std::vector<Aim> aims = aims_of_seed(seed);
    return std::any_of(aims.begin(), aims.end(), [&](const Aim& a) {
      return !hits_.contains(a.cell) || !kinds_.contains({a.cell.row, a.kind, a.cell.pending > 0});
    });
  }
  std::string report() const;

 private:
  // A sub-axis (pre, size) is the run [pre, pre * size) of the divisor chain; so are the axes of the mesh.
  static int axes_of(const AxisList& list, const Mesh& mesh) {
    int found = 0;
    std::int64_t pre = 1;
    for (const auto& [name, size] : mesh.shape()) {
      found += std::any_of(list.begin(), list.end(), [pre, size = size](SubAxis a) {
        return size > 1 && a.pre < pre * size && pre < static_cast<std::int64_t>(a.pre) * a.size;
      });
      pre *= size;
    }
    return found;
  }
  // Cut along a dimension that does not just pass through; of an op that passes all of them: along any.
  static bool works_cut(const FlatNode& n, std::size_t k, const Layout& l) {
    const Rule rule = n.op->rule(n.call());
    bool works = false, works_are_cut = false, any_cut = false;
    for (std::size_t d = 0; d < rule.operands[k].size(); d++) {
      const bool is_cut = !l.dims()[d].empty();
      any_cut = any_cut || is_cut;
      for (int f : rule.operands[k][d]) {
        const Factor& factor = rule.factors[static_cast<std::size_t>(f)];
        if (factor.role == Role::pass || factor.size == 1) continue;
        works = true;
        works_are_cut = works_are_cut || is_cut;
      }
    }
    return works ? works_are_cut : any_cut;
  }

  std::map<Cell, int> hits_;
  std::map<KindCell, int> kinds_;
  std::map<std::pair<std::string, DType>, int> dtypes_;
};

inline std::string Coverage::report() const {
  std::string text;
  for (int rank = 1; rank <= 3; rank++) {
    std::size_t reached = 0, least = 0;
    int fewest = 1 << 30;
    const std::vector<Cell>& cells = cells_of_rank(rank);
    for (std::size_t k = 0; k < cells.size(); k++) {
      const auto it = hits_.find(cells[k]);
      const int n = it == hits_.end() ? 0 : it->second;
      reached += n > 0;
      if (n < fewest) fewest = n, least = k;
    }
    text += "mesh of rank " + std::to_string(rank) + ": " + std::to_string(reached) + " of " +
            std::to_string(cells.size()) + " cells (operand x pending sum x cut), fewest hits " +
            std::to_string(fewest) + " (" + cells[least].to_string() + ")\n";
  }
  return text + std::to_string(kind_cells().size() - empty_kind_cells().size()) + " of " +
         std::to_string(kind_cells().size()) + " cells (operand x kind of dtype x pending), " +
         std::to_string(dtypes_.size()) + " pairs of op and dtype\n";
}

}  // namespace shardarray::testing
