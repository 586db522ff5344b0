// Checkpoints where the disk is full, programs are killed, or two save in one folder.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "files_helpers.h"
#include "messages.h"
#include "process_helpers.h"
#include "scale.h"
#include "shardarray/checkpoints.h"

namespace checkpoints_faults_test {

using namespace shardarray;
using namespace shardarray::testing;

TEST_CASE("checkpoints: a full disk leaves what was there") {
  set_cpu_device_count(8);
  const TemporaryFolder folder;
  checkpoints::save(folder.path, 1, ones({1000}));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string text = said_of(folder.path, [&] { checkpoints::save(folder.path, 2, ones({1 << 20})); });
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_MESSAGE(text.find("cannot be written") != std::string::npos, text);
  CHECK(folder.count() == 1);
  CHECK(array_equal(checkpoints::restore(folder.path, zeros({1000})), ones({1000})));
}

TEST_CASE("checkpoints: saves without an end" * doctest::skip()) {
  set_cpu_device_count(4);
  const std::string folder = std::getenv("SHARDARRAY_TEST_FOLDER");
  const Sharding cut = NamedSharding(make_mesh({{"x", 4}}), P("x"));
  const std::int64_t first = checkpoints::latest(folder).value_or(0);
  checkpoints::Saving saving;  // every second one beside the run
  for (std::int64_t step = first + 1; step < first + 100'000; step++) {
    const Array x = device_put(full({50'000}, step, int32), cut);
    saving.wait();
    if (step % 2 == 0) saving = checkpoints::async_save(folder, step, x, {.keep = 3});
    else checkpoints::save(folder, step, x, {.keep = 3});
  }
}

TEST_CASE("checkpoints: two programs that save in one folder leave whole ones, and neither fails") {
  set_cpu_device_count(8);
  const TemporaryFolder folder;
  const std::string steps = folder.file("steps");
  std::filesystem::create_directory(steps);
  const std::string program = fmt::format(
      "SHARDARRAY_TEST_FOLDER='{}' timeout -s KILL {} '{}' --no-intro --no-skip "
      "--test-case='checkpoints: saves without an end'",
      steps, full_scale() ? 20 : 1, own_program().string());
  const std::string command = fmt::format("{0} >'{1}' 2>&1 & {0} >'{2}' 2>&1; wait", program,
                                          folder.file("one"), folder.file("other"));
  (void)!std::system(command.c_str());
  for (const char* const one : {"one", "other"})
    CHECK_MESSAGE(read_bytes(folder.file(one)).find("checkpoints::") == std::string::npos,
                  read_bytes(folder.file(one)));
  std::int64_t last = 0;
  for (const std::int64_t step : checkpoints::steps(steps)) {
    CHECK(array_equal(checkpoints::restore(steps, zeros({50'000}, int32), {.step = step}),
                      full({50'000}, step, int32)));
    last = step;
  }
  CHECK(last > 0);
}

TEST_CASE("checkpoints: whatever ends a save leaves whole ones") {
  set_cpu_device_count(8);
  const TemporaryFolder folder;
  std::int64_t last = 0;
  for (int round = 0; round < (full_scale() ? 2000 : is_sanitized() ? 2 : 6); round++) {
    const std::string command = fmt::format(
        "SHARDARRAY_TEST_FOLDER='{}' timeout -s KILL {} '{}' --no-intro --no-skip "
        "--test-case='checkpoints: saves without an end' >/dev/null 2>&1",
        folder.path, 0.1 + 0.013 * (round % 17), own_program().string());
    (void)!std::system(command.c_str());
    for (const std::int64_t step : checkpoints::steps(folder.path)) {
      CHECK(array_equal(checkpoints::restore(folder.path, zeros({50'000}, int32), {.step = step}),
                        full({50'000}, step, int32)));
      last = std::max(last, step);
    }
  }
  CHECK(checkpoints::steps(folder.path).size() <= 4);  // one more where it ended before older ones went
  CHECK(last > 0);
}

}  // namespace checkpoints_faults_test
