// Checkpoints: saved on some devices, restored on others; an interrupted save leaves the earlier ones.
#include "shardarray/checkpoints.h"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <complex>
#include <cstdlib>
#include <thread>

#include "cuda_fake.h"
#include "files_helpers.h"
#include "lib/checkpoints/pace.h"
#include "messages.h"
#include "op_data.h"
#include "scale.h"

namespace checkpoints_test {

using namespace shardarray;
using namespace shardarray::testing;
using nlohmann::json;

namespace {

/// Random bits of a dtype, as integers.
Array numbers(DType t, const Shape& shape, std::uint32_t seed) {
  const Array n = random::randint(random::key(seed), shape, 0, 100);
  return is_complex(t) ? complex(n.astype(float32), (n + 1).astype(float32)).astype(t) : n.astype(t);
}

/// Bytes of the checkpoint's arrays, without headers.
std::uint64_t stored_bytes(const std::string& folder) {
  std::uint64_t r = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string bytes = read_bytes(entry.path());
    std::uint64_t header = 0;
    std::memcpy(&header, bytes.data(), 8);
    r += bytes.size() - 8 - header;
  }
  return r;
}

}  // namespace

TEST_CASE("checkpoints: arrays are restored in any sharding from any other") {
  const TemporaryFolder folder;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  struct Row {
    DType dtype;
    Shape shape;
  };
  const Row rows[] = {{float32, {}},     {int8, {7}},           {complex64, {3, 5}},  {bool_, {10, 6}},
                      {float64, {0, 3}}, {bfloat16, {5, 3, 2}}, {uint32, {700, 300}}, {float32, {3, 90'000}}};
  std::int64_t step = 0;
  for (const Row& row : rows) {
    const Array x = numbers(row.dtype, row.shape, 1);
    const auto all = every_sharding(mesh, row.shape.size());
    for (std::size_t k = 0; k < all.size(); k += is_sanitized() ? 5 : 2) {
      const Array saved = device_put(x, all[k]);
      const auto& to = all[(k * 7 + 3) % all.size()];
      checkpoints::save(folder.path, step, saved, {.keep = 1});
      const Array got = checkpoints::restore(folder.path, device_put(zeros_like(x), to));
      CHECK_MESSAGE(hex_of(got) == hex_of(x),
                    to_string(row.shape) << " from " << all[k].to_string() << " to " << to.to_string());
      CHECK(got.sharding() == to);
      CHECK(stored_bytes(folder.file(fmt::format("step_{:08}", step))) ==
            static_cast<std::uint64_t>(x.nbytes()));  // replicas are not written
      step++;
    }
  }
  CHECK(checkpoints::steps(folder.path).size() == 1);
}

TEST_CASE("checkpoints: training goes on from one as if it had never ended, on other devices") {
  const TemporaryFolder folder;
  const auto optim = optim::adam(1e-2);
  const Array x = random::normal(random::key(1), {16, 4});
  struct Progress {
    int epoch = 0;
    std::string note;
    Array key;
  };
  const auto step = jit([=](auto model, auto state, const Array& data) {
    const auto loss = [](const nn::MLP<>& m, const Array& d) { return mean(square(vmap(m)(d))); };
    const auto [updates, next] = optim.update(grad(loss)(model, data), state);
    return std::pair(apply_updates(model, updates), next);
  });
  auto model = nn::MLP<>::init(4, 2, 8, 1, random::key(0));
  auto state = optim.init(model);
  for (int k = 0; k < 3; k++) std::tie(model, state) = step(model, state, x);
  const Sharding first = NamedSharding(make_mesh({{"x", 8}}), P("x")),
                 second = NamedSharding(make_mesh({{"x", 2}, {"y", 2}}), P("y"));
  const auto placed = [](const auto& tree, const Sharding& s) {
    return tree_map([&](const Array& a) { return a.ndim() == 0 ? a : device_put(a, s); }, tree);
  };
  checkpoints::save(folder.path, 3,
                    placed(std::tuple(model, state, Progress{3, "so far", random::key(5)}), first));
  const auto fresh = nn::MLP<>::init(4, 2, 8, 1, random::key(9));
  const auto like = placed(std::tuple(fresh, optim.init(fresh), Progress{0, "", random::key(0)}), second);
  const auto [again, again_state, progress] = checkpoints::restore(folder.path, like);
  CHECK(tree_equal(again, model));
  CHECK(tree_equal(again_state, state));
  CHECK(progress.epoch == 3);
  CHECK(progress.note == "so far");
  CHECK(array_equal(progress.key, random::key(5)));
  for (const Array& a : tree_leaves(again)) CHECK(a.sharding() == second);
  const auto one = [](const auto& tree) {
    return tree_map([](const Array& a) { return device_put(a, devices()[0]); }, tree);
  };
  CHECK(tree_equal(step(one(again), one(again_state), x), step(one(model), one(state), x)));
}

TEST_CASE(
    "checkpoints: one that is written beside the run has the values of the call, and the name when it is "
    "whole") {
  const TemporaryFolder folder;
  const Sharding cut = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const auto step = jit([](Array x) { return x * 2 + 1; });
  Array x = device_put(arange(80'000.0f), cut);
  checkpoints::Saving saving;
  CHECK(saving.is_written());
  saving.wait();  // none
  std::vector<Array> want;
  for (int k = 0; k < 5; k++) {
    x = step(std::move(x));
    want.push_back(array(x.to_vector<float>()));
    saving.wait();
    saving = checkpoints::async_save(folder.path, k, std::pair(x, k), {.keep = 3});
    x = step(std::move(x));  // would be written over
  }
  saving.wait();
  saving.wait();
  CHECK(saving.is_written());
  CHECK(checkpoints::steps(folder.path) == std::vector<std::int64_t>{2, 3, 4});
  for (const int k : {2, 3, 4}) {
    const auto [got, number] = checkpoints::restore(folder.path, std::pair(zeros_like(x), 0), {.step = k});
    CHECK(array_equal(got, want[static_cast<std::size_t>(k)]));
    CHECK(number == k);
  }
  // in one process it needs no wait, and what goes waits
  const checkpoints::Saving other = checkpoints::async_save(folder.path, 9, complex(ones({3}), zeros({3})));
  while (!other.is_written()) std::this_thread::yield();
  CHECK(checkpoints::latest(folder.path) == 9);
  { const auto last = checkpoints::async_save(folder.path, 10, ones({1000, 1000})); }
  CHECK(checkpoints::latest(folder.path) == 10);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path))
    CHECK(!entry.path().filename().string().starts_with("."));
}

TEST_CASE(
    "checkpoints: what goes wrong beside the run is thrown where it is waited for, once, and names the "
    "save") {
  const TemporaryFolder folder;
  CHECK(said_of<Error>(folder.path, [&] { (void)checkpoints::async_save(folder.path, -1, ones(2)); }) ==
        "checkpoints::async_save: step -1. Steps are numbered from 0. Give a number that is none too small.");
  checkpoints::save(folder.path, 1, ones({1000}));
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  checkpoints::Saving saving = checkpoints::async_save(folder.path, 2, ones({1 << 20}));
  const int line = __LINE__ - 1;
  std::string text;
  try {
    saving.wait();
  } catch (const IoError& e) { text = e.what(); }
  saving.wait();  // it was said
  setrlimit(RLIMIT_FSIZE, &before);
  CHECK_MESSAGE(text.starts_with("checkpoints::async_save: " + folder.path), text);
  CHECK_MESSAGE(text.find("cannot be written") != text.npos, text);
  CHECK_MESSAGE(text.find(fmt::format("checkpoints_test.cpp:{})", line)) != text.npos, text);
  CHECK(folder.count() == 1);
}

TEST_CASE("checkpoints: what is written beside a program that wants its core takes a fiftieth of that") {
  using checkpoints::Pace;
  CHECK(Pace::rest_after({0.010, 0}) == 0);  // nobody else was there
  CHECK(Pace::rest_after({0.010, 0.002}) == 0);
  CHECK(Pace::rest_after({0.010, 0.020}) == doctest::Approx(0.470));
  CHECK(Pace::rest_after({0.010, 1.0}) < 0);  // it waited longer than it should sleep
  Pace pace;
  std::thread rests([&] {
    for (int k = 0; k < 100; k++) pace.rest();
  });
  pace.hurry();  // who is hurried does not sleep
  rests.join();
}

TEST_CASE("checkpoints: of several under way the one that began last stays") {
  const TemporaryFolder folder;
  const Array large = zeros({1 << 19}), small = ones({3});
  for (int round = 0; round < 2; round++) {
    auto first = checkpoints::async_save(folder.path, 0, large);
    auto second = checkpoints::async_save(folder.file("."), 0, small);
    if (round % 2 == 0) second.wait();
    first.wait();
    second.wait();
    CHECK(array_equal(checkpoints::restore(folder.path, zeros({3})), small));
    CHECK(folder.count() == 1);
  }
  checkpoints::Saving saving;
  for (int k = 0; k < 6; k++)
    saving = checkpoints::async_save(folder.path, 0, k % 2 == 0 ? large : Array(small * k));
  saving.wait();
  CHECK(array_equal(checkpoints::restore(folder.path, zeros({3})), small * 5));
  auto other = checkpoints::async_save(folder.path, 2, large);
  checkpoints::save(folder.path, 3, small);  // another step stays
  other.wait();
  CHECK(checkpoints::steps(folder.path) == std::vector<std::int64_t>{0, 2, 3});
}

TEST_CASE("checkpoints: a process that is forked while one is written leaves it alone") {
  const TemporaryFolder folder;
  auto saving = checkpoints::async_save(folder.path, 1, ones({1 << 21}));
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    std::string text;
    try {
      saving.wait();
    } catch (const Error& e) { text = e.text(); }
    saving = {};
    _exit(text.starts_with("checkpoints::async_save: wait() in a process that was forked") ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  saving.wait();
  CHECK(array_equal(checkpoints::restore(folder.path, zeros({1 << 21})), ones({1 << 21})));
}

TEST_CASE("cuda process: checkpoints beside the run" * doctest::skip()) {
  const TemporaryFolder folder;
  const Sharding cut = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const auto step = jit([](const Array& x) { return x * 2; });
  Array x = device_put(arange(4000.0f), cut);
  REQUIRE(x.devices()[0].platform == "cuda");
  auto saving = checkpoints::async_save(folder.path, 1, std::pair(x, complex(x, x)));
  for (int k = 0; k < 3; k++) x = step(std::move(x));
  saving.wait();
  const auto [got, z] =
      checkpoints::restore(folder.path, std::pair(zeros_like(x), device_put(zeros({4000}, complex64), cut)));
  CHECK(array_equal(got, arange(4000.0f)));
  CHECK(array_equal(imag(z), arange(4000.0f)));
  CHECK(got.devices()[0].platform == "cuda");
}

TEST_CASE("cuda: checkpoints are written while the run goes on") {
  on_fake("cuda process: checkpoints beside the run");
}

TEST_CASE("checkpoints: steps in a folder, the latest, those that stay") {
  const TemporaryFolder folder;
  const std::string run = folder.file("a/run");
  CHECK(checkpoints::steps(run).empty());
  CHECK(!checkpoints::latest(run).has_value());
  for (const int step : {100, 20, 300}) checkpoints::save(run, step, arange(step));
  std::filesystem::create_directories(run + "/step_00000400");  // no checkpoint
  std::filesystem::create_directories(run + "/step_100");
  write_bytes(run + "/step_00000500", "");
  CHECK(checkpoints::steps(run) == std::vector<std::int64_t>{20, 100, 300});
  CHECK(checkpoints::latest(run) == 300);
  CHECK(array_equal(checkpoints::restore(run, zeros({300}, int32)), arange(300)));
  CHECK(array_equal(checkpoints::restore(run, zeros({20}, int32), {.step = 20}), arange(20)));
  // one is replaced; those of later steps stay
  checkpoints::save(run, 100, arange(7), {.keep = 1});
  CHECK(checkpoints::steps(run) == std::vector<std::int64_t>{100, 300});
  CHECK(array_equal(checkpoints::restore(run, zeros({7}, int32), {.step = 100}), arange(7)));
  checkpoints::save(run, 301, arange(1), {.keep = 2});
  CHECK(checkpoints::steps(run) == std::vector<std::int64_t>{300, 301});
  for (const auto& entry : std::filesystem::directory_iterator(run))
    CHECK(!entry.path().filename().string().starts_with("."));
  // the rest of a killed save is removed after a day
  const std::string old = run + "/.step_00000007.left", young = run + "/.step_00000008.left";
  for (const std::string& path : {old, young}) std::filesystem::create_directories(path);
  std::filesystem::last_write_time(old,
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  checkpoints::save(run, 302, arange(1));
  CHECK(!std::filesystem::exists(old));
  CHECK(std::filesystem::exists(young));
}

TEST_CASE("checkpoints: one becomes a file for other programs") {
  const TemporaryFolder folder;
  const Sharding cut = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const std::pair tree(device_put(random::normal(random::key(0), {16, 3}), cut), 5);
  checkpoints::save(folder.path, 1, tree);
  const std::string path = folder.file("all.safetensors"), direct = folder.file("direct.safetensors");
  checkpoints::convert(folder.path, path);
  save(direct, tree);
  CHECK(read_bytes(path) == read_bytes(direct));
}

TEST_CASE("checkpoints: one that Python wrote, of two processes") {
  struct Model {
    Array weight = zeros({2, 3}), z = zeros({3}, complex64), one = zeros({}, float64),
          none = zeros({0, 4}, int8);
    int epoch = 0;
    float rate = 0;
    std::string text;
  } like;
  like.weight = device_put(like.weight, NamedSharding(make_mesh({{"x", 2}}), P("x")));
  const std::string folder = data_file("files/checkpoint");
  CHECK(checkpoints::steps(folder) == std::vector<std::int64_t>{7});
  const Model m = checkpoints::restore(folder, like);
  CHECK(m.weight.to_vector<float>() == std::vector<float>{0.25, 1.25, 2.25, 3.25, 4.25, 5.25});
  CHECK(m.weight.sharding() == like.weight.sharding());
  CHECK(m.z.to_vector<std::complex<float>>() == std::vector<std::complex<float>>{{1, 2}, {3, -4}, {0, 0.5}});
  CHECK(m.one.item<double>() == 2.5);
  CHECK(m.none.shape() == Shape{0, 4});
  CHECK(m.epoch == 3);
  CHECK(m.rate == 0.5F);
  CHECK(m.text == "so far");
}

TEST_CASE("checkpoints: arrays go where the options say, into trees whose arrays have no values too") {
  const TemporaryFolder folder;
  const Mesh mesh = make_mesh({{"x", 2}, {"y", 4}});
  const Sharding rows = NamedSharding(mesh, P("x")), both = NamedSharding(mesh, P("y", "x"));
  const std::map<std::string, Array> saved{{"a", numbers(float32, {8, 6}, 1)}, {"b", numbers(int8, {4}, 2)}};
  checkpoints::save(folder.path, 0, saved);
  save(folder.file("file"), saved);
  const std::map<std::string, Array> here{{"a", device_put(zeros({8, 6}), both)}, {"b", zeros({4}, int8)}},
      nowhere{{"a", shape_dtype_struct({8, 6})}, {"b", shape_dtype_struct({4}, int8)}};
  for (const auto& like : {here, nowhere}) {
    const auto check = [&](const std::map<std::string, Array>& got, const std::optional<Sharding>& a,
                           const std::optional<Sharding>& b) {
      for (const char* const name : {"a", "b"}) {
        CHECK(hex_of(got.at(name)) == hex_of(saved.at(name)));
        const auto& where = *name == 'a' ? a : b;
        CHECK(got.at(name).committed() == where.has_value());
        if (where) CHECK(got.at(name).sharding() == *where);
      }
    };
    check(checkpoints::restore(folder.path, like, {.sharding = rows}), rows, rows);
    check(load(folder.file("file"), like, {.sharding = rows}), rows, rows);
    check(checkpoints::restore(folder.path, like, {.sharding = rows, .shardings = {{"a", both}}}), both,
          rows);
    check(load(folder.file("file"), like, {.sharding = rows, .shardings = {{"a", both}}}), both, rows);
    check(checkpoints::restore(folder.path, like, {.shardings = {{"b", rows}, {"a", both}}}), both, rows);
  }
  checkpoints::save(folder.path, 3, std::tuple(saved, 2.5, std::string("text")));
  const checkpoints::Metadata said = checkpoints::metadata(folder.path);
  CHECK(said.step == 3);
  CHECK(said.arrays.size() == 2);
  CHECK(said.arrays.at("[0].a").shape == Shape{8, 6});
  CHECK(said.arrays.at("[0].b").dtype == int8);
  CHECK(said.values == std::map<std::string, std::string>{{"[1]", "2.5"}, {"[2]", "text"}});
  CHECK(checkpoints::metadata(folder.path, {.step = 0}).arrays.contains("a"));
  const auto plain = checkpoints::restore(folder.path, nowhere, {.step = 0});
  CHECK_FALSE(plain.at("a").committed());
  CHECK(hex_of(load(folder.file("file"), nowhere).at("b")) == hex_of(saved.at("b")));
  const auto says = [&](const auto& f) { return said_of<Error>(folder.path, f); };
  CHECK(
      says([&] {
        (void)checkpoints::restore(folder.path, here, {.step = 0, .shardings = {{"c", rows}}});
      }) ==
      "checkpoints::restore: `shardings` has `c`, and the tree has no array there. Its keys are the paths of "
      "arrays, as tree_paths() has them. Check it.");
  CHECK(says([&] {
          (void)load(folder.file("file"), here, {.shardings = {{"c", rows}}});
        }).starts_with("load: `shardings` has `c`, and the tree has no array there."));
  CHECK(says([&] {
          (void)checkpoints::restore(folder.path, here, {.step = 0, .shardings = {{"b", both}}});
        }).starts_with("checkpoints::restore: `b` i8[4] cannot be loaded to "));
}

TEST_CASE("checkpoints: a part of what was saved, by its path") {
  const TemporaryFolder folder;
  const std::map<std::string, Array> model{{"a", numbers(float32, {8, 6}, 1)}, {"b", numbers(int8, {4}, 2)}};
  const auto state = std::pair(numbers(float32, {8, 6}, 3), 7);
  checkpoints::save(folder.path, 2, std::tuple(model, state, std::string("text"), model));
  const auto part = [&](auto like, const std::string& path) {
    return checkpoints::restore(folder.path, like, {.part = path});
  };
  const std::map<std::string, Array> empty{{"a", zeros({8, 6})}, {"b", zeros({4}, int8)}};
  for (const char* path : {"[0]", "[3]"})
    for (const char* leaf : {"a", "b"}) CHECK(hex_of(part(empty, path).at(leaf)) == hex_of(model.at(leaf)));
  const auto [moment, count] = part(std::pair(zeros({8, 6}), 0), "[1]");
  CHECK(hex_of(moment) == hex_of(state.first));
  CHECK(count == 7);
  CHECK(hex_of(part(zeros({8, 6}), "[1][0]")) == hex_of(state.first));
  CHECK(hex_of(part(zeros({4}, int8), "[3].b")) == hex_of(model.at("b")));
  CHECK(part(std::string(), "[2]") == "text");
  (void)part(std::tuple<>(), "[9]");  // what has no leaves is nowhere
  const Sharding cut = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  CHECK(checkpoints::restore(folder.path, zeros({8, 6}), {.sharding = cut, .part = "[0].a"}).sharding() ==
        cut);
  const auto says = [&](const auto& like, const std::string& path) {
    return said_of<Error>(folder.path, [&] { (void)part(like, path); });
  };
  CHECK(says(empty, "[1]")
            .starts_with("checkpoints::restore: PATH/step_00000002, its `[1]`: `a` f32[8,6] is "
                         "missing; instead the file has `[0]` f32[8,6]."));
  // Who has forgotten it is told.
  CHECK(said_of<Error>(folder.path, [&] {
          (void)checkpoints::restore(folder.path, empty);
        }).ends_with("The part `[0]` of it has these leaves: say {.part = \"[0]\"}."));
  CHECK(checkpoints::metadata(folder.path, {.part = "[1]"}).values ==
        std::map<std::string, std::string>{{"[1]", "7"}});
  checkpoints::convert(folder.path, folder.file("model"), {.part = "[3]"});
  CHECK(hex_of(load(folder.file("model"), empty).at("a")) == hex_of(model.at("a")));
  CHECK(
      says(empty, "[4]") ==
      "checkpoints::restore: PATH/step_00000002: it has nothing at `[4]`. The option `part` is the path of a "
      "part of the tree that was saved, as `[0]` or `model.layers`; arrays are at `[0].a`, `[0].b`, "
      "`[1][0]`, `[3].a`, `[3].b`. Check it.");
  CHECK(says(zeros({4}, int8), "[3")
            .starts_with("checkpoints::restore: PATH/step_00000002: it has nothing at `[3`."));
  CHECK(says(zeros({4}), "[3].b").find("`` is i8[4] in the file and f32[4] in the tree") !=
        std::string::npos);
  // Paths that begin alike.
  const std::string common(70, 'k');
  const std::map<std::string, Array> alike{{common + "a", full({2}, 1)},
                                           {common + "b", full({2}, 2)},
                                           {common + "a.b", full({2}, 3)},
                                           {common, full({2}, 4)}};
  checkpoints::save(folder.path, 3, std::pair(alike, 5));
  for (const auto& [name, leaf] : alike)
    CHECK(hex_of(part(zeros({2}, int32), "[0]." + name)) == hex_of(leaf));
  CHECK(part(0, "[1]") == 5);
  CHECK(says(zeros({2}, int32), "[0].k").find("it has nothing at `[0].k`") != std::string::npos);
}

TEST_CASE("checkpoints: what cannot be done says why") {
  const TemporaryFolder folder;
  const auto says = [&](const auto& f) { return said_of<Error>(folder.path, f); };
  const auto restored = [&](const auto& like, const checkpoints::RestoreOptions& o) {
    return says([&] { (void)checkpoints::restore(folder.path, like, o); });
  };
  CHECK(restored(ones(2), {}) ==
        "checkpoints::restore: PATH: has no checkpoint. There are none. Check the folder, or save one.");
  checkpoints::save(folder.path, 4, std::pair(ones(2), 1.5));
  CHECK(restored(ones(2), {.step = 3}) ==
        "checkpoints::restore: PATH: has no checkpoint of step 3. There are 1: the first of step 4, the last "
        "of step "
        "4. Check the folder, or save one.");
  CHECK(restored(ones(2), {.step = -3}) ==
        "checkpoints::restore: step -3. Steps are numbered from 0. Give one of steps().");
  CHECK(restored(std::pair(ones(3), 1.5), {}) ==
        "checkpoints::restore: PATH/step_00000004: `[0]` is f32[2] in the file and f32[3] in the tree. Every "
        "leaf "
        "keeps its shape and dtype. Give the tree an array of that shape.");
  CHECK(restored(std::pair(ones(2), std::string()), {}) == "nothing was thrown");
  CHECK(restored(std::tuple(ones(2), 1.5, ones(1)), {}).find("`[2]` f32[1] is missing") != std::string::npos);
  CHECK(says([&] { checkpoints::save(folder.path, -1, ones(2)); }) ==
        "checkpoints::save: step -1. Steps are numbered from 0. Give a number that is none too small.");
  CHECK(says([&] { checkpoints::save(folder.path, 1, ones(2), {.keep = -1}); }) ==
        "checkpoints::save: keep = -1. So many checkpoints stay; 0 means all. Give 0 or more.");
  CHECK(says([&] {
          checkpoints::save(folder.path, 1, std::pair(ones(2), std::string("\xff")));
        }).find("a path or a text of the tree is not UTF-8") != std::string::npos);
  std::filesystem::create_directories(folder.file("step_00000009"));
  CHECK(says([&] { checkpoints::save(folder.path, 9, ones(2)); }) ==
        "checkpoints::save: PATH/step_00000009: is no checkpoint, but has the name of one. Only checkpoints "
        "are "
        "replaced. Move it away.");
  write_bytes(folder.file("file"), "");
  CHECK(says([&] {
          checkpoints::save(folder.file("file"), 1, ones(2));
        }).starts_with("checkpoints::save: PATH/file: "));
  CHECK(checkpoints::steps(folder.path) == std::vector<std::int64_t>{4});
}

}  // namespace checkpoints_test
