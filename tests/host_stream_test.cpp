// Values as streams of bytes: their values, and what is copied directly between a stream and device memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "execute/host_stream.h"
#include "fake_backend.h"
#include "process_helpers.h"
#include "shardarray/shardarray.h"

namespace host_stream_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

/// The parts of one stream, in their order.
struct Parts {
  std::vector<std::span<const std::byte>> all;
  /// Bytes of parts that lie in a buffer of `v`.
  std::size_t in_place(const Value& v) const {
    std::size_t bytes = 0;
    for (const auto& part : all)
      bytes += std::any_of(v.buffers.begin(), v.buffers.end(),
                           [&](const BufferRef& b) {
                             const auto* const first = static_cast<const std::byte*>(b->data);
                             return part.data() >= first && part.data() < first + b->bytes;
                           })
                   ? part.size()
                   : 0;
    return bytes;
  }
};

/// In and out again: the bytes in place, the same of both ways.
std::size_t in_place(const Type& t, const Sharding& s) {
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(num_elements(t.shape)));
  std::iota(numbers.begin(), numbers.end(), 7);
  const auto wanted = std::as_bytes(std::span(numbers));
  Parts in, out;
  std::size_t at = 0;
  const ValueRef v = stream_from_host("test", t, s, true, [&](std::span<std::byte> to) {
    std::memcpy(to.data(), wanted.data() + at, to.size());
    at += to.size();
    in.all.push_back(to);
  });
  CHECK(at == wanted.size());
  std::vector<std::byte> got;
  stream_to_host("test", *v, t, [&](std::span<const std::byte> part) {
    got.insert(got.end(), part.begin(), part.end());
    out.all.push_back(part);
  });
  CHECK(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
  for (const BufferRef& b : v->buffers)  // replicas too
    if (b->bytes == wanted.size()) {
      b->owner->copy_to_host(got.data(), b, b->bytes);
      CHECK(std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()));
    }
  for (const Parts& parts : {in, out})
    CHECK(std::all_of(parts.all.begin(), parts.all.end(), [](auto p) { return p.size() <= 1 << 20; }));
  CHECK(in.in_place(*v) == out.in_place(*v));
  return in.in_place(*v);
}

}  // namespace

TEST_CASE("files: bytes go straight to and from memory of the host, and elsewhere through 1 MiB") {
  fake_backend();
  const Type t{{8000, 1031}, DType::float32};
  const std::size_t bytes = 4 * 8000 * 1031;
  for (const bool fake : {false, true}) {
    CAPTURE(fake);
    const std::vector<Device> on = devices(fake ? "fake" : "cpu");
    const Mesh mesh({{8}, on}, {"x"});
    CHECK(in_place(t, SingleDeviceSharding(on[3])) == (fake ? 0 : bytes));
    CHECK(in_place(t, NamedSharding(mesh, P())) == (fake ? 0 : bytes));
    set_share_replicas(false);
    CHECK(in_place(t, NamedSharding(mesh, P())) == (fake ? 0 : bytes));
    set_share_replicas(true);
    // A part of the stream that lies in two pieces goes around.
    const std::size_t by_rows = in_place(t, NamedSharding(mesh, P("x")));
    CHECK(by_rows >= (fake ? 0 : bytes / 4 * 3));
    CHECK(by_rows <= (fake ? 0 : bytes));
    CHECK(in_place(t, NamedSharding(mesh, P(none, "x"))) == 0);
    CHECK(in_place({{}, DType::float32}, SingleDeviceSharding(on[0])) == (fake ? 0 : 4));
    CHECK(in_place({{3, 0}, DType::float32}, SingleDeviceSharding(on[0])) == 0);
  }
}

}  // namespace host_stream_test
