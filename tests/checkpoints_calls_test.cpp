// A save that is killed, or whose disk fails, at each of its system calls: earlier checkpoints stay whole, and its report is true.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "process_helpers.h"
#include "scale.h"
#include "shardarray/checkpoints.h"
#include "shardarray/shardarray.h"
#include "watched_calls.h"

namespace checkpoints_calls_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

constexpr int said_that_it_failed = 3;

Array of_step(std::int64_t step) {
  return device_put(full({40'000}, step, int32), NamedSharding(make_mesh({{"x", 8}}), P("x")));
}

}  // namespace

TEST_CASE("checkpoints: a save that is watched" * doctest::skip()) {
  const std::string folder = std::getenv("SHARDARRAY_TEST_FOLDER");
  const Array x = block_until_ready(of_step(2));
  int status = 0;
  std::raise(SIGURG);
  try {
    if (std::getenv("SHARDARRAY_TEST_ASYNC") != nullptr)
      checkpoints::async_save(folder, 2, x, {.keep = 1}).wait();
    else checkpoints::save(folder, 2, x, {.keep = 1});
  } catch (const Error& e) {
    status = std::string(e.what()).find(folder) != std::string::npos ? said_that_it_failed : 4;
  }
  std::raise(SIGURG);
  std::_Exit(status);
}

TEST_CASE("checkpoints: a save that ends at any call, or of which any call fails, leaves whole ones") {
  if (is_sanitized()) return;  // who looks for leaks watches as well
  const TemporaryFolder folder;
  const std::string steps = folder.file("steps");
  const std::shared_ptr<void> unset(nullptr, [](void*) {
    unsetenv("SHARDARRAY_TEST_FOLDER");
    unsetenv("SHARDARRAY_TEST_ASYNC");
  });
  setenv("SHARDARRAY_TEST_FOLDER", steps.c_str(), 1);
  for (const bool is_async : {false, true})
    for (const Fate fate : {Fate::kill, Fate::fail})
      for (int k = 0;; k += full_scale() ? 1 : 5) {
        CAPTURE(is_async);
        CAPTURE(k);
        CAPTURE((fate == Fate::kill));
        std::filesystem::remove_all(steps);
        checkpoints::save(steps, 1, of_step(1));
        if (is_async) setenv("SHARDARRAY_TEST_ASYNC", "1", 1);
        else unsetenv("SHARDARRAY_TEST_ASYNC");
        bool may_watch = false;
        const Watched w = run_watched("checkpoints: a save that is watched", fate, k, may_watch);
        if (!may_watch) {
          MESSAGE("SKIPPED: no process can be watched here");
          return;
        }
        const auto latest = checkpoints::latest(steps);
        REQUIRE(latest.has_value());
        for (const std::int64_t step : checkpoints::steps(steps))
          CHECK(array_equal(checkpoints::restore(steps, of_step(0), {.step = step}), of_step(step)));
        const bool failed = WIFEXITED(w.status) && WEXITSTATUS(w.status) == said_that_it_failed;
        const bool saved = WIFEXITED(w.status) && WEXITSTATUS(w.status) == 0;
        if (fate == Fate::kill && w.is_hit) CHECK((WIFSIGNALED(w.status) && WTERMSIG(w.status) == SIGKILL));
        else CHECK((saved || failed));
        if (fate == Fate::fail && w.is_hit && !w.removes) CHECK(failed);
        if (saved) CHECK(latest == 2);
        // the next one goes through, whatever was left
        checkpoints::save(steps, 3, of_step(3));
        CHECK(checkpoints::latest(steps) == 3);
        if (w.is_hit) continue;
        CHECK(saved);
        CHECK(w.calls >= 10);  // a save has some
        break;
      }
}

}  // namespace checkpoints_calls_test
