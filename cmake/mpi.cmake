# Programs over several processes: a plug-in, opened if a launcher has started them. It does not link the core library.

set(SHARDARRAY_MPI AUTO CACHE STRING "Build the plug-in for several processes: ON, OFF, or AUTO: where MPI is found")
set_property(CACHE SHARDARRAY_MPI PROPERTY STRINGS AUTO ON OFF)
if(SHARDARRAY_MPI STREQUAL "OFF")
  return()
endif()
set(MPI_CXX_SKIP_MPICXX ON)  # the C interface is enough
find_package(MPI 3.1 QUIET COMPONENTS CXX)
if(NOT MPI_CXX_FOUND)
  if(SHARDARRAY_MPI STREQUAL "ON")
    message(FATAL_ERROR "MPI not found. SHARDARRAY_MPI=ON needs an MPI 3.1, as Debian's libopenmpi-dev.")
  endif()
  message(STATUS "MPI not found: programs have one process. Debian's package is libopenmpi-dev.")
  return()
endif()

file(GLOB mpi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/mpi/*.cpp)
add_library(shardarray_mpi MODULE ${mpi_sources} ${PROJECT_SOURCE_DIR}/src/base/env.cpp ${PROJECT_SOURCE_DIR}/src/base/shape.cpp)
set_target_properties(shardarray_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_include_directories(shardarray_mpi PRIVATE
  ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_BINARY_DIR}/generated)
target_compile_options(shardarray_mpi PRIVATE $<$<CONFIG:Release>:-O2>)
target_link_libraries(shardarray_mpi PRIVATE shardarray_options fmt::fmt Threads::Threads MPI::MPI_CXX)
# It is installed beside the library, which opens it by path; no build target links it.
add_dependencies(shardarray shardarray_mpi)
install(TARGETS shardarray_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
