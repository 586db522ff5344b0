// cuBLASLt on the fake GPU, by plain loops, with the documented descriptions and refusals. It exists if SHARDARRAY_FAKE_CUBLASLT is set:
// `singles` has no algorithm by addresses, `broken` finds none at all. With SHARDARRAY_FAKE_SLOW algorithm 3 is the fastest; with
// SHARDARRAY_FAKE_SLOW_DEPTH products of more terms are slow, with -n those of fewer than n.
// It has epilogues and 16-bit results if SHARDARRAY_FAKE_EPILOGUES says what is slow: `fast`: calls without one; `slow`: calls with
// one; `nan`: as `fast`, but NaNs are lost; these three have one algorithm. `fast_of_all`: as `fast`, with all algorithms. `free`:
// nothing is slow.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "cuda/libraries.h"
#include "fake_calls.h"
#include "kernels/gemm.cuh"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

using testing::FakeBlocks;

constexpr int lt_ok = 0, lt_not_ready = 1, lt_no_room = 3, lt_invalid = 7, lt_failed = 13,
              lt_unsupported = 15;

std::string fake_lt_mode() {
  const char* const text = std::getenv("SHARDARRAY_FAKE_CUBLASLT");
  return text != nullptr ? text : "";
}
std::string fake_epilogues() {
  const char* const text = std::getenv("SHARDARRAY_FAKE_EPILOGUES");
  return text != nullptr ? text : "";
}
double fake_lt_number(const char* variable, double otherwise) {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::atof(text) : otherwise;
}

// ---------------------------------------------------------------- descriptions
struct FakeProduct {
  std::int64_t compute = 0, scale = 0, transposed[2] = {};
  std::uint64_t epilogue = 1, bias = 0;  // none; an address
  std::int64_t bias_offset = 0;

  bool has_bias() const {
    return epilogue == CublasLt::bias || epilogue == (CublasLt::bias | CublasLt::relu);
  }
  bool has_relu() const {
    return epilogue == CublasLt::relu || epilogue == (CublasLt::bias | CublasLt::relu);
  }
};
struct FakeLayout {
  std::uint64_t type = 0, rows = 0, columns = 0;
  std::int64_t ld = 0, batch = 1, offset = 0, by_addresses = 0;
};
struct FakePreference {
  std::uint64_t workspace = 0, alignment[4] = {256, 256, 256, 256}, reductions = 7;
};
template <class Fake, class Real> Fake inside(const Real* r) {
  static_assert(sizeof(Fake) <= sizeof(Real));
  Fake f;
  std::memcpy(static_cast<void*>(&f), r->data, sizeof f);
  return f;
}
template <class Fake, class Real> int put_inside(Real* r, const Fake& f) {
  std::memcpy(r->data, &f, sizeof f);
  return lt_ok;
}
/// A value of another size than the attribute has is refused.
template <class T, class To> int read_value(const void* value, std::size_t bytes, To& to) {
  T x;
  if (value == nullptr || bytes != sizeof x) return lt_invalid;
  std::memcpy(&x, value, sizeof x);
  to = static_cast<To>(x);
  return lt_ok;
}

int set_product(CublasLt::Product* to, int attribute, const void* value, std::size_t bytes) {
  auto p = inside<FakeProduct>(to);
  int status = lt_unsupported;
  if (attribute == CublasLt::transpose_first)
    status = read_value<std::int32_t>(value, bytes, p.transposed[0]);
  if (attribute == CublasLt::transpose_second)
    status = read_value<std::int32_t>(value, bytes, p.transposed[1]);
  if (attribute == CublasLt::epilogue) status = read_value<std::uint32_t>(value, bytes, p.epilogue);
  if (attribute == CublasLt::bias_address) status = read_value<std::uint64_t>(value, bytes, p.bias);
  if (attribute == CublasLt::bias_offset) status = read_value<std::int64_t>(value, bytes, p.bias_offset);
  return status == lt_ok ? put_inside(to, p) : status;
}
int set_layout(CublasLt::Layout* to, int attribute, const void* value, std::size_t bytes) {
  auto l = inside<FakeLayout>(to);
  int status = lt_unsupported;
  if (attribute == CublasLt::batch_count) status = read_value<std::int32_t>(value, bytes, l.batch);
  if (attribute == CublasLt::batch_offset) status = read_value<std::int64_t>(value, bytes, l.offset);
  if (attribute == CublasLt::batch_mode) status = read_value<std::uint32_t>(value, bytes, l.by_addresses);
  return status == lt_ok ? put_inside(to, l) : status;
}
int set_preference(CublasLt::Preference* to, int attribute, const void* value, std::size_t bytes) {
  auto p = inside<FakePreference>(to);
  int status = lt_unsupported;
  if (attribute == CublasLt::most_workspace) status = read_value<std::uint64_t>(value, bytes, p.workspace);
  for (int k = 0; k < 4; k++)
    if (attribute == CublasLt::least_alignment[k])
      status = read_value<std::uint32_t>(value, bytes, p.alignment[k]);
  if (attribute == CublasLt::reduction_schemes)
    status = read_value<std::uint32_t>(value, bytes, p.reductions);
  return status == lt_ok ? put_inside(to, p) : status;
}

