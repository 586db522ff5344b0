// Safetensors files: those of the format's own library, those that the library writes, headers that are forged.
#include <doctest/doctest.h>

#include "files_helpers.h"
#include "messages.h"

namespace files_safetensors_test {

using namespace shardarray;
using namespace shardarray::testing;

TEST_CASE("files: safetensors files of the format's own library, dtype for dtype") {
  for (const std::string file : {"all.safetensors", "none.safetensors"}) {
    const auto wanted = python_files()[file];
    const Safetensors read = load_safetensors(data_file("files/" + file));
    CHECK(read.arrays.size() == wanted.size());
    for (const auto& entry : read.arrays) {
      const std::string& name = entry.first;
      CAPTURE(name);
      CHECK(difference(entry.second, wanted[name]) == "");
    }
  }
  const Safetensors read = load_safetensors(data_file("files/all.safetensors"));
  CHECK(read.metadata == std::map<std::string, std::string>{{"format", "np"}, {"note", "a \"text\"\n"}});
}

TEST_CASE("files: safetensors round trip, onto shardings, aligned") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.safetensors");
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  const Sharding rows = NamedSharding(mesh, P("x")), tiles = NamedSharding(mesh, P("y", "x"));
  std::map<std::string, Array> arrays{{"", arange(3)}, {"large", random::normal(random::key(0), {700, 900})}};
  for (const DType t : stored_dtypes()) arrays["a \"quoted\"\n" + std::string(name(t))] = counted(t, {3, 7});
  const std::map<std::string, std::string> metadata{{"", ""}, {"k", "\\"}};
  save_safetensors(path, arrays, metadata);
  const std::string bytes = read_bytes(path);
  const auto header = nlohmann::json::parse(
      bytes.substr(8, static_cast<unsigned char>(bytes[8 - 8]) | static_cast<unsigned char>(bytes[1]) << 8));
  for (const auto& [name, entry] : header.items())
    if (name != "__metadata__") {
      const std::uint64_t begin = entry["data_offsets"][0], items = num_elements(arrays.at(name).shape());
      CHECK(begin % ((entry["data_offsets"][1].get<std::uint64_t>() - begin) / items) == 0);
    }
  for (const bool placed : {false, true}) {
    LoadOptions o;
    if (placed) {
      o.sharding = rows;
      o.shardings.emplace("large", tiles);
    }
    const Safetensors back = load_safetensors(path, o);
    CHECK(back.metadata == metadata);
    CHECK(back.arrays.size() == arrays.size());
    for (const auto& [name, x] : back.arrays) {
      CHECK(hex_of(x) == hex_of(arrays.at(name)));
      CHECK(x.dtype() == arrays.at(name).dtype());
      CHECK(x.committed() == placed);
      if (placed) CHECK(x.sharding() == (name == "large" ? tiles : rows));
    }
    save_safetensors(path, back.arrays, metadata);
    CHECK(read_bytes(path) == bytes);
  }
  CHECK_SAYS(load_safetensors(path, {.shardings = {{"c", rows}}}),
             "load_safetensors: " + path +
                 " has no array `c`, for which `shardings` has a sharding. Every name is one of the file's. "
                 "Correct it.",
             TreeError);
  CHECK(
      said_of(path,
              [&] {
                save_safetensors(path, {{"\xff", Array(1)}});
              }) ==
      "save_safetensors: PATH: the text `\\xff` is not UTF-8. Names and metadata are UTF-8. Write it another "
      "way.");
  CHECK(said_of(path, [&] {
          save_safetensors(path, {}, {{"a", "\xc3"}});
        }).starts_with("save_safetensors: PATH: the text `\\xc3` is not UTF-8."));
  CHECK(
      said_of(path,
              [&] {
                save_safetensors(path, {{"__metadata__", Array(1)}});
              }) ==
      "save_safetensors: PATH: an array has the name `__metadata__`. That name is the format's own. Give it "
      "another one.");
  CHECK_SAYS(save_safetensors(path, {{"x", Array()}}),
             "save_safetensors: `x` is absent. Only arrays are written. Leave it out.", Error);
  CHECK(read_bytes(path) == bytes);
  CHECK(folder.count() == 1);
}

