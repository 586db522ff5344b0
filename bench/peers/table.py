"""The table of `./dev bench peers`, and the same as JSON."""

import statistics
from dataclasses import dataclass, field

from environment import NAMES

MORE = ("torch",)  # peers with several variants of a work; the fastest one is shown


@dataclass
class Peer:
    """A peer's share of a figure."""

    times: list  # seconds, one entry a round
    spread: float | None = None
    variant: str = ""
    aim: float = 0  # the ratio aimed at

    def time(self):
        return statistics.median(self.times)


@dataclass
class Figure:
    title: str
    ours: list  # seconds, one entry a round
    spread: float | None = None
    peers: dict = field(default_factory=dict)  # name -> Peer, of those that have the row
    seconds_aim: float = 0

    def value(self):
        return statistics.median(self.ours)

    def ratio(self, peer):
        return statistics.median(a / b for a, b in zip(self.ours, self.peers[peer].times))

    def met_beside(self, peer):
        aim = self.peers[peer].aim
        return self.ratio(peer) <= aim if aim else None

    def aim(self, named=False):
        """named: the ratios say of whom they are."""
        texts = [
            f"<= {p.aim:.3g}x{' ' + NAMES[name] if named else ''}" for name, p in self.peers.items() if p.aim
        ]
        if self.seconds_aim:
            texts.append(f"<= {time_text(self.seconds_aim)}")
        return ", ".join(texts)

    def met(self):
        """All its aims; None without one."""
        each = [met for name in self.peers if (met := self.met_beside(name)) is not None]
        if self.seconds_aim:
            each.append(self.value() <= self.seconds_aim)
        return all(each) if each else None


def time_text(seconds):
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1, 1e3, "ms")):
        if seconds < limit:
            return (
                f"{seconds * factor:.3g} {unit}"
                if seconds * factor < 999.5
                else f"{seconds * factor:.0f} {unit}"
            )
    return f"{seconds:.3g} s"


def percent(spread):
    return "" if spread is None else f"{100 * spread:.1f}"


class Table:
    """Columns for the library and each peer; a dash where a peer has not the row."""

    def __init__(self, peers, width):
        self.peers, self.width = peers, width

    def note(self, title, text):
        return f"{title:<{self.width}}  {text}"

    def line(self, title, ours, spread, cells, aim, met):
        """cells: peer -> time, spread, ratio, variant."""
        columns = [f"{ours:>8} {spread:>5}"]
        for peer in self.peers:
            time, peer_spread, ratio, variant = cells.get(peer, ("-", "", "-", ""))
            columns.append(
                f"{time:>8} {peer_spread:>5}  {ratio:>8}" + (f" {variant:<8}" if peer in MORE else "")
            )
        return self.note(title, "  ".join([*columns, f"{aim:<11} {met}"])).rstrip()

    def header(self):
        cells = {p: (NAMES[p], "+-%", "ratio", "as") for p in self.peers}
        return self.line("row", "ours", "+-%", cells, "aim", "")

    def figure(self, f):
        cells = {
            name: (time_text(p.time()), percent(p.spread), f"{f.ratio(name):.3g}x", p.variant)
            for name, p in f.peers.items()
        }
        met = {True: "met", False: "MISSED", None: ""}[f.met()]
        aim = f.aim(named=len(self.peers) > 1)
        return self.line(f.title, time_text(f.value()), percent(f.spread), cells, aim, met)


def as_json(f, peers):
    """floor, ratio: of the first of the peers."""
    each = {
        name: {
            "value": p.time(),
            "ratio": f.ratio(name),
            "variant": p.variant or None,
            "aim": p.aim or None,
            "met": f.met_beside(name),
        }
        for name, p in f.peers.items()
    }
    first = each.get(peers[0])
    return {
        "name": f.title.strip(),
        "value": f.value(),
        "unit": "s",
        "floor": first and first["value"],
        "ratio": first and first["ratio"],
        "aim": f.aim() or None,
        "met": f.met(),
        "peers": {name: each.get(name) for name in peers},
    }
