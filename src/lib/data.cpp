#include "shardarray/data.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <span>
#include <string>

#include "base/ceil_div.h"
#include "base/hash.h"
#include "base/host_memory.h"
#include "base/sizes.h"
#include "execute/evaluate.h"
#include "lib/attempt.h"
#include "lib/files/arrays.h"
#include "runtime/devices.h"
#include "runtime/processes.h"
#include "shardarray/policy.h"
#include "shardarray/random.h"

#include <unistd.h>

namespace shardarray {
namespace data {

static void check_batch(const LoaderOptions& o) {
  if (o.batch <= 0)
    throw ShapeError(
        fmt::format("data::loader: batch is {}. A batch has at least one example. Correct it.", o.batch));
}

static std::uint64_t hash_of(std::span<const std::byte> bytes) {
  std::uint64_t h = bytes.size(), word = 0;
  for (; bytes.size() >= sizeof word; bytes = bytes.subspan(sizeof word)) {
    std::memcpy(&word, bytes.data(), sizeof word);
    h = hash_mix(h, word);
  }
  word = 0;
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<std::byte*>(&word));
  return hash_mix(h, word);
}

// Whether batches are on devices of several processes.
static bool are_shared(const LoaderOptions& o) {
  return o.sharding && in_several_processes(o.sharding->device_assignment());
}

struct Batches::Examples {
  struct Column {
    Type type;
    std::vector<std::byte> bytes;
    std::size_t row;  // bytes of one example
    std::uint64_t hash = 0;
  };
  std::vector<Column> columns;
  std::int64_t count = 0;

  Examples(const std::vector<Array>& arrays, const LoaderOptions& o) {
    evaluate(arrays, "data::loader");  // in all processes, as it may need all of them
    check_batch(o);
    for (std::size_t k = 0; k < arrays.size(); k++) {
      const Type& t = type_of(arrays[k], "data::loader");
      if (t.shape.empty() || (k > 0 && t.shape[0] != count))
        throw ShapeError(fmt::format(
            "data::loader: array {} is {}, array 0 {}. All arrays have one entry per example along the first "
            "dimension. Cut them to the same number.",
            k, to_string(t), to_string(type_of(arrays[0]))));
      count = t.shape[0];
      const std::int64_t size = bytes_of(t.shape, t.dtype);
      Column column{{t.shape, t.dtype},
                    host_bytes("data::loader", size),
                    static_cast<std::size_t>(size / std::max<std::int64_t>(1, t.shape[0]))};
      gather_to_host(*value_of(arrays[k]), t, column.bytes.data());
      columns.push_back(std::move(column));
    }
  }
  // What processes compare if batches span several: lines of the options, and one per array.
  std::string text(const LoaderOptions& o) const {
    std::string r = fmt::format("batch = {}, seed = {}, drop_last = {}, epoch = {}", o.batch,
                                o.seed ? fmt::format("{}", *o.seed) : "none", o.drop_last, o.epoch);
    r += fmt::format("\nsharding = {} on", o.sharding->to_string());
    for (const Device& d : o.sharding->device_assignment()) r += " " + to_string(d);
    for (std::size_t k = 0; k < columns.size(); k++)
      r += fmt::format("\narray {} {} with the sum {:016x} of its elements", k, to_string(columns[k].type),
                       columns[k].hash);
    return r;
  }
};

// Throws unless all processes have the same examples in the same order: each makes its own part of a batch.
static void check_same(const std::vector<std::string>& texts) {
  const auto line = [](const std::string& text, std::size_t k) {
    std::size_t at = 0;
    for (; k > 0 && at != text.npos; k--) at = text.find('\n', at + 1);
    if (at == text.npos) return std::string("nothing more");
    const std::size_t begin = at + (text[at] == '\n' ? 1 : 0);
    return text.substr(begin, text.find('\n', begin) - begin);
  };
  for (std::size_t p = 1; p < texts.size(); p++) {
    if (texts[p] == texts[0]) continue;
    std::size_t k = 0;
    while (line(texts[p], k) == line(texts[0], k)) k++;
    throw Error(fmt::format(
        "data::loader: process 0 has {}, process {} has {}. Each makes its own part of every batch, of the "
        "same examples in the same order. Give the same in all of them; of rows that only it has a process "
        "makes its part by make_array_from_process_local_data.",
        line(texts[0], k), p, line(texts[p], k)));
  }
}

Batches::Batches(const std::vector<Array>& arrays, LoaderOptions options, Where w)
    : options_(std::move(options)), made_(w) {
  const Site site(w, "data::loader");
  const bool is_shared = are_shared(options_);
  const Attempt mine("data::loader", [&] {
    auto examples = std::make_shared<Examples>(arrays, options_);
    if (is_shared)
      for (Examples::Column& c : examples->columns) c.hash = hash_of(c.bytes);
    examples_ = std::move(examples);
    return is_shared ? examples_->text(options_) : std::string();
  });
  check_same(mine.agreed<TransportError>("data::loader", is_shared ? other_processes() : nullptr));
  set_order();
}

void Batches::set_order() {
  if (!options_.seed) return;
  const random::partitionable mode(true);
  const random::philox threefry(false);
  const policy::budget none(0);
  const Array key = random::fold_in(random::key(*options_.seed), options_.epoch);
  order_ = std::make_shared<const std::vector<std::int64_t>>(
      random::permutation(key, examples_->count).to_vector<std::int64_t>());
}

Batches Batches::with_epoch(std::int64_t epoch) const {
  Batches r = *this;
  r.options_.epoch = epoch;
  if (are_shared(options_)) {
    const Site site(made_);
    const Attempt mine("data::loader", [&] { return r.examples_->text(r.options_); });
    check_same(mine.agreed<TransportError>("data::loader", other_processes()));
  }
  r.set_order();
  return r;
}

std::int64_t Batches::size() const {
  return options_.drop_last ? examples_->count / options_.batch : ceil_div(examples_->count, options_.batch);
}

std::vector<Array> Batches::at(std::int64_t k, Where w) const {
  const Site site(w);
  if (k < 0 || k >= size())
    throw ShapeError(fmt::format(
        "data::loader: there is no batch {}: there are {}. Batches count from 0. Ask for one below size().",
        k, size()));
  const std::int64_t first = k * options_.batch;
  const std::int64_t last = first + std::min(options_.batch, examples_->count - first);
  std::vector<Array> r;
  for (const Examples::Column& column : examples_->columns) {
    Type t = column.type;
    t.shape[0] = last - first;
    // The bytes of the batch, example after example; each process takes those of its own devices.
    std::size_t at = 0;
    const auto fill = [&](std::span<std::byte> to) {
      while (!to.empty()) {
        const std::size_t i = static_cast<std::size_t>(first) + at / column.row, in_row = at % column.row,
                          n = std::min(to.size(), column.row - in_row),
                          from = order_ ? static_cast<std::size_t>((*order_)[i]) : i;
        std::copy_n(column.bytes.data() + from * column.row + in_row, n, to.data());
        to = to.subspan(n);
        at += n;
      }
    };
    const auto skip = [&](std::size_t bytes) { at += bytes; };
    const Pass pass = skip;
    r.push_back(
        files::load_array(t, files::home_of("data::loader", options_.sharding, t, ""), {}, fill, &pass));
  }
  return r;
}

}  // namespace data

