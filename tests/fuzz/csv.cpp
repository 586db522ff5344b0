// Any bytes as tables. The first says how they are read.
#include "file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  namespace sa = shardarray;
  const unsigned how = data[0];
  constexpr sa::DType dtypes[] = {sa::float32, sa::float64, sa::float16, sa::int8,
                                  sa::int64,   sa::uint64,  sa::bool_,   sa::bfloat16};
  sa::data::CsvOptions o{.max_bytes = 1 << 20,
                         .header = (how & 1) != 0,
                         .delimiter = (how & 2) != 0 ? ',' : '\t',
                         .comment = (how & 4) != 0 ? "#" : "",
                         .dtype = dtypes[how >> 5]};
  if ((how & 8) != 0) o.missing = {"", "NA"};
  return fuzz::with_file(data + 1, size - 1, [&](const std::string& path) {
    if ((how & 16) != 0) sa::eval(sa::data::load_csv(path, o));
    else sa::eval(sa::data::load_table(path, o).columns);
  });
}
