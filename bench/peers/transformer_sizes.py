"""Of the transformer of a width, for all Python sides."""

from dataclasses import dataclass


@dataclass
class Sizes:
    width: int
    batch: int = 8
    layers: int = 2
    head_width: int = 32
    length: int = 64
    vocabulary: int = 256

    @property
    def heads(self):
        return self.width // self.head_width


def sizes_of(width):
    if width:
        return Sizes(width, layers=4, head_width=64, length=512, vocabulary=8192)
    return Sizes(128)
