#include "cuda/part_boxes.h"

namespace shardarray::cuda {

std::vector<int> devices_of_bases(const Program& program) {
  std::vector<int> devices(program.base_count, -1);
  for (std::size_t d = 0; d < program.scratch_bytes.size(); d++) devices[d] = static_cast<int>(d);
  for (const auto* const ports : {&program.inputs, &program.outputs})
    for (const Port& p : *ports)
      for (std::size_t i = 0; i < p.bases.size(); i++) devices[p.bases[i]] = p.devices[i];
  return devices;
}

std::shared_ptr<const Program> with_own_sources(const Program& program, const std::vector<bool>& is_here) {
  const std::vector<int> devices = devices_of_bases(program);
  auto own = std::make_shared<Program>(program);
  for (Step& step : own->steps) {
    auto* const x = std::get_if<Exchange>(&step.body);
    if (x == nullptr) continue;
    for (Exchange::Item& item : x->items)
      for (Exchange::Piece& piece : item.pieces)
        for (Exchange::Source& s : piece.sources)
          if (!is_here[static_cast<std::size_t>(s.device)]) s.device = devices[s.ref.base];
  }
  return own;
}

std::vector<std::span<const PartBox>> crossings(std::span<const PartBox> boxes, std::size_t step) {
  std::vector<std::span<const PartBox>> groups;
  for (std::size_t begin = 0, end; begin < boxes.size(); begin = end) {
    for (end = begin; end < boxes.size() && boxes[end].exchange == boxes[begin].exchange;) end++;
    if (boxes[begin].step == step) groups.push_back(boxes.subspan(begin, end - begin));
  }
  return groups;
}

}  // namespace shardarray::cuda
