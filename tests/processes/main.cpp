// What tests/processes/check starts several times, by a launcher. `programs`: each process prints the bits of results on the first
// eight devices of all processes, which are the same however the devices are shared out. The other words: something that goes
// wrong in one process or between them; what a process hears of it is printed, and it ends with 3.
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>

#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace sa = shardarray;
using platform_test::Bits;
using sa::Array;
using sa::P;

namespace {

/// Of the whole, in every process.
Bits everywhere(const Array& x) {
  return platform_test::bits(
      sa::device_put(x, sa::PositionalSharding(x.sharding().device_assignment()).replicate()));
}

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

int programs() {
  const sa::reproducible same_bits(true);
  const sa::Mesh mesh = platform_test::mesh_of(sa::devices());
  print("training", platform_test::training(mesh, everywhere));
  print("everything", platform_test::everything(mesh, everywhere));
  print("scans", {scans(mesh)});
  print("maps", {maps(mesh)});
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

/// The last process has other arrays.
int save_other_tree() {
  const bool is_last = sa::process_index() == sa::process_count() - 1;
  sa::checkpoints::save(test_folder(), 101, std::map<std::string, Array>{{is_last ? "b" : "a", rows(16)}});
  return 0;
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
      if (fault == "other_program") x = step(x, 3);
      if (fault == "other_shape") sa::block_until_ready(step(rows(32), 2));
      if (fault == "gathers") (void)sa::gather_from_processes(sa::ones({2}));
      if (fault == "other_name") sa::sync_devices("here");
    }
    if (k == 5 && !is_last && fault == "other_name") sa::sync_devices("there");
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
  try {
    if (word == "programs") return programs();
    if (word == "save") return save_checkpoint();
    if (word == "restore") return restore_checkpoints();
    if (word == "save_without_space") return save_without_space();
    if (word == "save_other_tree") return save_other_tree();
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
