// Shared by the files of the fake driver: its state, and how its calls begin and fail.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "cuda/driver.h"
#include "fake_calls.h"
#include "fake_gpu.h"
#include "fake_launch.h"
#include "fake_statuses.h"

namespace shardarray::testing {

/// Never destroyed, as its streams' threads.
struct FakeDriver {
  FakeBlocks device, pinned;
  FakeWork work;
  std::mutex mutex;  // of what follows
  std::vector<FakeStream*> streams;
  std::uint64_t calls = 0;
  std::map<std::string, std::uint64_t, std::less<>> calls_by_name;
  int to_failure = -1, failure = 0;  // the call after so many fails
  std::string failing;  // the next `named_failures` calls of this name fail, with `named_failure`
  int named_failures = 0, named_failure = 0;
  std::string last_failed;
  std::set<cuda::KernelHandle> printed;  // kernels of loaded code
  std::map<cuda::KernelHandle, std::uint32_t>
      bases;  // of kernels of whole programs: addresses that come with a launch
  std::uint64_t printed_launches = 0, graph_launches = 0, launches = 0, early_launches = 0;
  std::mt19937 random{fake_seed()};  // of graphs
};
FakeDriver& fake_driver();

struct FakeEvent {
  int gpu = 0;
  FakeStream* stream = nullptr;  // null: not recorded yet
  std::uint64_t number = 0;
  std::shared_ptr<FakeCapture> capture;  // where it was recorded, behind `last`; then there is no stream
  std::vector<std::size_t> last;
};

inline FakeStream& stream_of(cuda::Stream s) { return *reinterpret_cast<FakeStream*>(s); }
inline FakeEvent& event_of(cuda::Event e) { return *reinterpret_cast<FakeEvent*>(e); }

/// Returns the status, and makes it the thread's last error.
cuda::Status failed(cuda::Status status);
/// Every call begins with it: the failure that a test asked for, or that of earlier work on the thread's GPU.
cuda::Status enter(const char* call);

/// From now on the stream is captured.
void capture_stream(FakeStream& stream, std::shared_ptr<FakeCapture> capture);

bool is_grid(const cuda::Grid& grid);
FakeLaunch launch_of(cuda::KernelHandle kernel, const cuda::Grid& grid, void** arguments);
void count_launch(const void* kernel);

// Calls about graphs (fake_graphs.cpp).
cuda::Status begin_fake_capture(cuda::Stream s);
cuda::Status last_fake_node(cuda::GraphNode* to, cuda::Stream s);
cuda::Status end_fake_capture(cuda::GraphHandle* to, cuda::Stream s);
cuda::Status drop_fake_graph(cuda::GraphHandle graph);
cuda::Status make_fake_exec(cuda::GraphExec* to, cuda::GraphHandle graph);
cuda::Status set_fake_arguments(cuda::GraphExec exec, cuda::GraphNode node, cuda::KernelHandle kernel,
                                const cuda::Grid& grid, void** arguments);
cuda::Status update_fake_exec(cuda::GraphExec exec, cuda::GraphHandle graph);
cuda::Status launch_fake_exec(cuda::GraphExec exec, cuda::Stream s);
cuda::Status drop_fake_exec(cuda::GraphExec exec);

}  // namespace shardarray::testing
