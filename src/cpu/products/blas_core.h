// Which of OpenBLAS's kernels run here. It reads the choice when it is loaded, so that it must be known before.
#pragma once
#include <string>

namespace shardarray {

/// `AMD EPYC 7J13 64-Core Processor`, as the system names it; "CPU" where it does not say.
std::string cpu_model();
/// Where `./dev bench calibrate` keeps the core type that won on this machine; empty: there is no such folder.
std::string blas_core_file();
/// The core type for OPENBLAS_CORETYPE: the calibrated one, else "SkylakeX" on Intel's CPUs with AVX-512 (1.9 times Haswell's
/// rate on Emerald Rapids, as are the newer ones; its small products have kernels, hence bits, of their own), else "Haswell"
/// where AVX2 and FMA are (on Zen 4, whose 512-bit operations take two turns, 8 % faster than the library's own choice; on Zen 5
/// "SkylakeX" factorises large matrices in 0.7 of the time and small ones in 1.5 times it: calibration decides), else empty.
std::string blas_core_type();
/// Keeps `type` for this machine. False: the file cannot be written, or others can change what stands in its folder.
bool keep_blas_core_type(const std::string& type);

}  // namespace shardarray
