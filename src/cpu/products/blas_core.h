// Selects OpenBLAS's kernels. OpenBLAS reads the choice when it is loaded, so it must be known before.
#pragma once
#include <string>

namespace shardarray {

/// `AMD EPYC 7J13 64-Core Processor`, as the system reports it; "CPU" if it does not.
std::string cpu_model();
/// Where `./dev bench calibrate` stores the fastest core type of this machine; empty: there is no such folder.
std::string blas_core_file();
/// The core type for OPENBLAS_CORETYPE: the calibrated one, else "SkylakeX" on Intel CPUs with AVX-512 (1.9 times Haswell's rate on Emerald
/// Rapids, like newer ones; its small products have their own kernels, hence other bits), else "Haswell" with AVX2 and FMA (on Zen 4, whose
/// 512-bit operations take two cycles, 8 % faster than the library's own choice; on Zen 5 "SkylakeX" factorizes large matrices in 0.7 of
/// the time and small ones in 1.5 times it: calibration decides), else empty.
std::string blas_core_type();
/// Stores `type` for this machine. False: the file cannot be written, or others can change the folder's content.
bool keep_blas_core_type(const std::string& type);

}  // namespace shardarray
