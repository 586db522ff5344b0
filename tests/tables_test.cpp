// Tables in text files: reading, writing, refusals.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "files_helpers.h"
#include "messages.h"
#include "scale.h"

namespace tables_test {

using namespace shardarray;
using namespace shardarray::testing;

namespace {

using Values = std::vector<double>;

/// What `read` makes of a file with this text.
template <class F> auto with_text(const std::string& text, const F& read) {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.csv");
  write_bytes(path, text);
  return read(path);
}
Array csv(const std::string& text, const data::CsvOptions& o) {
  return with_text(text, [&](const std::string& path) { return data::load_csv(path, o); });
}
data::Table table(const std::string& text, const data::CsvOptions& o) {
  return with_text(text, [&](const std::string& path) { return data::load_table(path, o); });
}
/// The message, with the path as PATH.
template <class E = IoError> std::string refusal(const std::string& text, const data::CsvOptions& o) {
  return with_text(
      text, [&](const std::string& path) { return said_of<E>(path, [&] { data::load_csv(path, o); }); });
}
template <class E = IoError> std::string table_refusal(const std::string& text, const data::CsvOptions& o) {
  return with_text(
      text, [&](const std::string& path) { return said_of<E>(path, [&] { data::load_table(path, o); }); });
}
bool same(const Array& x, const Values& want) {
  const Values got = x.to_vector<double>();
  bool r = got.size() == want.size();
  for (std::size_t k = 0; r && k < got.size(); k++)
    r = got[k] == want[k] || (std::isnan(got[k]) && std::isnan(want[k]));
  return r;
}

}  // namespace

TEST_CASE("tables: headers, delimiters, quotes, comments, ends of lines") {
  const auto read = [](const std::string& text, const data::CsvOptions& o, const Values& want,
                       const Shape& shape) {
    CAPTURE(text);
    const Array x = csv(text, o);
    CHECK(x.shape() == shape);
    CHECK(same(x, want));
  };
  read("a,b\n1,2\n3,4\n", {.header = true}, {1, 2, 3, 4}, {2, 2});
  read("a,b\r\n1,2\r\n3,4", {.header = true}, {1, 2, 3, 4}, {2, 2});
  read(
      "\xef\xbb\xbf"
      "1,2\n",
      {}, {1, 2}, {1, 2});
  read("1;2\n3 ; 4\n", {.delimiter = ';'}, {1, 2, 3, 4}, {2, 2});
  read("1\t2\n3\t\n", {.delimiter = '\t', .missing = {""}}, {1, 2, 3, NAN}, {2, 2});
}

TEST_CASE("tables: what a row of tabs is, and spaces as a delimiter") {
  CHECK(same(csv("1\t2\n\t\n", {.delimiter = '\t', .missing = {""}}), {1, 2, NAN, NAN}));
  CHECK(same(csv("1 2\n3 4\n", {.delimiter = ' '}), {1, 2, 3, 4}));
  CHECK(same(csv("  \t \n1,2\n \r\n\n3,4\n\n", {}), {1, 2, 3, 4}));
}

TEST_CASE("tables: quoted fields hold delimiters, quotes and ends of lines") {
  const data::Table t =
      table("\"a,b\",\"say \"\"x\"\"\",\"two\nlines\"\n\"1\", \"2\" ,3\n4,5,6\n", {.header = true});
  CHECK(t.names == std::vector<std::string>{"a,b", "say \"x\"", "two\nlines"});
  CHECK(same(t.at("a,b"), {1, 4}));
  CHECK(same(t.at("say \"x\""), {2, 5}));
  CHECK(same(t.at("two\nlines"), {3, 6}));
  CHECK(table("'a'\n1\n", {.header = true, .quote = '\''}).names == std::vector<std::string>{"a"});
  CHECK(table("\"a\n1\n", {.header = true, .quote = '\0'}).names == std::vector<std::string>{"\"a"});
  // A row counts the lines in front of it, also those in quotes.
  CHECK(contains(table_refusal("\"two\nlines\"\n1\nx\n", {.header = true}), "row 4, column 1: `x`"));
  CHECK(
      refusal("1,\"2\n3,4\n", {}) ==
      "data::load_csv: PATH: row 1, column 2: the quote that opens is not closed. A field that begins with a "
      "quote ends with one. Close it, or say that there are none: .quote = '\\0'.");
  CHECK(refusal("1,\"2\"3\n", {}) ==
        "data::load_csv: PATH: row 1, column 2: goes on behind the quote that closes it. A quote in a quoted "
        "field is written twice. Correct the field, or say that there are no quotes: .quote = '\\0'.");
}

TEST_CASE("tables: comments and rows that are skipped") {
  CHECK(same(csv("made by a program\n1,2\n# a note\n3,4\n", {.comment = "#", .skip_rows = 1}), {1, 2, 3, 4}));
  CHECK(same(csv("// x\na\n1\n//2\n", {.header = true, .comment = "//"}), {1}));
  CHECK(contains(refusal("note\n1,2\n3\n", {.skip_rows = 1}), "row 3: has 1 column, the first row 2"));
  CHECK(refusal("note\n", {.skip_rows = 3}) ==
        "data::load_csv: PATH: row 4: there is none. A table has at least one row. Check the file.");
  CHECK(csv("a,b\n", {.header = true}).shape() == Shape{0, 2});
}

TEST_CASE("tables: missing values are NaN, and whole numbers have none") {
  CHECK(same(csv("1,NA\n,4\n", {.missing = {"", "NA"}}), {1, NAN, NAN, 4}));
  CHECK(same(csv("nan,inf\n-inf,+3\n", {}), {NAN, INFINITY, -INFINITY, 3}));
  CHECK(contains(refusal("1,\n", {}), "row 1, column 2: `` is no float32 number"));
  CHECK(
      refusal("1,2\n3,NA\n", {.missing = {"NA"}, .dtype = int32}) ==
      "data::load_csv: PATH: row 2, column 2: there is no value, which int32 cannot say. Only floats can be "
      "missing, as NaN. Read the column as floats.");
  // -1 that stands for nothing is none of the texts where it is not named.
  CHECK(same(csv("-1,-1.0\n", {.missing = {"-1"}}), {NAN, -1}));
}

TEST_CASE("tables: every dtype has its numbers, and no others") {
  struct Row {
    DType dtype;
    std::vector<std::string> good, bad;
    Values values;
  };
  const std::vector<Row> rows{
      {bool_, {"0", "1", "true", "False"}, {"2", "yes", "", "1.0"}, {0, 1, 1, 0}},
      {int8, {"-128", "127", "+5"}, {"128", "-129", "1.0", "0x1", "1e1", "--1"}, {-128, 127, 5}},
      {int16, {"-32768", "32767"}, {"32768"}, {-32768, 32767}},
      {int32, {"-2147483648", "2147483647"}, {"2147483648"}, {-2147483648.0, 2147483647}},
      {uint8, {"0", "255"}, {"-1", "256"}, {0, 255}},
      {uint16, {"65535"}, {"65536"}, {65535}},
      {uint32, {"4294967295"}, {"4294967296"}, {4294967295.0}},
      {float16,
       {"0.1", "65504", "1e9", "6e-8"},
       {"x", "1,5e"},
       {0.0999755859375, 65504, INFINITY, 5.9604644775390625e-8}},
      {bfloat16, {"1.0009765625", "3.14159"}, {"."}, {1, 3.140625}},
      {float32, {"0.1", "1e39", "1e-46"}, {"1..2", "1 2"}, {static_cast<double>(0.1f), INFINITY, 0}},
      {float64, {"0.1", "1e308", "1e309", "-1e-400"}, {"1e"}, {0.1, 1e308, INFINITY, 0}},
  };
  for (const Row& row : rows) {
    CAPTURE(name(row.dtype));
    std::string text;
    for (const std::string& s : row.good) text += s + "\n";
    const Array x = csv(text, {.dtype = row.dtype});
    CHECK(x.dtype() == row.dtype);
    CHECK(same(x, row.values));
    for (const std::string& s : row.bad) {
      CAPTURE(s);
      CHECK(contains(
          refusal("1\n" + s + "\t\n", {.delimiter = '|', .missing = {"NA"}, .dtype = row.dtype}),
          s.empty() ? "nothing was thrown" : "row 2, column 1: `" + s + "` is no " + name(row.dtype)));
    }
  }
  CHECK(csv("-9223372036854775808\n", {.dtype = int64}).item<std::int64_t>() == INT64_MIN);
  CHECK(contains(refusal("9223372036854775808\n", {.dtype = int64}), "is no int64 number"));
  CHECK(csv("18446744073709551615\n", {.dtype = uint64}).item<std::uint64_t>() == UINT64_MAX);
}

TEST_CASE("tables: columns by name, each of its own dtype") {
  const std::string text = "name,x,flag,n\nann,0.5,1,7\nbob,1.5,0,-8\n";
  const data::CsvOptions o{
      .header = true, .columns = {"n", "x", "flag"}, .dtypes = {{"n", int64}, {"flag", bool_}}};
  const data::Table t = table(text, o);
  CHECK(t.names == std::vector<std::string>{"n", "x", "flag"});
  CHECK(t.at("n").dtype() == int64);
  CHECK(t.at("x").dtype() == float32);
  CHECK(t.at("flag").dtype() == bool_);
  CHECK(same(t.at("n"), {7, -8}));
  CHECK(same(t.at("x"), {0.5, 1.5}));
  CHECK(same(t.at("flag"), {1, 0}));
  // It is a tree: its columns are leaves, its names stay.
  const data::Table twice = tree_map([](const Array& a) { return a + a; }, t);
  CHECK(same(twice.at("n"), {14, -16}));
  // One array of some columns, in the order that is asked for; without a header the names are numbers.
  CHECK(same(csv(text, {.header = true, .columns = {"n", "x"}}), {7, 0.5, -8, 1.5}));
  CHECK(same(csv("1,x,3\n4,y,6\n", {.columns = {"2", "0"}}), {3, 1, 6, 4}));
  CHECK(table("1,2\n", {}).names == std::vector<std::string>{"0", "1"});
}

TEST_CASE("tables: names and options that do not fit") {
  const std::string text = "a,b\n1,2\n";
  CHECK(refusal<TreeError>(text, {.header = true, .columns = {"c"}}) ==
        "data::load_csv: PATH has no column `c`, which `columns` names. Every name is one of the file's. "
        "Correct "
        "it.");
  CHECK(refusal<TreeError>(text, {.columns = {"a"}}) ==
        "data::load_csv: PATH has no column `a`, which `columns` names. Every name is one of the file's. "
        "Correct "
        "it, or say .header = true.");
  CHECK(contains(table_refusal<TreeError>(text, {.header = true, .dtypes = {{"c", int32}}}),
                 "has no column `c`, which `dtypes` names"));
  CHECK(refusal<TreeError>(text, {.header = true, .columns = {"a", "a"}}) ==
        "data::load_csv: `columns` names `a` twice. Every column is read once. Take it twice from what is "
        "read.");
  CHECK(refusal<DTypeError>(text, {.header = true, .dtypes = {{"a", int32}}}) ==
        "data::load_csv: `dtypes` names 1 column. An array has one dtype, `dtype`. Use load_table for "
        "columns of "
        "several.");
  CHECK(table_refusal("a,a\n1,2\n", {.header = true}) ==
        "data::load_table: PATH: row 1: two columns are called `a`. Columns that are read by name have "
        "different "
        "ones. Rename one of them.");
  CHECK(same(csv("a,a\n1,2\n", {.header = true}), {1, 2}));  // nobody asks for names
  CHECK(contains(refusal<DTypeError>(text, {.dtype = complex64}), "complex64"));
  CHECK(refusal<Error>(text, {.delimiter = '"'}) ==
        "data::load_csv: the delimiter is `\"`, the quote `\"`, skip_rows 0. Both are characters of a line, "
        "different ones, and no row is skipped twice. Correct them.");
  CHECK(contains(refusal<Error>(text, {.skip_rows = -1}), "skip_rows -1"));
  CHECK(refusal("\xff\xfe\x31", {}) ==
        "data::load_csv: PATH: is UTF-16, as its first two bytes say. A table is ASCII or UTF-8. Write it as "
        "such, or convert it (iconv -f UTF-16 -t UTF-8).");
  CHECK(message_of<TreeError>([] {
          static_cast<void>(data::Table{{"x"}, {ones(1)}}.at("y"));
        }) == "Table::at: there is no column `y`. The columns are `x`. Name one of them.");
}

TEST_CASE("tables: a line of many delimiters takes no more memory than its numbers") {
  const std::string wide(1 << 17, ',');
  CHECK(contains(table_refusal(wide + "\n", {.header = true}), "row 1: has more than 65536 columns"));
  CHECK(csv(wide + "\n", {.missing = {""}, .dtype = float16}).shape() == Shape{1, (1 << 17) + 1});
}

TEST_CASE("tables: columns lie where the sharding says") {
  const Sharding by_row = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  std::string text = "i,j\n";
  for (int k = 0; k < 20; k++) text += std::to_string(k) + "," + std::to_string(k * k) + "\n";
  const data::Table t = table(text, {.header = true, .dtype = int32, .sharding = by_row});
  CHECK(t.at("j").sharding() == by_row);
  CHECK(t.at("j").addressable_data(1).to_vector<int>() == std::vector<int>{9, 16, 25});
  const Array x = csv(text, {.header = true, .sharding = by_row});
  CHECK(x.sharding() == by_row);
  CHECK(x[{7, 1}].item<float>() == 49);
  CHECK_THROWS_AS(
      csv(text, {.header = true, .sharding = NamedSharding(make_mesh({{"x", 8}}), P(none, none, "x"))}),
      ShardingError);
}

TEST_CASE("tables: what is written reads back as the same numbers, of every dtype and place") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.csv");
  const Sharding by_row = NamedSharding(make_mesh({{"x", 8}}), P("x"));
  const Array numbers = random::normal(random::key(0), {16, 3}, float64) * 1e3;
  for (const DType t : stored_dtypes()) {
    CAPTURE(name(t));
    const Array x =
        t == DType::bool_ ? numbers > 0 : (is_unsigned_integer(t) ? abs(numbers) : numbers).astype(t);
    for (const Array& y : {x, device_put(x, by_row)}) {
      data::save_csv(path, y, {.header = {"a", "b,c", ""}, .delimiter = ';'});
      const Array back = data::load_csv(path, {.header = true, .delimiter = ';', .dtype = t});
      CHECK(back.shape() == x.shape());
      CHECK(hex_of(back) == hex_of(x));
    }
    data::save_table(path, {{"one", "\"two\"\n"}, {x[{all, 0}], x[{all, 1}].astype(float32)}});
    const data::Table back = data::load_table(path, {.header = true, .dtypes = {{"one", t}}});
    CHECK(back.names == std::vector<std::string>{"one", "\"two\"\n"});
    CHECK(hex_of(back.columns[0]) == hex_of(x[{all, 0}]));
    CHECK(hex_of(back.columns[1]) == hex_of(x[{all, 1}].astype(float32)));
  }
}