struct FakeCall {
  FakeProduct product;
  FakeLayout layouts[3];  // the factors, the result

  bool rounds() const { return layouts[2].type == CublasLt::real16 || layouts[2].type == CublasLt::brain16; }
  bool joins() const { return product.epilogue != 1 || rounds(); }
};
FakeCall call_of(const CublasLt::Product* p, const CublasLt::Layout* a, const CublasLt::Layout* b,
                 const CublasLt::Layout* d) {
  return {inside<FakeProduct>(p), {inside<FakeLayout>(a), inside<FakeLayout>(b), inside<FakeLayout>(d)}};
}
std::size_t size_of_type(std::uint64_t type) {
  return type == CublasLt::real64 ? 8 : type == CublasLt::real32 ? 4 : 2;
}
int refusal_of(const FakeCall& c) {
  const auto& [a, b, d] = c.layouts;
  const auto is = [](const FakeLayout& l, int type) { return l.type == static_cast<std::uint64_t>(type); };
  const bool wide = c.product.compute == CublasLt::compute64 && c.product.scale == CublasLt::real64 &&
                    is(a, CublasLt::real64) && is(b, CublasLt::real64) && is(d, CublasLt::real64),
             floats = is(a, CublasLt::real32) || is(a, CublasLt::real16) || is(a, CublasLt::brain16),
             tf32 = c.product.compute == CublasLt::compute_tf32 && is(a, CublasLt::real32),
             narrow = (c.product.compute == CublasLt::compute32 || tf32) &&
                      c.product.scale == CublasLt::real32 && floats && a.type == b.type &&
                      (is(d, CublasLt::real32) || d.type == a.type);
  if (!wide && !narrow) return lt_unsupported;
  const auto side = [&](int k, bool rows) {
    return rows != (c.product.transposed[k] != 0) ? c.layouts[k].rows : c.layouts[k].columns;
  };
  if (side(0, true) != d.rows || side(1, false) != d.columns || side(0, false) != side(1, true))
    return lt_invalid;
  for (const FakeLayout& l : c.layouts) {
    if (l.ld < static_cast<std::int64_t>(l.rows) || l.rows == 0 || l.columns == 0) return lt_invalid;
    if (l.batch != d.batch || l.by_addresses != d.by_addresses) return lt_invalid;
  }
  if (!c.joins()) return lt_ok;
  if (fake_epilogues().empty() || d.by_addresses != 0) return lt_unsupported;
  if (c.product.epilogue == 1) return lt_ok;
  if (!c.product.has_bias()) return c.product.has_relu() ? lt_ok : lt_invalid;
  const bool stands_apart = d.batch == 1 || c.product.bias_offset == 0 ||
                            c.product.bias_offset >= static_cast<std::int64_t>(d.rows);
  return c.product.bias != 0 && c.product.bias % 16 == 0 && stands_apart ? lt_ok : lt_invalid;
}

// ---------------------------------------------------------------- algorithms
struct FakeAlgorithm {
  std::uint64_t alignment, workspace;
  bool by_addresses;
};
/// In the order in which they are guessed to be the fastest. The last one is beyond what any GPU is told it may have.
constexpr FakeAlgorithm fake_algorithms[] = {
    {64, 1 << 20, true}, {16, 4 << 20, false}, {1, 0, true}, {4, 1 << 10, true}, {1, 40 << 20, true}};
constexpr std::uint64_t algorithm_mark = 0x5a00;  // what is no algorithm is told apart

const FakeAlgorithm* algorithm_of(const CublasLt::Algorithm* a) {
  const std::uint64_t n = a->data[0] - algorithm_mark;
  return n < std::size(fake_algorithms) ? &fake_algorithms[n] : nullptr;
}

