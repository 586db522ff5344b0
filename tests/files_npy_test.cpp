// .npy files: NumPy's, those that the library writes, and where arrays go.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <regex>

#include "files_helpers.h"
#include "messages.h"
#include "scale.h"

namespace files_npy_test {

using namespace shardarray;
using namespace shardarray::testing;
namespace fs = std::filesystem;

namespace {

const std::string saved_rule =
    " A file is written whole or not at all, and what stood there is as it was. Free space, or name a folder "
    "that exists and is yours.";

/// Shardings for a value of rank `ndim` over eight devices: every dimension cut, several, none, in another order of devices.
std::vector<Sharding> shardings_of(int ndim) {
  const Mesh mesh = make_mesh({{"x", 4}, {"y", 2}});
  std::vector<Sharding> r{NamedSharding(mesh, P()), SingleDeviceSharding(devices()[3])};
  for (int d = 0; d < ndim; d++) {
    std::vector<SpecEntry> one(static_cast<std::size_t>(ndim), none), two = one;
    one[static_cast<std::size_t>(d)] = "x";
    two[static_cast<std::size_t>(d)] = axes("y", "x");
    r.emplace_back(NamedSharding(mesh, P(one)));
    r.emplace_back(NamedSharding(mesh, P(two)));
  }
  if (ndim == 2) {
    r.emplace_back(NamedSharding(mesh, P("y", "x")));
    std::vector<Device> reversed = devices();
    std::reverse(reversed.begin(), reversed.end());
    r.emplace_back(PositionalSharding(create_device_mesh({2, 4}, reversed)));
  }
  return r;
}

/// MB, of /proc/self/status.
double memory(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return std::stod(line.substr(name.size() + 1)) / 1024;
  return 0;
}

}  // namespace

TEST_CASE("files: NumPy's .npy files of every dtype, version, order and shape") {
  int count = 0;
  const nlohmann::json files = python_files();
  for (const auto& entry : files.items()) {
    const std::string file = entry.key();
    const nlohmann::json& arrays = entry.value();
    if (!file.ends_with(".npy")) continue;
    CAPTURE(file);
    const Array x = load_npy(data_file("files/" + file));
    CHECK(difference(x, arrays[""]) == "");
    CHECK(!x.committed());
    CHECK(!x.weak_type());
    for (const Sharding& s : shardings_of(x.ndim())) {
      CAPTURE(s.to_string());
      const Array y = load_npy(data_file("files/" + file), s);
      CHECK(difference(y, arrays[""]) == "");
      CHECK(y.committed());
      CHECK(y.sharding() == s);
    }
    count++;
  }
  CHECK(count > 25);
}

TEST_CASE("files: .npy files round trip bit for bit, wherever the array lies") {
  const TemporaryFolder folder;
  for (const DType t : stored_dtypes()) {
    CAPTURE(name(t));
    const Array x = counted(t, {6, 5});
    save_npy(folder.file("whole.npy"), x);
    const std::string bytes = read_bytes(folder.file("whole.npy"));
    CHECK(bytes.size() % 64 == 30 * itemsize(t) % 64);
    CHECK(hex_of(load_npy(folder.file("whole.npy"))) == hex_of(x));
    for (const Sharding& s : shardings_of(2)) {
      save_npy(folder.file("cut.npy"), device_put(x, s));
      CHECK(read_bytes(folder.file("cut.npy")) == bytes);
    }
  }
  CHECK(folder.count() == 2);  // nothing is left beside them
  for (const Shape& shape : {Shape{}, Shape{0}, Shape{3, 0, 2}, Shape{1, 1}, Shape::filled(32, 1)}) {
    const Array x = counted(DType::float32, shape);
    save_npy(folder.file("shape.npy"), x);
    CHECK(load_npy(folder.file("shape.npy")).shape() == shape);
    CHECK(hex_of(load_npy(folder.file("shape.npy"))) == hex_of(x));
  }
}

TEST_CASE("files: arrays of many parts of 1 MiB are read and written in their order") {
  const TemporaryFolder folder;
  const std::string path = folder.file("large.npy");
  // Rows of 2 MB, rows that end inside of a part, three dimensions, one long one; none divides by the devices.
  for (const Shape& shape : {Shape{3, 1 << 19}, Shape{601, 1001}, Shape{7, 130, 517}, Shape{1000003}}) {
    const Array x = arange(num_elements(shape)).reshape(shape);
    const std::vector<std::byte> whole = host_elements(x, "test");
    save_npy(path, x);
    const std::string bytes = read_bytes(path);
    for (const Sharding& s : shardings_of(x.ndim())) {
      CAPTURE(s.to_string());
      const Array y = load_npy(path, s);
      CHECK((host_elements(y, "test") == whole));
      save_npy(folder.file("again.npy"), y);
      CHECK((read_bytes(folder.file("again.npy")) == bytes));
    }
  }
}

TEST_CASE("files: loading needs no memory beside the array") {
  if (is_sanitized()) return;
  const TemporaryFolder folder;
  const std::string path = folder.file("memory.npy");
  constexpr double megabytes = 192;
  save_npy(path, zeros({static_cast<std::int64_t>(megabytes), 1 << 18}));
  const Mesh mesh = make_mesh({{"x", 8}});
  for (const PartitionSpec& spec : {P("x"), P(none, "x")}) {
    std::ofstream("/proc/self/clear_refs") << 5;  // the peak counts from here
    const double before = memory("VmRSS:");
    if (memory("VmHWM:") > before + 16) return;  // this system does not forget the peak
    const Array x = load_npy(path, NamedSharding(mesh, spec));
    const double grown = memory("VmHWM:") - before;
    CAPTURE(grown);
    CHECK(grown < megabytes + 32);
  }
}

TEST_CASE("files: in a trace what is loaded is a constant, and nothing is saved") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  save_npy(path, arange(4));
  const auto add_loaded = jit([&](const Array& x) { return x + load_npy(path); });
  CHECK(array_equal(add_loaded(arange(4)), 2 * arange(4)));
  const std::string fortran = data_file("files/fortran_2.npy");
  CHECK(array_equal(jit([&](const Array& x) { return x * load_npy(fortran); })(Array(1)), load_npy(fortran)));
  CHECK_THROWS_AS(jit([&](const Array& x) {
                    save_npy(path, x);
                    return x;
                  })(arange(4)),
                  TraceError);
  CHECK(array_equal(load_npy(path), arange(4)));
  // Inside of grad values may be read.
  CHECK(grad([&](const Array& x) {
          save_npy(path, x);
          return x * x;
        })(3.0)
            .item<float>() == 6);
  CHECK(load_npy(path).item<float>() == 3);
}

