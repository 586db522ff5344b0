// The fakes of cuBLASLt and NCCL themselves (tests/cuda/), in separate processes: they refuse what the documentation forbids.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cuda/product_plan.h"
#include "cuda_stand_ins.h"

namespace cuda_fake_libraries_test {

using namespace shardarray;
using namespace shardarray::stand_ins_test;
using namespace shardarray::testing;
using cuda::CublasLt;
using cuda::Driver;
using cuda::Nccl;
using cuda::Stream;

// ---------------------------------------------------------------- cuBLASLt
namespace {

constexpr int lt_no_room = 3, lt_invalid = 7, lt_unsupported = 15;
const CublasLt& lt() { return fake_control().cublas_lt(); }

/// A product of ones, 4 x 6 by 6 x 5, with whatever the stand-in thinks is the fastest algorithm for it.
struct ProductOfOnes {
  static constexpr std::size_t floats = 64;  // of each matrix's memory, which is more than it needs
  Stream stream = stream_on(0);
  CublasLt::Handle handle = nullptr;
  cuda::ProductPlan plan;
  void* first = memory_of(std::vector<float>(floats, 1), stream);
  void* second = memory_of(std::vector<float>(floats, 1), stream);
  void* result = memory_of(std::vector<float>(floats, 0), stream);
  void* workspace = nullptr;