TEST_CASE("tables: the text of a file is what is written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.csv");
  data::save_csv(path, array({{0.1, -0.0}, {NAN, -INFINITY}, {1e30, 3.0}}));
  CHECK(read_bytes(path) == "0.1,-0\nnan,-inf\n1e+30,3\n");
  data::save_csv(path, array({1, -2, 3}), {.header = {"n"}});
  CHECK(read_bytes(path) == "n\n1\n-2\n3\n");
  data::save_csv(path, zeros({0, 2}));
  CHECK(read_bytes(path) == "");
  data::save_table(path, {{"a", " b"}, {array({true, false}), array({1.5, 2.5})}}, {.delimiter = '\t'});
  CHECK(read_bytes(path) == "a\t\" b\"\n1\t1.5\n0\t2.5\n");
}

TEST_CASE("tables: what cannot be written is said, and nothing is written") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.csv");
  CHECK(message_of<ShapeError>([&] {
          data::save_csv(path, ones({2, 3, 4}));
        }) ==
        "data::save_csv: f32[2,3,4] with 0 names. A table is [rows, columns] or [rows], with at least one "
        "column, "
        "and has a name for each column or none at all. Reshape it, or correct `header`.");
  CHECK_THROWS_AS(data::save_csv(path, ones({2, 3}), {.header = {"a"}}), ShapeError);
  CHECK_THROWS_AS(data::save_csv(path, ones({2, 0})), ShapeError);
  CHECK(message_of<ShapeError>([&] {
          data::save_table(path, {{"a"}, {ones(2), ones(3)}});
        }) ==
        "data::save_table: 1 name for the columns f32[2], f32[3]. Every column is [rows], all of one length, "
        "with a name each. Correct the table.");
  CHECK_THROWS_AS(data::save_table(path, {}), ShapeError);
  CHECK(message_of<Error>([&] {
          data::save_table(path, {{"a"}, {ones(2)}}, {.header = {"b"}});
        }) == "data::save_table: `header` names 1 column. A table has its own names. Change `names` of it.");
  CHECK(message_of<Error>([&] { data::save_csv(path, ones(2), {.delimiter = 'e'}); }) ==
        "data::save_csv: the delimiter is `e`. It is a character that no number has, and no quote. Take `,`, "
        "`;` "
        "or a tab.");
  CHECK_THROWS_AS(data::save_csv("/", ones(2)), IoError);
  for (const DType t : {complex64, complex128}) {
    CHECK_THROWS_AS(data::save_csv(path, ones(2, t)), DTypeError);
    CHECK_THROWS_AS(data::save_table(path, {{"a", "b"}, {ones(2), ones(2, t)}}), DTypeError);
  }
  CHECK(!std::filesystem::exists(path));
}

