// Program: what the compiler makes and a backend runs: a list of Steps over addresses that are all known beforehand.
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

/// An address: base pointers are given at launch. Bases 0 .. devices-1 are the devices' scratch arenas, then the
/// instances of the inputs, then those of the outputs that are not an input's.
struct Ref {
  std::uint32_t base = 0;
  std::uint64_t offset = 0;  ///< bytes
};

struct LoopArg {
  Ref ref;                  ///< of the element at domain point 0
  Shape strides;            ///< elements, one per domain dimension (outer, then inner)
  std::uint64_t bytes = 0;  ///< extent of the tile in memory, from its first byte
  std::uint64_t first = 0;  ///< bytes from the tile's first byte to `ref`
  std::int64_t indirect_stride = 0, lo = 0, count = 0;  ///< for load_at: elements, first row, number of rows
};
/// A fused loop nest.
struct Loop {
  struct Item {
    int device = 0;  ///< position of the device that runs it
    Shape extents;   ///< of the domain, outer then inner; may hold zeros
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
        out = DType::float32;  ///< of A and B; of C: as `in`, or float32 sums of 16-bit floats
  /// The own kernel, whatever the shape: each element is one chain of multiply-adds (long ones: scalar.h).
  bool fixed_order = false;
  bool tf32 = false;  ///< operands of float32 may be rounded to TF32
  std::vector<Item> items;
};
/// Elements that a scan combines before their carry is added.
inline constexpr std::int64_t scan_block = 1024;
/// A kernel that is no loop nest, by the name under which every backend has it in its table.
///   sort         in: keys, payload...; out: the same, sorted by the keys, stable, along dimension params[0]. NaN is last
///                and -0 equals 0 (stable between them).
///   scatter      in: rows int [b, n], updates [b, n, d]; out [b, v, d]: the identity, combined with updates[b, i] in row
///                rows[b, i], in the order of i. params[0]: global index of the tile's first row; rows outside the tile are
///                skipped. params[1]: the Reducer (sum, prod, max, min).
///   update       in: x [b, n..], part [b, m..], of each varying dimension where the part begins there, int32 or int64 [b]; out: x, the
///                part written over or combined with what is there; what lies outside is left out. params[0]: the Reducer (sum, prod,
///                max, min; none: written over); then by dimension behind b the global index of the tile's first element; -1: it does
///                not vary, m is n. Where out is x itself, the part alone is written.
///   scan         in: x; out: running reductions along dimension params[0], and perhaps the last one of each line (the identity
///                of an empty line), of x's shape without that dimension. params[1]: the Reducer (sum, prod, max, min);
///                params[2]: 1 from the first element on, -1 from the last. Blocks of scan_block elements: local starts at the
///                identity, local = local o x[i], y[i] = carry o local; the next block's carry is the block's last y. Of float
///                sums also what is rounded off on the way is kept: y[i] = carry + (local + lost), and lost becomes
///                rounded_off(carry, local + lost) (scalar.h) of the block's last element, 0 where that is not finite.
///   conv         in: lhs, rhs of any rank; out: sums of products, as params says: those of a Contraction (contraction.h). Each is a
///                chain of multiply-adds from 0 in the order of `summed`, or several (chain_of()) that are added up. Integers
///                wrap.
///   fft          in: complex x; out: the sums of x[j] exp(s 2 pi i j k / n) along the last dimension. params[0]: s, 1 or -1; the
///                last one: the bits of a float64 by which they are multiplied. So of the two that follow.
///   rfft         in: real x [.., n]; out: the first n / 2 + 1 of them, s = -1.
///   irfft        in: complex x [.., n / 2 + 1]; out: real [.., n], the sums with s = 1 of x and of the conjugates with which it goes
///                on. The imaginary parts of x[0], and of x[n / 2] where n is even, count nothing.
///                A second result of the three, where there is one, is room for what is in between: see fourier_sizes.h.
/// Of matrices of float32, float64 or complex numbers of them, the last two dimensions, behind any number of others:
///   cholesky     in: A, of which the lower triangle is read; out: L with A = L L^H, zeros above; NaN in the triangle where A is not
///                positive definite.
///   lu           in: A [m, n]; out: L below the diagonal and U on and above it, with P A = L U; int32 [min(m, n)]: with which row
///                each row was exchanged, one after the other; int32 [m]: the row of A that each row of P A is.
///   triangular_solve  in: A, B; out: X. params: A X = B (1) or X A = B (0); A is lower (1) or upper (0); A^T in its place (1);
///                its diagonal is 1 (1).
///   lu_solve     in: both first results of lu, B, A, which is not read; out: X with A X = B. params[0]: A^T in its place (1).
///   qr           in: A [m, n]; out: Q [m, k], R [k, n]; k is min(m, n) or m.
///   eigh         in: a Hermitian A; out: eigenvalues, rising, and if params[0] eigenvectors as columns. params[1]: which triangle is
///                read, the lower (1) or the upper one (0). NaN where that is not finite.
///   svd          in: A [m, n]; out: singular values, falling, and perhaps U [m, k] and V^H [k, n], or [m, m] and [n, n]. NaN where
///                A is not finite.
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
/// Boxes move: each destination is filled by pieces of sources; with a reducer a piece has several sources that are
/// combined in the order given (ascending position; carries of a scan as it goes): the same bits on every device and any number
/// of workers. This one form executes reshards, halos, pads, slices, concatenations, the local collectives and carries.
struct Exchange {
  struct Source {
    Ref ref;  ///< of the piece's first element
    int device = 0;
    std::uint64_t tile_bytes = 0, first = 0;  ///< as in LoopArg
  };
  struct Piece {
    Shape extents, src_strides, dst_strides;  ///< elements; a source stride may be negative
    Ref dst;                                  ///< of the piece's first element
    std::vector<Source> sources;
  };
  struct Item {
    int device = 0;
    Ref dst;  ///< of the destination tile
    std::uint64_t dst_bytes = 0;
    bool fill = false;  ///< first write fill_bits to every element (pad)
    std::vector<Piece> pieces;
  };
  DType dtype = DType::float32;
  Reducer reducer = Reducer::none;
  std::uint64_t fill_bits = 0;
  int transfer = -1;  ///< which of Program::transfers this executes; -1: data stays on its device
  /// Floats are combined in the order given. Else a backend may have an order of its own; the CPU has none.
  bool fixed_order = false;
  std::vector<Item> items;
};

struct Program;
struct LocalPart;
/// Another program on the same devices, `trip` times, one run after the other.
struct ProgramCall {
  /// Where a base of the called program is at each run.
  struct Binding {
    /// At the first run; at later ones, counted from 0: what is carried has two buffers.
    Ref first, even, odd;
    std::int64_t stride = 0;  ///< bytes that are added with every run
    Ref at(std::int64_t run) const {
      Ref r = run == 0 ? first : run % 2 == 0 ? even : odd;
      r.offset += static_cast<std::uint64_t>(run * stride);
      return r;
    }
  };
  struct Item {
    std::vector<Binding> bases;  ///< of the called program; scratch arenas first
    /// Their addresses at run `run` of a caller with these.
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
      nullptr;             ///< of a program over several processes, of which `program` is this one's
  std::int64_t trip = 1;   ///< 1 or more
  int first_transfer = 0;  ///< its transfers are Program::transfers of the caller from here on
  std::vector<Item> items;
};

/// One of several programs on the same devices: a number says which one when the step runs.
struct ProgramChoice {
  struct Item {
    Ref index;                 ///< int32: the number of a branch that there is
    std::vector<Ref> indices;  ///< position -> the same number on that device
  };
  std::vector<ProgramCall> branches;  ///< each once
  std::vector<Item> items;            ///< one
};
/// A program again and again while another one says so: before run k of the body, the condition's run k.
struct ProgramLoop {
  /// What the body carries from run to run: run k writes it to `even` or `odd`, as k is.
  struct Carry {
    int device = 0;
    Ref first, even, odd;
    std::uint64_t bytes = 0;
  };
  struct Item {
    Ref answer;                  ///< bool, which the condition writes
    std::vector<Ref> answers;    ///< position -> the same on that device
    std::vector<Carry> carries;  ///< at the end they lie in `even`
  };
  std::vector<ProgramCall> calls;  ///< the condition, the body
  std::vector<Item> items;         ///< one
  const ProgramCall& condition() const { return calls[0]; }
  const ProgramCall& body() const { return calls[1]; }
};

/// One step of a program, over all its devices. Items of one step are independent of each other.
struct Step {
  std::variant<Loop, Gemm, LibraryCall, Exchange, ProgramCall, ProgramChoice, ProgramLoop> body;
  std::string label;  ///< the ops in it, for explain: `add, relu`
  Where where;
  bool flush_denormals = false;  ///< see shardarray/flush_denormals.h
};
/// A step in a message: `'add, relu' (train.cpp:12)`; without a line where none is known.
inline std::string spelled(const std::string& label, const Where& where) {
  return detail::with_place("'" + label + "'", where);
}

/// One transfer as explain prints it and as the executor counts it.
struct Transfer {
  TransferKind kind = TransferKind::exchange;
  AxisList axes;
  std::int64_t bytes = 0;                   ///< what the busiest device receives if memories were separate
  std::vector<std::int64_t> received = {};  ///< position -> what it receives; empty: all `bytes`
  double gap =
      0;  ///< bytes of the move that it is of, by the least that such a move can take; 0: that is not known
  std::int64_t moved_bytes = 0;  ///< what is physically copied
  std::int64_t runs = 1;         ///< that the bytes are of
  std::int64_t values = 1;       ///< that go together; what follows is the first one's
  Shape shape;                   ///< global
  DType dtype = DType::float32;
  std::string reason, op;
  std::string runner_up;  ///< the next best way for its operation, where explain() asks for it
  detail::RecordedLine where;
};

/// A value that enters or leaves: one base per instance.
struct Port {
  Shape shape;
  DType dtype = DType::float32;
  const Layout* layout = nullptr;
  std::vector<std::uint32_t> bases;  ///< instance -> base
  std::vector<std::uint64_t> bytes;  ///< instance -> bytes
  std::vector<int> devices;          ///< instance -> position of its device
  int alias = -1;                    ///< outputs: the input whose buffers it takes over
};

struct Program {
  const DeviceOrder* order = nullptr;
  std::vector<Step> steps;
  std::vector<Port> inputs, outputs;
  std::vector<Transfer> transfers;
  std::vector<std::uint64_t> scratch_bytes;  ///< device -> bytes of its arena
  std::vector<std::uint64_t>
      peak_bytes;  ///< device -> physical bytes alive at the worst moment, inputs and outputs included
  std::uint32_t base_count = 0;
};

}  // namespace shardarray
