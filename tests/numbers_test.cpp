// Numbers that do not fit into a dtype, a file, a table or memory.
#include <unistd.h>
#include <zlib.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>

#include "golden.h"
#include "scale.h"

namespace numbers_test {

namespace sa = shardarray;
using sa::Array;
using sa::DType;
using sa::Shape;

namespace {

using Int = std::int64_t;
using Word = std::uint64_t;
__extension__ using Wide = __int128;
constexpr Int lowest = std::numeric_limits<Int>::min(), highest = std::numeric_limits<Int>::max();

template <class E, class F> std::string message(const F& f) {
  try {
    f();
  } catch (const E& e) { return e.text(); }
  return "";
}

constexpr DType whole_dtypes[] = {sa::int8,  sa::int16,  sa::int32,  sa::int64,
                                  sa::uint8, sa::uint16, sa::uint32, sa::uint64};
Wide smallest(DType t) { return sa::is_unsigned_integer(t) ? 0 : -(Wide{1} << (8 * sa::itemsize(t) - 1)); }
Wide largest(DType t) {
  return (Wide{1} << (8 * sa::itemsize(t) - (sa::is_unsigned_integer(t) ? 0 : 1))) - 1;
}
bool is_value(DType t, Wide v) { return v >= smallest(t) && v <= largest(t); }
/// v modulo 2^bits, among the values of t.
Wide wrapped(DType t, Wide v) {
  const Wide period = Wide{1} << (8 * sa::itemsize(t));
  Wide r = v % period;
  if (r < smallest(t)) r += period;
  if (r > largest(t)) r -= period;
  return r;
}
/// Around every border of every dtype.
std::vector<Wide> borders() {
  std::vector<Wide> r{0, 1, -1, 5, 300};
  for (const DType t : whole_dtypes)
    for (const Wide d : {-1, 0, 1}) {
      r.push_back(smallest(t) + d);
      r.push_back(largest(t) + d);
    }
  std::erase_if(r, [](Wide v) { return v < lowest || v > static_cast<Wide>(~Word{0}); });
  return r;
}
/// f(v) with v as the C++ number that holds it.
template <class F> auto with_number(Wide v, const F& f) {
  return v > highest ? f(static_cast<Word>(v)) : f(static_cast<Int>(v));
}
std::string text(Wide v) {
  return with_number(v, [](auto n) { return std::to_string(n); });
}
Wide only(const Array& x) {
  return x.dtype() == sa::uint64 ? Wide{x.to_vector<Word>()[0]} : Wide{x.to_vector<Int>()[0]};
}

}  // namespace

// ---------------------------------------------------------------- literals
TEST_CASE("numbers: a literal is one of the values of the dtype that it takes, or an error") {
  struct Meeting {
    const char* function;
    std::function<Array(const Array& x, const Array& literal)> call;
    std::function<Wide(DType t, Wide x, Wide v)> want;
  };
  const std::vector<Meeting> meetings = {
      {"add", [](auto& x, auto& v) { return x + v; },
       [](DType t, Wide x, Wide v) { return wrapped(t, x + v); }},
      {"subtract", [](auto& x, auto& v) { return v - x; },
       [](DType t, Wide x, Wide v) { return wrapped(t, v - x); }},
      {"multiply", [](auto& x, auto& v) { return x * v; },
       [](DType t, Wide x, Wide v) { return wrapped(t, x * v); }},
      {"maximum", [](auto& x, auto& v) { return sa::maximum(x, v); },
       [](DType, Wide x, Wide v) { return std::max(x, v); }},
      {"minimum", [](auto& x, auto& v) { return sa::minimum(v, x); },
       [](DType, Wide x, Wide v) { return std::min(x, v); }},
      {"bitwise_and", [](auto& x, auto& v) { return x & v; },
       [](DType t, Wide x, Wide v) { return wrapped(t, x & v); }},
      {"equal", [](auto& x, auto& v) { return x == v; }, [](DType, Wide x, Wide v) { return Wide{x == v}; }},
      {"not_equal", [](auto& x, auto& v) { return v != x; },
       [](DType, Wide x, Wide v) { return Wide{x != v}; }},
      {"less", [](auto& x, auto& v) { return x < v; }, [](DType, Wide x, Wide v) { return Wide{x < v}; }},
      {"less_equal", [](auto& x, auto& v) { return v <= x; },
       [](DType, Wide x, Wide v) { return Wide{v <= x}; }},
      {"greater", [](auto& x, auto& v) { return x > v; }, [](DType, Wide x, Wide v) { return Wide{x > v}; }},
      {"greater_equal", [](auto& x, auto& v) { return x >= v; },
       [](DType, Wide x, Wide v) { return Wide{x >= v}; }},
      {"where", [](auto& x, auto& v) { return sa::where(x == x, v, x); },
       [](DType, Wide, Wide v) { return v; }},
      {"at.set", [](auto& x, auto& v) { return x.at({0}).set(v); }, [](DType, Wide, Wide v) { return v; }},
      {"full", [](auto& x, auto& v) { return sa::full({1}, v, x.dtype()); },
       [](DType, Wide, Wide v) { return v; }},
      {"full_like", [](auto& x, auto& v) { return sa::full_like(x, v); },
       [](DType, Wide, Wide v) { return v; }},
  };
  for (const DType t : whole_dtypes) {
    const Array x = sa::array({1}, t);
    for (const Wide v : borders())
      for (const Meeting& m : meetings) {
        CAPTURE(m.function);
        CAPTURE(text(v));
        CAPTURE(sa::name(t));
        const Array literal = with_number(v, [](auto n) { return Array(n); });
        if (is_value(t, v)) {
          CHECK(only(m.call(x, literal)) == m.want(t, 1, v));
        } else {
          CHECK(message<sa::DTypeError>([&] { m.call(x, literal); }) ==
                std::string(m.function) + ": the number " + text(v) + " is no value of " + sa::name(t) +
                    ". A whole number takes the dtype of what it meets, which must hold it. Cast the array "
                    "with "
                    "astype, or give a number that fits.");
        }
      }
  }
}

TEST_CASE("numbers: lists and asarray hold every number of their dtype, and no other") {
  for (const DType t : whole_dtypes)
    for (const Wide v : borders()) {
      CAPTURE(text(v));
      CAPTURE(sa::name(t));
      const auto listed = [&] { return with_number(v, [&](auto n) { return sa::array({1, n}, t)[1]; }); };
      const auto single = [&] { return with_number(v, [&](auto n) { return sa::asarray(n, t); }); };
      if (is_value(t, v)) {
        CHECK(only(listed()) == v);
        CHECK(only(single()) == v);
      } else {
        CHECK(message<sa::DTypeError>(listed).starts_with("array: " + text(v) + " does not fit into " +
                                                          sa::name(t)));
        CHECK(message<sa::DTypeError>(single).starts_with("asarray: the number " + text(v) +
                                                          " is no value of "));
      }
    }
  CHECK(message<sa::DTypeError>([] { sa::array({18446744073709551615ull}); }) ==
        "array: 18446744073709551615 does not fit into int32. Whole numbers give int32 unless a dtype is "
        "named. Say "
        "array(values, uint64).");
  CHECK(message<sa::DTypeError>([] {
          sa::array({1, 2, 300}, sa::uint8);
        }) ==
        "array: 300 does not fit into uint8. A list has values of its dtype, and none wraps. Say "
        "array(values, int32), and astype where it shall wrap.");
  CHECK(message<sa::DTypeError>([] {
          sa::array({-1, 2}, sa::uint64);
        }) ==
        "array: -1 does not fit into uint64. A list has values of its dtype, and none wraps. Say "
        "array(values, int32), and astype where it shall wrap.");
  CHECK(sa::array({2.5, 18446744073709551615ull}, sa::float64)[1].item<double>() == 18446744073709551615.0);
  CHECK(sa::array({1, 18446744073709551615ull}, sa::float64)[1].item<double>() == 18446744073709551615.0);
}

TEST_CASE("numbers: floating dtypes take every whole number, rounded to nearest") {
  for (const Wide v : borders()) {
    const Array literal = with_number(v, [](auto n) { return Array(n); });
    CAPTURE(text(v));
    CHECK((sa::zeros({}, sa::float64) + literal).item<double>() == static_cast<double>(v));
    CHECK((sa::zeros({}) + literal).item<float>() == static_cast<float>(v));
    CHECK(sa::full({}, literal, sa::float32).item<float>() == static_cast<float>(v));
    CHECK((sa::full({}, 0.5, sa::float64) < literal).item<bool>() == (0.5 < static_cast<double>(v)));
  }
  CHECK(std::isinf((sa::zeros({}, sa::float16) + 18446744073709551615ull).astype(sa::float32).item<float>()));
}

TEST_CASE("numbers: a literal alone keeps its value; astype wraps") {
  for (const Wide v : borders()) {
    const Array x = with_number(v, [](auto n) { return Array(n); });
    CHECK(only(x) == v);
    CHECK(x.weak_type());
    CHECK(x.dtype() == (is_value(sa::int32, v) ? sa::int32 : v > highest ? sa::uint64 : sa::int64));
    for (const DType t : whole_dtypes) CHECK(only(x.astype(t)) == wrapped(t, v));
  }
  CHECK(message<sa::DTypeError>([] { sa::power(sa::ones({2}, sa::int32), 18446744073709551615ull); }) ==
        "power: the number 18446744073709551615 is no value of int32. A whole number takes the dtype of what "
        "it "
        "meets, which must hold it. Cast the array with astype, or give a number that fits.");
}

TEST_CASE("numbers: arange holds its values, or is an error") {
  struct Range {
    Int start, stop, step;
  };
  const Range ranges[] = {{0, 128, 1},
                          {0, 129, 1},
                          {-128, 128, 1},
                          {-128, 129, 1},
                          {0, 256, 1},
                          {0, 257, 1},
                          {255, -1, -1},
                          {0, -2, -1},
                          {250, 300, 49},
                          {300, 300, 1},
                          {highest - 5, highest, 2},
                          {lowest, lowest + 3, 1},
                          {lowest + 4, lowest, -3},
                          {lowest, highest, highest}};
  for (const DType t : whole_dtypes)
    for (const Range& r : ranges) {
      std::vector<Wide> want;
      for (Wide v = r.start; r.step > 0 ? v < r.stop : v > r.stop; v += r.step) want.push_back(v);
      const bool fits = std::all_of(want.begin(), want.end(), [&](Wide v) { return is_value(t, v); });
      std::vector<Wide> got;
      const std::string error = message<sa::DTypeError>([&] {
        const Array x = sa::arange(r.start, r.stop, r.step, t);
        if (t == sa::uint64)
          for (const Word v : x.to_vector<Word>()) got.push_back(v);
        else
          for (const Int v : x.to_vector<Int>()) got.push_back(v);
      });
      CAPTURE(sa::name(t));
      CAPTURE(r.start);
      CAPTURE(r.stop);
      CAPTURE(error);
      CHECK(error.empty() == fits);
      if (fits) CHECK((got == want));
    }
  CHECK(message<sa::DTypeError>([] { sa::arange(Int{1} << 31, (Int{1} << 31) + 3); }) ==
        "arange: the value 2147483648 does not fit into int32. Whole numbers give int32 unless a dtype is "
        "named. Say "
        "arange(..., int64).");
  const std::string rule =
      " does not fit into int8. A range has values of its dtype, and none wraps. Say arange(";
  CHECK(message<sa::DTypeError>([] { sa::arange(300, sa::int8); }) ==
        "arange: the value 299" + rule + "..., int64).");
  CHECK(message<sa::DTypeError>([] { sa::arange(300.0, sa::int8); }) ==
        "arange: the value 299" + rule + "..., int64).");
  CHECK(message<sa::DTypeError>([] { sa::arange(0.0, 1e20, 1e19, sa::int8); }) ==
        "arange: the value 9e+19" + rule + "..., float64).");
  // floats that fit: start and step truncated, whatever the step is by itself
  CHECK(sa::arange(5.5, 0.0, -1.5, sa::uint8).to_vector<int>() == std::vector<int>{5, 4, 3, 2});
  CHECK(sa::arange(-128.0, 127.0, 254.0, sa::int8).to_vector<int>() == std::vector<int>{-128, 126});
}

// ---------------------------------------------------------------- large values that are never stored
TEST_CASE("numbers: parts of a large value that is not stored can be read") {
  constexpr Int n = (Int{1} << 60) - 1, m = Int{1} << 58;
  // A value with a handle is stored when something that is made of it is read: these have none when they return.
  const auto ask = [](const std::function<Array()>& f) { return f(); };
  const auto numbers = [] { return sa::arange(m, sa::int64); };
  CHECK(ask([] { return sa::broadcast_to(7, {n})[n - 1]; }).item<int>() == 7);
  CHECK(ask([] { return sa::zeros({n})[sa::slice(n - 3, sa::none)]; }).to_vector<float>() ==
        std::vector<float>{0, 0, 0});
  CHECK(ask([&] { return (numbers() * 2)[m - 1]; }).item<Int>() == 2 * m - 2);
  CHECK(ask([&] { return numbers()[sa::slice(sa::none, sa::none, m / 2)]; }).to_vector<Int>() ==
        std::vector<Int>{0, m / 2});
  CHECK(ask([] {
          return sa::eye(Int{1} << 29)[{(Int{1} << 29) - 1, (Int{1} << 29) - 1}];
        }).item<float>() == 1);
  CHECK(sa::jit([](const Array& k) { return sa::broadcast_to(k, {n})[n - 1]; })(sa::array(7)).item<int>() ==
        7);
  const Array kept = sa::broadcast_to(7, {n});
  CHECK(message<sa::OutOfMemory>([&] { kept[0].item<int>(); }).starts_with("item: the system refused"));
  CHECK(sa::take(numbers(), sa::array({-1, 5})).shape() ==
        Shape{2});  // int32 positions in a longer dimension
  CHECK(sa::eye(3, 4, highest).to_vector<float>() == std::vector<float>(12, 0));
  CHECK(sa::tril(sa::ones({2, 2}), highest).to_vector<float>() == std::vector<float>(4, 1));
  CHECK(sa::tril(sa::ones({2, 2}), lowest).to_vector<float>() == std::vector<float>(4, 0));
}

TEST_CASE("numbers: what no memory holds is refused when it is computed, and nothing else breaks") {
  if (sa::testing::is_sanitized()) return;  // their operator new ends the process
  const Array huge[] = {sa::zeros({Int{1} << 58}, sa::float64), sa::zeros({(Int{1} << 62) - 1}, sa::int8),
                        sa::eye(Int{1} << 29), sa::ones({Int{1} << 50}) + sa::ones({1}),
                        sa::random::uniform(sa::random::key(0), {Int{1} << 50}, sa::float64)};
  for (const Array& x : huge) {
    CHECK(message<sa::OutOfMemory>([&] { sa::eval(x); }) != "");
    CHECK(message<sa::OutOfMemory>([&] { x.to_vector<float>(); }).find("refused") != std::string::npos);
    CHECK(message<sa::OutOfMemory>([&] { x.to_vector<bool>(); }) != "");
    CHECK(message<sa::OutOfMemory>([&] { x.is_fully_replicated(); }) != "");
    CHECK(message<sa::OutOfMemory>([&] { sa::debug::print("{}", x); }) != "");
    CHECK(message<sa::OutOfMemory>([&] { sa::data::loader(std::tuple(x)); }) != "");
    CHECK(message<sa::OutOfMemory>([&] { sa::jit([](const Array& y) { return y; })(x); }) != "");
  }
  CHECK(message<sa::OutOfMemory>(
            [&] { sa::eval(sa::sort(huge[0]) + sa::sort(huge[0] + 1) + sa::sort(huge[0] + 2)); }) != "");
  CHECK(message<sa::OutOfMemory>([&] { huge[0].to_vector<double>(); }) ==
        "to_vector: the system refused 2305843009213693952 bytes that it needs in the process. Values that "
        "are read or "
        "loaded lie there as a whole. Read or load parts, or free memory.");
  CHECK((sa::ones({3}) + 1).to_vector<float>() == std::vector<float>{2, 2, 2});
}

// ---------------------------------------------------------------- batches
TEST_CASE("numbers: a loader gives the batches that there are") {
  const Array x = sa::arange(10), empty = sa::zeros({0, 3});
  for (const Int batch : {Int{1}, Int{3}, Int{10}, Int{11}, Int{1} << 31, Int{1} << 61, highest})
    for (const bool drop : {false, true}) {
      const sa::data::Batches b({x}, {.batch = batch, .drop_last = drop});
      const Int full = batch <= 10 ? 10 / batch : 0;
      const Int want = full + (!drop && full * (batch <= 10 ? batch : 0) < 10 ? 1 : 0);
      CAPTURE(batch);
      CHECK(b.size() == want);
      std::vector<Int> all;
      for (Int k = 0; k < want; k++)
        for (const Int v : b.at(k)[0].to_vector<Int>()) all.push_back(v);
      CHECK(all.size() == static_cast<std::size_t>(drop ? full * (full ? batch : 0) : 10));
      for (std::size_t k = 0; k < all.size(); k++) CHECK(all[k] == static_cast<Int>(k));
      for (const Int k :
           {lowest, Int{-1'000'000}, Int{-1}, want, want + 1, Int{1} << 31, Int{1} << 62, highest})
        CHECK(message<sa::ShapeError>([&] { b.at(k); }) ==
              "data::loader: there is no batch " + std::to_string(k) + ": there are " + std::to_string(want) +
                  ". Batches count from 0. Ask for one below size().");
    }
  for (const Int batch : {lowest, Int{-1}, Int{0}})
    CHECK(message<sa::ShapeError>([&] {
            sa::data::Batches({x}, {.batch = batch});
          }).starts_with("data::loader: batch is "));
  CHECK(sa::data::Batches({empty}, {.batch = highest}).size() == 0);
  for (const Int epoch : {lowest, Int{-1}, highest})
    CHECK(sa::data::Batches({x}, {.seed = 0}).with_epoch(epoch).at(0)[0].shape() == Shape{10});
  for (const Int total : {lowest, Int{-1}, Int{0}, highest}) {
    std::ostringstream out;
    sa::Progress p(total, {.out = &out, .terminal = false});
    for (int k = 0; k < 3; k++) p.step();
  }
}

// ---------------------------------------------------------------- tables
namespace {

class Table {
 public:
  explicit Table(const std::string& text, bool packed = false)
      : path_(std::filesystem::temp_directory_path() / ("shardarray_numbers_" + std::to_string(getpid()))) {
    const gzFile f = gzopen(path_.c_str(), packed ? "wb" : "wbT");
    gzwrite(f, text.data(), static_cast<unsigned>(text.size()));
    gzclose(f);
  }
  ~Table() { std::filesystem::remove(path_); }
  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE(
    "numbers: a table's numbers are rounded to float32; too small ones are 0, too large ones infinite") {
  // From the C library, correctly rounded.
  const std::string long_zero = "0." + std::string(400, '0'), long_one = "1" + std::string(400, '0');
  for (const std::string& s : std::vector<std::string>{"1e-46",
                                                       "-1e-46",
                                                       "1e-45",
                                                       "1.4e-45",
                                                       "7e-46",
                                                       "7.1e-46",
                                                       "1e-38",
                                                       "1.17549435e-38",
                                                       "1e38",
                                                       "3.4028235e38",
                                                       "3.4028236e38",
                                                       "1e39",
                                                       "-1e39",
                                                       "1e400",
                                                       "-1e400",
                                                       "1e-400",
                                                       "1e999999999999999999999",
                                                       "1E-999999999999999999999",
                                                       "1e+400",
                                                       long_zero + "1",
                                                       long_zero + "1e400",
                                                       long_zero + "1e500",
                                                       long_one,
                                                       long_one + "e-400",
                                                       long_one + "e-500",
                                                       "-" + long_one,
                                                       "0e400",
                                                       "0.0e-999999999999999999999",
                                                       "inf",
                                                       "-inf"}) {
    const Table file(s + ",1\n");
    const float want = std::strtof(s.c_str(), nullptr),
                got = sa::data::load_csv(file.path())[{0, 0}].item<float>();
    CAPTURE(s);
    CHECK(got == want);
    CHECK(std::signbit(got) == std::signbit(want));
  }
}

TEST_CASE("numbers: a table has a largest size, plain or packed, and a file without end is refused") {
  std::string text;
  for (int k = 0; k < 1000; k++) text += "1,2,3\n";
  for (const bool packed : {false, true}) {
    const Table file(text, packed);
    CHECK(sa::data::load_csv(file.path()).shape() == Shape{1000, 3});
    CHECK(sa::data::load_csv(file.path(), {.max_bytes = 6000}).shape() == Shape{1000, 3});
    for (const Int limit : {Int{5999}, Int{10}, Int{0}, Int{-1}, lowest})
      CHECK(message<sa::IoError>([&] { sa::data::load_csv(file.path(), {.max_bytes = limit}); }) ==
            "data::load_csv: " + file.path() + ": holds more than " + std::to_string(limit) +
                " bytes of text. A table that fits into memory is expected, max_bytes says how much at most. "
                "Raise it, "
                "or split the file.");
  }
  CHECK(message<sa::IoError>([] {
          sa::data::load_csv("/dev/zero", {.max_bytes = 1 << 20});
        }).find("holds more than 1048576 bytes") != std::string::npos);
}

}  // namespace numbers_test
