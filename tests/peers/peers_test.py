"""What can be tested of bench/peers without JAX and torch: options, the table, JSON, variants, runs on stand-ins."""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
BENCH = TESTS.parent.parent / "bench"
sys.path.insert(0, str(BENCH / "peers"))

import environment  # noqa: E402
import rows  # noqa: E402
import run  # noqa: E402
from table import Figure, Peer, Table, as_json, time_text  # noqa: E402


def result(seconds, value=1.0, name="", variant=""):
    return {"name": name, "variant": variant, "first": seconds, "check": [[value]], "samples": [seconds] * 3}


def clean_environment():
    """Without what the bench sets."""
    return {k: v for k, v in os.environ.items() if k.split("_")[0] not in ("SHARDARRAY", "JAX", "XLA")}


def option(call, name):
    return call["arguments"][call["arguments"].index(name) + 1]


class Options(unittest.TestCase):
    def test_peers_come_in_the_order_in_which_they_are_named_and_once(self):
        self.assertEqual(environment.peers_named("jax"), ["jax"])
        self.assertEqual(environment.peers_named("torch, jax,torch"), ["torch", "jax"])

    def test_another_peer_is_refused_with_advice(self):
        for text, name in (("jax,tensorflow", "tensorflow"), ("", ""), ("jax,", "")):
            with self.assertRaises(ValueError) as e:
                environment.peers_named(text)
            self.assertEqual(
                str(e.exception),
                f"peers: there is no peer '{name}'. The peers are jax and torch. "
                "Name some of them with commas between: --peers jax,torch",
            )


class Tables(unittest.TestCase):
    def test_times(self):
        for seconds, text in (
            (5e-9, "5 ns"),
            (9.996e-7, "1000 ns"),
            (1.234e-5, "12.3 us"),
            (0.5, "500 ms"),
            (12.34, "12.3 s"),
        ):
            self.assertEqual(time_text(seconds), text)

    def test_one_peer(self):
        table = Table(["jax"], 12)
        self.assertEqual(table.header(), "row               ours   +-%       JAX   +-%     ratio  aim")
        f = Figure("gelu 1e5", [1e-3, 2e-3, 3e-3], 0.01, {"jax": Peer([4e-3, 4e-3, 4e-3], 0.02, "", 0.7)})
        self.assertEqual(
            table.figure(f), "gelu 1e5          2 ms   1.0      4 ms   2.0      0.5x  <= 0.7x     met"
        )
        f.peers["jax"].aim = 0.4
        self.assertEqual(
            table.figure(f), "gelu 1e5          2 ms   1.0      4 ms   2.0      0.5x  <= 0.4x     MISSED"
        )

    def test_two_peers_and_one_that_has_not_the_row(self):
        table = Table(["jax", "torch"], 12)
        self.assertEqual(
            table.header(),
            "row               ours   +-%       JAX   +-%     ratio     torch   +-%     ratio as        aim",
        )
        peers = {"jax": Peer([4e-3], 0.02, "", 0.7), "torch": Peer([1e-3], 0.03, "compiled", 1)}
        self.assertEqual(
            table.figure(Figure("gelu 1e5", [2e-3], 0.01, peers)),
            "gelu 1e5          2 ms   1.0      4 ms   2.0      0.5x      1 ms   3.0        2x compiled"
            "  <= 0.7x JAX, <= 1x torch MISSED",
        )
        self.assertEqual(
            table.figure(Figure("layouts", [2e-3], None, {"jax": Peer([4e-3])})),
            "layouts           2 ms            4 ms            0.5x         -               -",
        )

    def test_aims(self):
        peers = {"jax": Peer([2.0], aim=0.5), "torch": Peer([1.0])}
        self.assertEqual(
            (Figure("", [1.0], None, peers).aim(), Figure("", [1.0], None, peers).met()), ("<= 0.5x", True)
        )
        self.assertIs(Figure("", [1.1], None, peers).met(), False)
        self.assertIs(Figure("", [1.1], None, {"torch": Peer([1.0])}).met(), None)
        self.assertIs(Figure("", [1.1], seconds_aim=1).met(), False)
        self.assertEqual(Figure("", [1.1], seconds_aim=1e-3).aim(), "<= 1 ms")

    def test_ratios_are_those_of_the_rounds(self):
        f = Figure("", [1.0, 8.0, 3.0], None, {"jax": Peer([1.0, 2.0, 10.0])})
        self.assertEqual((f.ratio("jax"), f.value(), f.peers["jax"].time()), (1.0, 3.0, 2.0))

    def test_json(self):
        f = Figure("  x.", [1.0], None, {"torch": Peer([2.0], None, "eager", 0.4)})
        torch = {"value": 2.0, "ratio": 0.5, "variant": "eager", "aim": 0.4, "met": False}
        common = {"name": "x.", "value": 1.0, "unit": "s", "aim": "<= 0.4x", "met": False}
        self.assertEqual(
            as_json(f, ["torch", "jax"]),
            {**common, "floor": 2.0, "ratio": 0.5, "peers": {"torch": torch, "jax": None}},
        )
        self.assertEqual(
            as_json(f, ["jax", "torch"]),
            {**common, "floor": None, "ratio": None, "peers": {"jax": None, "torch": torch}},
        )


