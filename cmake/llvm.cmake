# Code generation: a plug-in, opened at run time because loading libLLVM takes 17 ms. It does not link the core library, only the
# distribution's shared libLLVM.

# What both sides must agree on: the headers of floors 0 to 2 and of the interface, and the compiler.
file(GLOB seam_headers CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/include/shardarray/*.h ${PROJECT_SOURCE_DIR}/src/base/*.h ${PROJECT_SOURCE_DIR}/src/layout/*.h
  ${PROJECT_SOURCE_DIR}/src/runtime/*.h ${PROJECT_SOURCE_DIR}/src/runtime/*.inc
  ${PROJECT_SOURCE_DIR}/src/cpu/*.h ${PROJECT_SOURCE_DIR}/src/cpu/*/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${seam_headers})
set(seam_text "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
foreach(header IN LISTS seam_headers)
  file(SHA256 ${header} hash)
  string(APPEND seam_text " ${hash}")
endforeach()
string(SHA256 seam_hash "${seam_text}")
string(SUBSTRING ${seam_hash} 0 16 seam_hash)
set(generated ${PROJECT_BINARY_DIR}/generated)
set(shared_sources ${PROJECT_SOURCE_DIR}/src/base/dtype.cpp ${PROJECT_SOURCE_DIR}/src/runtime/kernel.cpp
  ${PROJECT_SOURCE_DIR}/src/runtime/evaluate_instruction.cpp)
file(GLOB plugin_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/codegen/llvm/*)
list(APPEND plugin_files ${shared_sources})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plugin_files})
set(generator_text "${seam_hash}")
foreach(source IN LISTS plugin_files)
  file(SHA256 ${source} hash)
  string(APPEND generator_text " ${hash}")
endforeach()
string(SHA256 generator_hash "${generator_text}")
string(SUBSTRING ${generator_hash} 0 16 generator_hash)
file(CONFIGURE OUTPUT generated/generator_hash.h CONTENT
"// Written by CMake (cmake/llvm.cmake). Objects on disk are of this generator or of none.
#define SHARDARRAY_GENERATOR_HASH \"${generator_hash}\"
")
# LLVM's package file looks for its tools' libraries and reports each missing one; only warnings and errors are shown.
set(log_level "${CMAKE_MESSAGE_LOG_LEVEL}")
set(CMAKE_MESSAGE_LOG_LEVEL NOTICE)
find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19)
set(CMAKE_MESSAGE_LOG_LEVEL "${log_level}")
if(TARGET LLVM)
  set(has_plugin 1)
else()
  set(has_plugin 0)
endif()
file(CONFIGURE OUTPUT generated/abi_hash.h CONTENT
"// Written by CMake (cmake/llvm.cmake).
#define SHARDARRAY_ABI_HASH 0x${seam_hash}ull
#define SHARDARRAY_PLUGIN_VERSION \"${PROJECT_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\"
#define SHARDARRAY_HAS_PLUGIN ${has_plugin}
")

if(NOT TARGET LLVM)
  message(STATUS "LLVM 19.1 not found: programs run in the interpreter. Debian's package is llvm-19-dev.")
  return()
endif()

file(GLOB plugin_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cpu/codegen/llvm/*.cpp)
add_library(shardarray_llvm MODULE ${plugin_sources} ${shared_sources})
set_target_properties(shardarray_llvm PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(shardarray_llvm PRIVATE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${generated})
target_include_directories(shardarray_llvm SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
target_compile_options(shardarray_llvm PRIVATE $<$<CONFIG:Release>:-O2>)
target_link_libraries(shardarray_llvm PRIVATE shardarray_options fmt::fmt LLVM)
# It is installed beside the library, which opens it by path; no build target links it.
add_dependencies(shardarray shardarray_llvm)
install(TARGETS shardarray_llvm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
