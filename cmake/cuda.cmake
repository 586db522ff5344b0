# The CUDA backend: a plug-in, opened when a program asks for CUDA devices. It does not link the core library, and links CUDA's runtime
# statically: it can be opened without a driver, and reports that.

set(SHARDARRAY_CUDA AUTO CACHE STRING "Build the CUDA plug-in: ON, OFF, or AUTO: where its toolkit is found")
set_property(CACHE SHARDARRAY_CUDA PROPERTY STRINGS AUTO ON OFF)

file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cuda/*.cpp)
set(cuda_own ${cuda_sources})  # in the real plug-in; the tests' one replaces them
list(FILTER cuda_own INCLUDE REGEX "/(cublaslt_header|driver|kernel_image|libraries|nccl_header|one_kernel_limits)\\.cpp$")
set(cuda_host_kernels ${PROJECT_SOURCE_DIR}/src/cuda/host_kernels.cpp)
list(REMOVE_ITEM cuda_sources ${cuda_own} ${cuda_host_kernels})
set(cuda_launches ${cuda_sources})  # pure functions of programs, which tests call too
list(FILTER cuda_launches EXCLUDE REGEX "/(backend|branches|communicator|crossing|executable|gpu|gpu_launches|gpu_steps|host_step|launch_graph|plugin|printed_kernels|printed_loops|product_algorithms|product_trial|program_kernel|replay|shared_run)\\.cpp$")
set(cuda_libraries ${PROJECT_SOURCE_DIR}/src/cuda/libraries.cpp ${PROJECT_SOURCE_DIR}/src/cuda/one_kernel_limits.cpp)
# The headers of printed kernels are embedded in the plug-in.
set(printed_headers ${PROJECT_SOURCE_DIR}/src/cuda/printed_headers.cpp)
file(GLOB embedded CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.cuh)
foreach(file include/shardarray/dtype.h src/base/reducer.h src/runtime/functions.inc src/runtime/instruction_bits.h
        src/runtime/kernel.h src/runtime/scalar.h)
  list(APPEND embedded ${PROJECT_SOURCE_DIR}/${file})
endforeach()
set_source_files_properties(${printed_headers} PROPERTIES
  SKIP_UNITY_BUILD_INCLUSION ON OBJECT_DEPENDS "${embedded}"
  COMPILE_DEFINITIONS SHARDARRAY_EMBEDDED_FOLDER="${PROJECT_SOURCE_DIR}")
list(APPEND cuda_sources ${shared_sources})
foreach(file base/descriptor base/device base/env base/host_memory base/private_folder base/shape base/sizes
        runtime/arena runtime/backend runtime/buffer runtime/contraction runtime/half_floats runtime/kernel_builder
        runtime/memory_source runtime/object_cache runtime/step_ranges)
  list(APPEND cuda_sources ${PROJECT_SOURCE_DIR}/src/${file}.cpp)
endforeach()

# Shared by the real plug-in and the tests' one.
set(hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
add_library(shardarray_cuda_objects OBJECT EXCLUDE_FROM_ALL ${cuda_sources})
set_target_properties(shardarray_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON ${hidden})
target_include_directories(shardarray_cuda_objects
  PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src PRIVATE ${generated})
target_compile_options(shardarray_cuda_objects PUBLIC $<$<CONFIG:Release>:-O2>)
target_link_libraries(shardarray_cuda_objects PUBLIC shardarray_options fmt::fmt Threads::Threads)
shardarray_precompile(shardarray_cuda_objects cmake/precompiled.h)

# shardarray_cuda_plugin(TARGET SOURCE...)
function(shardarray_cuda_plugin target)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME shardarray_cuda ${hidden})
  target_link_libraries(${target} PRIVATE shardarray_cuda_objects)
endfunction()

# For tests: the same on a driver in host memory, in its own folder.
if(SHARDARRAY_DEVELOP)
  set(fakes control driver graphs nvrtc cublaslt nccl)
  list(TRANSFORM fakes REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/cuda/fake_\\1.cpp")
  shardarray_cuda_plugin(shardarray_fake_cuda ${cuda_host_kernels} ${fakes})
  target_compile_definitions(shardarray_fake_cuda PRIVATE SHARDARRAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(shardarray_fake_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY fake)
  # Stands in for the driver's library when the default platform is chosen.
  add_library(shardarray_fake_libcuda MODULE ${PROJECT_SOURCE_DIR}/tests/cuda/fake_libcuda.cpp)
  set_target_properties(shardarray_fake_libcuda PROPERTIES
    OUTPUT_NAME cuda SUFFIX .so.1 LIBRARY_OUTPUT_DIRECTORY fake)
  target_link_libraries(shardarray_fake_libcuda PRIVATE shardarray_options)
  add_dependencies(shardarray_fake_cuda shardarray_fake_libcuda)
endif()

if(SHARDARRAY_CUDA STREQUAL "OFF")
  return()
endif()
macro(shardarray_without_cuda reason)  # returns from this file
  if(SHARDARRAY_CUDA STREQUAL "ON")
    message(FATAL_ERROR "${reason}. SHARDARRAY_CUDA=ON needs the toolkit of CUDA 13. "
                        "Name its nvcc in SHARDARRAY_NVCC, or its folder in CUDA_HOME.")
  endif()
  message(STATUS "${reason}: no CUDA devices.")
  return()
endmacro()
find_program(SHARDARRAY_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda PATH_SUFFIXES bin)
if(NOT SHARDARRAY_NVCC)
  shardarray_without_cuda("nvcc not found")
endif()
execute_process(COMMAND ${SHARDARRAY_NVCC} --version OUTPUT_VARIABLE nvcc_says ERROR_QUIET)
if(NOT nvcc_says MATCHES "release ([0-9.]+)" OR CMAKE_MATCH_1 VERSION_LESS 13)
  shardarray_without_cuda("${SHARDARRAY_NVCC} is not of CUDA 13")
endif()

# nvcc may be a wrapper script elsewhere: ask it where its toolkit is.
execute_process(COMMAND ${SHARDARRAY_NVCC} --dryrun -c x.cu ERROR_VARIABLE nvcc_says OUTPUT_QUIET)
string(REGEX MATCH "TOP=([^\n]+)" found "${nvcc_says}")
cmake_path(SET cuda_toolkit NORMALIZE "${CMAKE_MATCH_1}")
find_library(SHARDARRAY_CUDART cudart_static NO_DEFAULT_PATH
  HINTS ${cuda_toolkit} PATH_SUFFIXES lib64 lib targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
find_path(SHARDARRAY_CUDA_INCLUDE cuda_runtime_api.h NO_DEFAULT_PATH
  HINTS ${cuda_toolkit} PATH_SUFFIXES include targets/${CMAKE_SYSTEM_PROCESSOR}-linux/include)
find_path(SHARDARRAY_CUB_INCLUDE cub/device/device_radix_sort.cuh NO_DEFAULT_PATH HINTS ${SHARDARRAY_CUDA_INCLUDE}/cccl)
if(NOT SHARDARRAY_CUDART OR NOT SHARDARRAY_CUDA_INCLUDE OR NOT SHARDARRAY_CUB_INCLUDE)
  shardarray_without_cuda("${cuda_toolkit} has no cudart_static, no cuda_runtime_api.h or no CUB")
endif()

# Same bits as the CPU: no contraction, no approximations. When device code calls a host function, nvcc only warns, and drops what depends
# on it. ptxas warns of register spills on request; other versions than ours may spill, so only in development.
set(spills "")
if(SHARDARRAY_DEVELOP)
  set(spills -Xptxas --warn-on-spills)
endif()
set(architectures -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90
  -gencode arch=compute_100,code=sm_100 -gencode arch=compute_100,code=compute_100)
set(kernel_image ${PROJECT_BINARY_DIR}/generated/kernels.fatbin)
add_custom_command(OUTPUT ${kernel_image} VERBATIM
  COMMAND ${SHARDARRAY_NVCC} -fatbin -std=c++20 -O3 --fmad=false --ftz=false --prec-div=true --prec-sqrt=true
          --expt-relaxed-constexpr -Werror all-warnings ${spills} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
          ${architectures} -MD -MF ${kernel_image}.d -o ${kernel_image} ${PROJECT_SOURCE_DIR}/kernels/kernels.cu
  DEPENDS ${PROJECT_SOURCE_DIR}/kernels/kernels.cu DEPFILE ${kernel_image}.d
  COMMENT "Compiling kernels for CUDA")

# CUB's sort, with its own kernels.
set(sort_pairs ${PROJECT_BINARY_DIR}/generated/sort_pairs.o)
add_custom_command(OUTPUT ${sort_pairs} VERBATIM
  COMMAND ${SHARDARRAY_NVCC} -c -std=c++20 -O3 -Werror all-warnings -Xcompiler=-fPIC,-fvisibility=hidden -I${PROJECT_SOURCE_DIR}/src
          ${architectures} -MD -MF ${sort_pairs}.d -o ${sort_pairs} ${PROJECT_SOURCE_DIR}/kernels/sort_pairs.cu
  DEPENDS ${PROJECT_SOURCE_DIR}/kernels/sort_pairs.cu DEPFILE ${sort_pairs}.d
  COMMENT "Compiling CUB's sort for CUDA")
set_source_files_properties(${sort_pairs} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)

shardarray_cuda_plugin(shardarray_cuda ${cuda_own} ${sort_pairs})
target_include_directories(shardarray_cuda SYSTEM PRIVATE ${SHARDARRAY_CUDA_INCLUDE})
# The plug-in opens NCCL when it is first needed; the header only serves to check its call table.
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})
find_package(NCCL 2.22)
if(NCCL_FOUND)
  target_include_directories(shardarray_cuda SYSTEM PRIVATE ${NCCL_INCLUDE_DIRS})
endif()
set_source_files_properties(${cuda_own} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cuda/kernel_image.cpp PROPERTIES
  OBJECT_DEPENDS ${kernel_image} COMPILE_DEFINITIONS SHARDARRAY_KERNEL_IMAGE="${kernel_image}")
target_link_libraries(shardarray_cuda PRIVATE ${SHARDARRAY_CUDART} ${CMAKE_DL_LIBS} rt)
target_link_options(shardarray_cuda PRIVATE -Wl,--exclude-libs,ALL)
# It is installed beside the library, which opens it by path; no build target links it.
add_dependencies(shardarray shardarray_cuda)
install(TARGETS shardarray_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

# GPU programs independent of the library: the GPU's own limits, to compare benches with, and checks that only a GPU can make.
function(shardarray_gpu_program name source)
  set(program ${PROJECT_BINARY_DIR}/bench/${name})
  add_custom_command(OUTPUT ${program} VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/bench
    COMMAND ${SHARDARRAY_NVCC} -std=c++20 -O2 -Werror all-warnings ${ARGN}
            ${architectures} -MD -MF ${program}.d -o ${program} ${PROJECT_SOURCE_DIR}/${source} -ldl
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} DEPFILE ${program}.d
    COMMENT "Compiling ${name}")
  add_custom_target(${name} DEPENDS ${program})
endfunction()
if(SHARDARRAY_DEVELOP)
  shardarray_gpu_program(gpu_ceilings bench/gpu_ceilings.cu)
  shardarray_gpu_program(gpu_same_bits tests/cuda/same_bits.cu --fmad=false --expt-relaxed-constexpr
    -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src)
endif()
