// What tests/processes/check starts several times, by a launcher. `programs`: each process prints the bits of results on the first
// eight devices of all processes, which are the same however the devices are shared out. The other words: something that goes
// wrong in one process or between them; what a process hears of it is printed, and it ends with 3.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "everywhere.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace sa = shardarray;
using platform_test::Bits;
using sa::Array;
using sa::P;

namespace {

/// Of the whole, in every process.
Bits everywhere(const Array& x) { return platform_test::bits(sa::testing::everywhere(x)); }

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

// What explain says of a step of least squares: the same wherever the devices are.
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
  sa::sync_devices("end");
  std::printf("gathered %s\n", good ? "right" : "wrong");
  return 0;
}

// ---------------------------------------------------------------- checkpoints
const char* test_folder() { return std::getenv("SHARDARRAY_TEST_FOLDER"); }

/// Cut over the devices of all processes along rows, columns, both and not at all.
std::vector<Array> cut_trees() {
  const sa::Mesh mesh = platform_test::mesh_of(sa::devices());
  std::vector<Array> r;
  float scale = 1;
  for (const P& spec : {P("x"), P(sa::none, "y"), P("y", "x"), P()})
    r.push_back(platform_test::put(platform_test::numbers({24, 40}) * scale++, mesh, spec));
  r.push_back(sa::arange(5.0f));  // each process has its own
  return r;
}
/// As step `process_count()`; of two processes beside what they go on with.
int save_checkpoint() {
  const int count = sa::process_count();
  if (count != 2) {
    sa::checkpoints::save(test_folder(), count, std::pair(cut_trees(), count));
    return 0;
  }
  { const auto given_up = sa::checkpoints::async_save(test_folder(), 77, cut_trees()); }
  sa::checkpoints::Saving saving =
      sa::checkpoints::async_save(test_folder(), count, std::pair(cut_trees(), count));
  const auto meanwhile = sa::gather_from_processes(sa::full({2}, sa::process_index()));
  if (saving.is_written() && sa::checkpoints::latest(test_folder()) == count)
    return 1;  // not before all wait
  saving.wait();
  return sa::checkpoints::latest(test_folder()) == count && meanwhile.size() == 2 ? 0 : 1;
}
/// All steps that there are, each to the next one's shardings.
int restore_checkpoints() {
  const std::vector<Array> want = cut_trees();
  std::vector<Array> like = want;
  for (std::size_t k = 0; k < want.size(); k++)
    like[k] = k < 4 ? sa::device_put(sa::zeros_like(want[k]), want[(k + 1) % 4].sharding()) : sa::zeros({5});
  bool good = true;
  for (const std::int64_t step : sa::checkpoints::steps(test_folder())) {
    const auto [got, count] = sa::checkpoints::restore(test_folder(), std::pair(like, 0), {.step = step});
    good &= count == step;
    for (std::size_t k = 0; k < 4; k++) good &= everywhere(got[k]) == everywhere(want[k]);
    good &= got[4].to_vector<float>() == want[4].to_vector<float>();
  }
  std::printf("restored %zu %s\n", sa::checkpoints::steps(test_folder()).size(), good ? "right" : "wrong");
  return good ? 0 : 1;
}
/// What step `step` of train() has: element i is (i - step) mod 64, and step more.
Array trained(std::int64_t step) {
  return sa::roll(sa::arange(64.0), static_cast<int>(step % 64)) + static_cast<double>(step);
}
/// Goes on from the latest checkpoint, saves every step, every second one beside the next; until somebody ends it. When all have
/// begun there is a file of this name.
int train(const char* begun) {
  const sa::Mesh mesh({{sa::device_count()}, sa::devices()}, {"x"});
  const auto cut = [&](const Array& x) { return sa::device_put(x, sa::NamedSharding(mesh, P("x"))); };
  std::pair state(cut(trained(0)), std::int64_t{0});
  if (sa::checkpoints::latest(test_folder())) state = sa::checkpoints::restore(test_folder(), state);
  const auto next = sa::jit([](const Array& x) { return sa::roll(x, 1) + 1.0; });
  sa::checkpoints::Saving saving;
  sa::sync_devices("begun");
  std::ofstream(begun).flush();
  for (;;) {
    state = std::pair(next(state.first), state.second + 1);
    saving.wait();
    if (state.second % 2 == 0)
      saving = sa::checkpoints::async_save(test_folder(), state.second, state, {.keep = 3});
    else sa::checkpoints::save(test_folder(), state.second, state, {.keep = 3});
  }
}
/// Every checkpoint that train() has left is whole.
int check_trained() {
  const auto steps = sa::checkpoints::steps(test_folder());
  bool good = steps.size() <= 4;  // one more where it ended before older ones went
  for (const std::int64_t step : steps) {
    const auto [x, saved] =
        sa::checkpoints::restore(test_folder(), std::pair(trained(0), std::int64_t{0}), {.step = step});
    good &= saved == step && sa::array_equal(x, trained(step));
  }
  std::printf("%zu checkpoints, the last of step %lld, are %s\n", steps.size(),
              steps.empty() ? 0LL : static_cast<long long>(steps.back()), good ? "right" : "wrong");
  return good ? 0 : 1;
}

