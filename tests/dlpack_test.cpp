// DLPack with a consumer and a producer written from the specification alone.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>

#include "files_helpers.h"
#include "messages.h"

// As the specification writes them: github.com/dmlc/dlpack, include/dlpack/dlpack.h, version 1.1.
extern "C" {
typedef struct {
  std::uint32_t major, minor;
} DLPackVersion;
typedef enum : std::int32_t { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  std::int32_t device_id;
} DLDevice;
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U
} DLDataTypeCode;
typedef struct {
  std::uint8_t code, bits;
  std::uint16_t lanes;
} DLDataType;
typedef struct {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor* self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
}

namespace dlpack_test {

using namespace shardarray;
using namespace shardarray::testing;

static_assert(sizeof(DLManagedTensorVersioned) == sizeof(dlpack::ManagedTensorVersioned) &&
              offsetof(DLManagedTensorVersioned, flags) == offsetof(dlpack::ManagedTensorVersioned, flags) &&
              offsetof(DLManagedTensorVersioned, dl_tensor) ==
                  offsetof(dlpack::ManagedTensorVersioned, dl_tensor));
static_assert(sizeof(DLManagedTensor) == sizeof(dlpack::ManagedTensor) &&
              offsetof(DLManagedTensor, deleter) == offsetof(dlpack::ManagedTensor, deleter));
static_assert(sizeof(DLTensor) == sizeof(dlpack::Tensor) &&
              offsetof(DLTensor, dtype) == offsetof(dlpack::Tensor, dtype) &&
              offsetof(DLTensor, strides) == offsetof(dlpack::Tensor, strides) &&
              offsetof(DLTensor, byte_offset) == offsetof(dlpack::Tensor, byte_offset));

namespace {

DLManagedTensorVersioned* spec(DlpackTensor t) {
  return reinterpret_cast<DLManagedTensorVersioned*>(t.release());
}
DLManagedTensor* spec(LegacyDlpackTensor t) { return reinterpret_cast<DLManagedTensor*>(t.release()); }

/// The elements' bytes as hexadecimal digits, walked by strides.
std::string hex_of(const DLTensor& t) {
  const auto item = static_cast<std::size_t>(t.dtype.bits) / 8;
  std::string r;
  std::vector<std::int64_t> at(static_cast<std::size_t>(t.ndim));
  std::int64_t n = 1;
  for (int d = 0; d < t.ndim; d++) n *= t.shape[d];
  for (std::int64_t k = 0; k < n; k++) {
    std::int64_t rest = k, offset = 0;
    for (int d = t.ndim; d-- > 0; rest /= t.shape[d]) offset += rest % t.shape[d] * t.strides[d];
    const auto* const e =
        static_cast<const unsigned char*>(t.data) + t.byte_offset + static_cast<std::size_t>(offset) * item;
    for (std::size_t b = 0; b < item; b++) {
      r += "0123456789abcdef"[e[b] >> 4];
      r += "0123456789abcdef"[e[b] & 15];
    }
  }
  return r;
}

/// A producer: memory on the heap, exactly as long as its elements, at `misaligned` bytes behind an aligned place.
struct Producer {
  std::vector<std::int64_t> shape, strides;
  std::unique_ptr<unsigned char[]> memory;
  int* deleted = nullptr;
  DLManagedTensorVersioned managed{};
  DLManagedTensor legacy{};
};
template <class T>
Producer* producer(const std::vector<T>& elements, const std::vector<std::int64_t>& shape,
                   DLDataTypeCode code, int* deleted, std::size_t misaligned = 0) {
  auto* const p = new Producer;
  p->shape = shape;
  p->memory = std::make_unique<unsigned char[]>(elements.size() * sizeof(T) + misaligned);
  if (!elements.empty())
    std::memcpy(p->memory.get() + misaligned, elements.data(), elements.size() * sizeof(T));
  p->deleted = deleted;
  DLTensor& t = p->managed.dl_tensor;
  t = {p->memory.get(),
       {kDLCPU, 0},
       static_cast<std::int32_t>(shape.size()),
       {static_cast<std::uint8_t>(code), 8 * sizeof(T), 1},
       p->shape.data(),
       nullptr,
       misaligned};
  p->managed.version = {1, 0};
  p->managed.manager_ctx = p;
  p->managed.deleter = [](DLManagedTensorVersioned* self) {
    auto* const mine = static_cast<Producer*>(self->manager_ctx);
    ++*mine->deleted;
    delete mine;
  };
  p->legacy.manager_ctx = p;
  p->legacy.deleter = [](DLManagedTensor* self) {
    auto* const mine = static_cast<Producer*>(self->manager_ctx);
    ++*mine->deleted;
    delete mine;
  };
  return p;
}
DlpackTensor taken(Producer* p) {
  return DlpackTensor(reinterpret_cast<dlpack::ManagedTensorVersioned*>(&p->managed));
}
LegacyDlpackTensor taken_legacy(Producer* p) {
  p->legacy.dl_tensor = p->managed.dl_tensor;
  return LegacyDlpackTensor(reinterpret_cast<dlpack::ManagedTensor*>(&p->legacy));
}
const void* address_of(const Array& x) {
  const DlpackTensor t = to_dlpack(x);
  return static_cast<const std::byte*>(t->dl_tensor.data) + t->dl_tensor.byte_offset;
}
/// What is thrown for a tensor that `change` has changed; its deleter has run once.
template <class E, class F> std::string refusal(const F& change, const DlpackOptions& o = {}) {
  int deleted = 0;
  Producer* const p = producer<float>({1, 2, 3, 4, 5, 6}, {2, 3}, kDLFloat, &deleted);
  change(*p);
  const std::string said = message_of<E>([&] { static_cast<void>(from_dlpack(taken(p), o)); });
  CHECK(deleted == 1);
  return said;
}

}  // namespace

TEST_CASE("dlpack: every dtype goes out where it lies, and comes back as it was") {
  struct Row {
    DType dtype;
    DLDataTypeCode code;
    int bits;
  };
  const std::vector<Row> rows{{DType::bool_, kDLBool, 8},          {DType::int8, kDLInt, 8},
                              {DType::int16, kDLInt, 16},          {DType::int32, kDLInt, 32},
                              {DType::int64, kDLInt, 64},          {DType::uint8, kDLUInt, 8},
                              {DType::uint16, kDLUInt, 16},        {DType::uint32, kDLUInt, 32},
                              {DType::uint64, kDLUInt, 64},        {DType::float16, kDLFloat, 16},
                              {DType::bfloat16, kDLBfloat, 16},    {DType::float32, kDLFloat, 32},
                              {DType::float64, kDLFloat, 64},      {DType::complex64, kDLComplex, 64},
                              {DType::complex128, kDLComplex, 128}};
  CHECK(rows.size() == static_cast<std::size_t>(DType::complex128) + 1);
  for (const Row& row : rows) {
    CAPTURE(name(row.dtype));
    const Array x = counted(row.dtype, {2, 3, 4});
    const std::string want = testing::hex_of(x);
    DLManagedTensorVersioned* const t = spec(to_dlpack(x));
    CHECK(t->version.major == 1);
    CHECK(t->flags == 1);  // DLPACK_FLAG_BITMASK_READ_ONLY
    CHECK(t->dl_tensor.device.device_type == kDLCPU);
    CHECK(t->dl_tensor.dtype.code == row.code);
    CHECK(t->dl_tensor.dtype.bits == row.bits);
    CHECK(t->dl_tensor.dtype.lanes == 1);
    CHECK(std::vector(t->dl_tensor.shape, t->dl_tensor.shape + 3) == std::vector<std::int64_t>{2, 3, 4});
    CHECK(std::vector(t->dl_tensor.strides, t->dl_tensor.strides + 3) == std::vector<std::int64_t>{12, 4, 1});
    CHECK(hex_of(t->dl_tensor) == want);
    const void* const place = t->dl_tensor.data;
    const Array back = from_dlpack(DlpackTensor(reinterpret_cast<dlpack::ManagedTensorVersioned*>(t)));
    CHECK(back.dtype() == row.dtype);
    CHECK(back.shape() == x.shape());
    CHECK(testing::hex_of(back) == want);
    CHECK(address_of(back) == place);
    DLManagedTensor* const old = spec(to_dlpack_legacy(x));
    CHECK(hex_of(old->dl_tensor) == want);
    CHECK(old->dl_tensor.data == place);
    old->deleter(old);
  }
}

TEST_CASE("dlpack: what was given out lives until its deleter, whatever becomes of the array") {
  Array x = arange(1000.0) * 2;
  DLManagedTensorVersioned* const t = spec(to_dlpack(x));
  const std::string want = testing::hex_of(x);
  // Given away, it is copied: who reads the tensor still has the old numbers.
  const auto f = jit([](const Array& a) { return a + 1; });
  const Array y = f(std::move(x));
  CHECK(y[1].item<float>() == 3);
  CHECK(address_of(y) != t->dl_tensor.data);
  CHECK(hex_of(t->dl_tensor) == want);
  std::thread([&] { t->deleter(t); }).join();  // on any thread
  const Array z = f(y);
  CHECK(z[1].item<float>() == 4);
  // A tensor that nobody takes is let go.
  { const DlpackTensor nobody = to_dlpack(z); }
  CHECK(z[2].item<float>() == 6);
}

TEST_CASE("dlpack: an array that was given away has no tensor") {
  Array x = ones({8}).block_until_ready();
  const Array copy = x;
  const auto f = jit([](const Array& a) { return a + 1; }, {.donate_args = {0}});
  eval(f(copy));
  CHECK(x.is_deleted());
  CHECK_THROWS_AS(static_cast<void>(to_dlpack(x)), DonationError);
  CHECK_THROWS_AS(static_cast<void>(to_dlpack(Array())), Error);
  CHECK_THROWS_AS(jit([](const Array& a) {
                    static_cast<void>(to_dlpack(a));
                    return a;
                  })(ones(2)),
                  TraceError);
}

TEST_CASE("dlpack: scalars, empty arrays, many dimensions") {
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1, 1, 1, 1, 1, 1, 1, 2}}) {
    CAPTURE(to_string(shape));
    const Array x = counted(float32, shape);
    const Array back = from_dlpack(to_dlpack(x));
    CHECK(back.shape() == shape);
    CHECK(testing::hex_of(back) == testing::hex_of(x));
  }
  int deleted = 0;
  Producer* const p = producer<float>({}, {0, 5}, kDLFloat, &deleted);
  p->managed.dl_tensor.data = nullptr;
  CHECK(from_dlpack(taken(p)).shape() == Shape{0, 5});
  CHECK(deleted == 1);
}