int find_algorithms(CublasLt::Handle, const CublasLt::Product* p, const CublasLt::Layout* a,
                    const CublasLt::Layout* b, const CublasLt::Layout* added, const CublasLt::Layout* d,
                    const CublasLt::Preference* preference, int wanted, CublasLt::Candidate* to, int* found) {
  const FakeCall call = call_of(p, a, b, d);
  *found = 0;
  if (wanted <= 0 || std::memcmp(added, d, sizeof *d) != 0) return lt_invalid;
  if (const int status = refusal_of(call)) return status;
  const bool by_addresses = call.layouts[2].by_addresses != 0;
  if (fake_lt_mode() == "broken" || (by_addresses && fake_lt_mode() == "singles")) return lt_unsupported;
  to[(*found)++].status = lt_unsupported;  // to be passed over
  const std::string epilogues = fake_epilogues();
  if (epilogues == "fast" || epilogues == "slow" || epilogues == "nan") wanted = std::min(wanted, 2);
  const auto all = inside<FakePreference>(preference);
  if (call.rounds() && all.reductions != CublasLt::in_compute_type)
    return lt_invalid;  // less exact, and nobody asked
  for (std::uint64_t n = 0; n < std::size(fake_algorithms) && *found < wanted; n++) {
    const FakeAlgorithm& x = fake_algorithms[n];
    bool fits = x.workspace <= all.workspace && (x.by_addresses || !by_addresses);
    for (const std::uint64_t told : all.alignment) fits = fits && told % x.alignment == 0;
    if (!fits) continue;
    CublasLt::Candidate& c = to[(*found)++];
    c = {};
    c.algorithm.data[0] = algorithm_mark + n;
    c.workspace = x.workspace;
  }
  return lt_ok;
}
int check_algorithm(CublasLt::Handle, const CublasLt::Product* p, const CublasLt::Layout* a,
                    const CublasLt::Layout* b, const CublasLt::Layout*, const CublasLt::Layout* d,
                    const CublasLt::Algorithm* algorithm, CublasLt::Candidate* to) {
  const FakeAlgorithm* const x = algorithm_of(algorithm);
  if (x == nullptr) return lt_invalid;
  to->workspace = x->workspace;
  return refusal_of(call_of(p, a, b, d));
}

// ---------------------------------------------------------------- products
std::atomic<std::uint64_t> products_made[4];
std::atomic<int> algorithm_used = -1;

/// A float32 that is rounded to 11 significant bits where it is read.
struct Tf32 {
  float value;
};
float wide(Tf32 x) {
  if (std::isnan(x.value)) return x.value;
  auto bits = std::bit_cast<std::uint32_t>(x.value);
  bits += 0xFFF + (bits >> 13 & 1);  // to nearest, ties to even
  return std::bit_cast<float>(bits & ~std::uint32_t{0x1FFF});
}

struct FakeWorkOfProduct {
  FakeCall call;
  std::uint64_t algorithm;
  const std::byte* places[3];  // of the device
  std::byte* workspace;

