// policy::strict, and the transfers of ops that are made of boxes: every transfer is requested or refused, costs its bytes when strategies
// are compared, and is counted as explained. Mesh x=4, y=2.
#include <algorithm>
#include <functional>
#include <string>

#include "golden.h"
#include "layout/spelling.h"
#include "program_of.h"
#include "shardarray/pmap.h"
#include "shardarray/policy.h"
#include "shardarray/shard_map.h"

namespace strict_test {

namespace sa = shardarray;
using program_test::Array;
using program_test::numbers;
using program_test::on_xy;
using program_test::P;
using program_test::placed;
using program_test::planned;
using program_test::Shape;
using program_test::values;
using sa::axes;

namespace {

using Rows = std::int64_t (*)(std::int64_t row);

struct Case {
  std::string name;
  Array (*f)(const Array&);
  /// Of one step over rows: how many there are then, and which of the operand's 16 each is (-1: none of them).
  std::int64_t rows = 0;
  Rows source = nullptr;
  bool adds = false;  ///< its gradient adds up, in the order of the tiles
};

// x: f32[16,8]
const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {"slice", [](const Array& x) { return x[sa::slice(1, sa::none)]; }, 15,
       [](std::int64_t r) { return r + 1; }},
      {"slice, the first half", [](const Array& x) { return x[sa::slice(0, 8)]; }, 8,
       [](std::int64_t r) { return r; }},
      {"slice, columns",
       [](const Array& x) {
         return x[{sa::ellipsis, sa::slice(2, 8)}];
       },
       16, [](std::int64_t r) { return r; }},
      {"flip", [](const Array& x) { return sa::flip(x, 0); }, 16, [](std::int64_t r) { return 15 - r; }},
      {"flip, columns", [](const Array& x) { return sa::flip(x, 1); }},
      {"pad",
       [](const Array& x) {
         return sa::pad(x, {{2, 2}, {0, 0}});
       },
       20, [](std::int64_t r) { return r >= 2 && r < 18 ? r - 2 : -1; }},
      {"concatenate",
       [](const Array& x) {
         return sa::concatenate({x, x}, 0);
       },
       32, [](std::int64_t r) { return r % 16; }},
      {"roll", [](const Array& x) { return sa::roll(x, 1, 0); }},
      {"cumsum", [](const Array& x) { return sa::cumsum(x, 0); }, 0, nullptr, true},
      {"cumsum, columns back", [](const Array& x) { return sa::cumsum(x, {.axis = 1, .reverse = true}); }, 0,
       nullptr, true},
      {"cummax", [](const Array& x) { return sa::cummax(x, 0); }},
      {"stack",
       [](const Array& x) {
         return sa::stack({x, x}, 0);
       }},
  };
  return list;
}

// Rows that the busiest of 4 devices lacks: the operand's and the result's are cut into tiles, rounded up.
std::int64_t missing_rows(const Case& c) {
  const std::int64_t tile = (c.rows + 3) / 4;
  std::int64_t most = 0;
  for (std::int64_t d = 0; d < 4; d++) {
    std::int64_t missing = 0;
    for (std::int64_t r = d * tile; r < std::min(c.rows, (d + 1) * tile); r++)
      missing += c.source(r) >= 0 && c.source(r) / 4 != d;
    most = std::max(most, missing);
  }
  return most;
}

std::string refusal(const std::function<void()>& f) {
  const sa::policy::strict here;
  try {
    f();
  } catch (const sa::ShardingError& e) { return e.what(); }
  return "";
}
bool asked_for(const sa::TransferInfo& t) {
  const auto says = [&](const char* text) { return t.reason.find(text) != std::string::npos; };
  return says("asked for") || says("leave the program") || says("where the program places the result");
}

}  // namespace

