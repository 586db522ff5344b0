# The library: all sources as objects, which the tests link too, and the shared library made from them.

# Options for all code of the project. Bits must not depend on the optimizer: no contraction of a * b + c.
set(CMAKE_CXX_EXTENSIONS OFF)
add_library(shardarray_options INTERFACE)
target_compile_features(shardarray_options INTERFACE cxx_std_20)
target_compile_options(shardarray_options INTERFACE
  -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> -Wconversion -Wno-sign-conversion
  $<$<BOOL:${PROJECT_IS_TOP_LEVEL}>:-Werror>
  $<$<CONFIG:>:-O2>  # a parent project without a build type
  $<$<CXX_COMPILER_ID:GNU>:-Wno-array-bounds;-Wno-restrict;-Wno-stringop-overflow>  # false positives of g++ 12 in std::string
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>  # clang 18 and newer: in std::stable_sort of libstdc++ 12
  -ffp-contract=off -fno-math-errno -fno-trapping-math)
# From 128 MB on g++ collects garbage repeatedly, a tenth of the time of a unit that needs 500 MB. In kB.
target_compile_options(shardarray_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=2000000>)
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  # Thread-local state without a function call: a cached call reads it dozens of times. There is little of it (see base/per_thread.h), so
  # dlopen() finds room.
  target_compile_options(shardarray_options INTERFACE -ftls-model=initial-exec)
endif()
if(SHARDARRAY_SANITIZE)
  target_compile_options(shardarray_options INTERFACE -Wno-error)  # false positives of g++ 12 in instrumented code
endif()
if(SHARDARRAY_VERIFY)
  target_compile_definitions(shardarray_options INTERFACE SHARDARRAY_VERIFY=1)
endif()

# -fpch-preprocess: ccache needs it to cache users of a precompiled header.
function(shardarray_precompile target header)
  target_precompile_headers(${target} PRIVATE ${PROJECT_SOURCE_DIR}/${header})
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  endif()
endfunction()

file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
list(FILTER sources EXCLUDE REGEX "/src/cpu/codegen/llvm/")
list(FILTER sources EXCLUDE REGEX "/src/(cuda|mpi)/")
set(v3_sources ${sources})
list(FILTER v3_sources INCLUDE REGEX "/src/cpu/.*_v3\\.cpp$")
set(v4_sources ${sources})
list(FILTER v4_sources INCLUDE REGEX "/src/cpu/.*_v4\\.cpp$")
set(loop_sources ${sources})
list(FILTER loop_sources INCLUDE REGEX "/src/cpu/.*_(baseline|v3|v4)\\.cpp$")

# Inner loops are compiled for any CPU, for AVX2 and FMA, and some for AVX-512; selected at run time.
set_source_files_properties(${loop_sources} PROPERTIES
  COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>" SKIP_PRECOMPILE_HEADERS ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set_source_files_properties(${v3_sources} PROPERTIES
    COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>;-march=x86-64-v3")
  set_source_files_properties(${v4_sources} PROPERTIES
    COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>;-march=x86-64-v4")
else()
  list(REMOVE_ITEM sources ${v3_sources} ${v4_sources})
endif()

set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cpu/library/scan.cpp PROPERTIES
  COMPILE_OPTIONS "$<$<NOT:$<CONFIG:Debug>>:-O3>" SKIP_PRECOMPILE_HEADERS ON)
# Files that instantiate function objects (src/ops/function.h).
foreach(family activations arithmetic complex_numbers logic math parts powers reduce scan special)
  set_source_files_properties(${PROJECT_SOURCE_DIR}/src/ops/${family}.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endforeach()

add_library(shardarray_objects OBJECT ${sources})
set_target_properties(shardarray_objects PROPERTIES
  POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_compile_options(shardarray_objects PRIVATE $<$<CONFIG:Release>:-O2>)
target_include_directories(shardarray_objects
  PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(shardarray_objects
  PUBLIC shardarray_options fmt::fmt ZLIB::ZLIB Threads::Threads ${CMAKE_DL_LIBS}
  PRIVATE nlohmann_json::nlohmann_json)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  target_compile_definitions(shardarray_objects PUBLIC SHARDARRAY_NO_V3=1)
endif()

shardarray_precompile(shardarray_objects cmake/precompiled.h)

add_library(shardarray SHARED)
add_library(shardarray::shardarray ALIAS shardarray)
target_link_libraries(shardarray PRIVATE shardarray_objects)
target_compile_features(shardarray PUBLIC cxx_std_20)
file(GLOB_RECURSE public_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h)
target_sources(shardarray PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${public_headers})
# Before 1.0 every minor version may change the ABI.
set_target_properties(shardarray PROPERTIES
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR} LINKER_LANGUAGE CXX)
if(CMAKE_SYSTEM_NAME STREQUAL Linux)
  target_link_options(shardarray PRIVATE -Wl,-z,nodelete)  # its sleeping workers execute its code: dlclose() must not unmap it
endif()

# The umbrella header, precompiled in each target that links this.
add_library(shardarray_pch INTERFACE)
add_library(shardarray::pch ALIAS shardarray_pch)
set_target_properties(shardarray_pch PROPERTIES EXPORT_NAME pch)
target_link_libraries(shardarray_pch INTERFACE shardarray)
target_precompile_headers(shardarray_pch INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:<shardarray/shardarray.h$<ANGLE-R>>")
