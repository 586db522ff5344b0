// What this plug-in asks of MPI, by one thread at a time: it joins, sends and receives without waiting, and leaves.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace shardarray::mpi {

/// Bytes on their way; ready when test() says so.
class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual bool test() = 0;
  /// It may end without its bytes; test() says when.
  virtual void cancel() = 0;
};
using TransferRef = std::unique_ptr<Transfer>;

/// Short texts from process to process, apart from what runs send.
struct Note {
  int peer = 0;
  std::string text;
};

class Link {
 public:
  /// Joins. Throws DeviceError.
  Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  ~Link();
  int index() const { return index_; }
  int count() const { return count_; }
  /// The numbers that boxes may have, from 0.
  std::uint64_t most_tags() const { return most_tags_; }
  /// Bytes of one number arrive in the order in which they were sent. `bytes` is at most most_bytes.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;
  TransferRef send(int peer, std::uint64_t tag, const void* from, std::size_t bytes);
  TransferRef receive(int peer, std::uint64_t tag, void* to, std::size_t bytes);
  /// At most 4,000 bytes of text.
  void post(int peer, const std::string& text);
  /// The next one that has come.
  bool next(Note& note);
  /// Whether all that was posted is gone.
  bool notes_are_gone();
  /// What every process gives: sizes first, then the bytes.
  TransferRef gather(std::size_t bytes, void* all);  // equal sizes, where this process' own lies in its place
  TransferRef gather(const void* mine, std::size_t bytes, void* all, const std::vector<int>& sizes,
                     const std::vector<int>& offsets);
  /// Ends all processes, this one too, with this status.
  [[noreturn]] void abort(int status);

 private:
  struct Handles;
  std::unique_ptr<Handles> h_;
  int index_ = 0, count_ = 1;
  std::uint64_t most_tags_ = 0;
};

}  // namespace shardarray::mpi