TEST_CASE("files: what cannot be saved leaves what stood there, and nothing else") {
  const TemporaryFolder folder;
  const std::string path = folder.file("kept.npy");
  save_npy(path, arange(3));
  const std::string before = read_bytes(path);
  {  // a disk without space, as far as a file is concerned; no signal ends the process
    rlimit old{};
    getrlimit(RLIMIT_FSIZE, &old);
    const rlimit small{1000, old.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string said = said_of(path, [&] { save_npy(path, zeros({1000})); });
    const std::string tree = said_of(path, [&] { save(path, std::pair(zeros({1000}), 3)); });
    const std::string npz = said_of(path, [&] { save_npz(path, {{"x", zeros({1000})}}); });
    setrlimit(RLIMIT_FSIZE, &old);
    CHECK(said == "save_npy: PATH: cannot be written beyond byte 128 (File too large)." + saved_rule);
    CHECK(tree.starts_with("save: PATH: cannot be written beyond byte "));
    CHECK(npz.starts_with("save_npz: PATH: cannot be written beyond byte "));
  }
  CHECK(read_bytes(path) == before);
  CHECK(folder.count() == 1);
  const std::string nowhere = folder.file("nowhere/x.npy");
  CHECK(said_of(nowhere, [&] { save_npy(nowhere, arange(3)); }) ==
        "save_npy: PATH: cannot be written (No such file or directory)." + saved_rule);
  for (const std::string& place : {folder.file(""), std::string("/dev/null"), std::string("/dev/full")})
    CHECK(said_of(place, [&] { save_npy(place, arange(3)); }) ==
          "save_npy: PATH: is no regular file. A file takes the place of what stands there. Name a file in a "
          "folder, not the folder or a device.");
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_SAYS(save_npy(path, Array()),
             "save_npy: the array is absent. Array() holds nothing; ask has_value() first.", Error);
  CHECK(read_bytes(path) == before);
}

TEST_CASE("files: a saved file keeps its mode, and the link that leads to it") {
  const TemporaryFolder folder;
  save_npy(folder.file("x.npy"), arange(3));
  chmod(folder.file("x.npy").c_str(), 0640);
  fs::create_symlink("x.npy", folder.file("link.npy"));
  save_npy(folder.file("link.npy"), arange(5));
  CHECK(fs::is_symlink(folder.file("link.npy")));
  CHECK(load_npy(folder.file("x.npy")).shape() == Shape{5});
  struct stat s {};
  REQUIRE(stat(folder.file("x.npy").c_str(), &s) == 0);
  CHECK((s.st_mode & 0777) == 0640);
}

TEST_CASE("files: messages of load_npy") {
  const TemporaryFolder folder;
  const std::string path = folder.file("x.npy");
  const auto said = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    return said_of(path, [&] { load_npy(path); });
  };
  const auto with_header = [&](std::string header, const std::string& data) {
    header += "\n";
    return said("\x93NUMPY\x01" + std::string(1, '\0') + number(header.size(), 2) + header + data);
  };
  const auto shaped = [&](const std::string& shape, const std::string& data = "") {
    return with_header("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }", data);
  };
  const std::string dict =
      " It is a dict of `descr`, `fortran_order` and `shape`. Write the file again with numpy.save.";
  CHECK(said_of("/nowhere/x.npy", [&] { load_npy("/nowhere/x.npy"); }) ==
        "load_npy: PATH: cannot be opened (No such file or directory). The file must exist and be readable. "
        "Check the path.");
  for (const std::string& place : {folder.file(""), std::string("/dev/zero")})
    CHECK(said_of(place, [&] { load_npy(place); }) ==
          "load_npy: PATH: is no regular file. Folders, devices and pipes have no size and no end. Name a "
          "file.");
  const std::string pipe = folder.file("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(said_of(pipe, [&] { load_npy(pipe); }).starts_with("load_npy: PATH: is no regular file."));
  CHECK(said("") ==
        "load_npy: PATH: holds 0 bytes, the header needs 10. A .npy file begins with its header. Fetch the "
        "file "
        "again.");
  CHECK(said("PK\3\4 is a zip") ==
        "load_npy: PATH: looks like a zip archive. A .npy file begins with `\\x93NUMPY`. If PyTorch wrote "
        "it, let it "
        "save safetensors.");
  CHECK(said("\1\2\3\4 no known kind") ==
        "load_npy: PATH: begins with `\\x01\\x02\\x03\\x04 n`. A .npy file begins with `\\x93NUMPY`. Check "
        "which "
        "kind of file it is.");
  CHECK(said("\x93NUMPY\4" + std::string(9, '\0')) ==
        "load_npy: PATH: is of version 4.0 of the format. There are versions 1.0, 2.0 and 3.0. Check the "
        "file.");
  CHECK(said("\x93NUMPY\2" + std::string(1, '\0') + "\xff\xff\xff\xff") ==
        "load_npy: PATH: has a header of 4294967295 bytes. Headers of arrays of numbers have some hundred "
        "bytes. "
        "Check the file.");
  CHECK(shaped("(2, 3)", std::string(23, 'x')) ==
        "load_npy: PATH: holds 93 bytes, its header and f32[2,3] are 94. One array is expected, all of it. "
        "Fetch "
        "or write the file again.");
  CHECK(shaped("(2, 3)", std::string(25, 'x')).starts_with("load_npy: PATH: holds 95 bytes, its header and"));
  CHECK(shaped("(4611686018427387904,)") ==
        "load_npy: PATH: has the shape [4611686018427387904] of float32. An array has at most 32 dimensions, "
        "no "
        "negative sizes, and fewer than 2^62 bytes. Write the file again.");
  CHECK(shaped("(0, 4611686018427387904)")
            .starts_with("load_npy: PATH: has the shape [0,4611686018427387904]"));
  CHECK(shaped("(4294967296, 4294967296)")
            .starts_with("load_npy: PATH: has the shape [4294967296,4294967296]"));
  CHECK(shaped("(" + std::string(200, '1') + ",)").starts_with("load_npy: PATH: the header has a size `111"));
  CHECK(shaped("(-1,)") == "load_npy: PATH: the header has a size `-1,), }\\x0a`." + dict);
  CHECK(shaped("(1.5,)").starts_with("load_npy: PATH: the header has a size `.5"));
  CHECK(shaped("7").starts_with("load_npy: PATH: the header has `7, }\\x0a` where a `(` is expected."));
  std::string ones = "(";
  for (int k = 0; k < 33; k++) ones += "1,";
  CHECK(shaped(ones + ")").starts_with("load_npy: PATH: the header has a shape of more than 32 dimensions."));
  const std::string dtype =
      " Arrays are of bool, integers of 1 to 8 bytes, floats of 2 to 8 bytes, complex numbers of 8 or 16, or "
      "`<V2` "
      "(bfloat16). Convert it in Python with astype.";
  for (const std::string t : {"<c32", "|O", "<U5", "<M8[ns]", "<f16", "|S3", "<V4", "", "<"})
    CHECK(with_header("{'descr': '" + t + "', 'fortran_order': False, 'shape': (), }", "1234") ==
          "load_npy: PATH: the dtype is `" + t + "`." + dtype);
  CHECK(with_header("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (), }", "1234") ==
        "load_npy: PATH: the dtype is `[('x', '<f4')], 'fortran_order': False, 'shape': (), }\\x0a`." +
            dtype);
  CHECK(with_header("", "") == "load_npy: PATH: the header ends where a `{` is expected." + dict);
  CHECK(with_header("{'descr': '<f4', 'shape': ()}", "1234") ==
        "load_npy: PATH: the header lacks an entry." + dict);
  CHECK(with_header("{'descr': '<f4', 'shape': (), 'shape': ()}", "") ==
        "load_npy: PATH: the header has a second entry `shape`." + dict);
  CHECK(with_header("{'exec': '<f4'}", "") ==
        "load_npy: PATH: the header has an unknown entry `exec`." + dict);
  CHECK(with_header("{'descr: }", "") == "load_npy: PATH: the header has a text without an end." + dict);
  CHECK(with_header("{'fortran_order': 0}", "") ==
        "load_npy: PATH: the header has the fortran_order `0}\\x0a`." + dict);
  CHECK(with_header("{'fortran_order': False 'shape': ()}", "") ==
        "load_npy: PATH: the header goes on with `'shape': ()}\\x0a`." + dict);
  CHECK(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': ()} + 1", "1234") ==
        "load_npy: PATH: the header goes on with `+ 1\\x0a`." + dict);
}

TEST_CASE("files: a sharding that does not fit is refused before anything is read") {
  const std::string path = data_file("files/float32.npy");
  const PositionalSharding cube(create_device_mesh({2, 2, 2}));
  CHECK(said_of<ShardingError>(path, [&] {
          load_npy(path, cube);
        }).starts_with("load_npy: f32[2,3] cannot be loaded to PositionalSharding("));
  Device far = devices()[0];
  far.id = 99;
  CHECK_THROWS_AS(load_npy(path, SingleDeviceSharding(far)), DeviceError);
}

// Python reads the folder with `tests/reference/files.py FOLDER`, where SHARDARRAY_TEST_FILES names one.
TEST_CASE("files: what Python reads") {
  const TemporaryFolder own;
  const char* const asked = std::getenv("SHARDARRAY_TEST_FILES");
  const auto file = [&](const std::string& name) {
    return asked ? std::string(asked) + "/" + name : own.file(name);
  };
  const Sharding s = NamedSharding(make_mesh({{"x", 4}, {"y", 2}}), P("y", none, "x"));
  std::map<std::string, Array> arrays;
  for (const DType t : stored_dtypes()) {
    arrays[name(t)] = device_put(counted(t, {2, 3, 4}), s);
    save_npy(file(std::string(name(t)) + ".npy"), arrays[name(t)]);
  }
  arrays["gr\u00fcn"] = Array(2.5);
  save_npz(file("stored.npz"), arrays);
  save_npz(file("deflated.npz"), arrays, {.compressed = true});
  save_safetensors(file("all.safetensors"), arrays, {{"note", "a \"text\"\n"}, {"gr\u00fcn", "\u2713"}});
  const Safetensors read = load_safetensors(file("all.safetensors"));
  CHECK(read.metadata.at("gr\u00fcn") == "\u2713");
  for (const auto& from : {load_npz(file("stored.npz")), load_npz(file("deflated.npz")), read.arrays}) {
    CHECK(from.size() == arrays.size());
    for (const auto& [name, x] : arrays) CHECK(hex_of(from.at(name)) == hex_of(x));
  }
}

}  // namespace files_npy_test
