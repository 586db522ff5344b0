// The text of a table, and a reader's position in it.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "shardarray/data.h"

namespace shardarray::data {

/// Throws IoError `<function>: <path>: <what>. <rule and remedy>`.
[[noreturn]] void fail_csv(const char* function, const std::string& path, const std::string& what,
                           const char* rule_and_remedy);
/// The whole text of a plain or gzip file, without a byte order mark. Throws IoError.
std::string read_csv_text(const char* function, const std::string& path, std::int64_t max_bytes);

/// Reads a text row by row and field by field. A copy continues from the same position.
class CsvCursor {
 public:
  /// All arguments must outlive it.
  CsvCursor(const char* function, const std::string& path, const CsvOptions& options, std::string_view text);
  /// Moves to the next row that is neither a comment nor empty, after all fields of the last one were read. False: there is none.
  bool next_row();
  /// The next field of the row, without the spaces and quotes around it; valid until the next one is read. False: the row has ended.
  bool next_field(std::string_view& field);
  std::int64_t row() const { return row_; }  ///< its line, from 1
  std::int64_t column() const { return column_; }
  [[noreturn]] void fail(const std::string& what, const char* rule_and_remedy) const;

 private:
  std::string_view line() const;
  void skip_line();
  std::string_view quoted_field();
  const char* function_;
  const std::string* path_;
  const CsvOptions* options_;
  std::string_view text_;
  std::string unquoted_;  // the current field, if it has doubled quotes
  std::size_t at_ = 0;
  std::int64_t row_ = 0, next_row_ = 1, column_ = 0;
  bool in_row_ = false;
};

}  // namespace shardarray::data
