// Tables of numbers from text files.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/count_text.h"
#include "lib/files/arrays.h"
#include "lib/tables/csv_numbers.h"
#include "lib/tables/csv_text.h"
#include "ops/api.h"
#include "shardarray/data.h"

namespace shardarray::data {

namespace {

constexpr std::size_t most_names = 1 << 16;

/// One array that is read: the bytes of a row, and those read so far.
struct Part {
  DType dtype;
  std::size_t row = 0;  ///< bytes
  std::vector<std::byte> bytes = {};
};
/// Where a column of the file goes; -1: nowhere, it is not parsed.
struct Target {
  int part = -1;
  std::size_t offset = 0;  ///< in the part's row, bytes
};

class TableReader {
 public:
  TableReader(const char* function, const std::string& path, const CsvOptions& o, bool is_named)
      : function_(function),
        path_(path),
        o_(o),
        is_named_(is_named),
        text_(read_csv_text(function, path, o.max_bytes)),
        at_(function, path, o, text_) {
    read_names();
    choose_columns();
  }

  void read_rows() {
    while (at_.next_row()) {
      for (Part& p : parts_) p.bytes.resize(p.bytes.size() + p.row);
      std::string_view field;
      while (at_.next_field(field)) {
        const auto k = static_cast<std::size_t>(at_.column() - 1);
        if (k < targets_.size() && targets_[k].part >= 0) read_field(field, targets_[k]);
      }
      if (at_.column() != width_)
        at_.fail(fmt::format("row {}: has {}, the first row {}", at_.row(),
                             count_text(at_.column(), "column"), width_),
                 "All rows have the same length. Correct the row.");
      rows_++;
    }
  }

  /// One for load_csv(), one for each chosen column for load_table().
  std::size_t count() const { return parts_.size(); }
  const std::vector<std::string>& chosen() const { return chosen_; }
  Array array(std::size_t k) {
    Part& p = parts_[k];
    const Type t{
        is_named_ ? Shape{rows_} : Shape{rows_, static_cast<std::int64_t>(p.row / itemsize(p.dtype))},
        p.dtype};
    const std::byte* next = p.bytes.data();
    Array x = files::load_array(t, files::home_of(function_, o_.sharding, t, is_named_ ? chosen_[k] : ""), {},
                                [&](std::span<std::byte> to) {
                                  std::memcpy(to.data(), next, to.size());
                                  next += to.size();
                                });
    p.bytes = {};
    return x;
  }

 private:
  // Reads the names of the columns, if they are needed, and counts the columns.
  void read_names() {
    CsvCursor first = at_;
    if (!first.next_row())
      at_.fail(fmt::format("row {}: there is none", o_.skip_rows + 1),
               "A table has at least one row. Check the file.");
    std::string_view field;
    const bool are_wanted = is_named_ || !o_.columns.empty();
    while (first.next_field(field)) {
      if (!are_wanted) continue;
      if (names_.size() == most_names)
        at_.fail(
            fmt::format("row {}: has more than {} columns", first.row(), most_names),
            "So many have names at most. Read it as one array of all columns: load_csv without `columns`.");
      names_.push_back(o_.header ? std::string(field) : std::to_string(names_.size()));
    }
    width_ = first.column();
    if (o_.header) at_ = first;
    std::set<std::string_view> seen;
    for (const std::string& name : names_)
      if (!seen.insert(name).second)
        at_.fail(fmt::format("row {}: two columns are called `{}`", first.row(), files::shown(name)),
                 "Columns that are read by name have different ones. Rename one of them.");
  }

  std::size_t column_of(const std::string& name, const char* option) const {
    const auto at = std::find(names_.begin(), names_.end(), name);
    if (at == names_.end())
      throw TreeError(fmt::format(
          "{}: {} has no column `{}`, which `{}` names. Every name is one of the file's. Correct it{}.",
          function_, path_, files::shown(name), option, o_.header ? "" : ", or say .header = true"));
    return static_cast<std::size_t>(at - names_.begin());
  }