TEST_CASE("dlpack: memory of others is an array without a copy, and the deleter runs once") {
  int deleted = 0;
  std::vector<float> values(1003);
  for (std::size_t k = 0; k < values.size(); k++) values[k] = static_cast<float>(k);
  const auto make = [&] { return producer(values, {1003}, kDLFloat, &deleted, 4); };
  Producer* const p = make();
  const void* const place = p->memory.get() + 4;
  {
    Array x = from_dlpack(taken(p));
    CHECK(!x.committed());
    CHECK(address_of(x) == place);
    CHECK(deleted == 0);
    const Array part = x[slice(1, 1001)], sum = shardarray::sum(x);
    CHECK(sum.item<float>() == 1002 * 1003 / 2);
    CHECK(part.to_vector<float>() == std::vector(values.begin() + 1, values.begin() + 1001));
    x = Array();
    CHECK(shardarray::sum(part).item<float>() == 1000 * 1001 / 2);
  }
  CHECK(deleted == 1);
  {
    const Array x = from_dlpack(taken_legacy(make()));
    CHECK(x.to_vector<float>() == values);
    CHECK(deleted == 1);
  }
  CHECK(deleted == 2);
  {
    const Array x = from_dlpack(taken(make()), {.copy = true});
    CHECK(deleted == 3);  // at once
    CHECK(x.to_vector<float>() == values);
  }
  // One without a deleter stays its producer's.
  Producer* const own = make();
  own->managed.deleter = nullptr;
  CHECK(from_dlpack(taken(own)).to_vector<float>() == values);
  delete own;
  CHECK(deleted == 3);
}

