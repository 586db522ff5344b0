# Headers, library, and what find_package(shardarray) and pkg-config need.

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/shardarray)
install(TARGETS shardarray shardarray_pch EXPORT shardarray_targets FILE_SET HEADERS)
install(EXPORT shardarray_targets FILE shardarray-targets.cmake NAMESPACE shardarray:: DESTINATION ${package_dir})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/shardarray-config.cmake.in shardarray-config.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(shardarray-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/shardarray-config.cmake ${PROJECT_BINARY_DIR}/shardarray-config-version.cmake
  DESTINATION ${package_dir})

# Relative, so that an installed tree can be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/shardarray.pc.in shardarray.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/shardarray.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