TEST_CASE("strict: what is made of boxes moves nothing unasked, on any mesh, or is refused") {
  int refused = 0, let = 0;
  for (const auto& mesh : {sa::make_mesh({{"x", 4}, {"y", 2}}), sa::make_mesh({{"x", 8}, {"y", 1}}),
                           sa::make_mesh({{"x", 2}, {"y", 2}}, {sa::devices()[0], sa::devices()[1],
                                                                sa::devices()[2], sa::devices()[3]})})
    for (const P& spec : {P(), P("x"), P(sa::none, "x"), P("x", "y"), P("y", "x"), P(axes("x", "y"))})
      for (const Case& c : cases())
        for (const bool constrained : {false, true}) {
          const sa::NamedSharding where(mesh, spec);
          const Array x = sa::device_put(numbers({16, 8}), where), plain = c.f(numbers({16, 8}));
          const bool is_placed = constrained && plain.shape().size() == 2;
          const auto f = sa::jit(
              [&](const Array& v) { return is_placed ? sa::filter_shard(c.f(v), where) : sa::tanh(c.f(v)); });
          const sa::Explanation e = sa::explain(f, x);
          const auto all_asked = [](const sa::Explanation& plan) {
            return std::all_of(plan.transfers().begin(), plan.transfers().end(), asked_for);
          };
          bool strict_asked = false;
          const std::string said = refusal([&] { strict_asked = all_asked(sa::explain(f, x)); });
          CAPTURE(c.name);
          CAPTURE(sa::Sharding(where).to_string());
          CAPTURE(e.to_string());
          CAPTURE(said);
          CHECK((said.empty() ? strict_asked : !all_asked(e)));
          if (!said.empty()) CHECK(said.find("strict_test.cpp:") != std::string::npos);
          (said.empty() ? let : refused)++;
          CHECK(values(f(x)) == values(is_placed ? plain : sa::tanh(plain)));
          // What was explained is what is counted.
          program_test::check_received(f, x);
        }
  CHECK(refused > 0);
  CHECK(let > 0);
}

TEST_CASE("strict: the gradient of what was asked for is asked for") {
  for (const auto& mesh : {sa::make_mesh({{"x", 4}, {"y", 2}}), sa::make_mesh({{"x", 8}, {"y", 1}})})
    for (const P& spec : {P("x"), P(sa::none, "x"), P("x", "y"), P(axes("x", "y"))})
      for (const Case& c : cases()) {
        const sa::NamedSharding where(mesh, spec);
        const Array plain = numbers({16, 8}), x = sa::device_put(plain, where);
        if (c.f(plain).shape().size() != 2) continue;
        const auto loss = [&](const Array& v) { return sa::sum(sa::sin(c.f(v))); };
        const auto placed_loss = [&](const Array& v) {
          return sa::sum(sa::sin(sa::filter_shard(c.f(v), where)));
        };
        CAPTURE(c.name);
        CAPTURE(sa::Sharding(where).to_string());
        CHECK(refusal([&] { sa::jit(placed_loss)(x); }) == "");
        Array g;
        CHECK(refusal([&] { g = sa::jit(sa::grad(placed_loss))(x); }) == "");
        const double off = c.adds ? 1e-5 : 0;
        if (g.has_value()) CHECK(golden::close(values(g), values(sa::grad(loss)(plain)), off, off));
      }
}

TEST_CASE("strict: the refusal of neighbours' elements names the place, the bytes and the fix, which helps") {
  const Array x = placed({16, 8}, on_xy(P("x")));
  const auto shifted = [](const Array& v) { return sa::tanh(v[sa::slice(1, sa::none)]); };
  const std::string said = refusal([&] { sa::explain(sa::jit(shifted), x); });
  const std::string text =
      "index: policy strict refuses an implicit exchange over {x} of 32 bytes per device: parts of the "
      "result "
      "f32[15@x,8] come from other devices. Every transfer must be asked for. Say where the "
      "result lies, filter_shard(result, NamedSharding(mesh, P(\"x\"))). Other ways, by bytes:\n  ";
  CHECK(said.substr(0, text.size()) == text);
  const auto fixed = [](const Array& v) {
    return sa::tanh(sa::filter_shard(v[sa::slice(1, sa::none)], on_xy(P("x"))));
  };
  CHECK(refusal([&] { sa::explain(sa::jit(fixed), x); }).empty());
  CHECK(planned(fixed, x) == "exchange{x} 32");
}