  void run() const {
    if (std::getenv("SHARDARRAY_FAKE_SLOW") != nullptr && algorithm != 3)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::string epilogues = fake_epilogues();
    const bool has_one = call.joins();
    const bool is_slow =
        epilogues == "slow" ? has_one : !has_one && (epilogues.starts_with("fast") || epilogues == "nan");
    if (is_slow) std::this_thread::sleep_for(std::chrono::milliseconds(8));
    const double slow = fake_lt_number("SHARDARRAY_FAKE_SLOW_DEPTH", 1e18),
                 terms = static_cast<double>(depth());
    if (slow < 0 ? terms < -slow : terms > slow) std::this_thread::sleep_for(std::chrono::milliseconds(4));
    clear_workspace();
    for (std::int64_t b = 0; b < call.layouts[2].batch; b++) {
      std::array<std::byte*, 3> at{};
      for (int k = 0; k < 3; k++) at[static_cast<std::size_t>(k)] = matrix(k, b);
      switch (static_cast<int>(call.layouts[0].type)) {
        case CublasLt::real64: multiply_one<double, double>(at, b); break;
        case CublasLt::real16: multiply_halves<device::Half>(at, b); break;
        case CublasLt::brain16: multiply_halves<device::Brain>(at, b); break;
        default:
          if (call.product.compute == CublasLt::compute_tf32) multiply_one<Tf32, float>(at, b);
          else multiply_one<float, float>(at, b);
      }
    }
    clear_workspace();  // nothing of the result was there
  }
  std::int64_t depth() const {
    const FakeLayout& a = call.layouts[0];
    return static_cast<std::int64_t>(call.product.transposed[0] != 0 ? a.rows : a.columns);
  }
  void clear_workspace() const {
    const std::uint64_t bytes = fake_algorithms[algorithm].workspace;
    if (bytes > 0) std::memset(FakeBlocks::host(workspace), 0xee, bytes);
  }
  std::byte* matrix(int k, std::int64_t b) const {
    const FakeLayout& l = call.layouts[k];
    const std::byte* p = places[k] + b * l.offset * static_cast<std::int64_t>(size_of_type(l.type));
    if (l.by_addresses != 0) std::memcpy(static_cast<void*>(&p), FakeBlocks::host(places[k]) + b * 8, 8);
    const std::size_t bytes =
        ((l.columns - 1) * static_cast<std::uint64_t>(l.ld) + l.rows) * size_of_type(l.type);
    if (!FakeBlocks::on_device(p) || testing::fake_device_blocks().rest(p) < bytes ||
        reinterpret_cast<std::uintptr_t>(p) % fake_algorithms[algorithm].alignment != 0) {
      std::fprintf(stderr, "fake cuBLASLt: a matrix is not where it was said to be\n");
      std::abort();  // a GPU would be lost
    }
    return const_cast<std::byte*>(FakeBlocks::host(p));
  }
  template <class In> void multiply_halves(const std::array<std::byte*, 3>& at, std::int64_t number) const {
    if (call.rounds()) multiply_one<In, float, In>(at, number);
    else multiply_one<In, float>(at, number);
  }
  /// Another order of adding than the own kernel has.
  template <class In, class Out, class Stored = Out>
  void multiply_one(const std::array<std::byte*, 3>& at, std::int64_t number) const {
    const auto& [a, b, d] = call.layouts;
    const auto* const first = reinterpret_cast<const In*>(at[0]);
    const auto* const second = reinterpret_cast<const In*>(at[1]);
    auto* const result = reinterpret_cast<Stored*>(at[2]);
    const Out* const added = bias<Out>(number);
    const bool ta = call.product.transposed[0] != 0, tb = call.product.transposed[1] != 0;
    const std::int64_t terms = depth();
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(d.columns); j++)
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(d.rows); i++) {
        using device::wide;
        Out sum = 0;
        for (std::int64_t p = terms; p-- > 0;)
          sum = std::fma(wide(first[ta ? i * a.ld + p : p * a.ld + i]),
                         wide(second[tb ? p * b.ld + j : j * b.ld + p]), sum);
        if (added != nullptr) sum += added[i];
        if (call.product.has_relu()) {
          if (fake_epilogues() == "nan") sum = sum > 0 ? sum : 0;
          else if (!std::isnan(sum)) sum = std::max(sum, Out(0));
        }
        result[j * d.ld + i] = stored<Stored>(sum);
      }
  }
  template <class Stored, class Out> static Stored stored(Out x) {
    if constexpr (std::is_same_v<Stored, device::Half>) return {device::narrow_float16(x)};
    else if constexpr (std::is_same_v<Stored, device::Brain>) return {device::narrow_bfloat16(x)};
    else return x;
  }
  template <class Out> const Out* bias(std::int64_t number) const {
    if (!call.product.has_bias()) return nullptr;
    const std::byte* const p = reinterpret_cast<const std::byte*>(call.product.bias) +
                               number * call.product.bias_offset * static_cast<std::int64_t>(sizeof(Out));
    if (!FakeBlocks::on_device(p) ||
        testing::fake_device_blocks().rest(p) < call.layouts[2].rows * sizeof(Out)) {
      std::fprintf(stderr, "fake cuBLASLt: a bias is not where it was said to be\n");
      std::abort();
    }
    return reinterpret_cast<const Out*>(FakeBlocks::host(p));
  }
};