TEST_CASE("files: forged safetensors headers are refused before they take memory") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.safetensors");
  const auto said_of_bytes = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    const std::string text = said_of(path, [&] { load_safetensors(path); });
    const std::string start = "load_safetensors: PATH: ";
    return text.starts_with(start) ? text.substr(start.size()) : text;
  };
  const auto said = [&](const std::string& header, const std::string& data = "") {
    return said_of_bytes(number(header.size(), 8) + header + data);
  };
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"dtype":")" + dtype + R"(","shape":[)" + shape + R"(],"data_offsets":[)" + offsets + "]}";
  };
  const auto one = [&](const std::string& shape, const std::string& offsets, const std::string& data = "") {
    return said(R"({"a":)" + entry("F32", shape, offsets) + "}", data);
  };
  const std::string eight(8, 'x'), rule =
                                       " The arrays stand one behind another, each as long as its shape "
                                       "says. Fetch or write the file again.";
  const std::string parts =
      " An array has a name of its own, a `dtype`, a `shape` and two `data_offsets`; metadata are texts. "
      "Write the "
      "file again.";
  const std::string object = " The header is one JSON object. Fetch or write the file again.";
  REQUIRE(one("2", "0,8", eight) == "nothing was thrown");
  REQUIRE(said("{}   \n") == "nothing was thrown");
  CHECK(said_of_bytes("") ==
        "holds 0 bytes. A safetensors file begins with 8 bytes of a length. Fetch the file again.");
  CHECK(said_of_bytes(number(1, 8)) ==
        "has a header of 1 byte in a file of 8. The header lies in the file, and has at most 100 MB. Fetch "
        "the "
        "file again.");
  for (const std::uint64_t length : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{100'000'001}})
    CHECK(said_of_bytes(number(length, 8) + "{}")
              .starts_with("has a header of " + std::to_string(length) + " bytes"));
  CHECK(said("") == "the header is no JSON at byte 1, at ``." + object);
  CHECK(said("{") == "the header is no JSON at byte 2, at `{`." + object);
  CHECK(said("{} {}").starts_with("the header is no JSON at byte 4"));
  CHECK(said("{\"\xff\":{}}").starts_with("the header is no JSON at byte 3"));
  CHECK(said(std::string(100, '[')) == "the header is a list." + object);
  CHECK(said("7") == "the header is 7." + object);
  CHECK(said(std::string(R"({"a":)") + std::string(100000, '[')) ==
        "`a` has a list where none may stand." + parts);
  CHECK(said(R"({"a":{"shape":[)" + std::string(100000, '[')) ==
        "`a` has a list where none may stand." + parts);
  CHECK(said(R"({"a":{"dtype":{)") == "`a` has an object where none may stand." + parts);
  CHECK(said(R"({"a":null})") == "`a` has null where none may stand." + parts);
  CHECK(said(R"({"a":true})") == "`a` has a bool where none may stand." + parts);
  CHECK(said(R"({"a":"b"})") == "`a` has a text where none may stand." + parts);
  CHECK(said(R"({"a":{}})") == "`a` lacks its dtype, shape or data_offsets." + parts);
  CHECK(said(R"({"a":{"dtype":"F32","more":1}})") == "`a` has an entry `more`." + parts);
  CHECK(said(R"({"a":{"dtype":"F32","dtype":"F32"}})") == "`a` has two entries `dtype`." + parts);
  const std::string empty = entry("F32", "0", "0,0");
  CHECK(said(R"({"a":)" + empty + R"(,"a":)" + empty + "}") == "`a` stands twice." + parts);
  CHECK(said(R"({"__metadata__":{"k":"1","k":"2"}})") == "`__metadata__` stands twice: `k`." + parts);
  CHECK(said(R"({"__metadata__":{"k":1}})") == "`__metadata__` has 1 where none may stand." + parts);
  CHECK(said(R"({"__metadata__":{"k":{"l":"m"}}})") ==
        "`__metadata__` has an object where none may stand." + parts);
  CHECK(said(R"({"__metadata__":{},"__metadata__":{}})") == "`__metadata__` stands twice." + parts);
  for (const std::string dtype : {"F8_E4M3", "C64", "f32", ""})
    CHECK(said(R"({"a":)" + entry(dtype, "", "0,4") + "}", "1234") ==
          "`a` is of dtype " + dtype +
              ". Arrays are of BOOL, I8 to I64, U8 to U64, F16, BF16, F32 or F64. Convert it in Python.");
  CHECK(one("-1", "0,4", eight) == "`a` has -1 where none may stand." + parts);
  CHECK(one("1.5", "0,4", eight) == "`a` has 1.5 where none may stand." + parts);
  CHECK(one("1e3", "0,4", eight) == "`a` has 1e3 where none may stand." + parts);
  CHECK(one("18446744073709551616", "0,4", eight) ==
        "`a` has 18446744073709551616 where none may stand." + parts);
  CHECK(one("9223372036854775808", "0,4", eight) == "`a` has a size 9223372036854775808." + parts);
  CHECK(one("2", "-8,0", eight) == "`a` has -8 where none may stand." + parts);
  CHECK(one("2", "0", eight) == "`a` has fewer than two data_offsets." + parts);
  CHECK(one("2", "0,8,8", eight) == "`a` has more than two data_offsets." + parts);
  std::string ones = "1";
  for (int k = 0; k < 31; k++) ones += ",1";
  CHECK(one(ones, "0,4", "1234") == "nothing was thrown");
  CHECK(one(ones + ",1", "0,4", "1234").starts_with("`a` has the shape [1,1,"));
  CHECK(one(ones + ",1,1", "0,4", "1234") == "`a` has too many dimensions." + parts);
  for (const std::string shape : {"4611686018427387904", "4294967296,4294967296", "0,4611686018427387904"})
    CHECK(one(shape, "0,0").starts_with("`a` has the shape [" + shape + "] of float32."));
  CHECK(one("2", "0,7", eight) ==
        "`a` f32[2] has the bytes from 0 to 7 of 8, where 8 from 0 are expected." + rule);
  CHECK(one("2", "8,0", eight) ==
        "`a` f32[2] has the bytes from 8 to 0 of 8, where 8 from 0 are expected." + rule);
  CHECK(one("2", "0,8", "1234567") ==
        "`a` f32[2] has the bytes from 0 to 8 of 7, where 8 from 0 are expected." + rule);
  CHECK(one("2", "1,9", eight + "x") ==
        "`a` f32[2] has the bytes from 1 to 9 of 9, where 8 from 0 are expected." + rule);
  CHECK(one("1152921504606846975", "0,4611686018427387900", eight)
            .starts_with("`a` f32[1152921504606846975] has the bytes from 0 to 4611686018427387900 of 8"));
  CHECK(one("2", "18446744073709551608,0", eight)
            .starts_with("`a` f32[2] has the bytes from 18446744073709551608"));
  CHECK(one("2", "0,8", eight + "x") ==
        "holds 9 bytes behind its header, its arrays have 8. Every byte belongs to an array. Fetch or write "
        "the "
        "file again.");
  // two arrays in the same bytes, and a hole between them
  CHECK(said(R"({"a":)" + entry("F32", "2", "0,8") + R"(,"b":)" + entry("F32", "2", "0,8") + "}", eight) ==
        "`b` f32[2] has the bytes from 0 to 8 of 8, where 8 from 8 are expected." + rule);
  CHECK(said(R"({"a":)" + entry("F32", "1", "0,4") + R"(,"b":)" + entry("F32", "1", "5,9") + "}",
             eight + "x") ==
        "`b` f32[1] has the bytes from 5 to 9 of 9, where 4 from 4 are expected." + rule);
  // elements that are not aligned are read all the same, and bytes of bools are bools
  write_bytes(path, "");
  const std::string odd =
      R"({"b":)" + entry("BOOL", "3", "0,3") + R"(,"a":)" + entry("F32", "1", "3,7") + "}";
  write_bytes(path, number(odd.size(), 8) + odd + std::string("\0\2\xff", 3) + number(0x3fc00000, 4));
  const Safetensors read = load_safetensors(path);
  CHECK(read.arrays.at("a")[0].item<float>() == 1.5F);
  CHECK(hex_of(read.arrays.at("b")) == "000101");
}

