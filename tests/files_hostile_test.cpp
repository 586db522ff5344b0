// Truncated or changed files: they are refused or read, and nothing else happens.
#include <doctest/doctest.h>

#include <random>

#include "files_helpers.h"
#include "lib/files/arrays.h"
#include "scale.h"

namespace files_hostile_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

struct Row {
  std::string name, bytes;
  std::function<void(const std::string& path)> load;
};
struct Model {
  Array weight, bias;
  int epoch = 0;
  std::string text;
};

/// A file of every format and packing, and what reads it.
std::vector<Row> rows() {
  const TemporaryFolder folder;
  const std::string path = folder.file("made");
  const Sharding s = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const Model model{arange(6.0).reshape(2, 3), array({true, false}), 3, "a text"};
  const std::map<std::string, Array> arrays{{"weight", model.weight}, {"b", model.bias}};
  std::vector<Row> r;
  const auto add = [&](const std::string& name, const auto& load) {
    r.push_back({name, read_bytes(path), load});
  };
  save_npy(path, model.weight);
  add("npy", [=](const std::string& p) { eval(load_npy(p, s)); });
  add("npy on one device", [](const std::string& p) { eval(load_npy(p)); });
  save_npz(path, arrays);
  add("npz", [](const std::string& p) { eval(load_npz(p)); });
  save_npz(path, arrays, {.compressed = true});
  add("deflated npz", [=](const std::string& p) { eval(load_npz(p, {.sharding = s})); });
  save_safetensors(path, arrays, {{"key", "value"}});
  add("safetensors", [](const std::string& p) { eval(load_safetensors(p)); });
  save(path, model);
  add("tree", [=](const std::string& p) { eval(load(p, model)); });
  for (const char* const file : {"version_3.npy", "fortran_2.npy", "big_float32.npy"}) {
    r.push_back({file, read_bytes(data_file(std::string("files/") + file)),
                 [](const auto& p) { eval(load_npy(p)); }});
  }
  return r;
}

/// "read", "refused", or what else came.
std::string outcome(const Row& row, const std::string& path, const std::string& bytes) {
  write_bytes(path, bytes);
  try {
    row.load(path);
  } catch (const IoError& e) {
    const std::string text = e.text();
    return text.find(path + ": ") != text.npos ? "refused" : "a message without the path: " + text;
  } catch (const TreeError&) {  // a leaf of another name
    return row.name == "tree" ? "refused" : "TreeError";
  } catch (const ShapeError&) {
    return row.name == "tree" ? "refused" : "ShapeError";
  } catch (const DTypeError&) {
    return row.name == "tree" ? "refused" : "DTypeError";
  } catch (const ShardingError&) {  // of another rank
    return "refused";
  } catch (const std::exception& e) { return e.what(); }
  return "read";
}

}  // namespace

TEST_CASE("files: cut off or continued anywhere a file is refused") {
  const TemporaryFolder folder;
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    const std::string path = folder.file("x");
    REQUIRE(outcome(row, path, row.bytes) == "read");
    for (std::size_t n = 0; n < row.bytes.size(); n += full_scale() ? 1 : 5) {
      CAPTURE(n);
      CHECK(outcome(row, path, row.bytes.substr(0, n)) == "refused");
    }
    CHECK(outcome(row, path, row.bytes + std::string(1, '\0')) == "refused");
    CHECK(outcome(row, path, row.bytes + row.bytes.substr(0, 1)) == "refused");
  }
}

TEST_CASE("files: whatever byte is changed, a file is read or refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    int refused = 0;
    for (std::size_t at = 0; at < row.bytes.size(); at += full_scale() ? 1 : 5)
      for (const int change : {1, 0x80}) {
        std::string bytes = row.bytes;
        bytes[at] = static_cast<char>(bytes[at] ^ change);
        CAPTURE(at);
        CAPTURE(change);
        const std::string got = outcome(row, path, bytes);
        CHECK((got == "read" || got == "refused"));
        refused += got == "refused";
      }
    CHECK(refused > (full_scale() ? 30 : 5));
  }
}

TEST_CASE("files: whatever numbers and pieces are put in, a file is read or refused") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::uint64_t> numbers{0,
                                           1,
                                           0x7f,
                                           0xffff,
                                           0x7fffffff,
                                           0xffffffff,
                                           std::uint64_t{1} << 32,
                                           std::uint64_t{1} << 62,
                                           std::uint64_t{1} << 63,
                                           ~std::uint64_t{0}};
  const std::vector<std::string> texts{"9223372036854775808",
                                       "18446744073709551616",
                                       "-1",
                                       "0",
                                       "1e9",
                                       "[",
                                       "]",
                                       "{",
                                       "}",
                                       "\"",
                                       ":",
                                       ",",
                                       "(",
                                       ")",
                                       "'",
                                       "PK\1\2",
                                       "PK\3\4",
                                       "PK\5\6",
                                       "PK\6\6",
                                       "__metadata__",
                                       "\\u0000",
                                       "null"};
  const int rounds = full_scale() ? 200 : 20;
  for (const Row& row : rows()) {
    CAPTURE(row.name);
    for (int k = 0; k < rounds; k++) {
      std::string bytes = row.bytes;
      for (std::size_t changes = 1 + below(3); changes > 0 && !bytes.empty(); changes--) {
        const std::size_t at = below(bytes.size());
        switch (below(5)) {
          case 0: put(bytes, at, number(numbers[below(numbers.size())], std::size_t{1} << below(4))); break;
          case 1: put(bytes, at, texts[below(texts.size())]); break;
          case 2: bytes.insert(at, texts[below(texts.size())]); break;
          case 3: bytes.erase(at, 1 + below(8)); break;
          default: bytes.insert(at, bytes.substr(below(bytes.size()), below(64)));
        }
      }
      CAPTURE(k);
      const std::string got = outcome(row, path, bytes);
      CHECK((got == "read" || got == "refused"));
    }
  }
}

TEST_CASE("files: one that is shortened while it is read is an IoError, and no signal") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x");
  const Type t{{1500, 1000}, DType::float32};
  const Mesh mesh = make_mesh({{"x", 8}});
  const Site site(Where::here(), "load_npy");
  for (const Sharding& s :
       {Sharding(SingleDeviceSharding(devices()[0])), Sharding(NamedSharding(mesh, P("x"))),
        Sharding(NamedSharding(mesh, P(none, "x")))})
    for (const int left : {0, 100, 4096, 5'000'000}) {
      write_bytes(path, std::string(6'000'000, 'x'));
      const files::FileReader file("load_npy", path);
      std::filesystem::resize_file(path, static_cast<std::uintmax_t>(left));
      const std::string said = said_of(path, [&] { files::load_array(t, {s, true}, {}, file, 0); });
      CAPTURE(said);
      CHECK(said.starts_with("load_npy: PATH: ends at byte " + std::to_string(left) + ", where "));
      CHECK(
          said.ends_with(" more are to be read. A file must not be shortened while it is read. Read it when "
                         "it is complete."));
    }
}

}  // namespace files_hostile_test