/// What needs no devices, where none can be had.
int look_at_checkpoints() {
  const auto latest = sa::checkpoints::latest(test_folder());
  const sa::checkpoints::Metadata m = sa::checkpoints::metadata(test_folder());
  const auto [shape, dtype] = m.arrays.at("[0][1]");
  std::printf("step %lld of %zu, %zu arrays, one [%lld,%lld] %s\n", static_cast<long long>(*latest),
              sa::checkpoints::steps(test_folder()).size(), m.arrays.size(), static_cast<long long>(shape[0]),
              static_cast<long long>(shape[1]), dtype == sa::float32 ? "float32" : "wrong");
  return 0;
}

/// Replicas on the devices of all processes, of which the one on device `bad` is another.
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

/// The last process has no space for its pieces.
int save_without_space() {
  if (sa::process_index() == sa::process_count() - 1) {
    const rlimit small{1000, 1000};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  sa::checkpoints::save(test_folder(), 100, rows(10'000));
  return 0;
}

/// Bytes of files that are being written into checkpoints of the folder.
std::uintmax_t unfinished_bytes() {
  std::uintmax_t bytes = 0;
  std::error_code ignored;
  for (std::filesystem::recursive_directory_iterator at(test_folder(), ignored), end; at != end;
       at.increment(ignored))
    if (at->path().filename().string().starts_with(".shardarray")) bytes += at->file_size(ignored);
  return bytes;
}
/// The last process is killed in the middle of what it writes.
int killed_in_save() {
  const Array saved = sa::block_until_ready(rows(1 << 22));
  if (sa::process_index() == sa::process_count() - 1)
    std::thread([before = unfinished_bytes()] {  // what others have left
      while (unfinished_bytes() <= before) {}
      std::raise(SIGKILL);
    })
        .detach();
  sa::checkpoints::save(test_folder(), 102, saved);
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

/// Does its work ten times; in the sixth the last process does what `fault` says.
void work(const std::string& fault) {
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  Array x = sa::block_until_ready(rows(16));
  for (int k = 0; k < 10; k++) {
    if (k == 5 && is_last) {
      if (fault == "kill") std::raise(SIGKILL);
      if (fault == "stop") std::raise(SIGSTOP);
      if (fault == "end") return;
      if (fault == "throw") throw std::runtime_error("its own mistake");
      if (fault == "exit") _exit(5);
      if (fault == "asleep") std::this_thread::sleep_for(std::chrono::seconds(60));
      if (fault == "other_order") x = step(x, 2) + 1;
      if (fault == "other_sharding") sa::block_until_ready(step(replicated(16), 2));
      if (fault == "other_program") x = step(x, 3);
      if (fault == "other_shape") sa::block_until_ready(step(rows(32), 2));
      if (fault == "gathers") (void)sa::gather_from_processes(sa::ones({2}));
      if (fault == "other_name") sa::sync_devices("here");
      if (fault == "nap") {
        std::puts("it naps");
        std::fflush(stdout);
        std::this_thread::sleep_for(std::chrono::seconds(1));
      }
      if (fault == "silent") std::this_thread::sleep_for(std::chrono::seconds(60));
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
    if (k == 5 && !is_last && fault == "other_name") sa::sync_devices("there");
    if (k == 5 && !is_last && fault == "silent") sa::sync_devices("there");
    x = sa::block_until_ready(step(x, 2));
  }
  if (fault == "kill_while_gathering") {
    if (is_last) std::raise(SIGKILL);
    sa::sync_devices("all");
  }
}

/// What is local goes on after what ran over several processes has failed.
void check_alive() {
  const Array here = sa::arange(4.0) * 2;
  if (here.to_vector<double>()[3] != 6) std::printf("local arrays are wrong\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "programs";
  const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (word == "never_joins" && rank != nullptr && std::string(rank) == "1")
    std::this_thread::sleep_for(std::chrono::seconds(60));
  try {
    if (word == "programs") return programs();
    if (word == "save") return save_checkpoint();
    if (word == "restore") return restore_checkpoints();
    if (word == "look") return look_at_checkpoints();
    if (word == "replicas") return compare_replicas();
    if (word == "train") return train(argv[2]);
    if (word == "check_trained") return check_trained();
    if (word == "save_without_space") return save_without_space();
    if (word == "save_other_tree") return save_other_tree();
    if (word == "killed_in_save") return killed_in_save();
    if (word == "restore_without_files") return restore_without_files();
    work(word);
    std::printf("process %d of %d is through\n", sa::process_index(), sa::process_count());
    return 0;
  } catch (const sa::Error& e) {
    std::printf("process heard: %s\n", e.what());
    if (word != "join") check_alive();
    std::fflush(stdout);
    return 3;
  }
}
