// Every process walks the whole program and numbers the boxes from each process to each other one, so both sides know a box by the same
// tag. A box that is not combined with others is received in place if it is contiguous there. Everything else that a step receives, or has
// to pack before sending, gets a place behind the device's own scratch; later steps reuse it. Small boxes for the same process are bundled.
// No step waits for a later one, in any process, so there are no cyclic waits.
#include "runtime/local_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/fingerprint.h"
#include "runtime/step_ranges.h"
#include "shardarray/error.h"

namespace shardarray {
namespace {

constexpr std::uint64_t parcel_alignment = 64;
std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + parcel_alignment - 1) / parcel_alignment * parcel_alignment;
}
/// So much is copied in the time a message takes to start (10 GB/s, 1.5 us).
constexpr std::uint64_t most_of_a_bundle = std::uint64_t{16} << 10;
/// On average: copying such a box takes less time than sending it as a message, however many there are.
constexpr std::uint64_t most_of_a_small_box = std::uint64_t{2} << 10;

class Splitter {
 public:
  Splitter(const Program& whole, int process) : whole_(whole), process_(process) {
    std::set<int> all;
    for (const Device& d : whole.order->devices()) all.insert(d.process_index);
    takes_part_ = all.erase(process) > 0;
    if (takes_part_) part_.peers.assign(all.begin(), all.end());
  }

  LocalPart run() {
    part_.fingerprint = std::make_shared<const Fingerprint>(fingerprint(whole_));
    mine_.order = whole_.order;
    mine_.transfers = whole_.transfers;
    mine_.base_count = whole_.base_count;
    mine_.peak_bytes = whole_.peak_bytes;
    for (const Port& p : whole_.inputs) mine_.inputs.push_back(port(p));
    for (const Port& p : whole_.outputs) mine_.outputs.push_back(port(p));
    mine_.scratch_bytes = whole_.scratch_bytes;
    for (std::size_t d = 0; d < mine_.scratch_bytes.size(); d++)
      if (!here(static_cast<int>(d))) mine_.scratch_bytes[d] = 0;
    for (const Step& s : whole_.steps) {
      if (!takes_part_) break;
      step_ = &s;
      std::visit([&](const auto& body) { add(body); }, s.body);
    }
    part_.program = std::make_shared<const Program>(std::move(mine_));
    return std::move(part_);
  }

 private:
  int process_of(int device) const {
    return whole_.order->devices()[static_cast<std::size_t>(device)].process_index;
  }
  bool here(int device) const { return process_of(device) == process_; }

  Port port(const Port& from) const {
    Port to{from.shape, from.dtype, from.layout, {}, {}, {}, from.alias};
    for (std::size_t i = 0; i < from.devices.size(); i++) {
      if (!here(from.devices[i])) continue;
      to.bases.push_back(from.bases[i]);
      to.bytes.push_back(from.bytes[i]);
      to.devices.push_back(from.devices[i]);
    }
    return to;
  }

  template <class Body> void put(Body body) {
    if (body.items.empty()) return;
    mine_.steps.push_back({std::move(body), step_->label, step_->where, step_->flush_denormals});
  }

  template <class Body> void add(const Body& body) {
    Body own = body;
    std::erase_if(own.items, [&](const auto& item) { return !here(item.device); });
    put(std::move(own));
  }

  // The part needs more scratch than the whole program: it is placed behind the caller's.
  ProgramCall own_call(const ProgramCall& call) {
    ProgramCall own = call;
    own.part = std::make_shared<const LocalPart>(local_part(*call.program, process_));
    own.program = own.part->program;
    for (ProgramCall::Item& item : own.items)
      for (std::size_t d = 0; d < own.program->scratch_bytes.size(); d++) {
        const std::uint64_t bytes = own.program->scratch_bytes[d];
        const Ref there =
            bytes == 0 ? Ref{static_cast<std::uint32_t>(d), 0} : room(static_cast<int>(d), bytes);
        item.bases[d] = {there, there, there, 0};
      }
    return own;
  }
  /// A local copy of a value that every device holds.
  Ref here_of(const std::vector<Ref>& everywhere) const {
    for (std::size_t d = 0; d < everywhere.size(); d++)
      if (here(static_cast<int>(d))) return everywhere[d];
    return everywhere[0];  // nothing runs here
  }