TEST_CASE("dlpack: memory of others is never written, also where the array is given away") {
  int deleted = 0;
  const std::vector<float> values{1, 2, 3, 4};
  Producer* const p = producer(values, {4}, kDLFloat, &deleted);
  const auto* const memory = reinterpret_cast<const float*>(p->memory.get());
  const auto doubled = jit([](const Array& a) { return a * 2; });
  const auto by_option = jit([](const Array& a) { return a * 2; }, {.donate_args = {0}});
  Array x = from_dlpack(taken(p));
  const Array kept = x;
  CHECK(by_option(kept).to_vector<float>() == std::vector<float>{2, 4, 6, 8});
  CHECK(std::vector(memory, memory + 4) == values);
  CHECK(!kept.is_deleted());
  x = doubled(std::move(x));
  CHECK(x.to_vector<float>() == std::vector<float>{2, 4, 6, 8});
  CHECK(std::vector(memory, memory + 4) == values);
}

TEST_CASE(
    "dlpack: strides, offsets, misaligned elements and strange bools are copied, or refused where that is "
    "forbidden") {
  struct Row {
    const char* why;
    std::vector<std::int64_t> shape, strides;
    std::uint64_t offset;
    std::vector<float> values;
  };
  const std::vector<Row> rows{
      {"it is not row-major", {3, 2}, {1, 3}, 0, {0, 3, 1, 4, 2, 5}},
      {"it is not row-major", {2, 2}, {3, 1}, 4, {1, 2, 4, 5}},
      {"it is not row-major", {2, 3}, {-3, -1}, 20, {5, 4, 3, 2, 1, 0}},
      {"it is not row-major", {2, 3}, {0, 1}, 0, {0, 1, 2, 0, 1, 2}},
      {nullptr, {2, 1, 3}, {3, 77, 1}, 0, {0, 1, 2, 3, 4, 5}},  // the stride of one entry means nothing
      {nullptr, {2}, {1}, 16, {4, 5}},
  };
  for (const Row& row : rows) {
    CAPTURE(to_string(Shape(row.shape)));
    int deleted = 0;
    const auto make = [&] {
      Producer* const p = producer<float>({0, 1, 2, 3, 4, 5}, row.shape, kDLFloat, &deleted);
      p->strides = row.strides;
      p->managed.dl_tensor.strides = p->strides.data();
      p->managed.dl_tensor.byte_offset = row.offset;
      return p;
    };
    {
      const Array x = from_dlpack(taken(make()));
      CHECK(x.to_vector<float>() == row.values);
      CHECK(deleted == (row.why ? 1 : 0));
    }
    const std::string said =
        message_of<Error>([&] { static_cast<void>(from_dlpack(taken(make()), {.copy = false})); });
    CHECK(deleted == 2);
    CHECK(contains(said, row.why ? row.why : "nothing was thrown"));
  }
  int deleted = 0;
  const auto odd = [&] { return producer<double>({1, 2, 3}, {3}, kDLFloat, &deleted, 4); };
  CHECK(from_dlpack(taken(odd())).to_vector<double>() == std::vector<double>{1, 2, 3});
  CHECK(message_of<Error>([&] { static_cast<void>(from_dlpack(taken(odd()), {.copy = false})); }) ==
        "from_dlpack: f64[3] cannot be taken without a copy: its elements are not aligned to their size. "
        "Without "
        "one its memory has to be row-major, aligned, and a CPU device's. Leave `copy` out.");
  const auto strange = [&] { return producer<std::uint8_t>({0, 1, 2, 255}, {4}, kDLBool, &deleted); };
  const Array bools = from_dlpack(taken(strange()));
  CHECK(bools.to_vector<bool>() == std::vector<bool>{false, true, true, true});
  CHECK(shardarray::sum(bools).item<int>() == 3);
  CHECK(
      contains(message_of<Error>([&] { static_cast<void>(from_dlpack(taken(strange()), {.copy = false})); }),
               "it has bools other than 0 and 1"));
  CHECK(deleted == 4);
}

