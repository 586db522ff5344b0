// Loader, tables, progress bar.
#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "golden.h"
#include "sources.h"

namespace data_test {

using namespace shardarray;
namespace fs = std::filesystem;

namespace {

// A file that goes when the test ends.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& name, const std::string& text)
      : path_(fs::temp_directory_path() / ("shardarray_" + std::to_string(getpid()) + "_" + name)) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { fs::remove(path_); }
  std::string path() const { return path_; }

 private:
  fs::path path_;
};

std::string gzipped(const std::string& text) {
  const TemporaryFile file("made.gz", "");
  const gzFile out = gzopen(file.path().c_str(), "wb");
  gzwrite(out, text.data(), static_cast<unsigned>(text.size()));
  gzclose(out);
  std::ifstream in(file.path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The message without the path, which is put as PATH.
std::string failure(const std::string& path) {
  try {
    data::load_csv(path);
  } catch (const IoError& e) {
    std::string text = e.text();
    if (const std::size_t at = text.find(path); at != std::string::npos)
      text.replace(at, path.size(), "PATH");
    return text;
  }
  return "no error";
}
std::string failure_of(const std::string& text) { return failure(TemporaryFile("bad.csv", text).path()); }

}  // namespace

TEST_CASE("data: load_csv reads plain and gzip files") {
  const std::string text = "1,2.5,-3\r\n4, 5e-1 ,6\n\n7,8,9";
  for (const std::string& bytes : {text, gzipped(text)}) {
    const TemporaryFile file("table.csv", bytes);
    const Array t = data::load_csv(file.path());
    CHECK(t.shape() == Shape{3, 3});
    CHECK(t.dtype() == float32);
    CHECK(t.to_vector<float>() == std::vector<float>{1, 2.5, -3, 4, 0.5, 6, 7, 8, 9});
  }
  const Array digits = data::load_csv(testing::source_folder() + "/examples/data/digits.csv.gz");
  CHECK(digits.shape() == Shape{1797, 65});
  CHECK(digits[{2, 64}].item<float>() == 2);
  CHECK(max(digits).item<float>() == 16);
}

TEST_CASE("data: load_csv says where a file is wrong") {
  CHECK(failure("/nowhere/table.csv") ==
        "data::load_csv: PATH: cannot be opened (No such file or directory). The file must exist and be "
        "readable. Check the path.");
  CHECK(failure_of("1,2\n3,x4\n") ==
        "data::load_csv: PATH: row 2, column 2: `x4` is no float32 number. Every field is a number. Say "
        ".header = true where the first row has names, which .columns are numbers, and what is .missing.");
  CHECK(failure_of("1,2\n3,\n").find("row 2, column 2: `` is no float32 number") != std::string::npos);
  CHECK(failure_of("1,2\n\n3,4,5\n") ==
        "data::load_csv: PATH: row 3: has 3 columns, the first row 2. All rows have the same length. Correct "
        "the row.");
  CHECK(failure_of("\n") ==
        "data::load_csv: PATH: row 1: there is none. A table has at least one row. Check the file.");
  std::string table;
  for (int k = 0; k < 2000; k++) table += std::to_string(k * 7919 % 1000) + "," + std::to_string(k) + "\n";
  const std::string whole = gzipped(table);
  const std::regex cut(
      "data::load_csv: PATH: the gzip stream ends in row \\d+\\. The file must be complete\\. Fetch it "
      "again\\.");
  CHECK(std::regex_match(failure_of(whole.substr(0, whole.size() / 2)), cut));
  CHECK(std::regex_match(failure_of(whole.substr(0, whole.size() - 4)), cut));
  std::string damaged = whole;
  for (std::size_t k = whole.size() / 2; k < whole.size() / 2 + 40; k++)
    damaged[k] = static_cast<char>(~damaged[k]);
  CHECK(std::regex_search(failure_of(damaged),
                          std::regex("PATH: (is damaged somewhere after row|the gzip stream ends|row) ")));
  std::string wrong_sum = whole;
  wrong_sum[whole.size() - 6] ^= 1;
  CHECK(failure_of(wrong_sum) ==
        "data::load_csv: PATH: is damaged somewhere after row 0 (incorrect data check). It must be a plain "
        "or a gzip file. Fetch it again.");
}

TEST_CASE("data: a loader gives every example once, in an order of seed and epoch") {
  const Array xs = arange(20).reshape({10, 2}), ys = arange(10);
  auto order = [&](const auto& loader) {
    std::vector<int> seen;
    for (const auto& [x, y] : loader) {
      const auto rows = y.template to_vector<int>(), values = x.template to_vector<int>();
      for (std::size_t k = 0; k < rows.size(); k++) {
        CHECK(values[2 * k] == 2 * rows[k]);  // x and y go together
        seen.push_back(rows[k]);
      }
    }
    return seen;
  };
  const auto plain = data::loader(std::tuple(xs, ys), {.batch = 4});
  CHECK(plain.size() == 3);
  CHECK(order(plain) == std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(order(data::loader(std::tuple(xs, ys), {.batch = 4, .drop_last = true})).size() == 8);

  const auto shuffled = data::loader(std::tuple(xs, ys), {.batch = 4, .seed = 3});
  const auto first = order(shuffled), second = order(shuffled.epoch(1));
  CHECK(std::set<int>(first.begin(), first.end()).size() == 10);
  CHECK(first != order(plain));
  CHECK(first != second);
  CHECK(order(shuffled) == first);
  CHECK(order(shuffled.epoch(1)) == second);
  CHECK(order(data::loader(std::tuple(xs, ys), {.batch = 4, .seed = 3, .epoch = 1})) == second);
  CHECK(order(data::loader(std::tuple(xs, ys), {.batch = 4, .seed = 4})) != first);
  const random::partitionable legacy(false);
  CHECK(order(data::loader(std::tuple(xs, ys), {.batch = 4, .seed = 3})) == first);
  const random::philox other(true);
  CHECK(order(data::loader(std::tuple(xs, ys), {.batch = 4, .seed = 3})) == first);
}

TEST_CASE("data: examples are any tree: a struct with other fields and absent arrays, one array") {
  struct Examples {
    Array image;
    Array mask;  // absent
    std::int64_t classes = 0;
    std::vector<Array> labels;
  };
  const Array xs = arange(20).reshape({10, 2}), ys = arange(10);
  const auto batches = data::loader(Examples{xs, {}, 7, {ys, ys + 1}}, {.batch = 4});
  int k = 0;
  for (const Examples& batch : batches) {
    CHECK(tree_equal(batch.image, xs[slice(4 * k, std::min(4 * k + 4, 10))]));
    CHECK_FALSE(batch.mask.has_value());
    CHECK(batch.classes == 7);
    REQUIRE(batch.labels.size() == 2);
    CHECK(tree_equal(batch.labels[1], batch.labels[0] + 1));
    k++;
  }
  CHECK(k == 3);
  CHECK(tree_equal(batches.at(2).labels[0], ys[slice(8, 10)]));
  CHECK(tree_equal(data::loader(ys, {.batch = 5}).at(1), ys[slice(5, 10)]));
}

TEST_CASE("data: batches lie where the sharding says") {
  const Mesh mesh = make_mesh({{"data", 8}});
  const NamedSharding by_example(mesh, P("data"));
  const Array xs = arange(60).reshape({20, 3}).astype(float32), ys = arange(20);
  int k = 0;
  for (const auto& [x, y] : data::loader(std::tuple(xs, ys), {.batch = 12, .sharding = by_example})) {
    CHECK(x.sharding() == by_example);
    CHECK(y.sharding() == by_example);
    CHECK(x.shape()[0] == (k == 0 ? 12 : 8));  // 12 over 8: 2 each on six devices
    CHECK(tree_equal(x, xs[slice(12 * k, 12 * k + x.shape()[0])]));
    k++;
  }
  CHECK(k == 2);
  auto text = [](auto f) {
    try {
      f();
    } catch (const ShapeError& e) { return std::string(e.text()); }
    return std::string("no error");
  };
  CHECK(text([&] { data::loader(std::tuple(xs, arange(5))); }) ==
        "data::loader: array 1 is i32[5], array 0 f32[20,3]. All arrays have one entry per example along the "
        "first dimension. Cut them to "
        "the same number.");
  CHECK(text([&] { data::loader(std::tuple(xs), {.batch = 0}); }) ==
        "data::loader: batch is 0. A batch has at least one example. Correct it.");
}

TEST_CASE("data: progress") {
  std::ostringstream plain;
  int asked = 0;
  {
    Progress progress(100, {.out = &plain});
    for (int k = 0; k < 100; k++)
      progress.step([&] {
        asked++;
        return "loss " + std::to_string(k);
      });
    CHECK(progress.rate() > 0);
  }
  CHECK(asked == 10);  // the metric is made only for lines that are drawn
  std::istringstream lines(plain.str());
  int count = 0;
  for (std::string line; std::getline(lines, line); count++) {
    const std::string end = std::to_string(10 * (count + 1));
    const std::regex form(" *" + end + "% " + end + "/100  [0-9.]+ steps/s" +
                          (count < 9 ? "  [0-9]+:[0-9][0-9] left" : "") + "  loss " +
                          std::to_string(10 * (count + 1) - 1));
    CHECK_MESSAGE(std::regex_match(line, form), line);
  }
  CHECK(count == 10);

  std::ostringstream bar;
  {
    Progress progress(2, {.out = &bar, .terminal = true});
    progress.step("a");  // within 0.1 s of the start: not drawn
    progress.step("b");
  }
  CHECK(std::regex_match(bar.str(), std::regex("\r\x1b\\[K\\[#{20}\\] 100% 2/2  [0-9.]+ steps/s  b\n")));
}

}  // namespace data_test
