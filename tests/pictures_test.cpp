// Pictures of shardings against those that JAX drew (pictures.json), byte for byte. visualize_test.cpp has what JAX does not draw.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "picture_reader.h"
#include "shardarray/error.h"
#include "shardarray/visualize.h"
#include "sources.h"

namespace pictures_test {

using namespace shardarray;
using nlohmann::json;

namespace {

DeviceGrid grid_of(const json& shape, const json& order) {
  DeviceGrid grid;
  for (std::int64_t n : shape) grid.shape.push_back(n);
  for (std::int64_t k = 0; k < num_elements(grid.shape); k++)
    grid.devices.push_back(Device{order.is_null() ? static_cast<int>(k) : order[k].get<int>()});
  return grid;
}

PartitionSpec spec_of(const json& spec) {
  std::vector<SpecEntry> entries;
  for (const auto& e : spec) {
    if (e.is_null()) entries.push_back(none);
    else if (e.is_string()) entries.push_back(e.get<std::string>());
    else entries.push_back(AxisNames{e.get<std::vector<std::string>>()});
  }
  return PartitionSpec(std::move(entries));
}

PositionalSharding positional_of(const json& s) {
  PositionalSharding out(grid_of(s["grid"], s.value("order", json())));
  for (const auto& step : s["steps"]) {
    if (step[0] == "T") out = out.T();
    else if (step[0] == "reshape") out = out.reshape(Shape(step[1].get<std::vector<std::int64_t>>()));
    else if (step[1].is_null()) out = out.replicate();
    else
      out = out.replicate(step[1].get<std::int64_t>(), {.keepdims = step.size() < 3 || step[2].get<bool>()});
  }
  return out;
}

Sharding sharding_of(const json& s, std::size_t rank) {
  if (s["kind"] == "single") return SingleDeviceSharding(Device{s["device"].get<int>()});
  if (s["kind"] == "named")
    return NamedSharding(
        Mesh(grid_of(s["mesh"], s.value("order", json())), s["names"].get<std::vector<std::string>>()),
        spec_of(s["spec"]));
  if (s["kind"] == "positional") return positional_of(s);
  // pmap: one element per device along one dimension.
  Shape shape = Shape::filled(rank, 1);
  shape[s.value("dim", 0)] = 8;
  return PositionalSharding(grid_of({8}, json())).reshape(shape);
}

VisualizeOptions options_of(const json& attrs) {
  VisualizeOptions o;
  o.scale = attrs.value("scale", 1.0);
  o.min_width = attrs.value("min_width", 9);
  o.max_width = attrs.value("max_width", 80);
  o.use_color = attrs.value("use_color", false);
  if (attrs.contains("mapped"))
    o.color_map = [colors = attrs["mapped"].get<std::vector<Rgb>>(), next = std::size_t{0}](double) mutable {
      return colors[next++ % colors.size()];
    };
  return o;
}

// Every device stands in a block.
bool names_all(const std::string& picture, const Sharding& sharding) {
  testing::Ids seen;
  for (const testing::Ids& ids : testing::read_picture(picture).blocks) seen.insert(ids.begin(), ids.end());
  const std::vector<Device> devices = sharding.device_set();
  return std::all_of(devices.begin(), devices.end(), [&](const Device& d) { return seen.contains(d.id); });
}

Sharding grid_4x2(PartitionSpec spec) {
  return NamedSharding(Mesh(grid_of({4, 2}, json()), {"x", "y"}), std::move(spec));
}

// The master side of a new pseudo-terminal; -1 where the system has none (a container without /dev/pts).
int open_terminal() {
  const int master = posix_openpt(O_RDWR | O_NOCTTY);
  if (master < 0 || (grantpt(master) == 0 && unlockpt(master) == 0)) return master;
  close(master);
  return -1;
}

// What these variables were is so again.
class Variables {
 public:
  explicit Variables(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      const char* const value = std::getenv(name.c_str());
      old_.emplace_back(name, value ? std::optional<std::string>(value) : std::nullopt);
      unsetenv(name.c_str());
    }
  }
  Variables(const Variables&) = delete;
  Variables& operator=(const Variables&) = delete;
  ~Variables() {
    for (const auto& [name, value] : old_)
      value ? setenv(name.c_str(), value->c_str(), 1) : unsetenv(name.c_str());
  }

