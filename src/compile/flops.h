// The arithmetic of a step.
#pragma once
#include <vector>

#include "compile/passes.h"

namespace shardarray {

/// Adds the floating-point operations of each of the step's items to its device. A product of m x k by k x n has 2 m n k, a sum of n
/// numbers n - 1, an FFT of n numbers 5 n log2 n (https://www.fftw.org/speed), half of that if they are real; factorizations and solves
/// have their leading term (Golub and Van Loan, Matrix Computations); sorts and moves have none. Library calls on complex numbers have four
/// times as many. `kernel`: of a loop.
void add_flops(const Step& step, const GroupKernel& kernel, std::vector<double>& of_device);

}  // namespace shardarray