TEST_CASE("dlpack: whatever is computed of elements that are aligned to their size alone is right") {
  int deleted = 0;
  std::vector<float> values(63 * 65);
  for (std::size_t k = 0; k < values.size(); k++) values[k] = static_cast<float>(k % 17) - 8;
  const Array x = from_dlpack(taken(producer(values, {63, 65}, kDLFloat, &deleted, 4)));
  const Array same = array(values, {63, 65});
  for (const auto& f : std::vector<std::function<Array(const Array&)>>{
           [](const Array& a) { return exp(a) + a * 2; }, [](const Array& a) { return matmul(a, a.T()); },
           [](const Array& a) { return shardarray::sum(a, 0); }, [](const Array& a) { return cumsum(a, 1); },
           [](const Array& a) { return sort(a, 1); }, [](const Array& a) { return a.T() + 1; },
           [](const Array& a) { return a[slice(none, none, -2)]; },
           [](const Array& a) { return softmax(a); }})
    CHECK(testing::hex_of(f(x)) == testing::hex_of(f(same)));
}

TEST_CASE("dlpack: pieces of an array over several devices go out and come in one by one") {
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  const NamedSharding cut(mesh, P("x", "y"));
  const Array x = device_put(arange(64.0).reshape(8, 8), cut);
  CHECK(message_of<ShardingError>([&] { static_cast<void>(to_dlpack(x)); }) ==
        "to_dlpack: f32[8,8] is on 8 devices. Memory is shown of one piece, on one device. Take "
        "addressable_data(i), or put the array on one device with device_put.");
  std::vector<Array> pieces;
  std::vector<const void*> places;
  for (const Shard& s : x.addressable_shards()) {
    DlpackTensor t = to_dlpack(s.data);
    places.push_back(t->dl_tensor.data);
    CHECK(t->dl_tensor.shape[0] == 2);
    CHECK(t->dl_tensor.shape[1] == 4);
    pieces.push_back(from_dlpack(std::move(t), {.device = s.device}));
    CHECK(pieces.back().committed());
    CHECK(pieces.back().devices() == std::vector{s.device});
  }
  const Array whole = make_array_from_single_device_arrays({8, 8}, cut, pieces);
  pieces.clear();
  CHECK(tree_equal(whole, x));
  for (int k = 0; k < 8; k++)
    CHECK(address_of(whole.addressable_data(k)) == places[static_cast<std::size_t>(k)]);
  CHECK(tree_equal(whole + whole, x * 2));
}