TEST_CASE("files: of a file of another kind it is said what it looks like, and who reads it") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const auto said = [&](const auto& read) { return said_of(path, [&] { (void)read(path); }); };
  const auto npy = [](const std::string& p) { return load_npy(p); };
  const auto npz = [](const std::string& p) { return load_npz(p); };
  const auto safetensors = [](const std::string& p) { return load_safetensors(p); };
  const auto tree = [](const std::string& p) { return load(p, std::tuple(ones(2))); };
  const std::string of_npy = " A .npy file begins with `\\x93NUMPY`. ",
                    of_npz = " A .npz file is an archive of .npy files. ",
                    of_safetensors = " A safetensors file begins with the length of its header. ";
  save_npz(path, {{"x", ones(2)}});
  CHECK(said(safetensors) ==
        "load_safetensors: PATH: looks like a .npz archive." + of_safetensors + "Read it with load_npz().");
  CHECK(said(tree) == "load: PATH: looks like a .npz archive." + of_safetensors + "Read it with load_npz().");
  write_bytes(path, std::string("PK\3\4") + std::string(26, '\0') + "archive/data.pkl");
  CHECK(said(safetensors) == "load_safetensors: PATH: looks like a zip archive." + of_safetensors +
                                 "If PyTorch wrote it, let it save safetensors.");
  save_npy(path, ones(2));
  CHECK(said(safetensors) ==
        "load_safetensors: PATH: looks like a .npy file." + of_safetensors + "Read it with load_npy().");
  save_safetensors(path, {{"x", ones(2)}});
  const std::string by = "Read it with load_safetensors(), a tree with load().";
  CHECK(said(npz) == "load_npz: PATH: looks like a safetensors file." + of_npz + by);
  CHECK(said(npy) == "load_npy: PATH: looks like a safetensors file." + of_npy + by);
  write_bytes(path, "x, y\n1, 2\n3, 4\n");
  const std::string table = "If it is a table, read it with data::load_csv().";
  CHECK(said(npz) == "load_npz: PATH: looks like a text file." + of_npz + table);
  CHECK(said(npy) == "load_npy: PATH: looks like a text file." + of_npy + table);
  CHECK(said(safetensors) == "load_safetensors: PATH: looks like a text file." + of_safetensors + table);
}

}  // namespace files_safetensors_test
