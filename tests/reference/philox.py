"""Words that cuRAND's host generator of Philox 4x32-10 prints, to tests/data/philox.json.

Written with cuRAND 10.4 (CUDA 13.0); python3 philox.py PATH_OF_libcurand.so > ../data/philox.json. No GPU is needed.
"""
import ctypes
import json
import sys

curand = ctypes.CDLL(sys.argv[1])
PHILOX4_32_10 = 161


def check(status):
    assert status == 0, status


def words(seed, offset, n):
    generator = ctypes.c_void_p()
    out = (ctypes.c_uint32 * n)()
    check(curand.curandCreateGeneratorHost(ctypes.byref(generator), PHILOX4_32_10))
    check(curand.curandSetPseudoRandomGeneratorSeed(generator, ctypes.c_ulonglong(seed)))
    check(curand.curandSetGeneratorOffset(generator, ctypes.c_ulonglong(offset)))
    check(curand.curandGenerate(generator, out, ctypes.c_size_t(n)))
    check(curand.curandDestroyGenerator(generator))
    return list(out)


version = ctypes.c_int()
check(curand.curandGetVersion(ctypes.byref(version)))
cases = [
    {"seed": seed, "offset": offset, "words": words(seed, offset, 12)}
    for seed in (0, 1, 42, 0xFFFFFFFF, 0x123456789ABCDEF0, 2**63 + 5)
    for offset in (0, 7, 65530, 262138, 262144, 786473, 2**31 - 3, 2**32 - 6, 2**34, 2**50 + 8)
]
json.dump({"note": f"cuRAND {version.value}", "cases": cases}, sys.stdout)
