// What processes save and restore, for main.cpp.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "everywhere.h"
#include "platform_programs.h"
#include "shardarray/shardarray.h"

namespace processes_test {

namespace sa = shardarray;
using platform_test::Bits;
using sa::Array;
using sa::P;

/// The bits of the whole array, in every process.
inline Bits everywhere(const Array& x) { return platform_test::bits(sa::testing::everywhere(x)); }

/// A launcher's variable, before MPI has started; null: this process was not launched by one.
inline const char* launcher_says(const char* of_open_mpi, const char* of_mpich) {
  const char* const said = std::getenv(of_open_mpi);
  return said != nullptr ? said : std::getenv(of_mpich);
}
inline const char* launched_rank() { return launcher_says("OMPI_COMM_WORLD_RANK", "PMI_RANK"); }

inline const char* test_folder() { return std::getenv("SHARDARRAY_TEST_FOLDER"); }

/// Sharded over the devices of all processes along rows, columns, both and not at all.
inline std::vector<Array> cut_trees() {
  const sa::Mesh mesh = platform_test::mesh_of(sa::devices());
  std::vector<Array> r;
  float scale = 1;
  for (const P& spec : {P("x"), P(sa::none, "y"), P("y", "x"), P()})
    r.push_back(platform_test::put(platform_test::numbers({24, 40}) * scale++, mesh, spec));
  r.push_back(sa::arange(5.0f));  // each process has its own
  return r;
}
/// As step `process_count()`; of two processes beside what they go on with.
inline int save_checkpoint() {
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
/// Restores all steps, each to the next one's shardings.
inline int restore_checkpoints() {
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
/// Folder of process p's own view: `own_p`. The first has steps 1 and 2, the second one that is newer.
inline std::string own_folder(int p) { return std::string(test_folder()) + "/own_" + std::to_string(p); }
inline Array restorable(double scale, double n = 64) {
  const sa::Mesh mesh({{sa::device_count()}, sa::devices()}, {"x"});
  return sa::device_put(sa::arange(n) * scale, sa::NamedSharding(mesh, P("x")));
}
/// By one process. `replaced`: step 2 of the second folder is another one.
inline int save_own(bool replaced) {
  for (const int p : {0, 1})
    for (const int step : {1, 2, 3})
      if (step < 3 || p == 1)
        sa::checkpoints::save(own_folder(p), step, restorable(replaced && p == 1 && step == 2 ? 7 : step));
  return 0;
}
/// All take the step that is the latest one for process 0.
inline int restore_latest() {
  const Array x = sa::checkpoints::restore(own_folder(sa::process_index()), restorable(0));
  const bool good = everywhere(x) == everywhere(restorable(2));
  std::printf("the latest is %s\n", good ? "right" : "wrong");
  return good ? 0 : 1;
}
/// What main.cpp's fsync() and open() do.
inline std::string folder_that_fails;
inline bool dies_in_sync = false;
inline bool index_opens_late = false;

/// Nothing is lost if the disk fails after the checkpoint has its name.
inline int sync_fails() {
  const std::string folder = std::string(test_folder()) + "/synced";
  sa::checkpoints::save(folder, 1, sa::ones({4}));
  bool good = false;
  folder_that_fails = folder;
  try {
    sa::checkpoints::save(folder, 1, sa::ones({4}) * 2);
  } catch (const sa::IoError& e) {
    good =
        std::string(e.what()).find("may lack a name on the disk (Input/output error)") != std::string::npos;
  }
  folder_that_fails.clear();
  std::size_t checkpoints = 0;  // the new one, and the old one without a name
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    checkpoints += std::filesystem::exists(entry.path() / "shardarray.index.json");
  good &= checkpoints == 2 &&
          sa::array_equal(sa::checkpoints::restore(folder, sa::zeros({4})), sa::ones({4}) * 2);
  std::printf("after a failed sync all is %s\n", good ? "there" : "lost");
  return good ? 0 : 1;
}
/// The first thing that the processes do together; one of them is slow to read.
inline int restore_first() {
  const char* const rank = launched_rank();
  index_opens_late = rank != nullptr && std::string(rank) == "1";
  const Array x = sa::checkpoints::restore(std::string(test_folder()) + "/synced", sa::zeros({4}));
  const bool good = sa::array_equal(x, sa::ones({4}) * 2);
  std::printf("what is restored first is %s\n", good ? "right" : "wrong");
  return good ? 0 : 1;
}
inline int save_damaged() {
  sa::checkpoints::save(std::string(test_folder()) + "/damaged", 1, restorable(3, 1 << 16));
  return 0;
}
inline int restore_damaged() {
  (void)sa::checkpoints::restore(std::string(test_folder()) + "/damaged", restorable(0, 1 << 16));
  return 0;
}
inline int restore_other_model() {
  const std::string folder = std::string(test_folder()) + "/damaged";
  (void)sa::checkpoints::restore(folder, std::pair(restorable(0, 1 << 16), sa::zeros({3})));
  return 0;
}
inline int restore_other_step() {
  (void)sa::checkpoints::restore(own_folder(0), restorable(0), {.step = 1 + sa::process_index()});
  return 0;
}
inline int restore_other_part() {
  (void)sa::checkpoints::restore(own_folder(0), restorable(0), {.part = sa::process_index() == 0 ? "" : "a"});
  return 0;
}

/// What step `step` of train() has: element i is (i - step) mod 64, and step more.
inline Array trained(std::int64_t step) {
  return sa::roll(sa::arange(64.0), static_cast<int>(step % 64)) + static_cast<double>(step);
}
/// Goes on from the latest checkpoint, saves every step, every second one beside the next; until somebody ends it. When all have
/// begun there is a file of this name.
inline int train(const char* begun) {
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
/// Every checkpoint that train() has left is complete.
inline int check_trained() {
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
inline int look_at_checkpoints() {
  const auto latest = sa::checkpoints::latest(test_folder());
  const sa::checkpoints::Metadata m = sa::checkpoints::metadata(test_folder());
  const auto [shape, dtype] = m.arrays.at("[0][1]");
  std::printf("step %lld of %zu, %zu arrays, one [%lld,%lld] %s\n", static_cast<long long>(*latest),
              sa::checkpoints::steps(test_folder()).size(), m.arrays.size(), static_cast<long long>(shape[0]),
              static_cast<long long>(shape[1]), dtype == sa::float32 ? "float32" : "wrong");
  return 0;
}

}  // namespace processes_test
