// bench/matmul_layouts as a program: exit status and messages, output, the Python that it starts.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

#include "../bench/layouts_files.h"
#include "../bench/layouts_jax.h"
#include "../bench/layouts_output.h"
#include "../bench/layouts_process.h"
#include "../bench/layouts_program.h"
#include "bench_layouts.h"
#include "shardarray/shardarray.h"

namespace bench_layouts_test {

namespace {

std::string failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::runtime_error& e) { return e.what(); }
  return "nothing was thrown";
}
std::string content(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
std::string written(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

const std::string full = "(No space left on device). Make room there, or ";

}  // namespace

TEST_CASE("bench layouts: what the program ends with") {
  const char* const path = "/opt/bin/shardarray-matmul-layouts";
  CHECK(run_program(path, [] { return 0; }).status == 0);
  CHECK(run_program(path, [] { return kSlower; }).status == 1);
  CHECK(run_program(path, [] { return 0; }).said.empty());
  const End refused = run_program(path, []() -> int { throw std::invalid_argument("--m: too large."); });
  CHECK(refused.status == 2);
  CHECK(refused.said == "shardarray-matmul-layouts: --m: too large.\n");
  const End absent = run_program(path, [] {
    static_cast<void>(shardarray::machine("nix"));
    return 0;
  });
  CHECK(absent.status == 2);
  CHECK(absent.said.find("'nix' is not known") != std::string::npos);
  CHECK(absent.said.ends_with(".json.\n"));  // no line of the program's own source

  const auto line = [&](std::vector<const char*> words, std::FILE* out = stdout) {
    words.insert(words.begin(), path);
    return run_program(path, [&] {
      LayoutOptions o;
      CLI::App app;
      add_options(app, o);
      return parse(app, static_cast<int>(words.size()), words.data(), out) ? 0 : 77;
    });
  };
  CHECK(line({"--m", "7"}).status == 0);
  for (const std::vector<const char*>& wrong :
       {std::vector{"--what"}, {"--m", "0"}, {"--m"}, {"--markdown", "--json"}, {"m"}})
    CHECK(line(wrong).status == 2);
  CHECK(line({"--m", "0"}).said ==
        "shardarray-matmul-layouts: --m: '0' is no whole number from 1 to 1000000. Write 1024, for example.\n"
        "Run with --help for more information.\n");
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  CHECK(line({"--help"}, out).status == 77);
  std::fclose(out);
  CHECK(std::string(text).find("status 0, with 1 where compare --fail-above finds a slower layout, with 2") !=
        std::string::npos);
  std::free(text);
  const File device(std::fopen("/dev/full", "w"), std::fclose);
  REQUIRE(device);
  CHECK(line({"--help"}, device.get()).status == 2);
}

TEST_CASE("bench layouts: what cannot be written is said") {
  const File device(std::fopen("/dev/full", "w"), std::fclose);
  REQUIRE(device);
  CHECK(failure([&] { write_stdout("x", device.get()); }) ==
        "standard output: it cannot be written " + full + "send it elsewhere.");
  CHECK(failure([] { write_file("--csv", "/dev/full", "x"); }) ==
        "--csv: '/dev/full' cannot be written " + full + "name a file elsewhere.");
  CHECK(failure([] {
          write_file("--csv", "/no/such/file", "x");
        }).starts_with("--csv: '/no/such/file' cannot be written (No such file or directory)."));

  const detail::TemporaryFolder folder;
  LayoutResults x;
  x.product = {parse_mesh("x=2"), 8, 8, 8};
  LayoutRow row;
  row.layout = layout("x.,..,x.", x.product);
  row.math = 1;
  x.rows = {row};
  x.o.json_file = "/dev/full", x.o.csv_file = folder.path() / "table.csv", x.o.markdown_file = "/dev/full";
  const std::string said = failure([&] { write_files(x); });
  CHECK(said.starts_with("--json: '/dev/full' cannot be written "));
  CHECK(said.find("\n--markdown: '/dev/full' cannot be written ") != std::string::npos);
  const std::string csv = content(x.o.csv_file);
  CHECK(csv.starts_with("a,b,v,c,picked,"));
  CHECK(csv.find("\n\"x.\",\"..\",,\"x.\",false,") != std::string::npos);

  int runs = 0;
  CHECK(failure([&] {
          run_all({[&] { runs++; }, [] { throw std::runtime_error("first"); }, [&] { runs++; },
                   [] { throw std::invalid_argument("second"); }});
        }) == "first\nsecond");
  CHECK(runs == 2);
}

TEST_CASE("bench layouts: files are tried before the run, and none is left by a wrong line") {
  const detail::TemporaryFolder folder;
  const std::string file = folder.path() / "z.json", old = written(folder.path() / "old.json", "old");
  CHECK(refusal("--mesh q --json " + file).starts_with("--mesh q: 'q' is no axis with a size."));
  CHECK_FALSE(std::filesystem::exists(file));
  CHECK(parsed("--json " + file).json_file == file);
  CHECK(parsed("--json " + old).json_file == old);
  CHECK(content(old) == "old");
  CHECK(refusal("--csv " + old + "/x").find("cannot be written (Not a directory)") != std::string::npos);
  if (geteuid() != 0) {
    chmod(old.c_str(), S_IRUSR);
    CHECK(refusal("--csv " + old).find("cannot be written (Permission denied)") != std::string::npos);
  }
  CHECK(refusal("--markdown --json") ==
        "--markdown: '--json' is an option. Name a file, or write ./--json if that is its name.");
}

TEST_CASE("bench layouts: lines are as long as the terminal's, and no shorter than usual") {
  const File none(std::fopen("/dev/null", "w"), std::fclose);
  CHECK(line_width(none.get()) == 112);
  const int keeper = posix_openpt(O_RDWR | O_NOCTTY);
  if (keeper < 0 || grantpt(keeper) != 0 || unlockpt(keeper) != 0) return;  // no terminals here
  const File terminal(std::fopen(ptsname(keeper), "r+"), std::fclose);
  REQUIRE(terminal);
  for (const auto& [columns, width] : {std::pair{80, 112}, {150, 150}}) {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    REQUIRE(ioctl(fileno(terminal.get()), TIOCSWINSZ, &size) == 0);
    CHECK(line_width(terminal.get()) == static_cast<std::size_t>(width));
  }
  close(keeper);
}

// Scripts in place of a Python: they get -B, the script, the file with the request and the one for the times.
TEST_CASE("bench layouts: the Python of JAX is tried before the run, and started without a shell") {
  const detail::TemporaryFolder folder;
  const auto program = [&](const std::string& name, const std::string& lines) {
    const std::string path = written(folder.path() / name, "#!/bin/sh\n" + lines + "\n");
    chmod(path.c_str(), S_IRWXU);
    return path;
  };
  const std::string script = written(folder.path() / "script.py", "");
  const std::string advice = ". It needs a Python that imports jax.";
  CHECK(run_process({program("good", "exit 0")}).empty());
  CHECK(run_process({program("bad", "exit 3")}) == "it ended with status 3");
  CHECK(run_process({program("killed", "kill -9 $$")}) == "signal 9 ended it (Killed)");
  CHECK(run_process({"/no/such/program"}) == "it cannot be started (No such file or directory)");

  CHECK_NOTHROW(check_jax(program("imports", "test \"$*\" = '-B -c import jax'"), script));
  const std::string lacks = program("lacks", "exit 1"), mark = folder.path() / "mark",
                    shell = "no'; touch " + mark + "; '";
  CHECK(failure([&] { check_jax(lacks, script); }) ==
        "--jax " + lacks + ": asked to import jax, it ended with status 1" + advice);
  CHECK(failure([&] { check_jax(shell, script); }) ==
        "--jax " + shell + ": asked to import jax, it cannot be started (No such file or directory)" +
            advice);
  CHECK_FALSE(std::filesystem::exists(mark));
  CHECK(failure([&] { check_jax(lacks, "/no/such/script"); }) ==
        "--jax " + lacks + ": /no/such/script is not there: it comes with the sources" + advice);

  LayoutResults x;
  x.product = {parse_mesh("x=2"), 8, 8, 8};
  LayoutRow row;
  row.name = "p";
  x.rows = {row, row};
  x.rows[1].name = "q";
  x.o.jax = program("it's a Python",
                    "grep -q '\"name\":\"q\"' \"$3\" && printf '{\"p\": 0.25, \"other\": 1}' > \"$4\"; "
                    "printf %s \"$3\" > '" +
                        mark + "'");
  add_jax(x, script);
  CHECK(x.rows[0].jax == 0.25);
  CHECK(x.rows[1].jax == 0);  // as one that JAX refused
  const std::filesystem::path asked = content(mark);
  CHECK(asked.parent_path().parent_path() == std::filesystem::temp_directory_path());
  CHECK_FALSE(std::filesystem::exists(asked.parent_path()));
  x.o.jax = program("fails", "exit 7");
  CHECK(failure([&] { add_jax(x, script); }) ==
        "--jax " + x.o.jax + ": running " + script + ", it ended with status 7" + advice);
  x.o.jax = program("silent", "exit 0");
  CHECK(failure([&] { add_jax(x, script); }) ==
        "--jax " + x.o.jax + ": " + script + " has written no times" + advice);
}

}  // namespace bench_layouts_test
