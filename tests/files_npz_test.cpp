// .npz files: NumPy's, those that the library writes, archives that are forged.
#include <doctest/doctest.h>
#include <zlib.h>

#include "files_helpers.h"
#include "messages.h"

namespace files_npz_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

const std::string whole_rule = " An archive is expected, all of it. Fetch or write the file again.";
const std::string bytes_rule = " Its bytes are not those that were written. Fetch the file again.";

std::string deflated(const std::string& bytes) {
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string r(deflateBound(&z, bytes.size()), '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = reinterpret_cast<Bytef*>(r.data());
  z.avail_out = static_cast<uInt>(r.size());
  deflate(&z, Z_FINISH);
  r.resize(z.total_out);
  deflateEnd(&z);
  return r;
}
std::uint32_t checksum(const std::string& bytes) {
  return static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The record of zeros of float32.
std::string npy(std::int64_t n, bool with_data = true) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(n) + ",), }\n";
  return "\x93NUMPY\x01" + std::string(1, '\0') + number(header.size(), 2) + header +
         (with_data ? std::string(static_cast<std::size_t>(n) * 4, '\0') : "");
}

/// What a forger may change of an archive of one or more members.
struct Forged {
  struct Member {
    std::string name = "x.npy", packed;
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;
    int method = 0, flags = 0;
    std::string extra = {}, header_name = {};
    std::optional<std::uint64_t> header = std::nullopt, packed_bytes = std::nullopt;
  };
  std::vector<Member> members;
  std::optional<std::uint64_t> entries = std::nullopt, directory_at = std::nullopt,
                               directory_bytes = std::nullopt;
  std::string comment = {}, gap = {};

  std::string text() const {
    std::string r, directory;
    for (const Member& m : members) {
      const std::uint64_t at = m.header.value_or(r.size()), packed = m.packed_bytes.value_or(m.packed.size());
      const std::string name = m.header_name.empty() ? m.name : m.header_name;
      const std::string middle = number(static_cast<unsigned>(m.flags), 2) +
                                 number(static_cast<unsigned>(m.method), 2) + number(0, 4) +
                                 number(m.crc, 4) + number(packed, 4) + number(m.bytes, 4);
      r += "PK\3\4" + number(20, 2) + middle + number(name.size(), 2) + number(0, 2) + name + m.packed;
      directory += "PK\1\2" + number(20, 2) + number(20, 2) + middle + number(m.name.size(), 2) +
                   number(m.extra.size(), 2) + number(0, 10) + number(at, 4) + m.name + m.extra;
    }
    const std::uint64_t count = entries.value_or(members.size());
    const std::uint64_t at = directory_at.value_or(r.size()),
                        size = directory_bytes.value_or(directory.size());
    return r + directory + gap + "PK\5\6" + number(0, 4) + number(count, 2) + number(count, 2) +
           number(size, 4) + number(at, 4) + number(comment.size(), 2) + comment;
  }
};
Forged::Member stored(const std::string& bytes, const std::string& name = "x.npy") {
  return {.name = name, .packed = bytes, .bytes = bytes.size(), .crc = checksum(bytes)};
}
Forged::Member packed(const std::string& bytes, const std::string& name = "x.npy") {
  Forged::Member m = stored(bytes, name);
  m.packed = deflated(bytes);
  m.method = 8;
  return m;
}

}  // namespace

TEST_CASE("files: NumPy's .npz files, stored and deflated") {
  for (const std::string file : {"stored.npz", "deflated.npz", "none.npz"}) {
    const auto wanted = python_files()[file];
    const std::map<std::string, Array> arrays = load_npz(data_file("files/" + file));
    CHECK(arrays.size() == wanted.size());
    for (const auto& entry : arrays) {
      const std::string& name = entry.first;
      CAPTURE(name);
      CHECK(difference(entry.second, wanted[name]) == "");
    }
  }
}

