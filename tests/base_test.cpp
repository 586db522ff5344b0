// Shapes, dtypes, devices, environment.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/count_text.h"
#include "base/duration_text.h"
#include "base/env.h"
#include "base/quoted.h"
#include "shardarray/device.h"
#include "shardarray/dtype.h"
#include "shardarray/error.h"
#include "shardarray/shape.h"
#include "sources.h"

namespace base_test {

using namespace shardarray;

namespace {

const DType all_dtypes[] = {bool_,  int8,    int16,    int32,   int64,   uint8,     uint16,    uint32,
                            uint64, float16, bfloat16, float32, float64, complex64, complex128};

DType dtype_named(const std::string& text) {
  for (DType t : all_dtypes)
    if (text == name(t)) return t;
  FAIL("no dtype is called ", text);
  return bool_;
}

// `weak int` as its scalar would be with and without 64-bit types.
WeakType operand(const std::string& text, bool wide) {
  if (text == "weak bool") return {bool_, true};
  if (text == "weak int") return {wide ? int64 : int32, true};
  if (text == "weak float") return {wide ? float64 : float32, true};
  if (text == "weak complex") return {wide ? complex128 : complex64, true};
  return {dtype_named(text), false};
}

WeakType result(std::string text) {
  const bool weak = text.ends_with("*");
  if (weak) text.pop_back();
  return {dtype_named(text), weak};
}

bool is_wide(WeakType t) {
  return t.dtype == int64 || t.dtype == uint64 || t.dtype == float64 || t.dtype == complex128;
}

}  // namespace

TEST_CASE("base: shapes of any length") {
  Shape s{1, 2, 3};
  for (int k = 4; k <= 20; k++) s.push_back(k);
  Shape copy = s, moved = std::move(s);
  CHECK(copy == moved);
  CHECK(copy.size() == 20);
  for (int k = 0; k < 20; k++) CHECK(copy[k] == k + 1);
  copy.insert(0, 7);
  CHECK(copy.front() == 7);
  CHECK(copy[1] == 1);
  CHECK(copy.back() == 20);
  copy.erase(0);
  CHECK(copy == moved);
  moved = Shape{4, 5};
  copy = moved;
  CHECK(copy == Shape{4, 5});
  CHECK(Shape::filled(3, 2) == Shape{2, 2, 2});
  CHECK(to_string(Shape{8, 4}) == "[8,4]");
  CHECK(to_string(Shape{}) == "[]");
  std::ostringstream os;
  os << Shape{3};
  CHECK(os.str() == "[3]");
}

TEST_CASE("base: number of elements") {
  CHECK(num_elements({}) == 1);
  CHECK(num_elements({3, 0, 5}) == 0);
  CHECK(num_elements({2, 3, 4}) == 24);
  CHECK(num_elements({std::int64_t{1} << 40, std::int64_t{1} << 40, 0}) == 0);
  CHECK_THROWS_WITH_AS(
      num_elements({std::int64_t{1} << 40, std::int64_t{1} << 40}),
      "num_elements: the sizes of [1099511627776,1099511627776] multiply to more than 2^63 - 1. An array has "
      "fewer elements than that. Use a smaller shape.",
      ShapeError);
}

TEST_CASE("base: dtypes promote as in JAX") {
  std::ifstream in(testing::data_file("promotion.json"));
  const auto data = nlohmann::json::parse(in);
  int checked = 0;
  for (const auto& row : data["cases"]) {
    const auto& attrs = row["attrs"];
    if (row["name"] != "pairs" || attrs["op"] != "add") continue;
    const bool x64 = attrs["x64"];
    const std::vector<std::string> types = attrs["types"];
    for (std::size_t i = 0; i < types.size(); i++)
      for (std::size_t j = 0; j < types.size(); j++) {
        // A scalar follows the other operand's width; with x64 off nothing has 64 bits.
        const bool strong_wide = is_wide(operand(types[i], false)) || is_wide(operand(types[j], false));
        if (x64 && !strong_wide && types[i].find("weak") != 0 && types[j].find("weak") != 0) continue;
        const WeakType a = operand(types[i], x64), b = operand(types[j], x64);
        if (x64 && !is_wide(a) && !is_wide(b)) continue;
        const WeakType want = result(row["outputs"]["result"][i][j]), got = promote_types(a, b);
        CHECK_MESSAGE(got == want, types[i] << " + " << types[j] << " gives " << name(got.dtype) << got.weak);
        if (!a.weak && !b.weak) CHECK(promote_types(a.dtype, b.dtype) == want.dtype);
        checked++;
      }
  }
  CHECK(checked > 350);
  // Mixed widths: a 32-bit scalar takes part in 64-bit rules.
  CHECK(promote_types(WeakType{int64, false}, WeakType{float32, true}) == WeakType{float64, true});
  CHECK(promote_types(WeakType{float64, false}, WeakType{int32, true}) == WeakType{float64, false});
  CHECK(promote_types(WeakType{int32, true}, WeakType{float32, true}) == WeakType{float32, true});
}

TEST_CASE("base: promote_types is JAX's") {
  std::ifstream in(testing::data_file("promotion.json"));
  const auto data = nlohmann::json::parse(in);
  int checked = 0;
  for (const auto& row : data["cases"]) {
    if (row["name"] != "promote_types") continue;
    const std::vector<std::string> types = row["attrs"]["types"];
    for (std::size_t i = 0; i < types.size(); i++)
      for (std::size_t j = 0; j < types.size(); j++) {
        const WeakType a = operand(types[i], true), b = operand(types[j], true);
        // the rules of x64 hold where a type has 64 bits, the others where none has
        if (row["attrs"]["x64"].get<bool>() != (is_wide(a) || is_wide(b))) continue;
        const std::string want = row["outputs"]["result"][i][j], got = name(promote_types(a.dtype, b.dtype));
        CHECK_MESSAGE(got == want, types[i] << " and " << types[j]);
        checked++;
      }
  }
  CHECK(checked == 15 * 15);
}

TEST_CASE("base: names and sizes of dtypes") {
  const char* short_names[] = {"bool", "i8",  "i16",  "i32", "i64", "u8",  "u16", "u32",
                               "u64",  "f16", "bf16", "f32", "f64", "c64", "c128"};
  const std::size_t sizes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  for (int k = 0; k < 15; k++) {
    CHECK(std::string(short_name(all_dtypes[k])) == short_names[k]);
    CHECK(itemsize(all_dtypes[k]) == sizes[k]);
  }
  std::ostringstream os;
  os << bfloat16 << " " << bool_;
  CHECK(os.str() == "bfloat16 bool");
}

TEST_CASE("base: a number that is no dtype is refused") {
  std::string text;
  try {
    (void)itemsize(static_cast<DType>(99));
  } catch (const DTypeError& e) { text = e.what(); }
  CHECK(text == "dtype: number 99. There is no such dtype. Take one of float32, int32, ...");
}

TEST_CASE("base: devices print") {
  std::ostringstream os;
  os << Device{3} << " " << Device{1, "cuda"};
  CHECK(os.str() == "cpu:3 cuda:1");
}

TEST_CASE("base: environment variables are checked") {
  const char* variable = "SHARDARRAY_BASE_TEST";
  unsetenv(variable);
  CHECK(env_int(variable, 5, 1, 8) == 5);
  CHECK(env_flag(variable, true));
  setenv(variable, "", 1);
  CHECK(env_int(variable, 5, 1, 8) == 5);
  setenv(variable, "8", 1);
  CHECK(env_int(variable, 5, 1, 8) == 8);
  for (const char* bad : {"9", "0", "-1", "3x", "x", " 3", "99999999999999999999"}) {
    setenv(variable, bad, 1);
    CHECK_THROWS_WITH_AS(env_int(variable, 5, 1, 8),
                         ("environment: SHARDARRAY_BASE_TEST=" + std::string(bad) +
                          " is not understood. It must be an integer "
                          "from 1 to 8. Correct the variable or unset it.")
                             .c_str(),
                         Error);
  }
  for (const char* yes : {"1", "true", "on", "yes"}) {
    setenv(variable, yes, 1);
    CHECK(env_flag(variable, false));
  }
  for (const char* no : {"0", "false", "off", "no"}) {
    setenv(variable, no, 1);
    CHECK(!env_flag(variable, true));
  }
  setenv(variable, "2", 1);
  CHECK_THROWS_WITH_AS(env_flag(variable, false),
                       "environment: SHARDARRAY_BASE_TEST=2 is not understood. It must be 1 or 0 (true, on, "
                       "yes or false, off, "
                       "no). Correct the variable or unset it.",
                       Error);
  unsetenv(variable);
}

TEST_CASE("durations: three digits in the unit in which it is 1 or more") {
  CHECK(duration_text(0) == "0 ns");
  CHECK(duration_text(1.234e-6) == "1.23 us");
  for (const auto& [seconds, text] : std::vector<std::pair<double, std::string>>{{0.9994e-6, "999 ns"},
                                                                                 {0.9996e-6, "1 us"},
                                                                                 {0.9996e-3, "1 ms"},
                                                                                 {0.9996, "1 s"},
                                                                                 {999.4, "999 s"},
                                                                                 {999.6, "1000 s"},
                                                                                 {1234, "1234 s"},
                                                                                 {123456.7, "123457 s"}})
    CHECK(duration_text(seconds) == text);
}

TEST_CASE("counts: one has no plural") {
  CHECK(count_text(1, "entry") == "1 entry");
  CHECK(count_text(0, "entry") == "0 entries");
  CHECK(count_text(std::size_t{3}, "axis name") == "3 axis names");
  CHECK(count_text(2, "axis") == "2 axes");
  CHECK(count_text(2, "process") == "2 processes");
  CHECK(count_text(-2, "key") == "-2 keys");
  CHECK(count_text(5, "leaf", "leaves") == "5 leaves");
  CHECK(count_text(1U, "index", "indices") == "1 index");
}

TEST_CASE("quoted: a literal of any text") {
  CHECK(in_quotes("x") == "\"x\"");
  CHECK(in_quotes("a\nb") == "\"a\\nb\"");
  CHECK(in_quotes("a\"b\\") == "\"a\\\"b\\\\\"");
}

}  // namespace base_test