class Figures(unittest.TestCase):
    def test_the_faster_variant_over_all_rounds_is_taken(self):
        runs = [
            [result(3, variant="eager"), result(4, variant="compiled")],
            [result(5, variant="eager"), result(4, variant="compiled")],
            [result(5, variant="eager"), result(4, variant="compiled")],
        ]
        self.assertEqual(run.fastest(run.by_part(runs)[""], cold=False), ("compiled", [4, 4, 4], 0))

    def test_a_variant_that_did_not_run_every_time_is_left_out(self):
        runs = [[result(3, variant="eager"), result(1, variant="compiled")], [result(5, variant="eager")]]
        self.assertEqual(run.fastest(run.by_part(runs)[""], cold=False)[:2], ("eager", [3, 5]))

    def test_parts_have_their_sum_before_them(self):
        sides = {
            "ours": run.by_part([[result(1, name="a"), result(2, name="b")]]),
            "jax": run.by_part([[result(4, name="a"), result(1, name="b")]]),
        }
        figures = run.figures_of(rows.Row("both", "layouts", ratio=0.5, part_ratio=1), sides)
        self.assertEqual([f.title for f in figures], ["both", "  a", "  b"])
        self.assertEqual([f.ratio("jax") for f in figures], [0.6, 0.25, 2])
        self.assertEqual([f.met() for f in figures], [False, True, False])

    def test_values_are_compared_on_the_scale_of_their_group(self):
        self.assertTrue(run.same([[100.0, 1e-4]], [[100.0, 1.9e-3]], 2e-5))
        self.assertFalse(run.same([[100.0, 1e-4]], [[100.0, 2.2e-3]], 2e-5))
        self.assertFalse(run.same([[100.0], [1e-4]], [[100.0], [1.9e-3]], 2e-5))
        self.assertFalse(run.same([[1.0]], [[1.0, 1.0]], 1))


class Rows(unittest.TestCase):
    def keys(self, *files):
        """Of the dictionaries ROWS."""
        found = set()
        for file in files:
            for node in ast.parse((BENCH / "peers" / file).read_text()).body:
                if isinstance(node, ast.Assign) and node.targets[0].id == "ROWS":
                    found |= {key.value for key in node.value.keys}
        return found

    def test_every_side_has_its_rows(self):
        every = rows.ROWS + rows.CUDA_ROWS
        text = (BENCH / "peers.cpp").read_text()
        self.assertLessEqual({r.row for r in every}, set(re.findall(r'\{"(\w+)", peers::', text)))
        self.assertLessEqual(
            {r.jax_row or r.row for r in every}, self.keys("jax_arrays.py", "jax_training.py")
        )
        self.assertEqual(set(rows.TORCH_ROWS), self.keys("torch_arrays.py", "torch_training.py"))

    def test_torch_has_rows_of_one_device(self):
        titles = {r.title for r in rows.ROWS if r.peers(["torch"])}
        self.assertTrue({"matmul 64^3", "sort 1e6", "dispatch, eager", "transformer step"} <= titles)
        self.assertFalse([t for t in titles if re.search("device|cold|layouts|reduce|random", t)])
        self.assertEqual([r.title for r in rows.ROWS if not r.peers(["jax"])], [])


