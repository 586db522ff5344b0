// Damaged checkpoints, full disks, killed programs, and two programs that save to one folder.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "files_helpers.h"
#include "messages.h"
#include "process_helpers.h"
#include "scale.h"
#include "shardarray/checkpoints.h"

namespace checkpoints_faults_test {

using namespace shardarray;
using namespace shardarray::testing;
using nlohmann::json;

TEST_CASE("checkpoints: a full disk leaves what was there") {
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

TEST_CASE("checkpoints: a disk of 1 MiB" * doctest::skip()) {
  const std::string folder = std::getenv("SHARDARRAY_TEST_FOLDER");
  const Array small = ones({1000}), large = random::bits(random::key(0), {1 << 20});
  checkpoints::save(folder, 1, small);
  const auto filled = [&](const auto& save) {
    const std::string text = said_of(folder, save);
    CHECK_MESSAGE(text.find("cannot be written beyond byte") != std::string::npos, text);
    CHECK_MESSAGE(text.find("(No space left on device)") != std::string::npos, text);
    CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  };
  filled([&] { checkpoints::save(folder, 2, large); });
  filled([&] { checkpoints::async_save(folder, 1, large).wait(); });
  CHECK(array_equal(checkpoints::restore(folder, zeros({1000})), small));
  checkpoints::save(folder, 2, small);
  CHECK(checkpoints::latest(folder) == 2);
}

TEST_CASE("checkpoints: where a disk has no space there is what was there") {
  const TemporaryFolder folder;
  const std::string mounted = fmt::format("mount -t tmpfs -o size=1m none '{}'", folder.path);
  if (std::system(fmt::format("unshare -rm {} 2>/dev/null", mounted).c_str()) != 0) {
    MESSAGE("SKIPPED: no disk of 1 MiB can be mounted here");
    return;
  }
  const std::string command = fmt::format(
      "unshare -rm sh -c \"{} && SHARDARRAY_TEST_FOLDER='{}' '{}' --no-intro --no-skip "
      "--test-case='checkpoints: a disk of 1 MiB' >&2\"",
      mounted, folder.path, own_program().string());
  CHECK(std::system(command.c_str()) == 0);
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
  const TemporaryFolder folder;
  const std::string steps = folder.file("steps");
  std::filesystem::create_directory(steps);
  // Longer on a machine where nothing was saved in time.
  for (int seconds = full_scale() ? 20 : 1; seconds < 60 && checkpoints::steps(steps).empty(); seconds *= 2) {
    const std::string program = fmt::format(
        "SHARDARRAY_TEST_FOLDER='{}' timeout -s KILL {} '{}' --no-intro --no-skip "
        "--test-case='checkpoints: saves without an end'",
        steps, seconds, own_program().string());
    const std::string command = fmt::format("{0} >'{1}' 2>&1 & {0} >'{2}' 2>&1; wait", program,
                                            folder.file("one"), folder.file("other"));
    (void)!std::system(command.c_str());
  }
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
  const TemporaryFolder folder;
  std::int64_t last = 0;
  int in_a_save = 0;
  const int fewest = is_sanitized() ? 2 : 6;
  for (int round = 0; full_scale() ? in_a_save < 2000 : round < fewest || (last == 0 && round < 40);
       round++) {
    REQUIRE(round < 10'000);
    const double longer = last == 0 ? 1 + round : 1;  // on a machine where nothing was saved in time
    const std::string command = fmt::format(
        "SHARDARRAY_TEST_FOLDER='{}' timeout -s KILL {} '{}' --no-intro --no-skip "
        "--test-case='checkpoints: saves without an end' >/dev/null 2>&1",
        folder.path, longer * (0.1 + 0.013 * (round % 17)), own_program().string());
    (void)!std::system(command.c_str());
    std::vector<std::filesystem::path> unfinished;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path))
      if (entry.path().filename().string().starts_with(".step_")) unfinished.push_back(entry.path());
    in_a_save += unfinished.empty() ? 0 : 1;
    for (const auto& path : unfinished) std::filesystem::remove_all(path);
    for (const std::int64_t step : checkpoints::steps(folder.path))
      CHECK(array_equal(checkpoints::restore(folder.path, zeros({50'000}, int32), {.step = step}),
                        full({50'000}, step, int32)));
    const std::int64_t latest = checkpoints::latest(folder.path).value_or(0);
    CHECK(latest >= last);  // none is lost
    last = latest;
  }
  if (full_scale()) MESSAGE(in_a_save << " programs were killed in a save, the last one of step " << last);
  CHECK(checkpoints::steps(folder.path).size() <= 4);  // one more where it ended before older ones went
  CHECK(last > 0);
}

namespace {

/// Text in place of an index, with a valid checksum.
void write_index(const std::string& checkpoint, const std::string& text) {
  const std::string rest = text.substr(std::min<std::size_t>(1, text.size()));
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(rest.data()), rest.size());
  write_bytes(checkpoint + "/shardarray.index.json", fmt::format("{{\"crc32\":\"{:08x}\",{}", sum, rest));
}
}  // namespace

TEST_CASE("checkpoints: damage is found, and said where it is") {
  const TemporaryFolder folder;
  const Array x = random::bits(random::key(0), {300, 500});
  const auto saved = [&] {
    checkpoints::save(folder.path, 1, x);
    return folder.file("step_00000001");
  };
  const auto said = [&] {
    return said_of(folder.path, [&] { (void)checkpoints::restore(folder.path, zeros_like(x)); });
  };
  const std::string rest = " Only whole, unchanged checkpoints are read. Restore an earlier step.";
  const std::string at = "checkpoints::restore: PATH/step_00000001/", pieces = "process_0_of_1.safetensors",
                    index = "shardarray.index.json";
  std::string data = read_bytes(saved() + "/" + pieces);
  const std::size_t header = data.size() - 600'000;
  for (const std::size_t flipped :
       {std::size_t{0}, std::size_t{262'143}, std::size_t{262'144}, std::size_t{599'999}}) {
    std::string bad = data;
    bad[header + flipped] = static_cast<char>(bad[header + flipped] ^ 16);
    write_bytes(saved() + "/" + pieces, bad);
    const std::size_t block = flipped / 262'144 * 262'144;
    CHECK(said() == fmt::format("{}{}: `@0,0` is damaged between bytes {} and {}.{}", at, pieces,
                                header + block, header + std::min<std::size_t>(block + 262'144, 600'000),
                                rest));
  }
  write_bytes(saved() + "/" + pieces, data.substr(0, data.size() - 1));
  CHECK(said().starts_with(at + pieces + ": "));
  std::filesystem::remove(saved() + "/" + pieces);
  CHECK(said() ==
        at + pieces +
            ": cannot be opened (No such file or directory). The file must exist and be readable. Check the "
            "path.");
  save_safetensors(saved() + "/" + pieces, {{"y", x}});
  CHECK(said() == at + pieces + ": lacks `@0,0`, which the index names." + rest);
  save_safetensors(saved() + "/" + pieces, {{"@0,0", zeros({3})}});
  CHECK(said() == at + pieces + ": has `@0,0` as f32[3], by the index it is u32[300,500]." + rest);

  const std::string whole = read_bytes(saved() + "/" + index);
  for (std::size_t k = 0; k < whole.size(); k += is_sanitized() ? 37 : 1) {
    std::string bad = whole;
    bad[k] = static_cast<char>(bad[k] ^ 1);
    write_bytes(saved() + "/" + index, bad);
    CHECK(said() == at + index + ": is damaged, or no index that this library wrote." + rest);
  }
  json good = json::parse(read_bytes(saved() + "/" + index));
  good.erase("crc32");
  const auto with = [&](const char* place, const json& value) {
    json bad = good;
    bad[json::json_pointer(place)] = value;
    write_index(saved(), bad.dump());
    return said();
  };
  const auto says = [&](const std::string& what) { return at + index + ": " + what + "." + rest; };
  const std::string piece = "/arrays//pieces/0";
  CHECK(with("/format", "other") == says("is no index of a checkpoint"));
  CHECK(with("/version", 2) ==
        at + index +
            ": has the version 2. This library reads version 1. Use the library that wrote "
            "it, or a newer one.");
  CHECK(with("/version", "1") == says("has something else where a number from 0 to 2^62 should be"));
  CHECK(with("/step", -1) == says("has something else where a number from 0 to 2^62 should be"));
  CHECK(with("/values", 3) == says("has a `values` of another kind than it should be"));
  CHECK(with("/values/a", 3) == says("has no text for `a`"));
  CHECK(with("/arrays/b", 3) == says("has a number or a list where an object should be"));
  CHECK(with("/arrays/b", json::object()) == says("has no `dtype` where one should be"));
  CHECK(with("/arrays//dtype", "uint128") == says("has the dtype `uint128` of ``"));
  CHECK(with("/arrays//shape", {1 << 30, 1 << 30, 1 << 30}).starts_with(at + index));
  CHECK(with("/arrays//shape", {301, 500}) ==
        says("has pieces of `` u32[301,500] that are not each element once"));
  CHECK(with((piece + "/file").c_str(), "../x") ==
        says("names the file `../x`, which is none of the checkpoint"));
  CHECK(with((piece + "/start").c_str(), {1, 0}) ==
        says("has a piece [300,500] at [1,0] of `` u32[300,500]"));
  CHECK(with((piece + "/start").c_str(), {0}).starts_with(at + index + ": has a piece "));
  CHECK(with((piece + "/shape").c_str(), {0, 500}).starts_with(at + index + ": has a piece "));
  CHECK(with((piece + "/crc32").c_str(), {1}) == says("has 1 checksums of a piece of `` with 3 blocks"));
  CHECK(with("/arrays//pieces/1", good["arrays"][""]["pieces"][0]) ==
        says("has pieces of `` u32[300,500] that are not each element once"));
  const std::string text = good.dump();
  write_index(saved(), "{\"step\":1," + text.substr(1));
  CHECK(said() == says("has `step` twice in one object"));
  for (std::size_t length = 0; length < text.size(); length += is_sanitized() ? 97 : 13) {
    write_index(saved(), text.substr(0, length));
    CHECK(said() == says("is no JSON"));
  }
}

}  // namespace checkpoints_faults_test
