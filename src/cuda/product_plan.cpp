#include "cuda/product_plan.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "shardarray/dtype.h"
#include "shardarray/error.h"

namespace shardarray::cuda {
namespace {

int library_type(DType t) {
  switch (t) {
    case float64: return CublasLt::real64;
    case float16: return CublasLt::real16;
    case bfloat16: return CublasLt::brain16;
    default: return CublasLt::real32;
  }
}

class ProductDescriber {
 public:
  explicit ProductDescriber(const CublasLt& library) : library_(library) {}

  void describe(ProductPlan& p) const {
    const bool wide = p.call.out == float64;
    const int compute = wide          ? CublasLt::compute64
                        : p.call.tf32 ? CublasLt::compute_tf32
                                      : CublasLt::compute32;
    check(library_.product_init(&p.product, sizeof p.product, compute,
                                wide ? CublasLt::real64 : CublasLt::real32),
          "cublasLtMatmulDescInit");
    transpose(p.product, CublasLt::transpose_first, p.call.transpose_first);
    transpose(p.product, CublasLt::transpose_second, p.call.transpose_second);
    if (p.call.relu || p.call.has_bias()) describe_epilogue(p);
    p.first = layout(p.call, p.call.first, p.call.in);
    p.second = layout(p.call, p.call.second, p.call.in);
    p.result = layout(p.call, p.call.result, p.call.out);
  }

  CublasLt::Preference preference(const ProductCall& call, std::uint64_t most_workspace) const {
    CublasLt::Preference p;
    const char* const setting = "cublasLtMatmulPreferenceSetAttribute";
    check(library_.preference_init(&p, sizeof p), "cublasLtMatmulPreferenceInit");
    check(library_.preference_set(&p, CublasLt::most_workspace, &most_workspace, sizeof most_workspace),
          setting);
    const std::uint32_t alignments[] = {call.first.alignment, call.second.alignment, call.result.alignment,
                                        call.result.alignment};
    for (int k = 0; k < 4; k++)
      check(library_.preference_set(&p, CublasLt::least_alignment[k], &alignments[k], sizeof alignments[k]),
            setting);
    const std::uint32_t reductions = CublasLt::in_compute_type;  // partial sums are never rounded to 16 bits
    if (itemsize(call.out) == 2)
      check(library_.preference_set(&p, CublasLt::reduction_schemes, &reductions, sizeof reductions),
            setting);
    return p;
  }

 private:
  void check(int status, const char* call) const {
    if (status != 0)
      throw CompileError(
          fmt::format("cuda: {} failed: {}. Large products are made by cuBLASLt 13. Install one that "
                      "works.",
                      call, library_.status_name(status)));
  }
  void transpose(CublasLt::Product& p, int which, bool on) const {
    const std::int32_t value = on ? 1 : 0;
    check(library_.product_set(&p, which, &value, sizeof value), "cublasLtMatmulDescSetAttribute");
  }
  // The bias address is set for each run.
  void describe_epilogue(ProductPlan& p) const {
    const char* const setting = "cublasLtMatmulDescSetAttribute";
    const std::uint32_t kind = (p.call.relu ? CublasLt::relu : 0) | (p.call.has_bias() ? CublasLt::bias : 0);
    check(library_.product_set(&p.product, CublasLt::epilogue, &kind, sizeof kind), setting);
    if (!p.call.has_bias()) return;
    const std::uintptr_t somewhere = p.call.bias.alignment;
    check(library_.product_set(&p.product, CublasLt::bias_address, &somewhere, sizeof somewhere), setting);
    if (p.call.batch > 1)
      check(library_.product_set(&p.product, CublasLt::bias_offset, &p.call.bias.stride,
                                 sizeof p.call.bias.stride),
            setting);
  }
  CublasLt::Layout layout(const ProductCall& call, const ProductMatrix& m, DType t) const {
    CublasLt::Layout l;
    const char* const setting = "cublasLtMatrixLayoutSetAttribute";
    check(library_.layout_init(&l, sizeof l, library_type(t), static_cast<std::uint64_t>(m.rows),
                               static_cast<std::uint64_t>(m.columns), m.ld),
          "cublasLtMatrixLayoutInit");
    if (call.batch == 1) return l;
    const auto count = static_cast<std::int32_t>(call.batch);
    const std::uint32_t by_addresses = 1;
    check(library_.layout_set(&l, CublasLt::batch_count, &count, sizeof count), setting);
    if (call.by_pointers())
      check(library_.layout_set(&l, CublasLt::batch_mode, &by_addresses, sizeof by_addresses), setting);
    else check(library_.layout_set(&l, CublasLt::batch_offset, &m.stride, sizeof m.stride), setting);
    return l;
  }

  const CublasLt& library_;
};

}  // namespace

ProductPlan describe_product(const CublasLt& library, ProductCall call) {
  ProductPlan plan;
  plan.call = std::move(call);
  ProductDescriber(library).describe(plan);
  return plan;
}

CublasLt::Preference product_preference(const CublasLt& library, const ProductCall& call,
                                        std::size_t most_workspace) {
  return ProductDescriber(library).preference(call, most_workspace);
}

std::string algorithm_key(const CublasLt& library, const ProductCall& call, const std::string& gpu,
                          std::size_t most_workspace) {
  std::string key = fmt::format("cuBLASLt {}\n{}\n{} bytes\n{}{} {} {}{}, {} products{}\n", library.version(),
                                gpu, most_workspace, call.tf32 ? "tf32 " : "", name(call.in), name(call.out),
                                call.transpose_first ? 't' : 'n', call.transpose_second ? 't' : 'n',
                                call.batch, call.by_pointers() ? " by addresses" : "");
  for (const ProductMatrix* m : {&call.first, &call.second, &call.result})
    key += fmt::format("{} x {}, {}, {}, {}\n", m->rows, m->columns, m->ld, m->stride, m->alignment);
  if (call.has_bias()) key += fmt::format("bias {}, {}\n", call.bias.stride, call.bias.alignment);
  if (call.relu) key += "relu\n";
  if (call.parts > 1) key += fmt::format("{} parts\n", call.parts);
  return key;
}

int multiply(const CublasLt& library, CublasLt::Handle handle, const ProductPlan& plan, const void* first,
             const void* second, const void* bias, void* result, void* workspace, Stream stream) {
  static constexpr float one32 = 1, zero32 = 0;
  static constexpr double one64 = 1, zero64 = 0;
  const bool wide = plan.call.out == float64;
  const void* const one = wide ? static_cast<const void*>(&one64) : &one32;
  const void* const zero = wide ? static_cast<const void*>(&zero64) : &zero32;
  CublasLt::Product product = plan.product;
  if (plan.call.has_bias()) {
    const int status = library.product_set(&product, CublasLt::bias_address, &bias, sizeof bias);
    if (status != 0) return status;
  }
  return library.multiply(handle, &product, one, first, &plan.first, second, &plan.second, zero, result,
                          &plan.result, result, &plan.result, &plan.algorithm, workspace, plan.workspace,
                          stream);
}

}  // namespace shardarray::cuda
