# Tests, examples and benches: one binary of tests, one binary per example and bench file.

find_package(CLI11 REQUIRED)
find_package(doctest REQUIRED)

# It contains doctest's implementation, which would leak into any test file in the same unity unit.
set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/main.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Comes after -Wall, which would re-enable clang's warning.
add_library(shardarray_test_options INTERFACE)
target_compile_options(shardarray_test_options INTERFACE -Wno-unused-result)  # for calls that should throw

# shardarray_test_binary(TARGET OBJECTS NAME...): tests/NAME.cpp ... in one binary that sees the library's internals.
function(shardarray_test_binary target objects)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/tests/)
  list(TRANSFORM ARGN APPEND .cpp)
  add_executable(${target} ${PROJECT_SOURCE_DIR}/tests/main.cpp ${ARGN})
  target_link_libraries(${target} PRIVATE ${objects} shardarray_test_options CLI11::CLI11 doctest::doctest
    nlohmann_json::nlohmann_json)
  target_compile_definitions(${target} PRIVATE SHARDARRAY_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # In every configuration: compile time dominates, and sanitizers at -O1 take three times as long.
  target_compile_options(${target} PRIVATE -O0
    $<$<CXX_COMPILER_ID:GNU>:-ffold-simple-inlines>)  # inlines std::move, which -O0 would call
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 24)
endfunction()

file(GLOB test_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp ${PROJECT_SOURCE_DIR}/tests/op_cases_*.cpp)
set(tests "")
foreach(file IN LISTS test_files)
  cmake_path(GET file STEM name)
  list(APPEND tests ${name})
endforeach()
list(APPEND tests kernel_cpp)
shardarray_test_binary(shardarray_tests shardarray_objects ${tests})
shardarray_precompile(shardarray_tests tests/precompiled.h)
if(TARGET shardarray_llvm)
  add_dependencies(shardarray_tests shardarray_llvm)
endif()
# The CUDA backend's launches of programs, and its kernels for the host.
target_sources(shardarray_tests PRIVATE ${cuda_launches} ${cuda_host_kernels} ${cuda_libraries})
target_include_directories(shardarray_tests PRIVATE ${PROJECT_SOURCE_DIR})
add_dependencies(shardarray_tests shardarray_fake_cuda)

# Some of the tests in a separate binary, not built by default; names without a file are ignored.
function(shardarray_selected_tests target objects)
  set(chosen ${tests})
  list(JOIN ARGN "|" wanted)
  list(FILTER chosen INCLUDE REGEX "^(${wanted})$")
  shardarray_test_binary(${target} ${objects} ${chosen})
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
endfunction()

# `dev test` runs these under sanitizers; `dev check` runs all tests under them. Memory is handled in floors 0 to 2 and in the CPU backend,
# where threads work for each other: only these are built that way.
set(ground_sources ${sources})
list(FILTER ground_sources INCLUDE REGEX "/src/(base|layout|runtime|cpu)/")
add_library(shardarray_ground OBJECT EXCLUDE_FROM_ALL ${ground_sources})
target_include_directories(shardarray_ground
  PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src PRIVATE ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(shardarray_ground PUBLIC shardarray_options fmt::fmt Threads::Threads ${CMAKE_DL_LIBS})
shardarray_precompile(shardarray_ground cmake/precompiled.h)
shardarray_selected_tests(shardarray_asan shardarray_ground
  base_test layout_test kernel_test kernel_cpp devices_test runtime_test workers_test cpu_backend_test cpu_data_test)
shardarray_selected_tests(shardarray_tsan shardarray_ground
  devices_test runtime_test workers_test cpu_backend_test)

# tests/processes/check starts several of it.
if(TARGET shardarray_mpi)
  add_executable(shardarray_processes EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/processes/main.cpp)
  target_link_libraries(shardarray_processes PRIVATE shardarray_objects shardarray_test_options)
  target_include_directories(shardarray_processes PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(shardarray_processes PRIVATE $<$<CONFIG:Release>:-O0>)
  target_compile_definitions(shardarray_processes PRIVATE DOCTEST_CONFIG_DISABLE)  # no test cases of its own
  target_link_options(shardarray_processes PRIVATE -Wl,--export-dynamic-symbol=MPI_Finalize)  # a case blocks in it
  add_dependencies(shardarray_processes shardarray_mpi)
endif()

# Examples see only what a user sees.
file(GLOB example_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp)
foreach(file IN LISTS example_files)
  cmake_path(GET file STEM name)
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE shardarray::shardarray shardarray_options)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  target_compile_definitions(${name} PRIVATE SHARDARRAY_EXAMPLE_DATA="${PROJECT_SOURCE_DIR}/examples/data")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY examples UNITY_BUILD OFF)
endforeach()

file(GLOB bench_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/*.cpp)
set(benches "")
foreach(file IN LISTS bench_files)
  cmake_path(GET file STEM name)
  if(name STREQUAL "processes" AND NOT TARGET shardarray_mpi)
    continue()
  endif()
  add_executable(bench_${name} ${file})
  list(APPEND benches bench_${name})
  target_link_libraries(bench_${name} PRIVATE shardarray_objects CLI11::CLI11 nlohmann_json::nlohmann_json)
  # Hand-written baselines get all that the compiler can do on this machine; the library and benches that run elsewhere do not.
  if(NOT name MATCHES "^(device|matmul_layouts|peers)$")
    target_compile_options(bench_${name} PRIVATE $<$<CONFIG:Release>:-O3;-march=native>)
  endif()
  set_target_properties(bench_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY bench EXCLUDE_FROM_ALL ON)
  if(TARGET shardarray_llvm)
    add_dependencies(bench_${name} shardarray_llvm)
  endif()
endforeach()
# Installed with the library. It uses the library's internals, so it contains the library. The plug-ins are in the library folder.
file(RELATIVE_PATH plugin_folder ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
target_compile_definitions(bench_matmul_layouts PRIVATE BENCH_PLUGIN_FOLDER="${plugin_folder}"
  BENCH_SOURCE_FOLDER="${CMAKE_CURRENT_SOURCE_DIR}/bench")
set_target_properties(bench_matmul_layouts PROPERTIES EXCLUDE_FROM_ALL OFF)
install(PROGRAMS $<TARGET_FILE:bench_matmul_layouts> DESTINATION ${CMAKE_INSTALL_BINDIR}
  RENAME shardarray-matmul-layouts COMPONENT tools OPTIONAL)  # the demo does not build it
if(TARGET bench_processes)
  target_link_libraries(bench_processes PRIVATE MPI::MPI_CXX)
  add_dependencies(bench_processes shardarray_mpi)
endif()
# Benches contain the library and are in their own folder: plug-ins must be there too.
foreach(plugin shardarray_llvm shardarray_mpi)
  if(TARGET ${plugin})
    add_custom_command(TARGET ${plugin} POST_BUILD VERBATIM
      COMMAND ${CMAKE_COMMAND} -E make_directory bench
      COMMAND ${CMAKE_COMMAND} -E create_symlink $<TARGET_FILE:${plugin}> bench/$<TARGET_FILE_NAME:${plugin}>)
  endif()
endforeach()
add_custom_target(all_benches DEPENDS ${benches})