 private:
  std::vector<std::pair<std::string, std::optional<std::string>>> old_;
};

std::string without_colors(std::string text) {
  for (std::size_t at; (at = text.find('\x1b')) != text.npos;) text.erase(at, text.find('m', at) - at + 1);
  return text;
}

// What visualize_sharding writes to a standard output that is a terminal, so many columns wide (0: it does not say), or a file.
std::string printed(bool terminal, const Shape& shape, const Sharding& sharding, unsigned short columns = 0) {
  const int master = terminal ? open_terminal() : -1;
  FILE* file = terminal ? nullptr : std::tmpfile();
  if (terminal) REQUIRE(master >= 0);
  const int target = terminal ? open(ptsname(master), O_RDWR | O_NOCTTY) : fileno(file);
  const winsize size{24, columns, 0, 0};
  if (terminal) ioctl(target, TIOCSWINSZ, &size);
  std::fflush(stdout);
  const int saved = dup(STDOUT_FILENO);
  dup2(target, STDOUT_FILENO);
  visualize_sharding(shape, sharding);
  dup2(saved, STDOUT_FILENO);
  close(saved);
  std::string text;
  if (terminal) {  // hands on in pieces what was written: read up to a mark
    REQUIRE(write(target, "", 1) == 1);
    for (char c; read(master, &c, 1) == 1 && c != '\0';) text += c;
  } else {
    text.resize(4096);
    text.resize(static_cast<std::size_t>(pread(target, text.data(), text.size(), 0)));
  }
  if (terminal) close(target), close(master);
  else std::fclose(file);
  std::erase(text, '\r');  // a terminal writes \r\n
  return text;
}

}  // namespace

TEST_CASE("pictures: as JAX draws them") {
  std::ifstream in(shardarray::testing::data_file("pictures.json"));
  const auto data = json::parse(in);
  int drawn = 0, refused = 0, unlabelled = 0;
  for (const auto& row : data["cases"]) {
    const auto& attrs = row["attrs"];
    const Shape shape(attrs["shape"].get<std::vector<std::int64_t>>());
    const Sharding sharding = sharding_of(attrs["sharding"], shape.size());
    if (row.contains("raises")) {
      CHECK(!render_sharding(shape, sharding).empty());  // uneven values and other ranks are drawn here
      refused++;
      continue;
    }
    CAPTURE(attrs.dump());
    const std::string jax = row["outputs"]["text"],
                      ours = render_sharding(shape, sharding, options_of(attrs));
    const bool jax_names_all = attrs.value("use_color", false) || names_all(jax, sharding);
    if (jax_names_all) CHECK(ours == jax);
    else CHECK(names_all(ours, sharding));
    unlabelled += !jax_names_all;
    if (row["outputs"].contains("repr") && attrs["sharding"]["kind"] != "pmap")
      CHECK(sharding.to_string() == row["outputs"]["repr"].get<std::string>());
    drawn++;
  }
  CHECK(drawn == 64);
  CHECK(refused == 4);
  CHECK(unlabelled == 4);  // JAX leaves labels out where they do not fit
}

TEST_CASE("pictures: uneven and empty tiles") {
  CHECK(render_sharding({10}, grid_4x2(P("x"))) ==
        "┌───────┬───────┬───────┬───────┐\n"
        "│CPU 0,1│CPU 2,3│CPU 4,5│CPU 6,7│\n"
        "└───────┴───────┴───────┴───────┘\n");
  // 5 rows over 4 tiles are 2, 2, 1 and 0 rows: 4, 4 and 2 tenths of the picture, and devices without any.
  CHECK(render_sharding({5, 5}, grid_4x2(P("x"))) ==
        "┌───────────────────────┐\n"
        "│                       │\n"
        "│        CPU 0,1        │\n"
        "│                       │\n"
        "├───────────────────────┤\n"
        "│                       │\n"
        "│        CPU 2,3        │\n"
        "│                       │\n"
        "├───────────────────────┤\n"
        "│        CPU 4,5        │\n"
        "└───────────────────────┘\n"
        "CPU 6, 7 hold nothing.\n");
  CHECK(render_sharding({3}, grid_4x2(P(axes("x", "y")))) ==
        "┌───────┬───────┬───────┐\n"
        "│ CPU 0 │ CPU 1 │ CPU 2 │\n"
        "└───────┴───────┴───────┘\n"
        "CPU 3-7 hold nothing.\n");
  CHECK(render_sharding({7, 2, 2}, grid_4x2(P(axes("x", "y")))).ends_with("CPU 7 holds nothing.\n"));
  // Of an empty value there is nothing to draw, whatever cuts it.
  for (const Shape& shape : {Shape{0, 8}, Shape{3, 0}})
    for (const PartitionSpec& spec : {P("x", "y"), P("x"), P(none, "y"), P(), P("x", unreduced("y"))})
      for (const bool color : {false, true})
        CHECK(render_sharding(shape, grid_4x2(spec), {.use_color = color}) == "CPU 0-7 hold nothing.\n");
}

