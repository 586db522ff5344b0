// Data for training loops: batches of arrays, tables in text files, a progress bar.
#pragma once
#include <chrono>
#include <concepts>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "shardarray/array.h"
#include "shardarray/tree.h"

namespace shardarray {
namespace data {

/// Options of loader().
struct LoaderOptions {
  std::int64_t batch = 32;                          ///< examples per batch
  std::optional<std::int64_t> seed = std::nullopt;  ///< of the order; none: unshuffled
  std::optional<Sharding> sharding = std::
      nullopt;  ///< of the batches; none: uncommitted on the default device. Each process makes its own part; all must have the same arrays
  bool drop_last = false;  ///< drops a last batch that is not full
  std::int64_t epoch = 0;  ///< every epoch has its own order
};

/// The untyped part of a Loader: examples in host memory, shared by copies.
class SHARDARRAY_API Batches {
 public:
  /// Reads the arrays. Throws ShapeError unless all have the same first size and the batch size is positive, OutOfMemory. If batches are
  /// on devices of several processes, all of these create the loader together and compare elements and options: Error in all of them on a
  /// difference; other failures in one process are a TransportError in the others.
  Batches(const std::vector<Array>& arrays, LoaderOptions options, Where w = Where::here());
  /// The number of batches.
  [[nodiscard]] std::int64_t size() const;
  /// Batch k of every array, 0 <= k < size(): [batch, ...], the last one possibly shorter, of the array's dtype; a new array placed as
  /// the options say. Throws ShapeError for another k, what device_put throws for a sharding that does not fit.
  [[nodiscard]] std::vector<Array> at(std::int64_t k, Where w = Where::here()) const;
  /// The line that created them: iterators, whose `*` cannot take a line, report errors there.
  [[nodiscard]] Where where() const { return made_; }
  /// The same examples in the order of another epoch (if there is a seed). Processes compare the number as above: all must call it.
  [[nodiscard]] Batches with_epoch(std::int64_t epoch) const;

 private:
  struct Examples;
  void set_order();
  LoaderOptions options_;
  std::shared_ptr<const Examples> examples_;
  std::shared_ptr<const std::vector<std::int64_t>> order_;  ///< null: unshuffled
  Where made_;                                              ///< the line for errors of iterators
};

/// A range of trees with one batch of every array; batches are made when an iterator is dereferenced. A Loader must outlive its
/// iterators.
template <class T> class Loader {
 public:
  /// Used by loader(): `like` gives everything but the arrays, and their positions.
  Loader(Batches b, T like) : batches_(std::move(b)), like_(std::move(like)) {
    shardarray::detail::each_leaf(like_, [&](Array& a, const Path&) {
      present_.push_back(a.has_value());
      a = Array();
    });
  }
  /// Dereferencing makes the batch: a T. Throws as Batches::at.
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Loader* loader, std::int64_t k) : loader_(loader), k_(k) {}
    [[nodiscard]] T operator*() const { return loader_->at(k_, loader_->batches_.where()); }
    Iterator& operator++() {
      k_++;
      return *this;
    }
    Iterator operator++(int) { return {loader_, k_++}; }
    [[nodiscard]] friend bool operator==(const Iterator& a, const Iterator& b) { return a.k_ == b.k_; }

   private:
    const Loader* loader_ = nullptr;
    std::int64_t k_ = 0;
  };
  /// From batch 0 on, in the order of the epoch.
  [[nodiscard]] Iterator begin() const { return {this, 0}; }
  [[nodiscard]] Iterator end() const { return {this, size()}; }
  /// The number of batches per epoch.
  [[nodiscard]] std::int64_t size() const { return batches_.size(); }
  /// Batch k. Throws as Batches::at.
  [[nodiscard]] T at(std::int64_t k, Where w = Where::here()) const {
    std::vector<Array> arrays = batches_.at(k, w);
    T batch = like_;
    std::size_t slot = 0, next = 0;
    shardarray::detail::each_leaf(batch, [&](Array& a, const Path&) {
      if (present_[slot++]) a = std::move(arrays[next++]);
    });
    return batch;
  }
  /// The same examples in the order of another epoch.
  [[nodiscard]] Loader epoch(std::int64_t e) const {
    Loader r = *this;
    r.batches_ = batches_.with_epoch(e);
    return r;
  }

 private:
  Batches batches_;
  T like_;                     // without arrays
  std::vector<bool> present_;  // by slot
};

/// Iterates over batches: `for (const auto& [x, y] : data::loader(std::tuple(xs, ys), {.batch = 16, .seed = 0}).epoch(3))`. Examples are
/// the entries along the first dimension of every array of a tree: a tuple, a struct of your own, one Array. The order depends only on
/// seed and epoch (random::permutation of their key). Throws as Batches.
template <shardarray::detail::JudgedTree T>
[[nodiscard]] Loader<T> loader(const T& arrays, LoaderOptions options = {}, Where w = Where::here()) {
  return Loader<T>(Batches(tree_leaves(arrays), std::move(options), w), arrays);
}

