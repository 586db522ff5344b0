// Program: what the compiler makes and a backend runs: a list of Steps with all addresses fixed in advance.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/reducer.h"
#include "layout/layout.h"
#include "layout/transfer.h"
#include "runtime/kernel.h"
#include "shardarray/shape.h"
#include "shardarray/where.h"

namespace shardarray {

/// An address relative to a base pointer given at launch. Bases 0 .. devices-1 are the devices' scratch arenas, followed by the instances
/// of the inputs, then by those of the outputs that do not alias an input.
struct Ref {
  std::uint32_t base = 0;
  std::uint64_t offset = 0;  ///< bytes
};

struct LoopArg {
  Ref ref;                  ///< address of the element at domain point 0
  Shape strides;            ///< elements, one per domain dimension (outer, then inner)
  std::uint64_t bytes = 0;  ///< bytes of the whole tile
  std::uint64_t first = 0;  ///< bytes from the start of the tile to `ref`
  std::int64_t indirect_stride = 0, lo = 0, count = 0;  ///< for load_at: elements, first row, number of rows
};
/// A fused loop nest.
struct Loop {
  struct Item {
    int device = 0;  ///< position of the device that runs it
    Shape extents;   ///< of the domain, outer then inner; may be zero
    Shape start;     ///< global index of domain point 0, for `index`
    std::vector<LoopArg> args;
  };
  std::shared_ptr<const Kernel> kernel;
  std::vector<Item> items;
};
/// C = A B, batched. Row-major: A is m x k with rows `lda` apart (k x m when `ta`), B k x n, C m x n. Strides in elements.
struct Gemm {
  struct Item {
    int device = 0;
    Ref a, b, c;
    std::int64_t m = 0, n = 0, k = 0, batch = 1;
    std::int64_t lda = 0, ldb = 0, ldc = 0, stride_a = 0, stride_b = 0, stride_c = 0;
    bool ta = false, tb = false;
  };
  DType in = DType::float32,
        out = DType::float32;  ///< of A and B; of C: the same, or float32 for 16-bit floats
  /// Use the library's own kernel for all shapes: each element is one chain of multiply-adds (for long ones see scalar.h).
  bool fixed_order = false;
  bool tf32 = false;  ///< float32 operands may be rounded to TF32
  std::vector<Item> items;
};
/// Number of elements that a scan combines before it adds their carry.
inline constexpr std::int64_t scan_block = 1024;
/// A kernel that is not a loop nest, by its name in every backend's table.
///   sort         in: keys, payload...; out: the same, sorted stably by the keys along dimension params[0]. NaN is last and -0 equals 0.
///   scatter      in: rows int [b, n], updates [b, n, d]; out [b, v, d]: the identity, combined with updates[b, i] in row rows[b, i], in
///                the order of i. params[0]: global index of the tile's first row; rows outside the tile are skipped. params[1]: the
///                Reducer (sum, prod, max, min).
///   update       in: x [b, n..], part [b, m..], and for each varying dimension the start of the part there, int32 or int64 [b]; out: x,
///                overwritten by the part or combined with it; what lies outside is ignored. params[0]: the Reducer (sum, prod, max, min;
///                none: overwrite); then for each dimension after b the global index of the tile's first element, or -1 if it does not vary
///                and m is n. If out is x itself, only the part is written.
///   update_rows  in: x [b, v, d], rows int [b, n], updates [b, n, d]; out: x, each updates[b, i] written over row rows[b, i] or combined
///                with it, in the order of i; 16-bit floats in float32, rounded once. params as for scatter; none: overwrite. If out is x itself, only these rows are written.
///   scan         in: x; out: running reductions along dimension params[0], and optionally the last one of each line (the identity for an
///                empty line), in x's shape without that dimension. params[1]: the Reducer (sum, prod, max, min); params[2]: 1 forward, -1
///                backward. Blocks of scan_block elements: local starts at the identity, local = local o x[i], y[i] = carry o local; the
///                next block's carry is the block's last y. Float sums also keep rounding errors: y[i] = carry + (local + lost), and lost
///                becomes rounded_off(carry, local + lost) (scalar.h) of the block's last element, or 0 if that is not finite.
///   conv         in: lhs, rhs of any rank; out: sums of products, as given by params: those of a Contraction (contraction.h). Each is a
///                chain of multiply-adds from 0 in the order of `summed`, or several (chain_of()) that are added up. Integers wrap.
///   fft          in: complex x; out: the sums of x[j] exp(s 2 pi i j k / n) along the last dimension. params[0]: s, 1 or -1; the last one:
///                the bits of a float64 scale factor. Likewise for the next two.
///   rfft         in: real x [.., n]; out: the first n / 2 + 1 of them, s = -1.
///   irfft        in: complex x [.., n / 2 + 1]; out: real [.., n], the sums with s = 1 over x continued by its conjugates. The imaginary
///                parts of x[0], and of x[n / 2] for even n, are ignored. An optional second result of these three is scratch: see
///                fourier_sizes.h.
/// Linear algebra in float32, float64 and their complex types, on the last two dimensions after any number of batch dimensions:
///   cholesky     in: A, of which the lower triangle is read; out: L with A = L L^H, zeros above; NaN in the triangle if A is not positive
///                definite.
///   lu           in: A [m, n]; out: L below the diagonal and U on and above it, with P A = L U; int32 [min(m, n)]: the row that each row
///                was exchanged with, one after the other; int32 [m]: the row of A that each row of P A is.
///   triangular_solve  in: A, B; out: X. params: A X = B (1) or X A = B (0); A is lower (1) or upper (0); use A^T (1); unit diagonal (1).
///   lu_solve     in: both first results of lu, B, A, which is not read; out: X with A X = B. params[0]: use A^T (1).
///   qr           in: A [m, n]; out: Q [m, k], R [k, n]; k is min(m, n) or m.
///   eigh         in: a Hermitian A; out: eigenvalues, ascending, and if params[0] eigenvectors as columns. params[1]: which triangle is
///                read, the lower (1) or the upper one (0). NaN if that is not finite.
///   svd          in: A [m, n]; out: singular values, descending, and optionally U [m, k] and V^H [k, n], or [m, m] and [n, n]. NaN if A is
///                not finite.
struct LibraryCall {
  struct Item {
    int device = 0;
    std::vector<Ref> in, out;
    std::vector<Shape> in_shapes, out_shapes;  ///< of the local tiles, contiguous row-major
    std::vector<std::int64_t> params;
  };
  std::string name;
  std::vector<DType> in_types, out_types;
  std::vector<Item> items;
};
/// Moves boxes: each destination is filled from pieces of sources; with a reducer a piece has several sources that are combined in the
/// given order (ascending position; for the carries of a scan, scan order), so the bits do not depend on the device or the number of
/// workers. Executes reshards, halos, pads, slices, concatenations, local collectives and carries.
struct Exchange {
  struct Source {
    Ref ref;  ///< address of the piece's first element
    int device = 0;
    std::uint64_t tile_bytes = 0, first = 0;  ///< as in LoopArg
  };
  struct Piece {
    Shape extents, src_strides, dst_strides;  ///< in elements; source strides may be negative
    Ref dst;                                  ///< address of the piece's first element
    std::vector<Source> sources;
  };
  struct Item {
    int device = 0;
    Ref dst;  ///< of the destination tile
    std::uint64_t dst_bytes = 0;
    bool fill = false;  ///< first fill the tile with fill_bits (pad)
    std::vector<Piece> pieces;
  };
  DType dtype = DType::float32;
  Reducer reducer = Reducer::none;
  std::uint64_t fill_bits = 0;
  int transfer = -1;  ///< index into Program::transfers; -1: data stays on its device
  /// Floats must be combined in the given order. Otherwise a backend may use its own order; the CPU does not.
  bool fixed_order = false;
  std::vector<Item> items;
};

struct Program;
struct LocalPart;
/// Runs another program on the same devices `trip` times, sequentially.
struct ProgramCall {
  /// The address of a base of the called program in each run.
  struct Binding {
    /// Of the first run, and of later even and odd ones, counted from 0: carries are double-buffered.
    Ref first, even, odd;
    std::int64_t stride = 0;  ///< bytes added per run
    Ref at(std::int64_t run) const {
      Ref r = run == 0 ? first : run % 2 == 0 ? even : odd;
      r.offset += static_cast<std::uint64_t>(run * stride);
      return r;
    }
  };
  struct Item {
    std::vector<Binding> bases;  ///< for each base of the called program; scratch arenas first
    /// The base addresses in run `run`, given those of the caller.
    void addresses(std::int64_t run, void* const* callers, std::vector<void*>& out) const {
      out.resize(bases.size());
      for (std::size_t k = 0; k < out.size(); k++) {
        const Ref r = bases[k].at(run);
        out[k] = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(callers[r.base]) + r.offset);
      }
    }
  };
  std::shared_ptr<const Program> program;
  std::shared_ptr<const LocalPart> part =
      nullptr;             ///< for a program over several processes, of which `program` is this one's part
  std::int64_t trip = 1;   ///< at least 1
  int first_transfer = 0;  ///< the caller's Program::transfers contain the callee's from here on
  std::vector<Item> items;
};

