"""JAX's random numbers in numpy, for sides without JAX: threefry2x32 over 64-bit counters, and what is made of its
words."""

import numpy as np

CHUNK = 1 << 15  # words made at a time: they stay in the cache
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry(key, high, low):
    """Two words for each counter."""
    keys = np.array([key[0], key[1], key[0] ^ key[1] ^ 0x1BD11BDA], np.uint32)
    a, b = high + keys[0], low + keys[1]
    for k in range(5):
        for rotation in ROTATIONS[k % 2]:
            a += b
            b = (b << np.uint32(rotation)) | (b >> np.uint32(32 - rotation))
            b ^= a
        a += keys[(k + 1) % 3]
        b += keys[(k + 2) % 3] + np.uint32(k + 1)
    return a, b


def key_of(seed):
    return (seed >> 32, seed & 0xFFFFFFFF)


def counters(start, end):
    count = np.arange(start, end, dtype=np.uint64)
    return (count >> np.uint64(32)).astype(np.uint32), count.astype(np.uint32)


def split(key, n=2):
    return [(int(a), int(b)) for a, b in zip(*threefry(key, *counters(0, n)))]


def bits(key, shape):
    words = np.empty(int(np.prod(shape)), np.uint32)
    for start in range(0, words.size, CHUNK):
        end = min(start + CHUNK, words.size)
        a, b = threefry(key, *counters(start, end))
        words[start:end] = a ^ b
    return words.reshape(shape)


def uniform(key, shape, low=0.0, high=1.0):
    """float32 in [low, high)."""
    low, high = np.float32(low), np.float32(high)
    mantissa = (bits(key, shape) >> np.uint32(9)) | np.uint32(0x3F800000)
    return np.maximum((mantissa.view(np.float32) - np.float32(1)) * (high - low) + low, low)


def between_minus_one_and_one(key, shape):
    """What the inverse error function makes normal numbers of, times the root of 2."""
    return uniform(key, shape, np.nextafter(np.float32(-1), np.float32(0)), 1)


def integers(key, shape, below):
    """int64 in [0, below), a power of two of at most 2^16: of these JAX takes the low bits of the second key's words."""
    assert below & (below - 1) == 0 and below <= 1 << 16
    return (bits(split(key)[1], shape) & np.uint32(below - 1)).astype(np.int64)