TEST_CASE("strict: a refusal has other ways, by bytes, which are what they cost") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto on = [&](const P& p) { return sa::NamedSharding(mesh, p); };
  const Array a = sa::device_put(numbers({16, 16}), on(P("x"))),
              b = sa::device_put(numbers({16, 16}), on(P(sa::none, "x")));
  const auto product = [](const Array& v, const Array& w) { return v * w; };
  const std::string said = refusal([&] { (void)sa::explain(product, a, b); });
  const std::size_t table = said.find(" Other ways, by bytes:\n");
  REQUIRE_MESSAGE(table != said.npos, said);
  CHECK(said.find("Cheapest fix: reshard(operand 1, NamedSharding(mesh, P(\"x\"))) before.") < table);
  CHECK_MESSAGE(said.find("\n  112 B by all_to_all: reshard(operand 0, NamedSharding(mesh, P(none, \"x\")))",
                          table) != said.npos,
                said);
  const auto other = [&](const Array& v, const Array& w) {
    return product(sa::reshard(v, on(P(sa::none, "x"))), w);
  };
  CHECK(refusal([&] { (void)sa::explain(other, a, b); }).empty());
  CHECK(planned(other, a, b) == "all_to_all{x} 112");
}

TEST_CASE("strict: where an axis is needed in parts, the fix makes a mesh that has them, and helps") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const Array a = sa::device_put(numbers({8, 16}), sa::NamedSharding(mesh, P("x"))),
              b = sa::device_put(numbers({4, 32}), sa::NamedSharding(mesh, P(sa::none, "x")));
  const auto sum = [](const Array& v, const Array& w) { return sa::tanh(sa::reshape(v, 4, 32) + w); };
  const std::string said = refusal([&] { (void)sa::explain(sum, a, b); });
  const std::string text =
      "add: policy strict refuses an implicit exchange over {x} of 64 bytes per device for operand 1 "
      "f32[4,32@x]. Every transfer must be asked for. Cheapest fix: reshard(operand 1, "
      "NamedSharding(make_mesh({{\"x1\", 4}, {\"x2\", 2}}, mesh.devices()), P(\"x1\", \"x2\"))) before. The "
      "mesh "
      "needs axis x in parts.";
  CHECK(said.substr(0, text.size()) == text);
  const auto fixed = [&](const Array& v, const Array& w) {
    using sa::make_mesh, sa::NamedSharding;
    return sum(v,
               reshard(w, NamedSharding(make_mesh({{"x1", 4}, {"x2", 2}}, mesh.devices()), P("x1", "x2"))));
  };
  CHECK(refusal([&] { (void)sa::explain(fixed, a, b); }).empty());
  CHECK(planned(fixed, a, b) == "exchange{x1,x2} 64");
  // Names that are taken, parts beside whole axes, sums, and no mesh at all.
  const sa::Mesh taken = sa::make_mesh({{"x", 4}, {"x1", 2}, {"one", 1}});
  const sa::OrderRef order = sa::DeviceOrder::shared(taken.devices());
  const auto code = [&](std::vector<sa::AxisList> dims, const sa::Mesh* m) {
    return sa::sharding_code(*sa::Layout::of(order.get(), std::move(dims)), m).text;
  };
  const std::string made =
      "NamedSharding(make_mesh({{\"x2\", 2}, {\"x3\", 2}, {\"x1\", 2}, {\"one\", 1}}, mesh.devices()), ";
  CHECK(code({{{1, 2}}}, &taken) == made + "P(\"x2\"))");
  CHECK(code({{}, {{2, 4}}}, &taken) == made + "P(none, axes(\"x3\", \"x1\")))");
  CHECK(code({{{1, 4}}, {{4, 2}}}, &taken) == "NamedSharding(mesh, P(\"x\", \"x1\"))");
  CHECK(code({{{1, 2}}, {}}, nullptr) ==
        "NamedSharding(make_mesh({{\"x1\", 2}, {\"x2\", 4}}, devices(\"cpu\")), P(\"x1\"))");
  CHECK(code({{}, {{1, 8}}}, nullptr) ==
        "NamedSharding(make_mesh({{\"x\", 8}}, devices(\"cpu\")), P(none, \"x\"))");
  const std::vector<sa::Device> all = sa::devices();
  const sa::OrderRef two = sa::DeviceOrder::shared({all[5], all[1]});
  CHECK(sa::sharding_code(*sa::Layout::of(two.get(), {{{1, 2}}}), &taken).text ==
        "NamedSharding(make_mesh({{\"x\", 2}}, {devices(\"cpu\")[5], devices(\"cpu\")[1]}), P(\"x\"))");
}