  void choose_columns() {
    for (const auto& [name, dtype] : o_.dtypes) {
      column_of(name, "dtypes");
      api::need_real(function_, dtype);
    }
    std::vector<std::size_t> order;
    for (const std::string& name : o_.columns) order.push_back(column_of(name, "columns"));
    if (o_.columns.empty())
      for (std::int64_t k = 0; k < width_; k++) order.push_back(static_cast<std::size_t>(k));
    targets_.resize(static_cast<std::size_t>(width_));
    if (!is_named_) parts_.push_back({o_.dtype});
    for (const std::size_t k : order) {
      if (targets_[k].part >= 0)
        throw TreeError(fmt::format(
            "{}: `columns` names `{}` twice. Every column is read once. Take it twice from what is read.",
            function_, files::shown(names_[k])));
      if (is_named_) {
        chosen_.push_back(names_[k]);
        const auto own = o_.dtypes.find(names_[k]);
        parts_.push_back({own == o_.dtypes.end() ? o_.dtype : own->second});
      }
      Part& p = parts_.back();
      targets_[k] = {static_cast<int>(parts_.size()) - 1, p.row};
      p.row += itemsize(p.dtype);
    }
  }

  void read_field(std::string_view field, const Target& to) {
    Part& p = parts_[static_cast<std::size_t>(to.part)];
    std::byte* const element = p.bytes.data() + p.bytes.size() - p.row + to.offset;
    const auto& missing = o_.missing;
    if (std::find(missing.begin(), missing.end(), field) != missing.end()) {
      if (write_nan(p.dtype, element)) return;
      at_.fail(fmt::format("row {}, column {}: there is no value, which {} cannot say", at_.row(),
                           at_.column(), name(p.dtype)),
               "Only floats can be missing, as NaN. Read the column as floats.");
    }
    if (!parse_number(field, p.dtype, element))
      at_.fail(
          fmt::format("row {}, column {}: `{}` is no {} number", at_.row(), at_.column(),
                      files::shown(field.substr(0, 40)), name(p.dtype)),
          "Every field is a number. Say .header = true where the first row has names, which .columns are "
          "numbers, and what is .missing.");
  }

  const char* const function_;
  const std::string& path_;
  const CsvOptions& o_;
  const bool is_named_;
  const std::string text_;
  CsvCursor at_;
  std::vector<std::string> names_, chosen_;
  std::int64_t width_ = 0, rows_ = 0;
  std::vector<Part> parts_;
  std::vector<Target> targets_;
};

// Throws for options that would accept any text, or none.
void check_options(const char* function, const CsvOptions& o) {
  api::need_real(function, o.dtype);
  const bool is_bad = o.delimiter == '\n' || o.delimiter == '\r' || o.delimiter == '\0' ||
                      o.delimiter == o.quote || o.quote == '\n' || o.quote == '\r' || o.quote == ' ' ||
                      o.quote == '\t';
  if (is_bad || o.skip_rows < 0)
    throw Error(
        fmt::format("{}: the delimiter is `{}`, the quote `{}`, skip_rows {}. Both are characters of a "
                    "line, different ones, and no row is skipped twice. Correct them.",
                    function, files::shown({&o.delimiter, 1}), files::shown({&o.quote, 1}), o.skip_rows));
}

}  // namespace

Array load_csv(const std::string& path, const CsvOptions& o, Where w) {
  constexpr const char* function = "data::load_csv";
  const Site site(w, function);
  return shardarray::detail::with_memory(function, 0, [&] {
    check_options(function, o);
    if (!o.dtypes.empty())
      throw DTypeError(fmt::format(
          "{}: `dtypes` names {}. An array has one dtype, `dtype`. Use load_table for columns of several.",
          function, count_text(o.dtypes.size(), "column")));
    TableReader reader(function, path, o, false);
    reader.read_rows();
    return reader.array(0);
  });
}

Table load_table(const std::string& path, const CsvOptions& o, Where w) {
  constexpr const char* function = "data::load_table";
  const Site site(w, function);
  return shardarray::detail::with_memory(function, 0, [&] {
    check_options(function, o);
    TableReader reader(function, path, o, true);
    reader.read_rows();
    Table r{reader.chosen(), {}};
    for (std::size_t k = 0; k < reader.count(); k++) r.columns.push_back(reader.array(k));
    return r;
  });
}

const Array& Table::at(const std::string& name, Where w) const {
  const Site site(w, "Table::at");
  const auto found = std::find(names.begin(), names.end(), name);
  const auto k = static_cast<std::size_t>(found - names.begin());
  if (k < std::min(names.size(), columns.size())) return columns[k];
  std::string all;
  for (std::size_t n = 0; n < names.size() && all.size() < 200; n++)
    all += fmt::format("{}`{}`", n ? ", " : "", files::shown(names[n]));
  throw TreeError(fmt::format("Table::at: there is no column `{}`. The columns are {}. Name one of them.",
                              files::shown(name), all.empty() ? "none" : all));
}

}  // namespace shardarray::data