  ProductOfOnes() {
    REQUIRE(lt().create(&handle) == 0);
    cuda::ProductCall call;
    call.first = {{{0, 0}}, 4, 6, 4, 0, 64};
    call.second = {{{1, 0}}, 6, 5, 6, 0, 64};
    call.result = {{{2, 0}}, 4, 5, 4, 0, 64};
    plan = cuda::describe_product(lt(), call);
    const CublasLt::Preference preference = cuda::product_preference(lt(), call, std::size_t{4} << 20);
    CublasLt::Candidate found[8];
    int count = 0;
    REQUIRE(lt().find_algorithms(handle, &plan.product, &plan.first, &plan.second, &plan.result, &plan.result,
                                 &preference, 8, found, &count) == 0);
    const auto* const best =
        std::find_if(found, found + count, [](const CublasLt::Candidate& c) { return c.status == 0; });
    REQUIRE(best != found + count);
    REQUIRE(best->workspace > 0);
    plan.algorithm = best->algorithm;
    plan.workspace = best->workspace;
    workspace = memory(plan.workspace + 256);
  }
  int multiply(const cuda::ProductPlan& p, void* with, Stream s) const {
    return cuda::multiply(lt(), handle, p, first, second, nullptr, result, with, s);
  }
  int multiply(const cuda::ProductPlan& p) const { return multiply(p, workspace, stream); }
  int multiply_scaled(float one, float zero, void* added) const {
    return lt().multiply(handle, &plan.product, &one, first, &plan.first, second, &plan.second, &zero, added,
                         &plan.result, result, &plan.result, &plan.algorithm, workspace, plan.workspace,
                         stream);
  }
  CublasLt::Layout layout(int type, std::uint64_t rows, std::uint64_t columns, std::int64_t ld) const {
    CublasLt::Layout l;
    REQUIRE(lt().layout_init(&l, sizeof l, type, rows, columns, ld) == 0);
    return l;
  }
};

}  // namespace

TEST_CASE("cuda process: what cuBLASLt is not asked for" * doctest::skip()) {
  const Stream other_gpu = stream_on(1);
  const ProductOfOnes p;
  REQUIRE(p.multiply(p.plan) == 0);
  CHECK(content<float>(p.result, 21, p.stream)[19] == 6);
  CHECK(content<float>(p.result, 21, p.stream)[20] == 0);
  const std::uint64_t made = fake_control().products(0);

  // Descriptions.
  CublasLt::Layout l = p.layout(CublasLt::real32, 4, 5, 4);
  const std::int64_t two = 2;
  CHECK(lt().layout_init(&l, sizeof l - 1, CublasLt::real32, 4, 5, 4) == lt_no_room);
  CHECK(lt().layout_set(&l, CublasLt::batch_count, &two, sizeof two) == lt_invalid);
  CHECK(lt().layout_set(&l, CublasLt::batch_count, nullptr, 4) == lt_invalid);
  CHECK(lt().layout_set(&l, 99, &two, 4) == lt_unsupported);
  CublasLt::Product product = p.plan.product;
  CHECK(lt().product_set(&product, CublasLt::transpose_first, &two, sizeof two) == lt_invalid);
  CHECK(lt().product_set(&product, 99, &two, 4) == lt_unsupported);

  // Matrices that do not fit.
  const auto refused = [&](int status, const auto& change) {
    cuda::ProductPlan changed = p.plan;
    change(changed);
    CHECK(p.multiply(changed) == status);
    CublasLt::Candidate candidate;
    CHECK(lt().check_algorithm(p.handle, &changed.product, &changed.first, &changed.second, &changed.result,
                               &changed.result, &changed.algorithm, &candidate) == status);
  };
  using Plan = cuda::ProductPlan;
  refused(lt_invalid, [&](Plan& c) { c.first = p.layout(CublasLt::real32, 4, 7, 4); });
  refused(lt_invalid, [&](Plan& c) { c.first = p.layout(CublasLt::real32, 4, 6, 3); });
  refused(lt_invalid, [&](Plan& c) { c.result = p.layout(CublasLt::real32, 5, 4, 5); });
  refused(lt_invalid, [&](Plan& c) {
    const std::int32_t batch = 2;
    CHECK(lt().layout_set(&c.second, CublasLt::batch_count, &batch, sizeof batch) == 0);
  });
  refused(lt_unsupported, [&](Plan& c) { c.second = p.layout(CublasLt::real64, 6, 5, 6); });
  refused(lt_unsupported, [&](Plan& c) { c.result = p.layout(CublasLt::real16, 4, 5, 4); });
  refused(lt_unsupported, [&](Plan& c) {  // an epilogue, which this one has none of
    const std::uint32_t relu = CublasLt::relu;
    CHECK(lt().product_set(&c.product, CublasLt::epilogue, &relu, sizeof relu) == 0);
  });
  refused(lt_invalid, [&](Plan& c) { c.algorithm = {}; });

  // Calls.
  cuda::ProductPlan poor = p.plan;
  poor.workspace--;
  CHECK(p.multiply(poor) == lt_invalid);
  CHECK(p.multiply(p.plan, nullptr, p.stream) == lt_invalid);
  CHECK(p.multiply(p.plan, behind(p.workspace, 64), p.stream) == lt_invalid);   // not 256-byte aligned
  CHECK(p.multiply(p.plan, behind(p.workspace, 512), p.stream) == lt_invalid);  // not so much
  CHECK(p.multiply(p.plan, p.workspace, other_gpu) == lt_invalid);
  CHECK(p.multiply_scaled(2, 0, p.result) == lt_invalid);
  CHECK(p.multiply_scaled(1, 1, p.result) == lt_invalid);
  CHECK(p.multiply_scaled(1, 0, p.first) == lt_invalid);
  CHECK(p.multiply_scaled(1, 0, p.result) == 0);
  CHECK(fake_control().products(0) == made + 1);
}

TEST_CASE("cuda process: a matrix that is not where it should be" * doctest::skip()) {
  ProductOfOnes p;
  const std::string where = std::getenv("SHARDARRAY_TEST_WHERE");
  if (where == "end")
    p.result = behind(p.result, ProductOfOnes::floats * 4 - 64);  // 80 bytes are too many there
  if (where == "host") p.second = pinned_memory(256);
  if (where == "unaligned") p.first = behind(p.first, 32);
  CHECK(p.multiply(p.plan) == 0);  // the library cannot know
  driver().stream_synchronize(p.stream);
  std::printf("went well\n");
}

TEST_CASE("cuda stand-ins: cuBLASLt refuses what does not fit, and a matrix that is not there ends it") {
  const std::string there = "SHARDARRAY_FAKE_CUBLASLT=1 ";
  on_fake("cuda process: what cuBLASLt is not asked for", there + two_gpus);
  const auto at = [&](const std::string& where) {
    return fake_process("cuda process: a matrix that is not where it should be",
                        there + "SHARDARRAY_TEST_WHERE=" + where);
  };
  const Ended fine = at("there");
  CHECK_MESSAGE((fine.status == 0 && fine.text.find("went well") != fine.text.npos), fine.text);
  for (const char* const where : {"end", "host", "unaligned"}) {
    const Ended e = at(where);
    CHECK(e.status != 0);
    CHECK_MESSAGE(e.text.find("fake cuBLASLt: a matrix is not where it was said to be") != e.text.npos,
                  e.text);
    CHECK_MESSAGE(e.text.find("went well") == e.text.npos, e.text);
  }
}

// ---------------------------------------------------------------- NCCL
TEST_CASE("cuda process: what NCCL is not asked for" * doctest::skip()) {
  const Driver& d = driver();
  const Nccl& n = fake_control().nccl();
  constexpr std::size_t count = 8;
  constexpr int invalid_argument = 4, later = Nccl::in_progress, misuse = Nccl::invalid_usage;
  Stream s[2];
  void* p[2];
  for (const int g : {0, 1}) {
    s[g] = stream_on(g);
    p[g] = memory_of(std::vector<std::int32_t>(count, g + 1), s[g]);
  }
  std::uint64_t refusals = 0;
  const auto refused = [&](int status, int got) {
    CHECK(got == status);
    CHECK(fake_control().nccl_misuse() == ++refusals);
  };
  /// What its end gives.
  const auto group = [&](const auto& calls) {
    REQUIRE(n.group_start() == 0);
    calls();
    return n.group_end();
  };
  Nccl::Rank ranks[2] = {};
  Nccl::Id id;
  Nccl::Config config, waiting;
  waiting.blocking = 1;
  REQUIRE(n.get_unique_id(&id) == 0);
  const auto init = [&](int rank, Nccl::Config& c) {
    REQUIRE(d.set_device(rank) == 0);
    return n.init_rank(&ranks[rank], 2, id, rank, &c);
  };
  const auto wait = [&] {
    for (const Nccl::Rank r : ranks)
      for (int state = later; state == later;) REQUIRE(n.get_async_error(r, &state) == 0);
  };
  const auto sum = [&](int rank, std::size_t elements, int on) {
    return n.all_reduce(p[rank], p[rank], elements, Nccl::int32, Nccl::sum, ranks[rank], s[on]);
  };

  refused(misuse, init(0, config));  // outside of a group
  CHECK(group([&] { refused(misuse, init(0, waiting)); }) == misuse);
  refused(misuse, n.group_end());
  CHECK(group([&] {
          for (const int r : {0, 1}) CHECK(init(r, config) == later);
        }) == later);
  CHECK(group([&] { refused(misuse, sum(0, count, 0)); }) == misuse);  // it is not made yet
  wait();

  refused(misuse, sum(0, count, 0));
  CHECK(group([] {}) == 0);  // which no group heard of
  CHECK(group([&] { refused(invalid_argument, sum(0, count + 1, 0)); }) == invalid_argument);
  CHECK(group([&] { refused(invalid_argument, sum(0, count, 1)); }) == invalid_argument);
  refused(misuse, group([&] { CHECK(n.send(p[0], count, Nccl::int32, 1, ranks[0], s[0]) == 0); }));
  refused(misuse, group([&] {
            CHECK(n.send(p[0], count, Nccl::int32, 1, ranks[0], s[0]) == 0);
            CHECK(n.receive(p[1], count, Nccl::int32, 1, ranks[1], s[1]) == 0);
          }));

  CHECK(group([&] {
          for (const int r : {0, 1}) CHECK(sum(r, count, r) == 0);
        }) == later);
  CHECK(group([&] { refused(misuse, sum(0, count, 0)); }) == misuse);  // it does not stand in the stream yet
  wait();
  for (const int g : {0, 1}) {
    REQUIRE(d.set_device(g) == 0);
    CHECK(content<std::int32_t>(p[g], count, s[g]) == std::vector<std::int32_t>(count, 3));
  }

  int state = 0;
  CHECK(n.abort(ranks[0]) == 0);
  refused(misuse, n.abort(ranks[0]));
  refused(misuse, n.get_async_error(ranks[0], &state));
  CHECK(group([&] { refused(misuse, sum(0, count, 0)); }) == misuse);
}

TEST_CASE(
    "cuda stand-ins: NCCL refuses calls outside of groups, before their time, of other memory, after the "
    "end") {
  on_fake("cuda process: what NCCL is not asked for", two_gpus + " SHARDARRAY_FAKE_NCCL=there");
}

}  // namespace cuda_fake_libraries_test