/// One of several programs on the same devices, selected by a number when the step runs.
struct ProgramChoice {
  struct Item {
    Ref index;                 ///< int32, a valid branch number
    std::vector<Ref> indices;  ///< position -> the same number on that device
  };
  std::vector<ProgramCall> branches;  ///< each with trip 1
  std::vector<Item> items;            ///< exactly one
};
/// Runs a program while another one returns true: before run k of the body, run k of the condition.
struct ProgramLoop {
  /// A value carried between runs of the body: run k writes it to `even` or `odd`, by the parity of k.
  struct Carry {
    int device = 0;
    Ref first, even, odd;
    std::uint64_t bytes = 0;
  };
  struct Item {
    Ref answer;                  ///< bool, written by the condition
    std::vector<Ref> answers;    ///< position -> the same value on that device
    std::vector<Carry> carries;  ///< the final values are in `even`
  };
  std::vector<ProgramCall> calls;  ///< the condition, the body
  std::vector<Item> items;         ///< exactly one
  const ProgramCall& condition() const { return calls[0]; }
  const ProgramCall& body() const { return calls[1]; }
};

/// One step of a program on all its devices. Items of a step are independent of each other.
struct Step {
  std::variant<Loop, Gemm, LibraryCall, Exchange, ProgramCall, ProgramChoice, ProgramLoop> body;
  std::string label;  ///< its ops, for explain: `add, relu`
  Where where;
  bool flush_denormals = false;  ///< see shardarray/flush_denormals.h
};
/// A step in messages: `'add, relu' (train.cpp:12)`; without the line if unknown.
inline std::string spelled(const std::string& label, const Where& where) {
  return detail::with_place("'" + label + "'", where);
}

