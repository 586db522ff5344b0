// Checks the call table (libraries.h) against NCCL's own header, if that is present; contains no code.
#if __has_include(<nccl.h>)
#include <nccl.h>

#include <cstddef>

#include "cuda/libraries.h"
#include "cuda/same_call.h"

namespace shardarray::cuda {
namespace {

#define SHARDARRAY_SAME(member, call) \
  static_assert(same_call(decltype(Nccl::member){}, static_cast<decltype(&(call))>(nullptr)))
SHARDARRAY_SAME(get_version, ncclGetVersion);
SHARDARRAY_SAME(get_unique_id, ncclGetUniqueId);
SHARDARRAY_SAME(init_rank, ncclCommInitRankConfig);
SHARDARRAY_SAME(get_async_error, ncclCommGetAsyncError);
SHARDARRAY_SAME(abort, ncclCommAbort);
SHARDARRAY_SAME(get_error_string, ncclGetErrorString);
SHARDARRAY_SAME(get_last_error, ncclGetLastError);
SHARDARRAY_SAME(group_start, ncclGroupStart);
SHARDARRAY_SAME(group_end, ncclGroupEnd);
SHARDARRAY_SAME(send, ncclSend);
SHARDARRAY_SAME(receive, ncclRecv);
SHARDARRAY_SAME(all_reduce, ncclAllReduce);
SHARDARRAY_SAME(all_gather, ncclAllGather);
SHARDARRAY_SAME(reduce_scatter, ncclReduceScatter);
#undef SHARDARRAY_SAME

static_assert(ncclSuccess == 0 && Nccl::unhandled_cuda_error == ncclUnhandledCudaError &&
              Nccl::invalid_usage == ncclInvalidUsage && Nccl::in_progress == ncclInProgress);
static_assert(Nccl::int8 == ncclInt8 && Nccl::uint8 == ncclUint8 && Nccl::int32 == ncclInt32 &&
              Nccl::uint32 == ncclUint32 && Nccl::int64 == ncclInt64 && Nccl::uint64 == ncclUint64 &&
              Nccl::real32 == ncclFloat32 && Nccl::real64 == ncclFloat64);
static_assert(Nccl::sum == ncclSum && Nccl::prod == ncclProd && Nccl::max == ncclMax && Nccl::min == ncclMin);
static_assert(Nccl::least_version == NCCL_VERSION(2, 22, 0) && NCCL_VERSION_CODE >= Nccl::least_version);

using OwnConfig = ncclConfig_t;
constexpr OwnConfig initial = NCCL_CONFIG_INITIALIZER;
static_assert(Nccl::Config{}.magic == initial.magic && Nccl::Config{}.version == NCCL_VERSION(2, 14, 0));
static_assert(offsetof(Nccl::Config, size) == offsetof(OwnConfig, size) &&
              offsetof(Nccl::Config, magic) == offsetof(OwnConfig, magic) &&
              offsetof(Nccl::Config, version) == offsetof(OwnConfig, version) &&
              offsetof(Nccl::Config, blocking) == offsetof(OwnConfig, blocking));
static_assert(sizeof(Nccl::Id) == sizeof(ncclUniqueId));

}  // namespace
}  // namespace shardarray::cuda
#endif
