// What steers the fakes, as the symbol that tests look for.
#include "fake_control.h"

#include "cuda/backend.h"
#include "cuda/libraries.h"
#include "fake_driver.h"

namespace shardarray::testing {
namespace {

template <std::uint64_t FakeDriver::*number> std::uint64_t count_of() {
  const std::lock_guard lock(fake_driver().mutex);
  return fake_driver().*number;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const FakeCudaControl shardarray_fake_cuda;
const FakeCudaControl shardarray_fake_cuda = {
    .fail_call =
        [](int after, int status) {
          auto& f = fake_driver();
          const std::lock_guard lock(f.mutex);
          f.to_failure = after;
          f.failure = status;
        },
    .fail_named =
        [](const char* call, int times, int status) {
          auto& f = fake_driver();
          const std::lock_guard lock(f.mutex);
          f.failing = call;
          f.named_failures = times;
          f.named_failure = status;
        },
    .fail_work =
        [](int after, int status) {
          auto& work = fake_driver().work;
          const std::lock_guard lock(work.mutex);
          work.to_failure = after;
          work.failure = status;
        },
    .set_capacity = [](std::size_t bytes) { fake_driver().device.capacity = bytes; },
    .held = [] { return fake_driver().device.held(); },
    .hold =
        [](bool on) {
          auto& work = fake_driver().work;
          const std::lock_guard lock(work.mutex);
          work.held = on;
          work.changed.notify_all();
        },
    .calls = count_of<&FakeDriver::calls>,
    .calls_of =
        [](const char* call) {
          auto& f = fake_driver();
          const std::lock_guard lock(f.mutex);
          return f.calls_by_name[call];
        },
    .done =
        [] {
          auto& work = fake_driver().work;
          const std::lock_guard lock(work.mutex);
          return work.done;
        },
    .last_call =
        [] {
          auto& f = fake_driver();
          const std::lock_guard lock(f.mutex);
          return f.last_failed.c_str();
        },
    .printed_launches = count_of<&FakeDriver::printed_launches>,
    .graph_launches = count_of<&FakeDriver::graph_launches>,
    .products = fake_products,
    .algorithm = fake_algorithm,
    .nccl_calls = fake_nccl_calls,
    .nccl_misuse = fake_nccl_misuse,
    .fail_nccl = fail_fake_nccl,
    .break_nccl = break_fake_nccl,
    .miss_rank = miss_fake_rank,
    .differ_rank = differ_fake_rank,
    .launches = count_of<&FakeDriver::launches>,
    .early_launches = count_of<&FakeDriver::early_launches>,
    .make_process = [](const cuda::UsedGpus& used, Backend& (*host)(),
                       Processes* others) -> std::unique_ptr<Backend> {
      return std::make_unique<cuda::CudaBackend>(used, MemoryLimit(), host, others);
    },
    .driver = cuda::driver,
    .cublas_lt = cuda::cublas_lt,
    .nccl = cuda::nccl,
};

}  // namespace shardarray::testing