TEST_CASE("tables: random tables with everything in quotes or not are read as they were meant") {
  std::mt19937 random(3);
  const auto below = [&](unsigned n) { return static_cast<int>(random() % n); };
  for (int round = 0; round < (full_scale() ? 300 : 30); round++) {
    CAPTURE(round);
    const int rows = below(6), columns = 1 + below(5);
    const char delimiter = ",;\t|"[below(4)];
    const std::string end = below(2) ? "\r\n" : "\n";
    std::string text = below(2) ? "\xef\xbb\xbf" : "";
    std::vector<std::string> names;
    Values want;
    const auto put = [&](const std::string& field, bool quoted) {
      std::string inner;
      for (const char c : field) inner += c == '"' ? std::string("\"\"") : std::string(1, c);
      text += quoted ? '"' + inner + '"' : field;
    };
    for (int k = 0; k < columns; k++) {
      names.push_back("n" + std::string(k, '"') + std::to_string(k));
      if (below(2)) names.back() += "\n" + std::string(1, delimiter);
      if (k > 0) text += delimiter;
      put(names.back(), true);
    }
    text += end;
    for (int r = 0; r < rows; r++) {
      if (below(4) == 0) text += "#no \"row" + end;
      if (below(4) == 0) text += end;
      for (int k = 0; k < columns; k++) {
        const bool is_missing = below(5) == 0;
        const double v = below(2000) - 1000 + 0.25 * below(4);
        want.push_back(is_missing ? NAN : v);
        if (k > 0) text += delimiter;
        put(is_missing ? "NA" : std::to_string(v), below(2) == 0);
      }
      if (r + 1 < rows || below(2)) text += end;
    }
    const data::CsvOptions o{
        .header = true, .delimiter = delimiter, .comment = "#", .missing = {"NA"}, .dtype = float64};
    const data::Table t = table(text, o);
    CHECK(t.names == names);
    const Array all = csv(text, o);
    CHECK(all.shape() == Shape{rows, columns});
    CHECK(same(all, want));
    for (int k = 0; k < columns; k++)
      CHECK(hex_of(t.columns[static_cast<std::size_t>(k)]) == hex_of(all[{shardarray::all, k}]));
  }
}