TEST_CASE("strict: the refusal says which operand it is, and what to do where its function made it") {
  const sa::Mesh mesh = sa::make_mesh({{"x", 8}});
  const auto on = [&](const P& p) { return sa::NamedSharding(mesh, p); };
  const Array a = sa::device_put(numbers({16, 16}), on(P("x")));
  const auto square = [](const Array& v) { return sa::matmul(v, v); };
  const std::string said = refusal([&] { (void)sa::explain(square, a); });
  CHECK_MESSAGE(said.find(" for operand 0 of its dot f32[16@x,16]. ") != said.npos, said);
  CHECK(said.find("Cheapest fix: reshard(operand 0, NamedSharding(mesh, P(none, \"x\"))) before.") !=
        said.npos);
  const auto fixed = [&](const Array& v) { return sa::matmul(sa::reshard(v, on(P(sa::none, "x"))), v); };
  CHECK(refusal([&] { (void)sa::explain(fixed, a); }).empty());
  // The median sorts what it takes, along an axis that it has made.
  const auto middle = [](const Array& v) { return sa::median(v); };
  const std::string inner = refusal([&] { (void)sa::explain(middle, a); });
  CHECK_MESSAGE(inner.find("median: policy strict refuses an implicit ") == 0, inner);
  const auto made = [](const char* function) {
    return std::string(" If ") + function +
           " made it, reshard an argument, or allow it: `const policy::auto_ allowed;` around the call.";
  };
  CHECK(inner.find(made("median")) != inner.npos);
  CHECK(said.find(made("matmul")) == said.npos);  // an argument
  const auto chain = [](const Array& v, const Array& w) { return sa::matmul(sa::tanh(v), sa::tanh(w)); };
  CHECK(refusal([&] { (void)sa::explain(chain, a, a); }).find(made("matmul")) != said.npos);
  CHECK(refusal([&] {
          (void)sa::explain([&](const Array& v) { return sa::median(sa::reshard(v, on(P()))); }, a);
        }).empty());
  CHECK(refusal([&] {
          (void)sa::explain(
              [](const Array& v) {
                const sa::policy::auto_ allowed;
                return sa::median(v);
              },
              a);
        }).empty());
}