class Runs(unittest.TestCase):
    def run_bench(
        self, sides, *arguments, named=True, packages=("jax", "equinox", "optax", "numpy", "torch")
    ):
        said = {"packages": {p: "1.0" for p in packages}, "device": "A GPU", "sides": sides}
        with tempfile.TemporaryDirectory() as folder:
            calls = Path(folder) / "calls"
            calls.touch()
            said["calls"] = str(calls)
            side = Path(folder) / "side"
            side.write_text(f'#!/bin/sh\nexec {sys.executable} {TESTS / "side_stand_in.py"} "$@"\n')
            side.chmod(0o755)
            file = Path(folder) / "json"
            python = ["--python", side] if named else []
            done = subprocess.run(
                [sys.executable, "-B", BENCH / "peers" / "run.py", side, "--json", file, *python, *arguments],
                capture_output=True,
                text=True,
                env={**clean_environment(), "STAND_IN": json.dumps(said)},
            )
            written = json.loads(file.read_text()) if file.exists() else None
            self.calls = [json.loads(line) for line in calls.read_text().splitlines()]
        return done, done.stdout.splitlines(), written

    sides = {
        "ours": [result(2e-3)],
        "jax": [result(4e-3)],
        "torch": [result(2e-3, variant="eager"), result(1e-3, variant="compiled")],
    }

    def test_jax_is_the_peer_that_is_not_named(self):
        done, lines, written = self.run_bench(self.sides, "--rows", "gelu 1e5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(lines[0].startswith("jax 1.0, equinox 1.0, optax 1.0, numpy 1.0 on "))
        self.assertEqual(lines[1].split(), ["row", "ours", "+-%", "JAX", "+-%", "ratio", "aim"])
        self.assertEqual(
            lines[2][8:].split(), ["2", "ms", "0.0", "4", "ms", "0.0", "0.5x", "<=", "0.7x", "met"]
        )
        self.assertEqual(written[-1]["peers"]["jax"]["aim"], 0.7)

    def test_two_peers(self):
        done, lines, written = self.run_bench(
            self.sides, "--peers", "jax,torch", "--rows", "softmax 4096,random bits"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(lines[0].startswith("jax 1.0, equinox 1.0, optax 1.0, numpy 1.0, torch 1.0 on "))
        self.assertEqual(
            lines[2][19:].split(),
            "2 ms 0.0 4 ms 0.0 0.5x 1 ms 0.0 2x compiled <= 0.35x JAX MISSED".split(),
        )
        self.assertEqual(lines[3][15:].split(), "2 ms 0.0 4 ms 0.0 0.5x - - <= 0.125x JAX MISSED".split())
        self.assertEqual(lines[4], "2 figures, 2 missed their aim, 0 rows failed")
        self.assertEqual(written[0]["peers"]["torch"]["variant"], "compiled")
        self.assertEqual([f["peers"]["torch"] for f in written[1:]], [None])

    def test_torch_alone_needs_no_jax(self):
        done, lines, _ = self.run_bench(
            self.sides, "--peers", "torch", "--rows", "adam,pmap", packages=("torch", "numpy")
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines[2][27:].split(), "2 ms 0.0 - - <= 3 us MISSED".split())
        self.assertEqual(lines[3][17:].split(), "2 ms 0.0 1 ms 0.0 2x compiled".split())

    def test_a_row_fails_whose_values_differ_on_any_side(self):
        for variant in ("eager", "compiled"):
            torch = [result(1e-3, 1.1 if v == variant else 1.0, variant=v) for v in ("eager", "compiled")]
            done, lines, _ = self.run_bench(
                {**self.sides, "torch": torch}, "--peers", "torch", "--rows", "gelu 1e5"
            )
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"FAILED: values differ: [[1.0]] and torch {variant} [[1.1]]", lines[2])

    def test_a_row_fails_whose_side_does(self):
        done, lines, _ = self.run_bench(
            {**self.sides, "torch": "no such thing"}, "--peers", "torch", "--rows", "gelu 1e5"
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED: torch: no such thing", lines[2])

    def test_rows_that_need_packages_are_skipped(self):
        done, lines, _ = self.run_bench(self.sides, "--rows", "adam", packages=("jax", "numpy"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(lines[2], "^adam 1e7, donated +SKIPPED: .* has no equinox and no optax$")

    def calls_of(self, side):
        return [c for c in self.calls if c["side"] == side]

    def test_on_gpus_both_sides_are_told_so(self):
        done, lines, _ = self.run_bench(self.sides, "--platform", "cuda", "--rounds", "1", "--rows", "seed step")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(lines[0], "numpy 1.0 on A GPU, ")
        seeds = [r for r in rows.CUDA_ROWS if "seed step" in r.title]
        self.assertEqual(len(lines), 2 + len(seeds) + 1)
        ours, jax = self.calls_of("ours"), self.calls_of("jax")
        self.assertEqual((len(ours), len(jax)), (len(seeds), len(seeds)))
        for row, mine, theirs in zip(seeds, ours, jax):
            expected = {
                "SHARDARRAY_PLATFORM": "cuda",
                "SHARDARRAY_CACHE_DIR": "",
                "SHARDARRAY_CUDA_LOGICAL_DEVICES": str(row.devices),
                **({} if row.cold else {"SHARDARRAY_CODEGEN": "always"}),
            }
            self.assertEqual(mine["variables"], expected, row.title)
            self.assertEqual("--cold" in mine["arguments"], row.cold)
            # JAX would else take most of the memory; its one GPU does the work of all devices.
            self.assertEqual(
                theirs["variables"],
                {
                    "JAX_PLATFORMS": "cuda",
                    "JAX_TRACEBACK_FILTERING": "off",
                    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
                },
            )
            self.assertEqual(theirs["arguments"][2], row.jax_row or row.row)
            for side in (mine, theirs):
                self.assertEqual(option(side, "--size"), str(row.size), row.title)
        self.assertEqual(self.calls_of("device")[0]["variables"]["XLA_PYTHON_CLIENT_PREALLOCATE"], "false")

    def test_jax_may_be_on_another_platform(self):
        done, lines, _ = self.run_bench(
            self.sides, "--platform", "cuda", "--jax-platform", "cpu", "--rounds", "1", "--rows", "gelu 1e6"
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("A GPU", lines[0])
        self.assertEqual(self.calls_of("ours")[0]["variables"]["SHARDARRAY_PLATFORM"], "cuda")
        self.assertEqual(
            self.calls_of("jax")[0]["variables"], {"JAX_PLATFORMS": "cpu", "JAX_TRACEBACK_FILTERING": "off"}
        )

    def test_on_the_cpu_both_sides_have_the_devices_of_the_row(self):
        done, _, _ = self.run_bench(self.sides, "--rounds", "1", "--rows", "seed step")
        self.assertEqual(done.returncode, 0, done.stderr)
        for row, mine, theirs in zip(
            [r for r in rows.ROWS if "seed step" in r.title], self.calls_of("ours"), self.calls_of("jax")
        ):
            self.assertEqual(
                mine["variables"],
                {
                    "SHARDARRAY_PLATFORM": "cpu",
                    "SHARDARRAY_CACHE_DIR": "",
                    "SHARDARRAY_CPU_DEVICES": str(row.devices),
                },
            )
            self.assertEqual(
                theirs["variables"],
                {
                    "JAX_PLATFORMS": "cpu",
                    "JAX_TRACEBACK_FILTERING": "off",
                    "XLA_FLAGS": f"--xla_force_host_platform_device_count={row.devices}",
                },
            )

    def test_the_load_beside_a_row_ends_with_it(self):
        self.assertTrue([r for r in rows.ROWS if r.busy])
        with run.load(2) as started:
            self.assertEqual([p.poll() for p in started], [None, None])
        self.assertEqual([p.poll() for p in started], [-9, -9])

    def test_precisions_are_rows_of_their_own(self):
        # What rounding to TF32 explains is an error of float32.
        sides = {**self.sides, "jax": [result(4e-3, 1.001)]}
        done, lines, written = self.run_bench(
            sides, "--platform", "cuda", "--rounds", "1", "--rows", "matmul 256"
        )
        self.assertEqual(done.returncode, 1)
        for side in ("ours", "jax"):
            self.assertEqual(
                [option(c, "--precision") for c in self.calls_of(side)], ["f32", "tf32", "bf16"]
            )
        self.assertRegex(lines[2], r"^matmul 256\^3, f32 +FAILED: values differ: ")
        self.assertEqual([f["name"] for f in written], ["matmul 256^3, tf32", "matmul 256^3, bf16"])

    def test_large_steps_of_equal_precision_and_the_document_s_step_have_aims(self):
        done, _, written = self.run_bench(
            {**self.sides, "jax": [result(3e-3)]},
            "--platform",
            "cuda",
            "--rounds",
            "1",
            "--rows",
            "4096 step,width 1024,seed step",
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        aims = {f["name"]: (f["aim"], f["met"]) for f in written}
        for row in ("MLP 8 x 4096 step, batch 2048, SGD", "transformer step, width 1024, 8 x 512 words"):
            for precision in ("f32", "tf32"):
                self.assertEqual(aims[f"{row}, {precision}"], ("<= 1x", True))
        for devices in ("8 devices", "1 device"):
            self.assertEqual(aims[f"seed step, {devices}"], ("<= 0.25x", False))
            self.assertEqual(aims[f"seed step, {devices}, filter_jit"], ("<= 0.1x", False))
        self.assertEqual(aims["seed step, 8 devices, as a graph"], ("<= 0.5x", False))

    def test_refusals(self):
        done, lines, _ = self.run_bench(self.sides, "--peers", "numpy")
        self.assertEqual((done.returncode, lines), (1, []))
        self.assertIn("peers: there is no peer 'numpy'. The peers are jax and torch.", done.stderr)
        done, lines, _ = self.run_bench(self.sides, "--peers", "jax,torch", packages=("jax", "numpy"))
        self.assertEqual((done.returncode, lines), (1, []))
        self.assertRegex(
            done.stderr, "^peers: .* has no torch. The rows are compared with torch. Name another Python.\n$"
        )


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=0)
    bad = len(program.result.failures) + len(program.result.errors)
    print(f"{program.result.testsRun - bad} passed, {bad} failed")
    sys.exit(bad > 0)