TEST_CASE("pictures: no width is too small, no value too wide") {
  for (int width : {0, 1, 2, 3, 5, 9})
    for (bool color : {false, true})
      CHECK(!render_sharding({64, 64}, grid_4x2(P("x", "y")),
                             {.use_color = color, .min_width = 1, .max_width = width})
                 .empty());
  CHECK(!render_sharding({1, std::int64_t{1} << 60}, grid_4x2(P(none, "y"))).empty());
}

TEST_CASE("pictures: a table has every device") {
  CHECK(sharding_table({6, 2, 5}, grid_4x2(P("x", none, "y"))) ==
        "device  index          shard shape  replica\n"
        "cpu:0   (0:2, :, 0:3)  [2,2,3]      0\n"
        "cpu:1   (0:2, :, 3:5)  [2,2,2]      0\n"
        "cpu:2   (2:4, :, 0:3)  [2,2,3]      0\n"
        "cpu:3   (2:4, :, 3:5)  [2,2,2]      0\n"
        "cpu:4   (4:6, :, 0:3)  [2,2,3]      0\n"
        "cpu:5   (4:6, :, 3:5)  [2,2,2]      0\n"
        "cpu:6   (6:6, :, 0:3)  [0,2,3]      empty\n"
        "cpu:7   (6:6, :, 3:5)  [0,2,2]      empty\n");
  // Replicas have what another device has too; of empty pieces none has anything.
  CHECK(sharding_table({3}, grid_4x2(P("x"))) ==
        "device  index   shard shape  replica\n"
        "cpu:0   (0:1,)  [1]          0\n"
        "cpu:1   (0:1,)  [1]          1\n"
        "cpu:2   (1:2,)  [1]          0\n"
        "cpu:3   (1:2,)  [1]          1\n"
        "cpu:4   (2:3,)  [1]          0\n"
        "cpu:5   (2:3,)  [1]          1\n"
        "cpu:6   (3:3,)  [0]          empty\n"
        "cpu:7   (3:3,)  [0]          empty\n");
  CHECK(sharding_table({}, SingleDeviceSharding(Device{2})) ==
        "device  index  shard shape  replica\n"
        "cpu:2   ()     []           0\n");
}

TEST_CASE("pictures: of several processes, which has which devices") {
  std::vector<Device> devices;
  for (int id = 0; id < 8; id++) devices.push_back({id, "cpu", id / 4});
  const Mesh mesh({{4, 2}, devices}, {"x", "y"});
  const std::string picture = render_sharding({8, 8}, NamedSharding(mesh, P("x", "y")));
  CHECK(picture.ends_with("Process 0 has CPU 0-3. Process 1 has CPU 4-7.\n"));
  std::swap(devices[0], devices[5]);
  const Mesh other({{4, 2}, devices}, {"x", "y"});
  CHECK(render_sharding({8, 8}, NamedSharding(other, P("x")))
            .ends_with("Process 0 has CPU 0-3. Process 1 has CPU 4-7.\n"));
  CHECK(render_sharding({8, 8}, grid_4x2(P("x", "y"))).find("Process") == std::string::npos);
  CHECK(sharding_table({4}, NamedSharding(mesh, P("x"))) ==
        "device  index   shard shape  replica  process\n"
        "cpu:0   (0:1,)  [1]          0        0\n"
        "cpu:1   (0:1,)  [1]          1        0\n"
        "cpu:2   (1:2,)  [1]          0        0\n"
        "cpu:3   (1:2,)  [1]          1        0\n"
        "cpu:4   (2:3,)  [1]          0        1\n"
        "cpu:5   (2:3,)  [1]          1        1\n"
        "cpu:6   (3:4,)  [1]          0        1\n"
        "cpu:7   (3:4,)  [1]          1        1\n");
}