TEST_CASE("files: .npz files round trip, compressed or not, onto shardings") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npz");
  const Mesh mesh = make_mesh({{"x", 8}});
  const Sharding rows = NamedSharding(mesh, P("x")), columns = NamedSharding(mesh, P(none, "x"));
  std::map<std::string, Array> arrays{{"", arange(3)},
                                      {"a/../b", random::normal(random::key(0), {700, 900})}};
  for (const DType t : stored_dtypes()) arrays[name(t)] = counted(t, {5, 9});
  for (const bool compressed : {false, true}) {
    save_npz(path, arrays, {.compressed = compressed});
    const std::string bytes = read_bytes(path);
    save_npz(path, arrays, {.compressed = compressed});
    CHECK(read_bytes(path) == bytes);  // equal arrays are equal files
    const auto back = load_npz(path);
    CHECK(back.size() == arrays.size());
    for (const auto& [name, x] : arrays) {
      CHECK(hex_of(back.at(name)) == hex_of(x));
      CHECK(!back.at(name).committed());
    }
    const auto placed = load_npz(path, {.sharding = rows, .shardings = {{"a/../b", columns}}});
    for (const auto& [name, x] : arrays) {
      CHECK(hex_of(placed.at(name)) == hex_of(x));
      CHECK(placed.at(name).sharding() == (name == "a/../b" ? columns : rows));
    }
  }
  CHECK_SAYS(load_npz(path, {.shardings = {{"c", rows}}}),
             "load_npz: " + path +
                 " has no array `c`, for which `shardings` has a sharding. Every name is one of the file's. "
                 "Correct it.",
             TreeError);
  CHECK_SAYS(save_npz(path, {{"x", Array()}}),
             "save_npz: `x` is absent. Only arrays are written. Leave it out.", Error);
  const std::string longest(65001, 'n');
  CHECK(said_of(path,
                [&] {
                  save_npz(path, {{longest, Array(1)}});
                }) == "save_npz: PATH: a name has 65001 bytes: `" + std::string(60, 'n') +
                          "...`. The format has room for 65,000. Shorten it.");
  CHECK(folder.count() == 1);
}

TEST_CASE("files: archives with large fields, comments and members of their own length are read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.npz");
  const std::string record = npy(3);
  Forged f{.members = {stored(record), packed(record, "y.npy")}, .comment = "PK\5\6 is how an archive ends"};
  write_bytes(path, f.text());
  CHECK(load_npz(path).size() == 2);
  // sizes and place in the field for large members, behind another field
  Forged::Member& m = f.members[0];
  m.extra = number(0x5455, 2) + number(1, 2) + "t" + number(1, 2) + number(24, 2) + number(record.size(), 8) +
            number(record.size(), 8) + number(0, 8);
  std::string bytes = f.text();
  const std::size_t entry = bytes.find("PK\1\2");
  put(bytes, entry + 20, number(0xffffffff, 4) + number(0xffffffff, 4));
  put(bytes, entry + 42, number(0xffffffff, 4));
  write_bytes(path, bytes);
  CHECK(load_npz(path).at("x").shape() == Shape{3});
  // 70,000 members need the large end
  std::map<std::string, Array> many;
  for (int k = 0; k < 70000; k++) many.emplace("n" + std::to_string(k), Array());
  const Array one = array({7}, uint8);
  for (auto& [name, x] : many) x = one;
  save_npz(path, many);
  const auto back = load_npz(path);
  CHECK(back.size() == many.size());
  CHECK(back.at("n69999").item<int>() == 7);
}

