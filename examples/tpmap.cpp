// bobbin's "How to use tpmap" page, cell by cell: functions of whole values mapped over 8 devices, and what goes with that.
#include <shardarray/shardarray.h>

#include <cstdio>
#include <iostream>

namespace sa = shardarray;

sa::Array data_parallel_noisy_matmul(sa::Array matrix, sa::Array xs, sa::Array rng) {
  const sa::Array noise = 0.1 * sa::random::normal(rng, {1, matrix.shape().back()});
  sa::debug::id_print(sa::axis_index("i"),
                      {{"shape_of_parameter", matrix.shape()}, {"shape_of_data", xs.shape()}});
  return sa::dot(xs, matrix) + noise;
}

struct Result {
  sa::Array roll_count, six_count;
};
Result roll_dice(int count, sa::Array rng) {
  const sa::Array value = sa::random::randint(rng, {count}, 1, 7);
  return {.roll_count = sa::full({}, count), .six_count = sa::sum((value == 6).astype(sa::float32))};
}

void print_result(std::size_t device_id, const Result& result) {
  const float six_rate = (result.six_count / result.roll_count).item<float>();
  if (six_rate > 0.3f) std::printf("Device #%zu was lucky! six-rate=%2.0f%%!!\n", device_id, 100 * six_rate);
  else std::printf("Device #%zu is normal.\n", device_id);
}

int main() {
  sa::set_cpu_device_count(8);
  const sa::random::partitionable legacy(
      false);  // the page's numbers are those of JAX's older, non-partitionable generator

  // tpmap: the matrix is broadcast, each device gets two rows of the data and its own key
  const auto f = sa::tpmap(
      data_parallel_noisy_matmul,
      {.axis_name = "i", .args = {sa::broadcast, sa::shard, sa::rng}, .wrap_return = sa::join_batches});
  constexpr int batch_size = 16, input_dim = 8, output_dim = 5;
  const sa::Array parameter = sa::random::normal(sa::random::key(1), {input_dim, output_dim});
  const sa::Array data = sa::random::normal(sa::random::key(2), {batch_size, input_dim});
  const sa::Array result = f(parameter, data, sa::random::PRNGKey(0));
  sa::debug::print("Result shape = {}", result.shape());

  // unshard: from results with a device axis to one result per device
  const auto roll = sa::tpmap(roll_dice, {.axis_name = "d", .args = {sa::fixed, sa::rng}});
  const Result results = roll(10, sa::random::PRNGKey(0));
  std::cout << "roll_count=" << results.roll_count << ", six_count=" << results.six_count << std::endl;
  const std::vector<Result> by_device = sa::unshard(results);
  for (std::size_t device_id = 0; device_id < by_device.size(); device_id++)
    print_result(device_id, by_device[device_id]);

  // gather_from_processes: one tree per process; here there is one process
  std::cout << sa::gather_from_processes(results).size() << " process\n";

  // assert_replica_integrity: every device holds the same parameter
  const auto replicated = sa::PositionalSharding(sa::create_device_mesh({8})).replicate();
  sa::assert_replica_integrity(sa::device_put(parameter, replicated));
  sa::assert_replica_integrity(results.roll_count, {.is_device_replicated = true});
  try {
    sa::assert_replica_integrity(results, {.is_device_replicated = true});
  } catch (const sa::ShardingError& e) { std::cout << e.what() << "\n"; }
}
