// tests/processes/check starts this several times, by a launcher. `programs`: each process prints the bits of results on the first eight
// devices of all processes, which do not depend on how the devices are split over processes. The other words: a failure in one process
// or between them; each process prints the error that it gets, and exits with 3.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "gathered.h"
#include "gpus.h"
#include "programs.h"
#include "saved.h"

using namespace processes_test;

namespace {

void print(const char* name, const std::vector<Bits>& results) {
  std::uint64_t hash = 14695981039346656037ull;  // FNV-1a
  for (const Bits& r : results)
    for (const std::uint32_t word : r) hash = (hash ^ word) * 1099511628211ull;
  std::printf("%s %016lx\n", name, hash);
}

Bits scans(const sa::Mesh& mesh) {
  const Array v = platform_test::put(platform_test::numbers({16}) * 0.2f, mesh, P("x"));
  return everywhere(sa::jit([](const Array& a) {
    return sa::fori_loop(
        0, 20, [](const Array&, const Array& c) { return sa::roll(c, 1, 0) * 0.5f + sa::sum(c) * 0.01f; }, a);
  })(v));
}

Bits maps(const sa::Mesh& mesh) {
  const Array x = platform_test::put(platform_test::numbers({16, 8}), mesh, P("x", "y"));
  return everywhere(sa::shard_map(
      [](const Array& v) { return sa::psum(sa::all_gather(v, "y", {.axis = 1, .tiled = true}), "x"); },
      {.mesh = mesh, .in_specs = P("x", "y"), .out_specs = P()})(x));
}

// explain() of a step of least squares: the same wherever the devices are.
Bits plan(const sa::Mesh& mesh) {
  const Array w = platform_test::put(platform_test::numbers({8, 4}), mesh, P("y")),
              x = platform_test::put(platform_test::numbers({16, 8}), mesh, P("x", "y"));
  const auto step = [](const Array& weights, const Array& rows) {
    return weights - 0.1f * sa::grad([&](const Array& v) {
                       return sa::mean(sa::square(sa::matmul(rows, v)));
                     })(weights);
  };
  const std::string text = sa::explain(step, w, x).to_string();
  if (text.find("transfers") == text.npos) throw std::runtime_error("the step moves nothing");
  return {text.begin(), text.end()};
}

// Each process makes the rows of its own devices.
std::vector<Bits> batches(const sa::Mesh& mesh) {
  std::vector<Bits> r;
  for (const auto& [rows, names] :
       sa::data::loader(std::tuple(platform_test::numbers({40, 6}), sa::arange(40.0f)),
                        {.batch = 16, .seed = 3, .sharding = sa::NamedSharding(mesh, P("x"))})
           .epoch(2)) {
    r.push_back(everywhere(rows));
    r.push_back(everywhere(names));
  }
  return r;
}

int programs() {
  const sa::reproducible same_bits(true);
  const sa::Mesh mesh = platform_test::mesh_of(sa::devices());
  print("training", platform_test::training(mesh, everywhere));
  print("everything", platform_test::everything(mesh, everywhere));
  print("scans", {scans(mesh)});
  print("scans in one process", {scans(sa::Mesh({{2}, {sa::devices()[0], sa::devices()[1]}}, {"x"}))});
  print("maps", {maps(mesh)});
  print("batches", batches(mesh));
  print("plan", {plan(mesh)});
  const auto all = sa::gather_from_processes(sa::full({2}, sa::process_index()));
  bool good = all.size() == static_cast<std::size_t>(sa::process_count());
  for (std::size_t p = 0; p < all.size(); p++)
    good &= all[p].to_vector<int>() == std::vector<int>(2, static_cast<int>(p));
  const int last = sa::process_count() - 1;
  good &= sa::broadcast_one_to_all(sa::full({}, 10 * sa::process_index()), last).item<int>() == 10 * last;
  const Array cut = platform_test::put(platform_test::numbers({16, 8}), mesh, P("y", "x"));
  const std::pair mixed(cut, sa::full({}, sa::process_index()));
  int process = 0;
  for (const auto& [whole, own] : sa::gather_from_processes(mixed))
    good &= own.item<int>() == process++ &&
            platform_test::bits(whole) == platform_test::bits(platform_test::numbers({16, 8}));
  const auto [same, of_last] = sa::broadcast_one_to_all(mixed, last);
  good &= of_last.item<int>() == last && same.sharding() == cut.sharding();
  good &= gathering_fails_in_all(cut);
  std::printf("called %s\n", calls(mesh) ? "right" : "wrong");
  std::printf("own devices %s\n", maps_own_devices() ? "right" : "wrong");
  std::printf("local data %s\n", joins_local_data(mesh) ? "right" : "wrong");
  std::printf("loaders %s\n", refuses_other_examples(mesh) ? "right" : "wrong");
  sa::sync_devices("end");
  std::printf("gathered %s\n", good ? "right" : "wrong");
  return 0;
}

/// Replicas on the devices of all processes; the one on device `bad` differs.
Array replicas(int bad) {
  std::vector<Array> pieces;
  for (const sa::Device& d : sa::local_devices())
    pieces.push_back(sa::device_put(sa::arange(6.0f) + (d.id == bad ? 0.5f : 0.0f), d));
  return sa::make_array_from_single_device_arrays({6}, sa::PositionalSharding(sa::devices()).replicate(),
                                                  pieces);
}
/// All processes say of each device whose replica is another, of which array, and rows are where the map has left them.
int compare_replicas() {
  const int count = sa::device_count();
  sa::assert_replica_integrity(std::pair(replicas(-1), sa::full({3}, sa::process_index())));
  bool good = true;
  const auto refused = [&](const auto& tree, const std::string& text, const sa::IntegrityOptions& o = {}) {
    try {
      sa::assert_replica_integrity(tree, o);
      good = false;
    } catch (const sa::ShardingError& e) { good &= std::string(e.what()).find(text) != std::string::npos; }
  };
  for (int bad = 1; bad < count; bad++)
    refused(std::tuple(replicas(-1), replicas(bad)),
            "replica " + std::to_string(bad) +
                " of `[1]` f32[6]: 0.5 (0x3f000000) on cpu:" + std::to_string(bad));
  // rows of a map
  const Array rows = sa::pmap([](const Array& x) { return 2 * x; })(sa::ones({count, 3}));
  sa::assert_replica_integrity(rows, {.is_device_replicated = true});
  refused(sa::pmap([](const Array& k) { return sa::where(k == sa::device_count() - 1, k, 0); })(
              sa::arange(count)),
          "replica " + std::to_string(count - 1), {.is_device_replicated = true});
  const auto items = sa::unshard(rows);
  good &= items.size() == static_cast<std::size_t>(count);
  for (int k = 0; k < count; k++) {
    const Array& row = items[static_cast<std::size_t>(k)];
    good &= row.devices() == std::vector<sa::Device>{sa::devices()[static_cast<std::size_t>(k)]};
    good &= everywhere(row) == platform_test::bits(sa::full({3}, 2.0f));
  }
  // what the last process alone has: all hear of it
  std::vector<sa::Device> last;
  for (const sa::Device& d : sa::devices())
    if (d.process_index == sa::process_count() - 1) last.push_back(d);
  std::vector<Array> pieces;
  for (const sa::Device& d : last)
    if (d.process_index == sa::process_index())
      pieces.push_back(sa::device_put(sa::full({2}, d.id).astype(sa::float32), d));
  refused(sa::make_array_from_single_device_arrays({2}, sa::PositionalSharding(last).replicate(), pieces,
                                                   sa::float32),
          "replica 1 of f32[2]: ");
  if (sa::process_index() < sa::process_count() - 1) {
    try {
      (void)sa::make_array_from_single_device_arrays({2}, sa::PositionalSharding(last).replicate(), {});
      good = false;
    } catch (const sa::DTypeError& e) {
      good &= std::string(e.what()).find("is of this process, so that no array says the dtype.") !=
              std::string::npos;
    }
  }
  std::printf("replicas are %s\n", good ? "right" : "wrong");
  return good ? 0 : 1;
}
// ---------------------------------------------------------------- what goes wrong

/// Half of its steps need what comes from elsewhere.
Array step(const Array& x, float factor) {
  return sa::jit(
      [factor](const Array& v) { return sa::flip(v * factor / sa::sum(v) + sa::roll(v, 1, 0), 0); })(x);
}
Array rows(std::int64_t n) {
  const auto devices = sa::devices();
  const sa::Mesh mesh({{static_cast<std::int64_t>(devices.size())}, devices}, {"x"});
  return sa::device_put(sa::arange(static_cast<double>(n)) + 1, sa::NamedSharding(mesh, P("x")));
}

/// The last process has no disk space for its pieces.
int save_without_space() {
  if (sa::process_index() == sa::process_count() - 1) {
    const rlimit small{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  sa::checkpoints::save(test_folder(), 100, rows(10'000));
  return 0;
}

/// The last process is killed in the middle of what it writes.
int killed_in_save() {
  dies_in_sync = sa::process_index() == sa::process_count() - 1;
  sa::checkpoints::save(test_folder(), 102, rows(1 << 22));
  return 0;
}
/// The last process cannot open what the others read.
int restore_without_files() {
  const Array saved = rows(16);
  sa::checkpoints::save(test_folder(), 103, saved);
  if (sa::process_index() == sa::process_count() - 1) {
    const rlimit few{8, 8};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  (void)sa::checkpoints::restore(test_folder(), saved, {.step = 103});
  return 0;
}

/// The last process saves another step.
int save_other_step() {
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  sa::checkpoints::save(test_folder(), is_last ? 105 : 104, rows(16));
  return 0;
}

/// The last process has other arrays.
int save_other_tree() {
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  sa::checkpoints::save(test_folder(), 101, std::map<std::string, Array>{{is_last ? "b" : "a", rows(16)}});
  return 0;
}

Array replicated(std::int64_t n) {
  return sa::device_put(sa::arange(static_cast<double>(n)) + 1,
                        sa::PositionalSharding(sa::devices()).replicate());
}
/// This process is killed while it computes.
void kill_soon() {
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::raise(SIGKILL);
  }).detach();
}
/// What a callback of the program throws.
void throw_on_the_way(const Array& x, bool throws) {
  const auto f = sa::jit([throws](const Array& v) {
    sa::debug::callback([throws](const sa::HostValues&) {
      if (throws) throw sa::Error("what the user throws");
    });
    return step(v, 2);
  });
  sa::block_until_ready(f(x));
}

/// A forked child takes no part in what the others compute, and exits.
int fork_a_child() {
  Array x = sa::block_until_ready(rows(16));
  if (sa::process_index() == sa::process_count() - 1) {
    const pid_t child = fork();
    if (child == 0) {
      int said = 1;
      try {
        sa::sync_devices("child");
      } catch (const sa::TransportError& e) {
        said = std::string(e.what()).find("was forked from one") == std::string::npos;
      }
      std::exit(said);
    }
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) return 1;
  }
  sa::block_until_ready(step(x, 2));
  return 0;
}

/// Destroyed after everything of the library.
struct Late {
  bool speaks = false;
  ~Late() {
    if (!speaks) return;
    try {
      sa::sync_devices("late");
    } catch (const sa::TransportError& e) { std::printf("too late: %s\n", e.what()); }
  }
} late;

/// The last process is done, and the others compute locally for longer than it would wait for a silent one.
int works_on() {
  sa::block_until_ready(step(rows(16), 2));
  if (sa::process_index() == sa::process_count() - 1) return 0;
  std::this_thread::sleep_for(std::chrono::seconds(5));
  return 0;
}

/// The last process lists the devices in another order.
int other_devices() {
  auto devices = sa::devices();
  if (sa::process_index() == sa::process_count() - 1) std::reverse(devices.begin(), devices.end());
  const sa::Mesh mesh({{static_cast<std::int64_t>(devices.size())}, devices}, {"x"});
  const Array x = sa::device_put(sa::arange(16.0), sa::NamedSharding(mesh, P("x")));
  sa::block_until_ready(sa::jit([](const Array& v) { return sa::sum(v); })(x));
  return 0;
}

/// A process that made another call than the others gets no more answers.
void ask_otherwise(const std::string& name) {
  try {
    sa::sync_devices(name);
    std::puts("they agree");
  } catch (const sa::TransportError&) { (void)sa::gather_from_processes(sa::ones({2})); }
}

/// Does its work ten times; in the sixth the last process does what `fault` says.
void work(const std::string& fault, const char* token) {
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  Array x = sa::block_until_ready(rows(16));
  for (int k = 0; k < 10; k++) {
    if (k == 5 && is_last) {
      std::ofstream(token).flush();
      if (fault == "kill") std::raise(SIGKILL);
      if (fault == "stop") std::raise(SIGSTOP);
      if (fault == "end") return;
      if (fault == "throw") throw std::runtime_error("its own mistake");
      if (fault == "exit") _exit(5);
      if (fault == "asleep") std::this_thread::sleep_for(std::chrono::seconds(60));
      if (fault == "other_order") x = step(x, 2) + 1;
      if (fault == "swapped") x = step(sa::block_until_ready(step(x, 3)), 2);
      if (fault == "other_sharding") sa::block_until_ready(step(replicated(16), 2));
      if (fault == "other_program") x = step(x, 3);
      if (fault == "other_number") (void)everywhere(x * 3);
      if (fault == "other_shape") sa::block_until_ready(step(rows(32), 2));
      if (fault == "gathers") (void)sa::gather_from_processes(sa::ones({2}));
      if (fault == "nap") {
        std::puts("it naps");
        std::fflush(stdout);
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      if (fault == "silent") std::this_thread::sleep_for(std::chrono::seconds(60));
    }
    if (k == 5 && !is_last && fault == "other_number") (void)everywhere(x * 2);
    if (k == 5 && fault == "reads_alone") {
      const Array y = sa::sum(x * 2);
      if (is_last) (void)y.item<double>();
      sa::sync_devices("all have read");
    }
    if (k == 5 && fault == "other_reading") {  // eager lines are computed when they are read
      const Array a = sa::sum(x * 2), b = sa::sum(x * 3);
      (void)(is_last ? b : a).item<double>();
      (void)(is_last ? a : b).item<double>();
    }
    if (k == 5 && fault == "computes_throw") throw_on_the_way(x, is_last);
    if (k == 5 && fault == "kill_in_transfer") {
      if (is_last) kill_soon();
      for (int turn = 0; turn < 100; turn++) sa::block_until_ready(step(rows(1 << 20), 2));
    }
    if (k == 5 && fault == "kill_in_step") {  // one that computes, for more than 5 ms, before it asks others
      const auto long_step = sa::jit([](const Array& v) {
        const auto again = [](const Array&, const Array& y) { return sa::sin(y) + 1.0; };
        return sa::sum(sa::fori_loop(0, 400, again, v));
      });
      const Array given = rows(1 << 16);
      sa::block_until_ready(long_step(given));  // compiled
      if (is_last) kill_soon();
      for (int turn = 0; turn < 20; turn++) sa::block_until_ready(long_step(given));
    }
    if (k == 5 && !is_last && fault == "swapped") x = step(sa::block_until_ready(step(x, 2)), 3);
    if (k == 5 && fault == "other_name") ask_otherwise(is_last ? "here" : "there");
    if (k == 5 && !is_last && fault == "silent") sa::sync_devices("there");
    x = sa::block_until_ready(step(x, 2));
  }
  if (fault == "kill_while_gathering" || fault == "end_while_gathering") {
    if (is_last && fault == "end_while_gathering") return;
    if (is_last) std::raise(SIGKILL);
    sa::sync_devices("all");
  }
}

/// Local work goes on after a failure of a run over several processes.
void check_alive() {
  const Array here = sa::arange(4.0) * 2;
  if (here.to_vector<double>()[3] != 6) std::printf("local arrays are wrong\n");
}

}  // namespace

// What stands in place of the system's own calls, for who looks for them in the program first.
extern "C" int fsync(int fd) {
  if (dies_in_sync) std::raise(SIGKILL);
  struct stat s {
  }, failing{};
  if (!folder_that_fails.empty() && fstat(fd, &s) == 0 && stat(folder_that_fails.c_str(), &failing) == 0 &&
      s.st_ino == failing.st_ino) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(syscall(SYS_fsync, fd));
}
extern "C" int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const auto mode = va_arg(more, mode_t);  // there is none without O_CREAT, and then it counts nothing
  va_end(more);
  if (index_opens_late && std::strstr(path, "shardarray.index.json") != nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(800));
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

bool stops_at_end = false;
/// In place of MPI's own, for who looks for it in the program first. The last process never comes out of it.
extern "C" __attribute__((visibility("default"))) int MPI_Finalize() {
  if (stops_at_end) {
    const char* const count = launcher_says("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
    if (std::atoi(launched_rank()) == std::atoi(count) - 1) std::raise(SIGSTOP);
  }
  for (const char* const name : {"libmpi.so.40", "libmpich.so.12"})
    if (void* const mpi = dlopen(name, RTLD_LAZY | RTLD_NOLOAD))
      return reinterpret_cast<int (*)()>(dlsym(mpi, "PMPI_Finalize"))();
  return 1;
}

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "programs";
  const char* const rank = launched_rank();
  if (word == "never_joins" && rank != nullptr && std::string(rank) == "1")
    std::this_thread::sleep_for(std::chrono::seconds(60));
  if (const char* const gpus = std::getenv("SHARDARRAY_TEST_GPUS");
      gpus != nullptr && std::string(rank) == "1")
    setenv("SHARDARRAY_FAKE_GPUS", gpus, 1);
  if (word == "no_gpu" && rank != nullptr && std::string(rank) == "1") setenv("SHARDARRAY_FAKE_GPUS", "0", 1);
  try {
    if (word == "no_gpu") return no_gpu();
    if (word == "found") return found();
    if (word == "programs") return programs();
    if (word == "save") return save_checkpoint();
    if (word == "restore") return restore_checkpoints();
    if (word == "look") return look_at_checkpoints();
    if (word == "replicas") return compare_replicas();
    if (word == "train") return train(argv[2]);
    if (word == "check_trained") return check_trained();
    if (word == "save_without_space") return save_without_space();
    if (word == "save_other_tree") return save_other_tree();
    if (word == "save_other_step") return save_other_step();
    if (word == "killed_in_save") return killed_in_save();
    if (word == "restore_without_files") return restore_without_files();
    if (word == "save_own" || word == "save_own_replaced") return save_own(word != "save_own");
    if (word == "restore_latest") return restore_latest();
    if (word == "restore_other_step") return restore_other_step();
    if (word == "restore_other_part") return restore_other_part();
    if (word == "sync_fails") return sync_fails();
    if (word == "restore_first") return restore_first();
    if (word == "save_damaged") return save_damaged();
    if (word == "restore_damaged") return restore_damaged();
    if (word == "restore_other_model") return restore_other_model();
    if (word == "gather_much") return gather_much();
    if (word == "fork") return fork_a_child();
    if (word == "works_on") return works_on();
    if (word == "other_devices") return other_devices();
    if (word == "own_gpus") return own_gpus();
    late.speaks = word == "late";
    stops_at_end = word == "stop_at_end";
    work(word, argc > 2 ? argv[2] : "/dev/null");
    std::printf("process %d of %d is through\n", sa::process_index(), sa::process_count());
    return 0;
  } catch (const sa::Error& e) {
    std::printf("process heard: %s\n", e.what());
    if (argc > 2 && rank != nullptr) std::ofstream(std::string(argv[argc - 1]) + ".heard." + rank).flush();
    if (word != "join") check_alive();
    std::fflush(stdout);
    return 3;
  }
}