/// Options of load_csv() and load_table(): the format of a table file.
struct CsvOptions {
  /// Limit for the unpacked text. A larger file is rejected before it fills memory: a gzip of 3 MB may hold 3 GB, and a device never
  /// ends. The default is 1 GiB.
  std::int64_t max_bytes = std::int64_t{1} << 30;
  bool header = false;   ///< the first row has the column names; otherwise they are `0`, `1`, ...
  char delimiter = ',';  ///< between fields
  char quote =
      '"';  ///< around fields that contain delimiters or line ends; doubled it stands for itself; '\0': none
  std::string comment = {};    ///< lines starting with it are skipped; empty: none
  std::int64_t skip_rows = 0;  ///< number of leading lines to skip
  std::vector<std::string> missing =
      {};  ///< texts of fields without a value, possibly `""`: NaN; integers and bools have none
  std::vector<std::string> columns = {};  ///< by name, in this order; empty: all
  DType dtype = DType::float32;
  std::map<std::string, DType> dtypes = {};  ///< load_table only: by column name, overriding dtype
  std::optional<Sharding> sharding =
      std::nullopt;  ///< of every array; none: uncommitted on the default device
};
/// Loads a table of numbers from a text file, plain or gzip: [rows, columns]. Rows are lines (`\n` or `\r\n`); empty ones are skipped, as
/// are spaces around fields and a UTF-8 byte order mark. Floats are rounded to nearest; as in NumPy, underflow gives 0 (`1e-46` in
/// float32), overflow an infinity (`1e39`); `nan` and `inf` are numbers. Integers must fit their dtype; bools are 0, 1, true or false.
/// Throws IoError, naming file, row (its line) and column, if the file is missing, damaged, not numeric or larger than max_bytes, rows
/// differ in length, or a quote is not closed; TreeError for a name in the options that no column has; DTypeError for complex dtypes and
/// for `dtypes`, which only tables have; ShardingError and DeviceError as device_put; OutOfMemory if the process cannot hold the table.
[[nodiscard]] SHARDARRAY_API Array load_csv(const std::string& path, const CsvOptions& options = {},
                                            Where w = Where::here());

/// Named columns, a tree: supports `grad`, `save` and `tree_map`.
struct SHARDARRAY_API Table {
  std::vector<std::string> names;
  std::vector<Array> columns;  ///< one per name, [rows]
  /// The column of this name. Throws TreeError if there is none.
  [[nodiscard]] const Array& at(const std::string& name, Where w = Where::here()) const;
};
/// As load_csv(), but every column is a separate array with its own dtype. Also throws IoError for a file with duplicate column names or
/// more than 65,536 columns, TreeError for a name in `dtypes` that no column has.
[[nodiscard]] SHARDARRAY_API Table load_table(const std::string& path, const CsvOptions& options,
                                              Where w = Where::here());

/// Options of save_csv() and save_table().
struct SaveCsvOptions {
  std::vector<std::string> header = {};  ///< of save_csv: one name per column; empty: no header
  char delimiter = ',';
};
/// Writes [rows, columns] or [rows] as text that load_csv reads back exactly: the shortest digits that do so, `nan` and `inf`, bools as 0
/// and 1. Lines end in `\n`; without rows nothing is written (load_csv requires one). Files are written atomically (files.h). Throws
/// ShapeError for another number of dimensions or of names, and for no columns; DTypeError for complex numbers; IoError if the file
/// cannot be written.
SHARDARRAY_API void save_csv(const std::string& path, const Array& x, const SaveCsvOptions& options = {},
                             Where w = Where::here());
/// Writes the columns under their names, quoted if necessary. Throws ShapeError unless all columns are [rows], one per name, DTypeError
/// for complex ones, Error for `header`, since the table has its own.
SHARDARRAY_API void save_table(const std::string& path, const Table& table,
                               const SaveCsvOptions& options = {}, Where w = Where::here());

}  // namespace data

/// Options of Progress.
struct ProgressOptions {
  std::ostream* out = nullptr;  ///< default: std::cout
  std::optional<bool> terminal =
      std::nullopt;  ///< redraw one line; default: whether `out` is std::cout on a terminal
};
/// A progress bar with rate, remaining time and custom text; at most ten plain lines in all if the output is not a terminal.
class SHARDARRAY_API Progress {
 public:
  /// For `total` steps, which is not enforced.
  explicit Progress(std::int64_t total, ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Counts one step. `metric()` returns the text; it is called only when the line is drawn, so reading a loss there does not make every
  /// step wait.
  template <std::invocable F> void step(const F& metric) {
    if (count()) draw(metric());
  }
  void step(const std::string& metric = "") {
    if (count()) draw(metric);
  }
  /// Steps per second so far.
  [[nodiscard]] double rate() const;

 private:
  bool count();
  void draw(const std::string& metric);
  std::int64_t total_, done_ = 0;
  std::ostream* out_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace shardarray
