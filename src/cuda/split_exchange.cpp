#include "cuda/split_exchange.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "runtime/step_ranges.h"

namespace shardarray::cuda {
namespace {

constexpr std::uint64_t box_alignment = 16;  // a copy's widest access

class ExchangeSplitter {
 public:
  ExchangeSplitter(const Exchange& x, std::span<const int> gpu_of, int gpus, std::uint32_t staging)
      : x_(x),
        gpu_of_(gpu_of),
        gpus_(static_cast<std::size_t>(gpus)),
        staging_(staging),
        boxes_(gpus_ * gpus_) {
    split_.parts.resize(gpus_);
    for (SplitExchange::Part& p : split_.parts) {
      p.delivered = x;
      p.delivered.items.clear();
      p.packed.dtype = x.dtype;
    }
  }

  SplitExchange run() {
    for (const Exchange::Item& item : x_.items)
      for (const Exchange::Piece& p : item.pieces)
        if (crosses(item, p))
          for (const Exchange::Source& s : p.sources) box_of(item, p, s);
    for (std::size_t g = 0; g < gpus_; g++) place(g);
    for (const Exchange::Item& item : x_.items) deliver(item);
    for (std::size_t g = 0; g < gpus_; g++) pack(g);
    return std::move(split_);
  }

 private:
  struct Box {
    std::uint64_t offset = 0;  // in its block
    const Exchange::Piece* piece;
    const Exchange::Source* source;
  };
  /// Boxes from one GPU to another; or to itself, if combined with others' boxes: all sources of a piece are read the same way.
  struct Boxes {
    std::map<std::vector<std::int64_t>, std::size_t> known;  // by place and shape
    std::vector<Box> all;
    std::uint64_t bytes = 0;
    std::uint64_t packed_at = 0, received_at = 0;  // in the staging memory of the sender and the receiver
  };

  std::size_t gpu(int device) const {
    return static_cast<std::size_t>(gpu_of_[static_cast<std::size_t>(device)]);
  }
  Boxes& boxes(std::size_t from, std::size_t to) { return boxes_[from * gpus_ + to]; }
  std::uint64_t bytes_of(const Exchange::Piece& p) const {
    return static_cast<std::uint64_t>(num_elements(p.extents)) * itemsize(x_.dtype);
  }
  bool crosses(const Exchange::Item& item, const Exchange::Piece& p) const {
    return num_elements(p.extents) > 0 && std::any_of(p.sources.begin(), p.sources.end(), [&](const auto& s) {
             return gpu(s.device) != gpu(item.device);
           });
  }

  Box& box_of(const Exchange::Item& item, const Exchange::Piece& p, const Exchange::Source& s) {
    Boxes& b = boxes(gpu(s.device), gpu(item.device));
    std::vector<std::int64_t> key = {s.ref.base, static_cast<std::int64_t>(s.ref.offset)};
    key.insert(key.end(), p.extents.begin(), p.extents.end());
    key.insert(key.end(), p.src_strides.begin(), p.src_strides.end());
    const auto [it, fresh] = b.known.emplace(std::move(key), b.all.size());
    if (fresh) {
      b.all.push_back({b.bytes, &p, &s});
      b.bytes += (bytes_of(p) + box_alignment - 1) / box_alignment * box_alignment;
    }
    return b.all[it->second];
  }

  /// Lays out a GPU's staging memory: what it sends, what it receives, its own boxes.
  void place(std::size_t g) {
    SplitExchange::Part& part = split_.parts[g];
    const auto take = [&](std::uint64_t bytes) {
      return std::exchange(part.staging_bytes, part.staging_bytes + bytes);
    };
    for (std::size_t other = 0; other < gpus_; other++) {
      if (other == g) continue;
      Boxes &out = boxes(g, other), &in = boxes(other, g);
      out.packed_at = take(out.bytes);
      in.received_at = take(in.bytes);
      if (out.bytes > 0) part.sent.push_back({static_cast<int>(other), out.packed_at, out.bytes});
      if (in.bytes > 0) part.received.push_back({static_cast<int>(other), in.received_at, in.bytes});
    }
    Boxes& own = boxes(g, g);
    own.packed_at = own.received_at = take(own.bytes);
  }

  void deliver(const Exchange::Item& item) {
    Exchange::Item to = item;
    for (Exchange::Piece& p : to.pieces) {
      if (!crosses(item, p)) continue;
      const Exchange::Piece from = p;
      p.src_strides = row_major(p.extents);
      for (Exchange::Source& s : p.sources) {
        const Box& box = box_of(item, from, s);
        const Boxes& block = boxes(gpu(s.device), gpu(item.device));
        s = {{staging_, block.received_at + box.offset}, item.device, bytes_of(p), 0};
      }
    }
    split_.parts[gpu(item.device)].delivered.items.push_back(std::move(to));
  }

  void pack(std::size_t from) {
    for (std::size_t to = 0; to < gpus_; to++) {
      const Boxes& b = boxes(from, to);
      if (b.bytes == 0) continue;
      Exchange::Item item;
      item.device = b.all[0].source->device;
      item.dst = {staging_, b.packed_at};
      item.dst_bytes = b.bytes;
      for (const Box& box : b.all) {
        const Shape& extents = box.piece->extents;
        item.pieces.push_back({extents,
                               box.piece->src_strides,
                               row_major(extents),
                               {staging_, b.packed_at + box.offset},
                               {*box.source}});
      }
      split_.parts[from].packed.items.push_back(std::move(item));
    }
  }

  const Exchange& x_;
  const std::span<const int> gpu_of_;
  const std::size_t gpus_;
  const std::uint32_t staging_;
  std::vector<Boxes> boxes_;  // from one GPU to another
  SplitExchange split_;
};

}  // namespace

SplitExchange split_exchange(const Exchange& x, std::span<const int> gpu_of, int gpus,
                             std::uint32_t staging) {
  return ExchangeSplitter(x, gpu_of, gpus, staging).run();
}

}  // namespace shardarray::cuda
