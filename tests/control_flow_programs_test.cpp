// Programs with scan: JAX's numbers, training loops, their memory and transfers, types of carries, messages.
#include <functional>
#include <map>
#include <random>

#include "golden.h"
#include "program_of.h"
#include "transforms_helpers.h"

namespace control_flow_programs_test {

namespace sa = shardarray;
using program_test::on_xy;
using program_test::prepare;
using sa::Array;
using sa::P;
using sa::Shape;
using transforms_test::error;

namespace {

using Arrays = std::vector<Array>;

void check_same(const Arrays& got, const Arrays& want) {
  REQUIRE(got.size() == want.size());
  for (std::size_t k = 0; k < got.size(); k++)
    CHECK(golden::close(got[k].to_vector<double>(), want[k].to_vector<double>(), 2e-5, 2e-5));
}

}  // namespace

TEST_CASE("control flow: JAX's values and gradients") {
  using Step = std::function<std::pair<Arrays, Array>(const Array& p, const Arrays& c, const Arrays& x)>;
  const auto lstm = [](const Array& p, const Arrays& c, const Arrays& x) {
    const auto parts = sa::split(sa::matmul(sa::concatenate({x[0], c[0]}, -1), p), 4, -1);
    const Array cell = sa::sigmoid(parts[1]) * c[1] + sa::sigmoid(parts[0]) * sa::tanh(parts[2]);
    const Array h = sa::sigmoid(parts[3]) * sa::tanh(cell);
    return std::pair(Arrays{h, cell}, h);
  };
  const auto newton = [](const Array& p, const Arrays& c, const Arrays&) {
    return std::pair(Arrays{0.5 * (c[0] + p / c[0])}, c[0]);
  };
  const auto logistic_map = [](const Array& p, const Arrays& c, const Arrays& x) {
    return std::pair(Arrays{p * c[0] * (1 - c[0]) + x[0]}, sa::where(c[0] > 0.5, 1, 0));
  };
  const std::map<std::string, Step> steps{{"lstm", lstm}, {"newton", newton}, {"logistic_map", logistic_map}};
  const golden::Json cases = golden::load("control_flow.json")["cases"];
  for (const golden::Json& c : cases) {
    CAPTURE(c["name"].get<std::string>());
    sa::ScanOptions o{.reverse = c["reverse"].get<bool>()};
    if (!c["length"].is_null()) o.length = c["length"].get<std::int64_t>();
    const auto arrays = [](const golden::Json& list, const P& spec) {
      Arrays all;
      for (const golden::Json& a : list) all.push_back(sa::device_put(golden::array(a), on_xy(spec)));
      return all;
    };
    const Step& step = steps.at(c["name"]);
    const Array parameters = golden::array(c["parameters"]);
    for (const P& rows : {P(), P("x"), P("y")}) {
      const Arrays carry = arrays(c["carry"], rows), xs = arrays(c["xs"], P(sa::none, "x"));
      const auto run = [&](const Array& p, const Arrays& first) {
        return sa::scan([&](const Arrays& a, const Arrays& x) { return step(p, a, x); }, first, xs, o);
      };
      const auto loss = [&](const Array& p, const Arrays& first) {
        const auto [last, ys] = run(p, first);
        Array total = sa::is_floating(ys.dtype()) ? sa::sum(sa::sin(ys)) : sa::zeros({});
        for (const Array& a : last) total = total + sa::sum(sa::sin(a));
        return total;
      };
      const auto [last, ys] = sa::jit(run)(parameters, carry);
      CHECK(golden::close(ys, c["ys"], 2e-6, 2e-6));
      const auto [of_parameters, of_carry] = sa::jit(sa::grad<0, 1>(loss))(parameters, carry);
      CHECK(golden::close(of_parameters, c["gradient"], 2e-5, 2e-5));
      for (std::size_t k = 0; k < carry.size(); k++) {
        CHECK(golden::close(last[k], c["last"][k], 2e-6, 2e-6));
        CHECK(golden::close(of_carry[k], c["carry_gradient"][k], 2e-5, 2e-5));
      }
    }
  }
}

TEST_CASE("control flow: a training loop in one program is the loop of its steps") {
  struct Model {
    Array weight, bias;
  };
  const auto mesh = sa::make_mesh({{"data", 8}});
  const Array x = sa::sin(sa::reshape(sa::arange(10.0 * 16 * 3), {10, 16, 3})), y = sa::sum(x, 2);
  const auto loss = [](const Model& m, const Array& a, const Array& b) {
    const Array error = sa::matmul(a, m.weight) + m.bias - b;
    return sa::mean(error * error);
  };
  const auto update = [&](const Model& m, const Array& a, const Array& b) {
    const auto [value, g] = sa::value_and_grad(loss)(m, a, b);
    return std::pair(Model{m.weight - 0.1 * g.weight, m.bias - 0.1 * g.bias}, value);
  };
  const Model start{sa::zeros({3}), sa::zeros({})};
  Model one = start;
  Arrays losses;
  for (int k = 0; k < 10; k++) {
    auto [next, value] = update(one, x[k], y[k]);
    one = next;
    losses.push_back(value);
  }
  const auto train = sa::jit([&](const Model& m, const std::pair<Array, Array>& batches) {
    return sa::scan(
        [&](const Model& c, const std::pair<Array, Array>& b) { return update(c, b.first, b.second); }, m,
        batches);
  });
  const auto cut = [&](const Array& a) {
    return sa::device_put(a, sa::NamedSharding(mesh, P(sa::none, "data")));
  };
  const auto [model, values] = train(start, std::pair(cut(x), cut(y)));
  check_same({model.weight, model.bias, values}, {one.weight, one.bias, sa::stack(losses)});
  CHECK(model.weight.sharding().is_fully_replicated());
}

TEST_CASE(
    "control flow: a program grows neither with the number of steps nor its memory with what nobody reads") {
  const auto run = [](const Array& h, const Array& xs) {
    return sa::scan([](const Array& c, const Array& x) { return std::pair(sa::tanh(c + x), c); }, h, xs)
        .first;
  };
  const auto program = [&](std::int64_t length) {
    return prepare(sa::jit(run), sa::zeros({100}), sa::zeros({length, 100})).loaded;
  };
  const auto few = program(2), many = program(1000);
  CHECK(few->compiled.program->steps.size() == many->compiled.program->steps.size());
  CHECK(few->compiled.program->scratch_bytes[0] == many->compiled.program->scratch_bytes[0]);
  CHECK(many->compiled.program->scratch_bytes[0] <= 1024);  // a second buffer of the carry, scratch of a step
  const sa::Program& p = *many->compiled.program;
  const auto* call = std::get_if<sa::ProgramCall>(&p.steps[0].body);
  REQUIRE(call != nullptr);
  CHECK(call->trip == 1000);
  CHECK(call->program->steps.size() == 1);  // carries are written where the next step reads them: no copy
}

TEST_CASE("control flow: what a loop keeps") {
  const auto peak = [](const auto& f, const auto&... x) {
    return prepare(f, x...).loaded->compiled.program->peak_bytes[0];
  };
  // A counter, not all of its values.
  const auto count = sa::jit([](const Array& v) {
    return sa::fori_loop(
        0, 100'000'000, [](const Array& k, const Array& c) { return c + k; }, v);
  });
  CHECK(peak(count, sa::zeros({})) < 4096);
  // Values that never change are not stored per step, whether carried or captured.
  struct State {
    Array h, table;
  };
  const Array h = sa::zeros({}), table = sa::ones({1000}), xs = sa::ones({500});
  const auto carried = sa::jit(sa::grad([](const State& s, const Array& v) {
    const auto step = [](const State& c, const Array& x) {
      return std::pair(State{sa::tanh(c.h * x + sa::sum(c.table)), c.table}, sa::none);
    };
    return sa::sum(sa::scan(step, s, v).first.h);
  }));
  const auto captured = sa::jit(sa::grad([](const State& s, const Array& v) {
    const auto step = [&](const Array& c, const Array& x) {
      return std::pair(sa::tanh(c * x + sa::sum(s.table)), sa::none);
    };
    return sa::sum(sa::scan(step, s.h, v).first);
  }));
  CHECK(peak(carried, State{h, table}, xs) == peak(captured, State{h, table}, xs));
  CHECK(peak(carried, State{h, table}, xs) < 60'000);
  check_same(sa::tree_leaves(carried(State{h, table}, xs)), sa::tree_leaves(captured(State{h, table}, xs)));
}

TEST_CASE("control flow: a donated first carry is the result's memory after an even number of steps") {
  for (const std::int64_t length : {1, 2, 3, 4}) {
    const auto f = [length](const std::pair<Array, Array>& c) {
      const auto step = [](const std::pair<Array, Array>& s, sa::none_t) {
        return std::pair(std::pair(s.second + 1, s.first * 2), sa::none);
      };
      return sa::scan(step, c, sa::none, {.length = length}).first;
    };
    const auto g = sa::jit(f, {.donate_args = {0}});
    const auto fresh = [] { return std::pair(sa::arange(1000.0) + 0, sa::arange(1000.0) * 3); };
    const auto donations = sa::explain(g, fresh()).donations();
    REQUIRE(donations.size() == 2);
    CHECK(donations[0].reused == (length % 2 == 0));
    const auto want = f(fresh());
    const auto got = g(fresh());
    CHECK(got.first.to_vector<float>() == want.first.to_vector<float>());
    CHECK(got.second.to_vector<float>() == want.second.to_vector<float>());
  }
}

TEST_CASE("control flow: policy strict refuses what steps move and nobody asked for") {
  const Array c = program_test::placed({8, 8}, on_xy(P("x"))),
              xs = program_test::placed({5, 8, 8}, on_xy(P(sa::none, "x", "y")));
  const auto turns = sa::jit([](const Array& v) {
    const sa::policy::strict here;
    return sa::fori_loop(
        0, 4, [](const Array&, const Array& a) { return sa::transpose(a) * 0.5; }, v);
  });
  const auto refused = [&](const auto& f, const Array& x, const std::string& what) {
    const std::string text = error<sa::ShardingError>([&] { sa::explain(f, x); });
    CAPTURE(text);
    CHECK(text.find("result of a step: policy strict ") == 0);
    CHECK(text.find("policy strict refuses an implicit " + what) != std::string::npos);
  };
  refused(turns, c, "all_to_all over {x}");
  const auto means = sa::jit([](const Array& v) {
    const sa::policy::strict here;
    return sa::scan([](const Array& n, const Array& x) { return std::pair(n + 1, sa::mean(x)); }, Array(0), v)
        .second;
  });
  refused(means, xs, "all_reduce over {x,y}");
  // If steps leave a carry in another layout than it came in, it is resharded once, before the first step.
  const auto settled = sa::jit([&](const Array& v) {
    return sa::fori_loop(
        0, 4, [&](const Array&, const Array& a) { return a * 0.5 + xs[0]; }, v);
  });
  CHECK(sa::explain(settled, program_test::placed({8, 8}, on_xy(P("y", "x")))).transfers().size() == 1);
}

TEST_CASE("control flow: what moves in a step is planned and counted for every step") {
  const auto steps = sa::jit([](const Array& xs) {
    return sa::scan([](const Array& c,
                       const Array& x) { return std::pair(sa::tanh(c + sa::sum(x, 0)), sa::none); },
                    sa::zeros({4}), xs)
        .first;
  });
  const Array xs = program_test::placed({5, 16, 4}, on_xy(P(sa::none, "x")));
  const auto transfers = sa::explain(steps, xs).transfers();
  REQUIRE(transfers.size() == 1);
  CHECK(transfers[0].kind == "all_reduce");
  CHECK(transfers[0].reason.find("(5 times)") != std::string::npos);
  program_test::check_received(steps, xs);
  // What every device has of the batch it carries on: nothing moves, also where the first carry lies nowhere yet.
  const auto rows = sa::jit([](const Array& v) {
    return sa::scan([](const Array& c, const Array& x) { return std::pair(sa::tanh(c + x), c); },
                    sa::zeros({16, 4}), v);
  });
  CHECK(sa::explain(rows, xs).transfers().empty());
  CHECK(rows(xs).first.sharding().to_string() ==
        program_test::placed({16, 4}, on_xy(P("x"))).sharding().to_string());
}

TEST_CASE("control flow: what steps add up is combined once, behind the last one") {
  const Array xs = program_test::placed({5, 16, 4}, on_xy(P(sa::none, "x", "y")));
  const Array w = program_test::placed({4, 4}, on_xy(P()));
  const auto total = [](const Array& v) {
    return sa::scan([](const Array& c, const Array& x) { return std::pair(c + sa::sum(x, 0), sa::none); },
                    sa::zeros({4}), v)
        .first;
  };
  CHECK(program_test::transfers(sa::explain(sa::jit(total), xs)) ==
        "all_reduce{x} 12");  // 2 (4 - 1) / 4 of [2]
  program_test::check_received(sa::jit(total), xs);
  check_same({sa::jit(total)(xs)}, {sa::sum(sa::sum(xs, 0), 0)});
  // The gradient of what is the same in all steps.
  const Array rows = sa::device_put(xs, on_xy(P(sa::none, "x")));
  const auto loss = [&](const Array& u) {
    return sa::sum(
        sa::scan([&](const Array& h,
                     const Array& x) { return std::pair(sa::tanh(sa::matmul(h, u) + x), sa::none); },
                 sa::zeros({16, 4}), rows)
            .first);
  };
  const auto gradient = sa::jit(sa::grad(loss));
  CHECK(program_test::transfers(sa::explain(gradient, w)) ==
        "all_reduce{x} 48");  // of [4, 2]: y takes columns
  const auto one = [&](const Array& u) {
    Array h = sa::zeros({16, 4});
    for (int k = 0; k < 5; k++) h = sa::tanh(sa::matmul(h, u) + rows[k]);
    return sa::sum(h);
  };
  check_same({gradient(w)}, {sa::grad(one)(w)});
  // In the order of the steps where bits are asked for.
  const sa::reproducible mode(true);
  CHECK(sa::explain(sa::jit(total), xs).transfers()[0].reason.find("(5 times)") != std::string::npos);
}

TEST_CASE("control flow: sums that steps carry and read from each other have the values of one device") {
  std::mt19937 rng(5);
  // Carries begin as zeros; each becomes a sum of some of them and of products over a cut dimension, in any order.
  for (int round = 0; round < 12; round++) {
    CAPTURE(round);
    const std::size_t count = 2 + rng() % 3;
    std::vector<unsigned> reads, products;
    for (std::size_t k = 0; k < count; k++) {
      const bool keeps = rng() % 2 == 0;
      reads.push_back(static_cast<unsigned>(rng() % (1u << count)) | (keeps ? 1u << k : 0u));
      products.push_back(static_cast<unsigned>(rng() % 4));
    }
    const auto loop = [&](const Array& x, const Array& y) {
      const auto step = [&](const Arrays& c, const Array& row) {
        const Array sums[] = {sa::matmul(row, y), sa::matmul(row * row, y)};  // over what the devices share
        Arrays next;
        for (std::size_t k = 0; k < count; k++) {
          Array a = products[k] < 2 ? sums[products[k]] : products[k] == 2 ? sa::zeros({4, 4}) : c[k] * 0.5;
          for (std::size_t j = 0; j < count; j++)
            if (reads[k] >> j & 1) a = a + c[j];
          next.push_back(a);
        }
        return std::pair(next, next[count - 1] * 1);
      };
      const auto [last, rows] = sa::scan(step, Arrays(count, sa::zeros({4, 4})), x);
      Arrays all = last;
      all.push_back(rows);
      return all;
    };
    const Array x = sa::sin(sa::arange(96.0)).reshape(3, 4, 8), y = sa::cos(sa::arange(32.0)).reshape(8, 4);
    const Arrays want = sa::jit(loop)(x, y);
    const auto mesh = sa::make_mesh({{"x", 2}, {"y", 4}});
    for (const bool both : {false, true}) {
      const P on = both ? P(sa::none, sa::none, sa::axes("x", "y")) : P(sa::none, "x", "y");
      check_same(
          sa::jit(loop)(sa::device_put(x, sa::NamedSharding(mesh, on)),
                        sa::device_put(y, sa::NamedSharding(mesh, both ? P(sa::axes("x", "y")) : P("y")))),
          want);
    }
  }
}

TEST_CASE("control flow: types of carries") {
  const auto last = [](const Array& init, auto f) {
    return sa::scan([&](const Array& c, sa::none_t) { return std::pair(f(c), sa::none); }, init, sa::none,
                    {.length = 3})
        .first;
  };
  // A weak carry becomes what a step makes of it.
  CHECK(last(Array(0), [](const Array& c) { return c + 1; }).dtype() == sa::int32);
  CHECK(last(Array(0), [](const Array& c) { return c + 1; }).weak_type());
  CHECK(last(Array(0), [](const Array& c) { return c + 0.5; }).item<float>() == 1.5f);
  CHECK(last(Array(1.0), [](const Array& c) { return c * sa::ones({}, sa::float64); }).dtype() ==
        sa::float64);
  CHECK(last(sa::zeros({}), [](const Array&) { return Array(2.0); }).item<float>() == 2);
  CHECK_FALSE(last(sa::zeros({}), [](const Array&) { return Array(2.0); }).weak_type());
  // It never becomes less than it is.
  const auto step_to = [&](const Array& init, const Array& next) {
    return error<sa::DTypeError>([&] { last(init, [&](const Array&) { return next; }); });
  };
  CHECK(step_to(Array(1.5), Array(2)) ==
        "scan: the carry is f32[] before a step and i32[] behind it. A carry keeps its dtype. Convert with "
        "astype inside the step or before the first one.");
  CHECK(step_to(Array(-1.5), sa::zeros({}, sa::int32)).find("the carry is f32[] before a step and i32[]") !=
        std::string::npos);
  CHECK(step_to(Array(5), sa::zeros({}, sa::bool_)).find("the carry is i32[] before a step and bool[]") !=
        std::string::npos);
  CHECK(last(Array(1.5), [](const Array& c) { return c.astype(sa::bfloat16); }).dtype() == sa::bfloat16);
  // No step at all.
  const auto [c, ys] = sa::scan([](const Array& a, const Array& x) { return std::pair(a + 1, x * 2); },
                                Array(5.0), sa::zeros({0, 3}));
  CHECK(c.item<float>() == 5);
  CHECK(ys.shape() == Shape{0, 3});
  CHECK(sa::fori_loop(
            3, 3, [](const Array&, const Array& v) { return v * 2; }, sa::ones({2}))
            .to_vector<float>() == std::vector<float>{1, 1});
  const auto half = [](const Array&, const Array& v) { return v + 0.5; };
  for (const std::int64_t n : {0, 1, 2}) CHECK(sa::fori_loop(0, n, half, Array(0)).dtype() == sa::float32);
  CHECK(error<sa::ShapeError>([] {
          sa::fori_loop(
              2, 1, [](const Array&, const Array&) { return sa::ones({2}); }, sa::zeros({3}));
        }).find("fori_loop: '[1]' of the carry is f32[3] before a step and f32[2] behind it.") == 0);
  // The counter holds all that it counts to.
  const auto highest = [](const Array& k, const Array& v) { return sa::maximum(v, k.astype(sa::int64)); };
  const std::int64_t limit = std::int64_t{1} << 31;
  CHECK(sa::fori_loop(limit - 3, limit + 3, highest, sa::zeros({}, sa::int64)).item<std::int64_t>() ==
        limit + 2);
  CHECK(sa::fori_loop(-limit - 3, -limit + 3, highest, sa::full({}, -2 * limit, sa::int64))
            .item<std::int64_t>() == 2 - limit);
  const auto next = [](const Array&, const Array& v) { return v + 1; };
  CHECK(error<sa::ShapeError>([&] { sa::fori_loop(INT64_MIN, INT64_MAX, next, Array(0)); }) ==
        "fori_loop: from -9223372036854775808 to 9223372036854775807 are 2^63 steps or more. A loop has "
        "fewer. Put "
        "one loop into another.");
  const auto very_long = [&](const Array& v) { return sa::fori_loop(0, INT64_MAX, next, v); };
  CHECK(!sa::explain(sa::jit(very_long), sa::ones({2})).to_string().empty());
  CHECK(sa::fori_loop(
            1, 5, [](const Array& k, const Array& v) { return v * k; }, sa::ones({2}, sa::int32))
            .to_vector<int>() == std::vector<int>{24, 24});
}

TEST_CASE("control flow: messages") {
  const auto run = [](const Array& init, const Array& xs, auto f, sa::ScanOptions o = {}) {
    return [=] { sa::scan(f, init, xs, o); };
  };
  const auto add = [](const Array& c, const Array& x) { return std::pair(c + x, x); };
  const Array zero = sa::zeros({}), x3 = sa::zeros({3});
  CHECK(error<sa::ShapeError>(run(zero, x3, add, {.length = 4})) ==
        "scan: the length is 4, but the sequences have 3. Leave the length out.");
  CHECK(error<sa::ShapeError>(run(zero, zero, add)) ==
        "scan: the sequence is f32[]: it has no leading dimension to step over. Reshape it, or capture it.");
  const auto two = [] {
    sa::scan([](const Array& c, const std::pair<Array, Array>&) { return std::pair(c, sa::none); },
             sa::zeros({}), std::pair(sa::zeros({3}), sa::zeros({4})));
  };
  CHECK(error<sa::ShapeError>(two) ==
        "scan: the sequences have different lengths: '[0]' of the sequence has 3, '[1]' of the sequence has "
        "4. One element of "
        "each is taken at every step. Slice or pad them to one length.");
  const auto keep = [](const Array& c, sa::none_t) { return std::pair(c, sa::none); };
  CHECK(error<sa::ShapeError>([&] { sa::scan(keep, zero, sa::none); }) ==
        "scan: there is no sequence to step over, and no length. Give one: {.length = 10}.");
  CHECK(error<sa::ShapeError>([&] { sa::scan(keep, zero, sa::none, {.length = -1}); }) ==
        "scan: the length is -1. A length is not negative. Give 0 or more.");
  CHECK(error<sa::ShapeError>(run(sa::zeros({1}), x3, add)) == "no such error");
  CHECK(error<sa::ShapeError>(run(zero, sa::zeros({3, 2}), add)) ==
        "scan: the carry is f32[] before a step and f32[2] behind it. A carry keeps its shape. Return it as "
        "it came, or "
        "begin with that shape.");
  CHECK(error<sa::DTypeError>(run(sa::zeros({}, sa::int32), x3, add)) ==
        "scan: the carry is i32[] before a step and f32[] behind it. A carry keeps its dtype. Convert with "
        "astype inside "
        "the step or before the first one.");
  struct State {
    Array a, b;
  };
  const auto drops = [] {
    sa::scan(
        [](const State& s, sa::none_t) {
          return std::pair(State{s.a, Array()}, sa::none);
        },
        State{sa::zeros({}), sa::zeros({})}, sa::none, {.length = 2});
  };
  CHECK(error<sa::TreeError>(drops) ==
        "scan: 'b' of the carry has no array behind a step, but one before it. A step keeps the structure of "
        "the carry. "
        "Return what it takes.");
  const auto adds = [] {
    sa::scan(
        [](const State& s, sa::none_t) {
          return std::pair(State{s.a, s.a}, sa::none);
        },
        State{sa::zeros({}), Array()}, sa::none, {.length = 2});
  };
  CHECK(error<sa::TreeError>(adds) ==
        "scan: 'b' of the carry has an array behind a step, but none before it. A step keeps the structure "
        "of the carry. "
        "Begin with an array.");
  struct Counted {
    Array a;
    int steps = 0;
  };
  const auto counts = [] {
    sa::scan(
        [](const Counted& c, sa::none_t) {
          return std::pair(Counted{c.a, c.steps + 1}, sa::none);
        },
        Counted{sa::zeros({})}, sa::none, {.length = 2});
  };
  CHECK(error<sa::TreeError>(counts) ==
        "scan: the carry has other sizes, keys or static values behind a step: at `steps`. A carry keeps its "
        "structure. Make "
        "what changes an Array, or capture what does not.");
  CHECK(error<sa::DTypeError>([] {
          sa::fori_loop(
              0, 3, [](const Array&, const Array& v) { return v * 0.5; }, sa::ones({}, sa::int32));
        }) ==
        "fori_loop: '[1]' of the carry is i32[] before a step and f32[] behind it. A carry keeps its dtype. "
        "Convert with "
        "astype inside the step or before the first one.");
  const auto prints = [](const Array& c, const Array& x) {
    sa::debug::print("{}", x);
    return std::pair(c, x);
  };
  CHECK(error<sa::TraceError>(run(zero, x3, prints)) ==
        "scan: a step prints or calls the host (debug::print). Steps run on the devices only. Return what is "
        "to "
        "be seen, and "
        "look at it behind the scan.");
}

}  // namespace control_flow_programs_test