  void add(const ProgramCall& call) {
    used_.assign(whole_.scratch_bytes.size(), 0);
    put(own_call(call));
  }
  void add(const ProgramChoice& choice) {
    used_.assign(whole_.scratch_bytes.size(), 0);
    ProgramChoice own = choice;
    for (ProgramCall& branch : own.branches) branch = own_call(branch);
    for (ProgramChoice::Item& item : own.items) item.index = here_of(item.indices);
    put(std::move(own));
  }
  void add(const ProgramLoop& loop) {
    used_.assign(whole_.scratch_bytes.size(), 0);
    ProgramLoop own = loop;
    for (ProgramCall& call : own.calls) call = own_call(call);
    for (ProgramLoop::Item& item : own.items) {
      item.answer = here_of(item.answers);
      std::erase_if(item.carries, [&](const ProgramLoop::Carry& c) { return !here(c.device); });
    }
    put(std::move(own));
  }

  void add(const Exchange& x) {
    Exchange own = x;
    own.items.clear();
    packs_ = {};
    packs_.dtype = x.dtype;
    used_.assign(whole_.scratch_bytes.size(), 0);
    sent_.clear();
    received_.clear();
    parcels_.clear();
    exchange_++;
    find_bundles(x);
    for (const Exchange::Item& item : x.items) {
      Exchange::Item to = item;
      to.pieces.clear();
      for (const Exchange::Piece& p : item.pieces) add_piece(x, item, p, to);
      if (here(item.device) && (to.fill || !to.pieces.empty() || item.pieces.empty()))
        own.items.push_back(std::move(to));
    }
    put(std::move(packs_));
    for (auto* const boxes : {&sent_, &received_})
      for (PartBox& b : *boxes) {
        b.step = mine_.steps.size();
        b.exchange = exchange_;
        part_.boxes.push_back(b);
      }
    put(std::move(own));
  }

  static std::uint64_t bytes_of(const Exchange& x, const Exchange::Piece& p) {
    return static_cast<std::uint64_t>(num_elements(p.extents)) * itemsize(x.dtype);
  }
  /// Devices of a process that want the same box share the first one's. `to`: the process; -1: it stays.
  static std::vector<std::uint64_t> parcel_key(const Exchange::Piece& p, const Exchange::Source& s, int to) {
    std::vector<std::uint64_t> key{static_cast<std::uint64_t>(to), static_cast<std::uint64_t>(s.device),
                                   s.ref.base, s.ref.offset};
    for (const Shape* v : {&p.extents, &p.src_strides})
      for (const std::int64_t n : *v) key.push_back(static_cast<std::uint64_t>(n));
    return key;
  }

  /// Finds the pairs of processes whose boxes are sent as one.
  void find_bundles(const Exchange& x) {
    std::set<std::vector<std::uint64_t>> seen;
    bundles_.clear();
    for (const Exchange::Item& item : x.items)
      for (const Exchange::Piece& p : item.pieces)
        for (const Exchange::Source& s : p.sources) {
          const int from = process_of(s.device), to = process_of(item.device);
          const std::uint64_t bytes = bytes_of(x, p);
          if (bytes == 0 || from == to || !seen.insert(parcel_key(p, s, to)).second) continue;
          Bundle& b = bundles_[{from, to}];
          b.boxes++;
          b.bytes += aligned(bytes);
        }
    std::erase_if(bundles_, [](const auto& b) {
      const auto& [boxes, bytes, used, at, device] = b.second;
      const bool are_small = bytes / static_cast<std::uint64_t>(boxes) <= most_of_a_small_box;
      return boxes == 1 || (bytes > most_of_a_bundle && !are_small);
    });
  }

  /// `to`: this process's part of the item, if it is local.
  void add_piece(const Exchange& x, const Exchange::Item& item, const Exchange::Piece& p,
                 Exchange::Item& to) {
    const std::uint64_t bytes = bytes_of(x, p);
    const bool mine = here(item.device), packed = is_packed(p.extents, p.src_strides);
    const bool alone = p.sources.size() == 1 && !item.fill && is_packed(p.extents, p.dst_strides);
    const bool mixed = bytes > 0 && std::any_of(p.sources.begin(), p.sources.end(), [&](const auto& s) {
                         return process_of(s.device) != process_of(item.device);
                       });
    if (!mixed) {
      if (mine) to.pieces.push_back(p);
      return;
    }
    Exchange::Piece own = p;
    own.src_strides = row_major(p.extents);  // equal for all sources of a piece
    own.sources.clear();
    for (const Exchange::Source& s : p.sources) {
      const int from_process = process_of(s.device), to_process = process_of(item.device);
      const bool crosses = from_process != to_process;
      if (!mine && !crosses) continue;
      const auto [known, is_new] = parcels_.try_emplace(parcel_key(p, s, crosses ? to_process : -1), s);
      Exchange::Source& from = known->second;
      const auto bundle = crosses ? bundles_.find({from_process, to_process}) : bundles_.end();
      const bool is_bundled = bundle != bundles_.end();
      const bool is_final = alone && is_new && mine && crosses && !is_bundled;
      if (is_new && is_bundled) add_to(bundle->second, item.device, p, from, bytes);
      else if (is_final) from = {p.dst, s.device, bytes, 0};
      else if (is_new && mine && crosses) from = place(s, item.device, bytes);
      else if (is_new && !packed && here(s.device)) from = pack(p, s, bytes);
      if (is_new && crosses && !is_bundled)
        add_box(s.device, item.device, from.ref, bytes, is_final ? x.transfer : -1);
      if (!is_final) own.sources.push_back(from);
    }
    if (mine && !own.sources.empty()) to.pieces.push_back(std::move(own));
  }