TEST_CASE("pictures: colours only on a colour terminal, and no wider than it") {
  const Sharding sharding = grid_4x2(P("x"));
  const std::string plain = render_sharding({8}, sharding);
  const std::string colored = render_sharding({8}, sharding, {.use_color = true});
  CHECK(colored.find("\x1b[38;2;") == 0);
  if (const int terminal = open_terminal(); terminal >= 0) {
    close(terminal);
  } else {
    MESSAGE("skipped: this system has no pseudo-terminals");
    return;
  }
  const Variables kept({"TERM", "COLORTERM", "NO_COLOR", "COLUMNS"});
  setenv("TERM", "xterm", 1);
  setenv("COLORTERM", "truecolor", 1);
  CHECK(printed(false, {8}, sharding) == plain);
  CHECK(printed(true, {8}, sharding) == colored);
  CHECK(printed(true, {8, 64}, sharding, 40) ==
        render_sharding({8, 64}, sharding, {.use_color = true, .max_width = 40}));
  CHECK(printed(true, {8, 64}, sharding, 200) == render_sharding({8, 64}, sharding, {.use_color = true}));
  setenv("NO_COLOR", "", 1);  // no-color.org: set, and not empty
  CHECK(printed(true, {8}, sharding) == colored);
  setenv("NO_COLOR", "1", 1);
  CHECK(printed(true, {8}, sharding) == plain);
  unsetenv("NO_COLOR");
  unsetenv("COLORTERM");
  for (const char* term : {"dumb", "vt100", "linux", "xterm"}) {
    setenv("TERM", term, 1);
    CHECK(printed(true, {8}, sharding) == plain);
  }
  setenv("TERM", "xterm-direct", 1);
  CHECK(printed(true, {8}, sharding) == colored);
  setenv("TERM", "xterm-256color", 1);
  const std::string of_palette = printed(true, {8}, sharding);
  // 0x393b79 is nearest to (1, 1, 2) of the cube, levels 95 and 135.
  CHECK(of_palette.starts_with("\x1b[38;5;231;48;5;60m"));
  CHECK(without_colors(of_palette) == without_colors(colored));
  setenv("COLUMNS", "40", 1);  // where no terminal says how wide it is
  CHECK(printed(false, {8, 64}, sharding) == render_sharding({8, 64}, sharding, {.max_width = 40}));
  CHECK(without_colors(printed(true, {8, 64}, sharding, 60)) ==
        without_colors(render_sharding({8, 64}, sharding, {.use_color = true, .max_width = 60})));
  for (const char* columns : {"", "0", "-3", "forty"}) {
    setenv("COLUMNS", columns, 1);
    CHECK(printed(false, {8, 64}, sharding) == render_sharding({8, 64}, sharding));
  }
}

TEST_CASE("pictures: letters are broken nowhere, and take the columns that they have") {
  const std::string name = "列列列列列列列列列列";  // 3 bytes and 2 columns each
  const Mesh mesh = make_mesh({{"é" + name, 8}});
  const Sharding sum = NamedSharding(mesh, P(unreduced("é" + name)));
  for (const int width : {20, 21, 22, 30}) {
    const std::string picture = render_sharding({4}, sum, {.max_width = width});
    CAPTURE(picture);
    std::size_t letters = 0;
    std::istringstream lines(picture);
    for (std::string line; std::getline(lines, line);) {
      std::size_t columns = 0;
      for (std::size_t k = 0; k < line.size(); columns++) {
        const auto first = static_cast<unsigned char>(line[k]);
        const std::size_t bytes = first < 0x80 ? 1 : first < 0xe0 ? 2 : 3;
        REQUIRE((first < 0x80 || first >= 0xc2));  // no letter begins within one
        REQUIRE(k + bytes <= line.size());
        if (line.compare(k, bytes, "列") == 0) letters++, columns++;
        k += bytes;
      }
      CHECK(columns <= static_cast<std::size_t>(width));
    }
    CHECK(letters == 10);
  }
}

}  // namespace pictures_test