Progress::Progress(std::int64_t total, ProgressOptions options)
    : total_(total),
      out_(options.out ? options.out : &std::cout),
      terminal_(options.terminal.value_or(!options.out && isatty(STDOUT_FILENO))),
      start_(std::chrono::steady_clock::now()),
      drawn_(start_) {}

Progress::~Progress() {
  if (terminal_ && done_ > 0) *out_ << std::endl;
}

static double seconds_between(std::chrono::steady_clock::time_point a,
                              std::chrono::steady_clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

double Progress::rate() const {
  const double seconds = seconds_between(start_, std::chrono::steady_clock::now());
  return seconds > 0 ? static_cast<double>(done_) / seconds : 0;
}

// True when the line is due: on a terminal every 0.1 s, else ten times in all; always at the end.
bool Progress::count() {
  done_++;
  if (done_ == total_) return true;
  const auto tenths = [&](std::int64_t n) {
    return static_cast<std::int64_t>(10.0 * static_cast<double>(n) / static_cast<double>(total_));
  };
  if (!terminal_) return total_ > 0 && tenths(done_) != tenths(done_ - 1);
  return seconds_between(drawn_, std::chrono::steady_clock::now()) > 0.1;
}

void Progress::draw(const std::string& metric) {
  drawn_ = std::chrono::steady_clock::now();
  const double per_second = rate();
  const std::int64_t percent = total_ > 0 ? std::min<std::int64_t>(100, done_ * 100 / total_) : 100;
  std::string line = fmt::format("{:3}% {}/{}  {:.1f} steps/s", percent, done_, total_, per_second);
  if (done_ < total_ && per_second > 0) {
    const auto left = static_cast<std::int64_t>(static_cast<double>(total_ - done_) / per_second);
    line += fmt::format("  {}:{:02} left", left / 60, left % 60);
  }
  if (!metric.empty()) line += "  " + metric;
  constexpr std::int64_t width = 20;
  const auto full = static_cast<std::size_t>(percent * width / 100);
  if (terminal_)
    *out_ << "\r\033[K[" << std::string(full, '#') << std::string(width - full, '.') << "] " << line
          << std::flush;
  else *out_ << line << std::endl;
}

}  // namespace shardarray