  /// Records a box between devices in the processes of both; `at`: where it is in this one. `transfer`: counts it where it is received.
  void add_box(int from, int to, const Ref& at, std::uint64_t bytes, int transfer) {
    const int sender = process_of(from), receiver = process_of(to);
    const std::uint64_t tag = next_tags_.try_emplace({sender, receiver}, first_box_tag).first->second++;
    const auto box = [&](bool sent) {
      const auto device = [&](int d) { return whole_.order->devices()[static_cast<std::size_t>(d)]; };
      PartBox b;
      b.sent = sent;
      b.peer = sent ? receiver : sender;
      b.memory = device(sent ? to : from).memory;
      b.tag = tag;
      b.ref = at;
      b.bytes = bytes;
      b.device = device(sent ? from : to).id;
      b.transfer = sent ? -1 : transfer;
      b.label = step_->label;
      b.where = step_->where;
      return b;
    };
    if (here(to)) received_.push_back(box(false));
    if (here(from)) sent_.push_back(box(true));
  }

  /// Several boxes sent as one, on the devices of the first.
  struct Bundle {
    int boxes = 0;
    std::uint64_t bytes = 0, used = 0;
    Ref at;          // in this process
    int device = 0;  // the local one
  };
  /// `from`: the source; becomes its place in this process.
  void add_to(Bundle& b, int to, const Exchange::Piece& p, Exchange::Source& from, std::uint64_t bytes) {
    const bool sends = here(from.device), receives = here(to);
    if (b.used == 0) {
      b.device = receives ? to : from.device;
      if (sends || receives) b.at = room(b.device, b.bytes);
      add_box(from.device, to, b.at, b.bytes, -1);
    }
    const Exchange::Source part = {{b.at.base, b.at.offset + b.used}, from.device, bytes, 0};
    b.used += aligned(bytes);
    if (sends) pack(p, from, {part.ref, b.device, bytes, 0});
    if (sends || receives) from = part;
  }

  /// Space for one parcel behind the scratch of a local device, as the source of a piece.
  Exchange::Source place(const Exchange::Source& s, int device, std::uint64_t bytes) {
    return {room(device, bytes), s.device, bytes, 0};
  }

  /// Space behind the scratch of a local device for the duration of a step.
  Ref room(int device, std::uint64_t bytes) {
    const auto d = static_cast<std::size_t>(device);
    const std::uint64_t offset = aligned(whole_.scratch_bytes[d]) + used_[d];
    used_[d] += aligned(bytes);
    mine_.scratch_bytes[d] = std::max(mine_.scratch_bytes[d], offset + bytes);
    return {static_cast<std::uint32_t>(device), offset};
  }

  /// The same box, contiguous.
  Exchange::Source pack(const Exchange::Piece& p, const Exchange::Source& s, std::uint64_t bytes) {
    return pack(p, s, place(s, s.device, bytes));
  }
  Exchange::Source pack(const Exchange::Piece& p, const Exchange::Source& s, const Exchange::Source& to) {
    packs_.items.push_back({to.device,
                            to.ref,
                            to.tile_bytes,
                            false,
                            {{p.extents, p.src_strides, row_major(p.extents), to.ref, {s}}}});
    return to;
  }

  const Program& whole_;
  int process_;
  bool takes_part_;  // this process has devices of the program
  LocalPart part_;
  Program mine_;
  const Step* step_ = nullptr;
  std::map<std::pair<int, int>, std::uint64_t> next_tags_;  // per pair of sending and receiving process
  Exchange packs_;                                          // what the step packs before sending
  std::vector<std::uint64_t> used_;                         // device -> bytes of the step's parcels
  std::size_t exchange_ = 0;                                // number of steps so far
  std::vector<PartBox> sent_, received_;
  std::map<std::pair<int, int>, Bundle> bundles_;  // of this step, per pair of sending and receiving process
  /// Within a step: box and destination process (-1: stays) -> where it is now.
  std::map<std::vector<std::uint64_t>, Exchange::Source> parcels_;
};

}  // namespace

LocalPart local_part(const Program& program, int process) { return Splitter(program, process).run(); }

}  // namespace shardarray
