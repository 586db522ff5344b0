// Plans as lines, differences, files and JSON.
#include "shardarray/plan_lock.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "messages.h"
#include "process_helpers.h"
#include "program_of.h"

namespace plan_lock_test {

namespace sa = shardarray;
namespace fs = std::filesystem;
using program_test::on_xy;
using program_test::placed;
using sa::Array;
using sa::P;
using shardarray::testing::message_of;
using shardarray::testing::TemporaryFolder;

namespace {

sa::TransferInfo transfer(const std::string& kind, std::int64_t bytes, const std::string& source) {
  return {.kind = kind,
          .axes = "{x}",
          .reason = "because",
          .op = "sum",
          .source = source,
          .bytes_per_device = bytes,
          .gap = 1.25,
          .moved_bytes = 3 * bytes,
          .shape = {8, 4},
          .runner_up = "112 B by nothing"};
}
sa::Explanation plan(std::vector<sa::TransferInfo> transfers, bool reused = true, std::int64_t peak = 100,
                     std::int64_t flops = 7) {
  sa::Explanation e(std::move(transfers), {{"0.weight", reused, reused ? "" : "another handle owns it"}});
  e.peak_bytes_per_device = peak;
  e.flops = flops;
  return e;
}

// Under that value of the variable, which is not set afterwards.
void hold(const char* how, const std::string& path, const sa::Explanation& e) {
  const std::shared_ptr<void> reset(nullptr, [](void*) { unsetenv("SHARDARRAY_PLAN_LOCK"); });
  setenv("SHARDARRAY_PLAN_LOCK", how, 1);
  sa::plan_lock(path, e);
}
std::string text_of(const std::string& path) {
  std::ostringstream s;
  s << std::ifstream(path).rdbuf();
  return s.str();
}

}  // namespace

TEST_CASE("plan lock: the transfers of a call, a line each") {
  const Array x = placed({64, 8}, on_xy(P("x")));
  CHECK(sa::transfers([](const Array& a) { return a - sa::mean(a, 0); }, x) ==
        "all_reduce{x} 48 B f32[8] for broadcast");
  CHECK(sa::transfers(sa::jit([](const Array& a) { return a * 2; }), x).empty());
  const std::string two = sa::transfers(
      [](const Array& a) { return std::pair(sa::sum(a), sa::with_sharding_constraint(a, on_xy(P()))); }, x);
  CHECK(std::count(two.begin(), two.end(), '\n') == 1);
  CHECK(message_of<sa::ShapeError>([&] {
          sa::transfers([](const Array& a) { return a + sa::ones(3); }, x);
        }).find("add: ") == 0);
}

TEST_CASE("plan lock: what is different of two plans, in their order") {
  const auto a = transfer("all_reduce", 56, "/src/step.cpp:12"),
             b = transfer("all_gather", 8, "/src/step.cpp:13"), c = transfer("exchange", 9, "step.cpp:20");
  CHECK(sa::plan_diff(plan({a, b}), plan({a, b})).empty());
  CHECK(sa::plan_diff(plan({a}), plan({transfer("all_reduce", 56, "/elsewhere/other.cpp:99")})).empty());
  CHECK(sa::plan_diff(plan({a, b}), plan({a, c, b}, false)) ==
        "+ exchange{x} 9 B f32[8,4] for sum   step.cpp:20\n"
        "- donated 0.weight: reused\n"
        "+ donated 0.weight: not reused\n");
  CHECK(sa::plan_diff(plan({a, b, c}), plan({c}, true, 90)) ==
        "- peak 100 B\n"
        "+ peak 90 B\n"
        "- all_reduce{x} 56 B f32[8,4] for sum   step.cpp:12\n"
        "- all_gather{x} 8 B f32[8,4] for sum   step.cpp:13\n");
  CHECK(sa::plan_diff(plan({a}), plan({a}, true, 100, 8)) == "- flops 7\n+ flops 8\n");
  CHECK(sa::plan_diff(plan({}), plan({b})) == "+ all_gather{x} 8 B f32[8,4] for sum   step.cpp:13\n");
  // Very long plans are not compared line by line.
  const std::vector<sa::TransferInfo> many(5000, a), others(5000, b);
  const std::string all = sa::plan_diff(plan(many), plan(others));
  CHECK(std::count(all.begin(), all.end(), '\n') == 201);
  CHECK(all.ends_with("(9800 more lines)\n"));
}

TEST_CASE("plan lock: a file holds the plan, whatever line it stands on") {
  const TemporaryFolder folder;
  const std::string path = folder.file("step.plan");
  const auto a = transfer("all_reduce", 56, "/src/step.cpp:12");
  const std::string missing = message_of<sa::PlanError>([&] { hold("", path, plan({a})); });
  CHECK(missing.find("plan_lock: there is no " + path +
                     ". A plan is compared with a file. Run with SHARDARRAY_PLAN_LOCK=update to write it.") ==
        0);
  CHECK_FALSE(fs::exists(path));
  hold("update", path, plan({a}));
  CHECK(text_of(path) ==
        "# A plan: what a call moves and needs. plan_lock compares with it; SHARDARRAY_PLAN_LOCK=update "
        "writes it.\n"
        "peak 100 B\n"
        "flops 7\n"
        "all_reduce{x} 56 B f32[8,4] for sum\tstep.cpp:12\n"
        "donated 0.weight: reused\n");
  hold("", path, plan({a}));
  hold("", path, plan({transfer("all_reduce", 56, "step.cpp:13")}));
  CHECK_THROWS_AS(hold("", path, plan({})), sa::PlanError);
  CHECK(
      message_of<sa::PlanError>([&] { hold("", path, plan({transfer("all_reduce", 57, "step.cpp:13")})); })
          .find("plan_lock: the plan is not that of " + path +
                ":\n"
                "- all_reduce{x} 56 B f32[8,4] for sum   step.cpp:12\n"
                "+ all_reduce{x} 57 B f32[8,4] for sum   step.cpp:13\n"
                "What a plan moves, needs and reuses stays as the file says. Change the program, or run with "
                "SHARDARRAY_PLAN_LOCK=update if that is meant.") == 0);
  CHECK_THROWS_AS(hold("", path, plan({a}, false)), sa::PlanError);
  CHECK_THROWS_AS(hold("", path, plan({a}, true, 101)), sa::PlanError);
  CHECK_THROWS_AS(hold("", path, plan({a}, true, 100, 8)), sa::PlanError);
  // Of another program it is another one.
  const Array x = placed({64, 8}, on_xy(P("x")));
  const auto centred = sa::explain([](const Array& v) { return v - sa::mean(v, 0); }, x);
  const std::string other = message_of<sa::PlanError>([&] { hold("", path, centred); });
  CHECK(other.find("- all_reduce{x} 56 B f32[8,4] for sum   step.cpp:12\n") != other.npos);
  CHECK(other.find("+ all_reduce{x} 48 B f32[8] for broadcast   plan_lock_test.cpp:") != other.npos);
  hold("update", path, plan({a}, false));
  hold("", path, plan({a}, false));
}

TEST_CASE("plan lock: files that are none, and another word in the variable") {
  const TemporaryFolder folder;
  const std::string path = folder.file("other.plan");
  std::ofstream(path) << "peak 3 B\n";
  CHECK(message_of<sa::IoError>([&] {
          hold("", path, plan({}));
        }).find("plan_lock: " + path + ": its first line is `peak 3 B`. ") == 0);
  std::ofstream(path).close();
  CHECK(message_of<sa::IoError>([&] {
          hold("", path, plan({}));
        }).find("plan_lock: " + path + ": it is empty. ") == 0);
  std::ofstream(path) << std::string("\0\xff\n   \n\n", 7);
  CHECK_THROWS_AS(hold("", path, plan({})), sa::IoError);
  CHECK_THROWS_AS(hold("", folder.file("."), plan({})), sa::IoError);
  CHECK_THROWS_AS(hold("update", folder.file("none/step.plan"), plan({})), sa::IoError);
  CHECK(message_of<sa::Error>([&] { hold("yes", path, plan({})); })
            .find("SHARDARRAY_PLAN_LOCK: 'yes' is not understood. It is `update`, or not set. Correct or "
                  "unset it.") == 0);
}

TEST_CASE("plan lock: any names, other ends of lines, more lines than anybody reads") {
  const TemporaryFolder folder;
  const std::string path = folder.file("names.plan");
  sa::Explanation odd({transfer("all_reduce", 1, "/a   b/c   d\te.cpp:3")},
                      {{"0.a   b\tc\nd", true, ""}, {"\xff", false, ""}});
  hold("update", path, odd);
  hold("", path, odd);
  CHECK(nlohmann::json::parse(sa::plan_json(odd))["donations"].size() == 2);
  const auto a = transfer("all_reduce", 56, "step.cpp:12");
  hold("update", path, plan({a}));
  std::string text = text_of(path), with_returns;
  for (const char c : text) with_returns += c == '\n' ? std::string("\r\n") : std::string(1, c);
  std::ofstream(path) << with_returns;
  hold("", path, plan({a}));
  std::ofstream(path) << text << std::string(100'000, '\n');
  const std::string long_text = message_of<sa::PlanError>([&] { hold("", path, plan({a})); });
  CHECK(long_text.find("(99800 more lines)\n") != long_text.npos);
  std::ofstream(path) << text << std::string(17 << 20, ' ');
  CHECK(message_of<sa::IoError>([&] {
          hold("", path, plan({a}));
        }).find("plan_lock: " + path + ": it has 178") == 0);
  CHECK_THROWS_AS(hold("", folder.file(std::string(300, 'a')), plan({a})), sa::Error);
}

TEST_CASE("plan lock: a step that moves more than its file says is an error that names the line") {
  const TemporaryFolder folder;
  const std::string path = folder.file("centre.plan");
  const Array x = placed({64, 8}, on_xy(P("x")));
  const auto centre = [](const Array& a) { return a - sa::mean(a, 0); };
  hold("update", path, sa::explain(centre, x));
  hold("", path, sa::explain(centre, x));
  const std::string text = message_of<sa::PlanError>([&] {
    hold("", path,
         sa::explain(
             [](const Array& a) { return sa::with_sharding_constraint(a - sa::mean(a, 0), on_xy(P())); }, x));
  });
  CHECK_MESSAGE(text.find("+ all_gather{x} 1536 B f32[64,8] for reduce   plan_lock_test.cpp:") != text.npos,
                text);
}

TEST_CASE("plan checks: donated memory has to be reused") {
  CHECK_NOTHROW(sa::require_reuse(plan({})));
  const std::string text = message_of<sa::PlanError>([] { sa::require_reuse(plan({}, false)); });
  CHECK(text.find("require_reuse: memory that is given away becomes no result's. ") == 0);
  CHECK(text.find("or keep it:\n  0.weight: another handle owns it") != text.npos);
  const auto step = sa::jit([](const Array& v) { return sa::sum(v); }, {.donate_args = {0}});
  CHECK_THROWS_AS(sa::require_reuse(sa::explain(step, placed({64, 8}, on_xy(P("x"))))), sa::PlanError);
  const auto same = sa::jit([](const Array& v) { return v * 2; }, {.donate_args = {0}});
  CHECK_NOTHROW(sa::require_reuse(sa::explain(same, placed({64, 8}, on_xy(P("x"))))));
}

TEST_CASE("plan checks: what does not fit is refused with what is large and what would help") {
  const Array x = placed({64, 256}, on_xy(P("x"))), w = placed({256, 1024}, on_xy(P()));
  const sa::Explanation e = sa::explain(
      [](const Array& a, const Array& b) {
        const Array h = sa::matmul(a, b);
        return sa::matmul(sa::tanh(h), sa::transpose(b));
      },
      x, w);
  CHECK_NOTHROW(sa::require_memory(e, e.peak_bytes_per_device));
  const std::string text = message_of<sa::OutOfMemory>([&] { sa::require_memory(e, 1 << 20); });
  CHECK_MESSAGE(text.find("require_memory: a device needs ") == 0, text);
  CHECK_MESSAGE(text.find(", and may need 1048.6 KB. Save ") != text.npos, text);
  CHECK_MESSAGE(text.find("\nlargest pieces\n  1048.6 KB  f32[256,1024] argument 1\n") != text.npos, text);
  // All devices hold w: seven eighths of it are saved.
  CHECK_MESSAGE(text.find("\nwhat would save memory\n  up to  917.5 KB: shard argument 1 f32[256,1024] over "
                          "the 8 devices that each "
                          "hold it\n") != text.npos,
                text);
  CHECK_MESSAGE(text.find(": recompute instead of keeping, by checkpoint()") != text.npos, text);
  CHECK_MESSAGE(text.find(": take half of a batch at a time") != text.npos, text);
  const sa::Explanation twice = sa::explain([](const Array& a) { return a * 2; }, x);
  const std::string donate = message_of<sa::OutOfMemory>([&] { sa::require_memory(twice, 1); });
  CHECK_MESSAGE(donate.find(": donate arguments whose memory results can take") != donate.npos, donate);
  const sa::Explanation without = sa::explain([] { return sa::ones(300) + 1; });  // nothing could be donated
  CHECK(message_of<sa::OutOfMemory>([&] { sa::require_memory(without, 1); }).find("donate") ==
        std::string::npos);
  CHECK_THROWS_AS(sa::require_memory(e, 1 << 20), sa::OutOfMemory);
  CHECK(message_of<sa::Error>([&] { sa::require_memory(e, 0); }).find("require_memory: 0 bytes. ") == 0);
}

TEST_CASE("plan lock: JSON has what explain has") {
  sa::TransferInfo sum = transfer("all_reduce", 56, "step.cpp:12");
  sum.received = {56, 40};
  const auto j = nlohmann::json::parse(sa::plan_json(plan({sum}, false)));
  CHECK(j["received_bytes_per_device"] == 56);
  CHECK(j["peak_bytes_per_device"] == 100);
  CHECK(j["flops"] == 7);
  CHECK(j["steps_per_device"] == 0);
  REQUIRE(j["transfers"].size() == 1);
  const auto& t = j["transfers"][0];
  CHECK(t["kind"] == "all_reduce");
  CHECK(t["axes"] == "{x}");
  CHECK(t["reason"] == "because");
  CHECK(t["op"] == "sum");
  CHECK(t["source"] == "step.cpp:12");
  CHECK(t["bytes_per_device"] == 56);
  CHECK(t["received"] == nlohmann::json::array({56, 40}));
  CHECK(t["gap"] == 1.25);
  CHECK(t["moved_bytes"] == 168);
  CHECK(t["shape"] == nlohmann::json::array({8, 4}));
  CHECK(t["dtype"] == "float32");
  CHECK(t["runner_up"] == "112 B by nothing");
  CHECK(j["donations"][0]["path"] == "0.weight");
  CHECK(j["donations"][0]["reused"] == false);
  CHECK(j["donations"][0]["reason"] == "another handle owns it");
}

}  // namespace plan_lock_test
