// Feeding a training loop: batches of arrays, tables from files, a progress bar.
#pragma once
#include <chrono>
#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "shardarray/array.h"

namespace shardarray {
namespace data {

/// Options of loader().
struct LoaderOptions {
  std::int64_t batch = 32;                          ///< examples per batch
  std::optional<std::int64_t> seed = std::nullopt;  ///< of the order; none: as they stand
  std::optional<Sharding> sharding =
      std::nullopt;        ///< of the batches; none: uncommitted on the default device
  bool drop_last = false;  ///< leaves out a last batch that is not full
  std::int64_t epoch = 0;  ///< every epoch has an order of its own
};

/// The erased part of a Loader: examples in host memory. Copies share them.
class SHARDARRAY_API Batches {
 public:
  /// Reads the arrays. Throws ShapeError unless all have the same first size and the batch size is positive, OutOfMemory.
  Batches(const std::vector<Array>& arrays, LoaderOptions options, Where w = Where::here());
  /// How many batches there are.
  std::int64_t size() const;
  /// Batch k of every array, k from 0 to size() - 1: [batch, ...], the last one perhaps shorter, of the array's dtype, a new array
  /// where the options say. Throws ShapeError for another k, what device_put throws for a sharding that does not fit.
  std::vector<Array> at(std::int64_t k, Where w = Where::here()) const;
  /// Where they were made: iterators, whose `*` has no place for a line, fail there.
  Where where() const { return made_; }
  /// The same examples in the order of another epoch (where there is a seed).
  Batches with_epoch(std::int64_t epoch) const;

 private:
  struct Examples;
  void set_order();
  LoaderOptions options_;
  std::shared_ptr<const Examples> examples_;
  std::shared_ptr<const std::vector<std::int64_t>> order_;  ///< null: as they stand
  Where made_;                                              ///< where an iterator that is read has no line
};

/// A range of tuples with one batch of every array; batches are made where the iterator is read, and a Loader outlives its
/// iterators.
template <class... A> class Loader {
 public:
  /// What loader() makes.
  explicit Loader(Batches b) : batches_(std::move(b)) {}
  /// Reading one makes its batch: std::tuple<A...>. Throws as Batches::at.
  class Iterator {
   public:
    using value_type = std::tuple<A...>;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    Iterator(const Batches* b, std::int64_t k) : batches_(b), k_(k) {}
    std::tuple<A...> operator*() const {
      const std::vector<Array> batch = batches_->at(k_, batches_->where());
      return [&]<std::size_t... I>(std::index_sequence<I...>) { return std::tuple<A...>{batch[I]...}; }
      (std::index_sequence_for<A...>{});
    }
    Iterator& operator++() {
      k_++;
      return *this;
    }
    Iterator operator++(int) { return {batches_, k_++}; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.k_ == b.k_; }

   private:
    const Batches* batches_ = nullptr;
    std::int64_t k_ = 0;
  };
  /// From batch 0 on, in the order of the epoch.
  Iterator begin() const { return {&batches_, 0}; }
  Iterator end() const { return {&batches_, size()}; }
  /// Batches per epoch.
  std::int64_t size() const { return batches_.size(); }
  /// The same examples in the order of another epoch.
  Loader epoch(std::int64_t e) const { return Loader(batches_.with_epoch(e)); }

 private:
  Batches batches_;
};

/// `for (const auto& [x, y] : data::loader(std::tuple(xs, ys), {.batch = 16, .seed = 0}).epoch(3))`: examples
/// are the entries along the first dimension. The order depends on seed and epoch alone (random::permutation of their key). Throws
/// as Batches.
template <std::same_as<Array>... A>
Loader<A...> loader(const std::tuple<A...>& arrays, LoaderOptions options = {}, Where w = Where::here()) {
  return Loader<A...>(Batches(std::apply([](const auto&... a) { return std::vector<Array>{a...}; }, arrays),
                              std::move(options), w));
}

/// Options of load_csv().
struct CsvOptions {
  /// Of the text, unpacked. A file that has more is refused before it fills the memory: a gzip of 3 MB may hold 3 GB, and a
  /// device never ends. The default is 1 GiB.
  std::int64_t max_bytes = std::int64_t{1} << 30;
};
/// A table of numbers separated by commas, plain or gzip, without a header: float32 [rows, columns]. Numbers are rounded to
/// the nearest float32; as in NumPy what is too small becomes 0 (`1e-46`), what is too large infinite (`1e39`).
/// Throws IoError naming file, row and column when it is missing, damaged, not numeric, larger than max_bytes, or its rows
/// differ in length; OutOfMemory when the table does not fit into the process.
[[nodiscard]] SHARDARRAY_API Array load_csv(const std::string& path, const CsvOptions& options,
                                            Where w = Where::here());
[[nodiscard]] inline Array load_csv(const std::string& path, Where w = Where::here()) {
  return load_csv(path, {}, w);
}

}  // namespace data

/// Options of Progress.
struct ProgressOptions {
  std::ostream* out = nullptr;  ///< default: std::cout
  std::optional<bool> terminal =
      std::nullopt;  ///< redraw one line; default: whether `out` is std::cout on a terminal
};
/// A bar with the rate, the time left and a text of yours; ten plain lines in all where the output is no
/// terminal.
class SHARDARRAY_API Progress {
 public:
  /// For `total` steps, which are not checked.
  explicit Progress(std::int64_t total, ProgressOptions options = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// One step is done. `metric()` gives the text; it is called only when the line is drawn, so that reading a
  /// loss there does not make every step wait.
  template <std::invocable F> void step(const F& metric) {
    if (count()) draw(metric());
  }
  void step(const std::string& metric = "") {
    if (count()) draw(metric);
  }
  /// Steps per second so far.
  double rate() const;

 private:
  bool count();
  void draw(const std::string& metric);
  std::int64_t total_, done_ = 0;
  std::ostream* out_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_, drawn_;
};

}  // namespace shardarray