TEST_CASE("dlpack: in a trace a tensor is a constant, which the program keeps") {
  int deleted = 0;
  {
    Producer* p = producer<float>({1, 2, 3}, {3}, kDLFloat, &deleted);
    const auto f = jit([&p](const Array& a) { return a + from_dlpack(taken(std::exchange(p, nullptr))); });
    for (int k = 0; k < 3; k++) CHECK(f(ones(3)).to_vector<float>() == std::vector<float>{2, 3, 4});
    CHECK(deleted == 0);
  }
  CHECK(deleted == 1);
}

TEST_CASE("dlpack: messages") {
  CHECK(refusal<Error>([](Producer& p) { p.managed.version.major = 2; }) ==
        "from_dlpack: the tensor is of version 2.0 of DLPack. Version 1 is read. Ask its producer for that "
        "(max_version).");
  CHECK(refusal<Error>([](Producer& p) {
          p.managed.dl_tensor.device = {kDLCUDA, 0};
        }) ==
        "from_dlpack: the tensor is on a device of type 2. Only the host's memory is read: type 1 (kDLCPU). "
        "Bring "
        "it to the host where it comes from.");
  CHECK(refusal<Error>([](Producer& p) { p.managed.dl_tensor.dtype.lanes = 4; }) ==
        "from_dlpack: the elements are vectors of 4 numbers (lanes). Arrays have elements of one number. "
        "Give the "
        "tensor another dimension in their place.");
  CHECK(refusal<DTypeError>([](Producer& p) {
          p.managed.dl_tensor.dtype = {kDLComplex, 32, 1};
        }) ==
        "from_dlpack: the dtype has code 5 and 32 bits. Arrays are of bool, integers of 8 to 64 bits, floats "
        "of 16 to 64 bits, bfloat16, or complex of 64 or 128 bits. Cast it where it comes from.");
  CHECK(contains(refusal<DTypeError>([](Producer& p) {
                   p.managed.dl_tensor.dtype = {kDLInt, 4, 1};
                 }),
                 "code 0 and 4 bits"));
  CHECK(
      refusal<ShapeError>([](Producer& p) { p.managed.dl_tensor.ndim = 33; }) ==
      "from_dlpack: the tensor has 33 dimensions. An array has at most 32. Reshape it where it comes from.");
  CHECK(
      contains(refusal<ShapeError>([](Producer& p) { p.managed.dl_tensor.ndim = -1; }), "has -1 dimensions"));
  CHECK(contains(refusal<ShapeError>([](Producer& p) { p.shape[0] = -1; }), "from_dlpack: "));
  CHECK(contains(refusal<ShapeError>([](Producer& p) { p.shape[0] = INT64_MAX; }), "from_dlpack: "));
  CHECK(refusal<Error>([](Producer& p) { p.managed.dl_tensor.shape = nullptr; }) ==
        "from_dlpack: the tensor of 2 dimensions has no shape. Every tensor has one. Correct its producer.");
  CHECK(
      refusal<Error>([](Producer& p) { p.managed.dl_tensor.data = nullptr; }) ==
      "from_dlpack: f32[2,3] without memory: its pointer is null. The elements have to be there. Correct its "
      "producer.");
  CHECK(message_of<Error>([] { static_cast<void>(from_dlpack(DlpackTensor())); }) ==
        "from_dlpack: the pointer is null. A tensor is taken over once. Ask its producer for another one.");
  Device other = devices()[0];
  other.id = 1000;
  CHECK(contains(refusal<DeviceError>([](Producer&) {}, {.device = other}), "from_dlpack: "));
}

}  // namespace dlpack_test
