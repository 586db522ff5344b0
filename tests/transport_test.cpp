// The seam between programs and what moves their data: faults come out of the call, the rest lives.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>

#include "cpu/exchange/exchange.h"
#include "execute/launch.h"
#include "shardarray/shardarray.h"

namespace transport_test {

namespace sa = shardarray;

namespace {

// Passes on to the transport that was there; when communication number `at` runs, `event` comes first.
class EventfulTransport final : public sa::Transport {
 public:
  EventfulTransport(int at, std::function<void()> event)
      : at_(at), event_(std::move(event)), real_(sa::set_memory_transport(this)) {}
  ~EventfulTransport() override { sa::set_memory_transport(real_); }
  std::unique_ptr<sa::Communication> plan(const sa::Exchange& x, const sa::Exchange::Item& item,
                                          std::uint32_t counters) override {
    return std::make_unique<Eventful>(real_->plan(x, item, counters), planned++ == at_ ? event_ : nullptr);
  }
  int planned = 0;

 private:
  struct Eventful final : sa::Communication {
    Eventful(std::unique_ptr<Communication> real, std::function<void()> event)
        : real(std::move(real)), event(std::move(event)) {}
    std::int64_t fill_units() const override { return real->fill_units(); }
    std::int64_t units() const override { return real->units(); }
    double cost_ns(std::int64_t begin, std::int64_t end) const override { return real->cost_ns(begin, end); }
    void run(void* const* bases, std::int64_t begin, std::int64_t end) const override {
      if (event) event();
      real->run(bases, begin, end);
    }
    std::unique_ptr<Communication> real;
    std::function<void()> event;
  };
  int at_;
  std::function<void()> event_;
  sa::Transport* real_;
};

sa::Array rows(double first) {
  const sa::Sharding over8 = sa::PositionalSharding(sa::create_device_mesh({8}));
  return sa::block_until_ready(sa::device_put(sa::arange(8.0) + first, over8));
}

}  // namespace

TEST_CASE("transport: communication k fails: the caller hears it, nothing hangs, arguments live") {
  sa::set_cpu_device_count(8);
  sa::set_share_replicas(false);
  const sa::Array x = rows(1);
  int count = 1, failed = 0;
  for (int k = 0; k < count; k++) {
    const auto f = sa::pmap(
        [k](sa::Array v) {
          return v / sa::psum(v, "i") + sa::ppermute(v, "i", {{0, 1}}) + k;
        },
        {.axis_name = "i"});
    {
      EventfulTransport faulty(k, [] { throw sa::TransportError("the line is cut"); });
      try {
        sa::block_until_ready(f(x));
      } catch (const sa::TransportError& e) {
        CHECK(std::string(e.what()) == "the line is cut");
        failed++;
      }
      count = faulty.planned;
    }
    CHECK(x.to_vector<float>() == std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
    const auto again = sa::pmap([k](sa::Array v) { return v / sa::psum(v, "i") - k; }, {.axis_name = "i"});
    CHECK(again(x)[0].item<float>() == doctest::Approx(1.0 / 36 - k));
  }
  sa::set_share_replicas(true);
  CHECK(count >= 8);
  CHECK(failed == count);
}

TEST_CASE("transport: while one thread's program runs, others evaluate, the same array too") {
  sa::set_cpu_device_count(8);
  const sa::Array x = rows(1), y = x * 2 - sa::flip(x, 0);
  const std::vector<float> want = {-6, -3, 0, 3, 6, 9, 12, 15};
  // The event stays in the cached program: it outlives this test.
  struct Other {
    std::atomic<bool> begun{false};
    bool ended = false;
    std::function<std::vector<float>()> work;
    std::future<std::vector<float>> result;
  };
  const auto other = std::make_shared<Other>();
  other->work = [&] {
    CHECK((sa::ones({3}) * 3).to_vector<float>() == std::vector<float>(3, 3));
    return y.to_vector<float>();
  };
  const auto event = [other] {
    if (other->begun.exchange(true)) return;
    other->result = std::async(std::launch::async, other->work);
    other->ended = other->result.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  };
  {
    EventfulTransport transport(0, event);
    CHECK(y.to_vector<float>() == want);
  }
  CHECK(other->ended);
  CHECK(other->result.get() == want);
  CHECK((y + 1)[7].item<float>() == 16);
}

TEST_CASE("jit: traces of the two random modes are apart") {
  auto f = sa::jit([](sa::Array key) { return sa::random::bits(key, {3}); });
  const sa::Array key = sa::random::key(3), now = f(key);
  const sa::random::partitionable legacy(false);
  const sa::Array older = f(key);
  CHECK(f.traces() == 2);
  CHECK(older.to_vector<std::uint32_t>() == sa::random::bits(key, {3}).to_vector<std::uint32_t>());
  CHECK(older.to_vector<std::uint32_t>() != now.to_vector<std::uint32_t>());
}

}  // namespace transport_test