TEST_CASE("files: forged archives are refused before they take memory") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npz");
  const auto said_of_bytes = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return said_of(path, [&] { load_npz(path); });
  };
  const auto said = [&](const Forged& f) { return said_of_bytes(f.text()); };
  const auto with = [&](const auto& change, Forged f = {.members = {stored(npy(2))}}) {
    change(f);
    return said(f);
  };
  REQUIRE(with([](Forged&) {}) == "nothing was thrown");
  CHECK(said_of_bytes("") == "load_npz: PATH: has no directory at its end." + whole_rule);
  CHECK(said_of_bytes("PK\5\6") == "load_npz: PATH: has no directory at its end." + whole_rule);
  CHECK(said_of_bytes(npy(2)) ==
        "load_npz: PATH: looks like a .npy file. A .npz file is an archive of .npy files. Read it with "
        "load_npy().");
  CHECK(said_of_bytes(Forged{.members = {stored(npy(2))}}.text() + "more") ==
        "load_npz: PATH: has no directory at its end." + whole_rule);
  const std::string directory = "load_npz: PATH: has a directory of ";
  CHECK(with([](Forged& f) { f.entries = 2; }).starts_with(directory + "2 entries and 51 bytes"));
  CHECK(with([](Forged& f) { f.directory_at = 0; }).starts_with(directory));
  CHECK(with([](Forged& f) { f.directory_bytes = 0xffffffff; }).starts_with(directory));
  CHECK(with([](Forged& f) { f.gap = "gap"; }).starts_with(directory));
  CHECK(with([](Forged& f) { f.entries = 0; }) ==
        "load_npz: PATH: has a directory with more entries than it says." + whole_rule);
  CHECK(with([](Forged& f) { f.members.push_back(f.members[0]); }) ==
        "load_npz: PATH: has two members `x.npy`. Every array has a name of its own. Write the file again.");
  CHECK(with([](Forged& f) {
          f.members.push_back(stored(npy(2), "y.npy"));
          f.members[1].header = 0;  // of the first one
        }) == "load_npz: PATH: `x.npy` does not stand at byte 0, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) { f.members[0].header = 5; }) ==
        "load_npz: PATH: `x.npy` does not stand at byte 5, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) { f.members[0].header = 0xfffffff0; }) ==
        "load_npz: PATH: `x.npy` does not stand at byte 4294967280, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) { f.members[0].header_name = "y.npy"; }) ==
        "load_npz: PATH: `x.npy` does not stand at byte 0, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) { f.members[0].packed_bytes = f.members[0].bytes = 5000; }) ==
        "load_npz: PATH: `x.npy` does not stand at byte 0, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) {
          f.members[0].bytes = 0xffffffff;  // no field for large members
          f.members[0].packed_bytes = 0xffffffff;
        }) == "load_npz: PATH: does not say how long `x.npy` is." + whole_rule);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 63, ~std::uint64_t{0}})
    CHECK(with([&](Forged& f) {
            f.members[0].bytes = f.members[0].packed_bytes.emplace(0xffffffff);
            f.members[0].extra = number(1, 2) + number(16, 2) + number(bytes, 8) + number(bytes, 8);
          }) == "load_npz: PATH: `x.npy` does not stand at byte 0, where the directory says." + whole_rule);
  CHECK(with([](Forged& f) { f.members[0].flags = 1; }) ==
        "load_npz: PATH: `x.npy` is encrypted. Members are stored or deflated. Write the file again with "
        "numpy.savez.");
  CHECK(with([](Forged& f) {
          f.members[0].method = 14;
        }).starts_with("load_npz: PATH: `x.npy` is packed in another way."));
  CHECK(
      with([](Forged& f) { f.members[0].bytes++; }) ==
      "load_npz: PATH: `x.npy` is said to be 77 bytes, 76 in the file. No packing does that. Fetch the file "
      "again.");
  CHECK(with([](Forged& f) {
          f.members[0].crc ^= 0x10;
        }).starts_with("load_npz: PATH: `x.npy` has the checksum "));
  CHECK(with([](Forged& f) { f.members[0] = stored("text", "read.me"); }) ==
        "load_npz: PATH: has a member `read.me`. All members are .npy files. Take the others out of it.");
  CHECK(with([](Forged& f) { f.members[0] = stored("text"); }) ==
        "load_npz: PATH: `x`: holds 4 bytes, the header needs 10. A .npy file begins with its header. Fetch "
        "the "
        "file again.");
  CHECK(with([](Forged& f) {
          f.members[0] = stored(npy(1 << 30, false));
        }).find(" bytes, its header and f32[1073741824] are ") != std::string::npos);
}

TEST_CASE("files: what is deflated is no larger than it may be, and unpacks to what is said") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npz");
  const auto said = [&](const Forged::Member& m, const NpzOptions& o = {}) {
    write_bytes(path, Forged{.members = {m}}.text());
    return said_of(path, [&] { load_npz(path, o); });
  };
  const std::string record = npy(100000);
  Forged::Member m = packed(record);
  CHECK(said(m) == "nothing was thrown");
  CHECK(
      said(m, {.max_bytes = 400000}) ==
      "load_npz: PATH: unpacks to " + std::to_string(record.size()) +
          " bytes, 400000 are allowed. max_bytes says how much a file may hold that is deflated. Raise it if "
          "you trust the file.");
  CHECK(said(m, {.max_bytes = -1}).starts_with("load_npz: PATH: unpacks to "));
  CHECK(said(stored(record), {.max_bytes = 0}) == "nothing was thrown");  // it is as long as the file
  m.bytes = 0x7fffffff;                                                   // a bomb that no packing can be
  CHECK(said(m).starts_with("load_npz: PATH: `x.npy` is said to be 2147483647 bytes, "));
  m = packed(npy(100001));
  m.bytes -= 4;
  CHECK(said(m).starts_with("load_npz: PATH: `x`: holds "));  // as its header says otherwise
  const std::string longer = npy(100000) + std::string(4, '\0');
  m = packed(longer);
  m.bytes -= 4;
  CHECK(said(m) == "load_npz: PATH: `x.npy` unpacks to more bytes than the directory says." + bytes_rule);
  m = packed(npy(100).substr(0, 300));
  m.bytes = npy(100).size();
  CHECK(said(m) == "load_npz: PATH: `x.npy` unpacks to fewer bytes than the directory says." + bytes_rule);
  m = packed(record);
  m.packed += "more";
  CHECK(said(m) == "load_npz: PATH: `x.npy` has bytes behind its end." + bytes_rule);
  m = packed(record);
  m.packed.resize(m.packed.size() - 6);
  CHECK(said(m) == "load_npz: PATH: `x.npy` is cut off." + bytes_rule);
  m = packed(record);
  m.packed[0] = '\xff';
  CHECK(said(m).starts_with("load_npz: PATH: `x.npy` is damaged (invalid block type)."));
}

}  // namespace files_npz_test