/// A transfer, as printed by explain and counted by the executor.
struct Transfer {
  TransferKind kind = TransferKind::exchange;
  AxisList axes;
  std::int64_t bytes = 0;                   ///< received by the busiest device if all memories are separate
  std::vector<std::int64_t> received = {};  ///< position -> bytes it receives; empty: `bytes` for all
  double gap =
      0;  ///< bytes of the whole move that it belongs to, divided by their lower bound; 0: no bound known
  std::int64_t moved_bytes = 0;  ///< physically copied
  std::int64_t runs = 1;         ///< number of runs that the bytes cover
  std::int64_t values = 1;       ///< number of values combined; the following fields are those of the first
  Shape shape;                   ///< global
  DType dtype = DType::float32;
  std::string reason, op;
  std::string runner_up;  ///< the second-best strategy for its operation, if explain() asks for it
  detail::RecordedLine where;
};

/// An input or output: one base per instance.
struct Port {
  Shape shape;
  DType dtype = DType::float32;
  const Layout* layout = nullptr;
  std::vector<std::uint32_t> bases;  ///< instance -> base
  std::vector<std::uint64_t> bytes;  ///< instance -> bytes
  std::vector<int> devices;          ///< instance -> position of its device
  int alias = -1;                    ///< outputs: the input whose buffers it reuses
};

struct Program {
  const DeviceOrder* order = nullptr;
  std::vector<Step> steps;
  std::vector<Port> inputs, outputs;
  std::vector<Transfer> transfers;
  std::vector<std::uint64_t> scratch_bytes;  ///< device -> bytes of its scratch arena
  std::vector<std::uint64_t>
      peak_bytes;  ///< device -> peak of physical bytes alive, including inputs and outputs
  std::uint32_t base_count = 0;
};

}  // namespace shardarray