TEST_CASE("tables: whatever is put in or cut off, a file is read or refused") {
  const std::string whole = "\xef\xbb\xbf\"a\",b,\"c\"\"d\"\n1,2.5,NA\r\n# note\n-3,\"4\",5e-1\n\n6,7,8\n";
  const data::CsvOptions o{.header = true, .comment = "#", .missing = {"NA"}};
  const auto outcome = [&](const std::string& text) -> std::string {
    try {
      static_cast<void>(table(text, o));
    } catch (const IoError& e) {
      const std::string said = e.text();
      const bool has_place = contains(said, ": row ") || contains(said, "UTF-16") || contains(said, "gzip") ||
                             contains(said, "damaged");
      return has_place ? "refused" : "a message without a row: " + said;
    } catch (const std::exception& e) { return e.what(); }
    return "read";
  };
  CHECK(outcome(whole) == "read");
  std::mt19937 random(5);
  const std::vector<std::string> pieces{
      "\"",   "\"\"", ",",           "\n", "\r", "#",           std::string(1, '\0'),
      "\xff", "nan",  "1e999999999", "-",  "+",  "\x1f\x8b\x08"};
  for (std::size_t n = 0; n < whole.size(); n++)
    for (const std::string& text :
         {whole.substr(0, n), whole.substr(n),
          whole.substr(0, n) + pieces[random() % pieces.size()] + whole.substr(n)}) {
      CAPTURE(text);
      const std::string got = outcome(text);
      CHECK((got == "read" || got == "refused"));
    }
}

}  // namespace tables_test