int multiply_later(CublasLt::Handle handle, const CublasLt::Product* product, const void* alpha,
                   const void* first, const CublasLt::Layout* first_layout, const void* second,
                   const CublasLt::Layout* second_layout, const void* beta, const void* added,
                   const CublasLt::Layout*, void* result, const CublasLt::Layout* result_layout,
                   const CublasLt::Algorithm* algorithm, void* workspace, std::size_t workspace_bytes,
                   Stream s) {
  if (const int status = testing::fake_enter("cublasLtMatmul"))
    return status == out_of_memory ? lt_no_room : lt_failed;
  auto& stream = *reinterpret_cast<testing::FakeStream*>(s);
  const FakeCall call = call_of(product, first_layout, second_layout, result_layout);
  if (const int status = refusal_of(call)) return status;
  const bool wide = call.product.scale == CublasLt::real64;
  const double scales[] = {wide ? *static_cast<const double*>(alpha) : *static_cast<const float*>(alpha),
                           wide ? *static_cast<const double*>(beta) : *static_cast<const float*>(beta)};
  const FakeAlgorithm* const x = algorithm_of(algorithm);
  const bool by_addresses = call.layouts[2].by_addresses != 0;
  const auto gpu = static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
  const bool has_workspace =
      workspace_bytes == 0 || (testing::fake_device_blocks().rest(workspace) >= workspace_bytes &&
                               reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0);
  if (scales[0] != 1 || scales[1] != 0 || added != result || x == nullptr || gpu != stream.gpu ||
      gpu != testing::fake_current_gpu() || !has_workspace || workspace_bytes < x->workspace ||
      (by_addresses && !x->by_addresses))
    return lt_invalid;
  const FakeWorkOfProduct work = {
      call,
      algorithm->data[0] - algorithm_mark,
      {static_cast<const std::byte*>(first), static_cast<const std::byte*>(second),
       static_cast<const std::byte*>(result)},
      static_cast<std::byte*>(workspace)};
  products_made[0]++;
  if (call.joins()) products_made[3]++;
  if (by_addresses) products_made[2]++;
  else if (call.layouts[2].batch > 1) products_made[1]++;
  algorithm_used = static_cast<int>(work.algorithm);
  // As a real one it has other kernels for other addresses: some results have a clean workspace first.
  if (x->workspace > 0 && reinterpret_cast<std::uintptr_t>(result) / 256 % 2 == 1)
    stream.ask([work] { work.clear_workspace(); });
  stream.ask([work] { work.run(); });
  return lt_ok;
}

const CublasLt fake_cublas_lt = {
    .version = []() -> std::size_t { return 0; },  // no algorithm of a real one
    .create =
        [](CublasLt::Handle* to) {
          if (testing::fake_enter("cublasLtCreate") != 0) return lt_not_ready;
          *to = reinterpret_cast<CublasLt::Handle>(static_cast<std::uintptr_t>(testing::fake_current_gpu()) +
                                                   1);
          return lt_ok;
        },
    .status_name =
        [](int status) {
          return status == lt_failed        ? "CUBLAS_STATUS_EXECUTION_FAILED"
                 : status == lt_no_room     ? "CUBLAS_STATUS_ALLOC_FAILED"
                 : status == lt_not_ready   ? "CUBLAS_STATUS_NOT_INITIALIZED"
                 : status == lt_unsupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                            : "CUBLAS_STATUS_INVALID_VALUE";
        },
    .product_init =
        [](CublasLt::Product* to, std::size_t bytes, int compute, int scale) {
          return bytes < sizeof *to ? lt_no_room : put_inside(to, FakeProduct{compute, scale});
        },
    .product_set = set_product,
    .layout_init =
        [](CublasLt::Layout* to, std::size_t bytes, int type, std::uint64_t rows, std::uint64_t columns,
           std::int64_t ld) {
          const FakeLayout l = {static_cast<std::uint64_t>(type), rows, columns, ld};
          return bytes < sizeof *to ? lt_no_room : put_inside(to, l);
        },
    .layout_set = set_layout,
    .preference_init =
        [](CublasLt::Preference* to, std::size_t bytes) {
          return bytes < sizeof *to ? lt_no_room : put_inside(to, FakePreference{});
        },
    .preference_set = set_preference,
    .find_algorithms = find_algorithms,
    .check_algorithm = check_algorithm,
    .multiply = multiply_later,
};

}  // namespace

const CublasLt& cublas_lt() {
  if (fake_lt_mode().empty())
    throw CompileError("cuda: the fake GPU has no cuBLASLt. SHARDARRAY_FAKE_CUBLASLT gives it one. Set it.");
  return fake_cublas_lt;
}
const ProductLimits& product_limits() {
  static const ProductLimits limits = {
      fake_lt_number("SHARDARRAY_FAKE_OWN_PRODUCTS", ProductLimits().own),
      fake_lt_number("SHARDARRAY_FAKE_GUESSED_PRODUCTS", ProductLimits().guessed), ProductLimits().own_depth,
      static_cast<std::int64_t>(
          fake_lt_number("SHARDARRAY_FAKE_DEEP_PRODUCTS", static_cast<double>(ProductLimits().deep)))};
  return limits;
}

}  // namespace shardarray::cuda

namespace shardarray::testing {
std::uint64_t fake_products(int kind) { return cuda::products_made[kind]; }
int fake_algorithm() { return cuda::algorithm_used; }
}  // namespace shardarray::testing