TEST_CASE("strict: collectives are asked for, and what they give") {
  const Array rows = numbers({8, 16});
  using Body = Array (*)(const Array&);
  const Body bodies[] = {
      [](const Array& v) { return v / (sa::psum(v, "i") * 2 + 0.5); },
      [](const Array& v) { return v - sa::pmax(v, "i"); },
      [](const Array& v) { return v * sa::sum(sa::all_gather(v, "i"), 0); },
      [](const Array& v) {
        return sa::tanh(sa::ppermute(v, "i", {{0, 1}, {1, 2}, {7, 0}}));
      },
      [](const Array& v) {
        return sa::tanh(sa::all_to_all(v.reshape({8, 2}), "i")).reshape({16});
      },
      [](const Array& v) {
        return sa::tanh(sa::psum_scatter(v.reshape({8, 2}), "i"));
      },
      [](const Array& v) { return v + sa::pbroadcast(v, "i", 3); },
  };
  for (std::size_t k = 0; k < std::size(bodies); k++) {
    CAPTURE(k);
    const auto mapped = sa::pmap(bodies[k], {.axis_name = "i"});
    const auto whole = sa::vmap(bodies[k], {.axis_name = "i"});
    const auto by_rows = sa::shard_map(
        [&](const Array& v) {
          return bodies[k](v.reshape({-1})).reshape({1, -1});
        },
        {.mesh = sa::make_mesh({{"i", 8}}), .in_specs = sa::P("i"), .out_specs = sa::P("i")});
    const std::vector<double> want = values(whole(rows));
    const sa::policy::strict here;
    CHECK(golden::close(values(mapped(rows)), want, 1e-6, 1e-6));
    CHECK(golden::close(values(by_rows(rows)), want, 1e-6, 1e-6));
  }
}

TEST_CASE("boxes: neighbours' elements cost what they move") {
  const Array cut = placed({16, 8}, on_xy(P("x")));
  for (const Case& c : cases()) {
    if (!c.source) continue;
    CAPTURE(c.name);
    const auto f = [&](const Array& v) { return sa::filter_shard(c.f(v), on_xy(P("x"))); };
    const std::int64_t bytes = missing_rows(c) * 8 * 4;
    CHECK(planned(f, cut) == (bytes ? "exchange{x} " + std::to_string(bytes) : ""));
  }
  // Reversed rows in the end cut by columns: it is cheaper to turn them there than to turn first.
  const Array x = placed({16, 16}, on_xy(P("x")));
  const auto turned = [](const Array& v) {
    return sa::filter_shard(sa::flip(v, 0), on_xy(P(sa::none, "x")));
  };
  CHECK(planned(turned, x) == "all_to_all{x} 192");
}

TEST_CASE("explain: the lines are those of the function, also where another one has the same program") {
  const auto mesh = sa::make_mesh({{"x", 4}, {"y", 2}});
  const Array x = sa::device_put(numbers({16, 8}), sa::NamedSharding(mesh, P("x")));
  const auto line_of = [&](const auto& f) {
    const auto transfers = sa::explain(f, x).transfers();
    REQUIRE(transfers.size() == 1);
    return transfers[0].source.substr(transfers[0].source.find(':') + 1);
  };
  const auto first = sa::jit([](const Array& v) { return sa::flip(v, 0); });
  const int line = __LINE__ + 1;
  const auto second = sa::jit([](const Array& v) { return sa::flip(v, 0); });
  first(x), second(x);
  CHECK(line_of(first) == std::to_string(line - 2));
  CHECK(line_of(second) == std::to_string(line));
}

TEST_CASE("explain: a search that does not compare all says so") {
  const auto mesh = sa::make_mesh({{"x", 2}, {"y", 2}, {"z", 2}});
  const auto n = sa::none;
  // Three axes, and each may cut any of the dimensions or none: (rank + 1)^3 strategies.
  const auto told = [&](std::size_t rank) {
    const Array zeros = sa::zeros(Shape::filled(rank, 2));
    const Array a = sa::device_put(zeros, sa::NamedSharding(mesh, P("x", "y", "z"))),
                b = sa::device_put(zeros, sa::NamedSharding(mesh, P(n, n, n, "x", "y", "z")));
    return sa::explain(sa::jit([](const Array& v, const Array& w) { return v + w; }), a, b).to_string();
  };
  CHECK(told(16).find("; not all of 4913 strategies compared") != std::string::npos);
  CHECK(told(15).find("not all of") == std::string::npos);
}

}  // namespace strict_test
