# What `cmake --install build/release --prefix DIR` puts where, so that programs outside of this tree find it: by
# pkg-config (dcs, dcs-grain), by find_package(dcs) (dcs::dcs, dcs::grain), and by `import dcs`.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The grain library as an archive of its own: it goes into grains, which then need no libdcs.so on a host.
file(GLOB grain_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/libdcs/grain/*.c)
add_library(dcs_grain STATIC ${grain_sources})
target_include_directories(dcs_grain PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/libdcs/include> $<INSTALL_INTERFACE:include>)
set_target_properties(dcs_grain PROPERTIES EXPORT_NAME grain)
add_dependencies(programs dcs_grain)

install(TARGETS dcs EXPORT dcs LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime
  NAMELINK_COMPONENT development)
install(TARGETS dcs_grain EXPORT dcs ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/libdcs/include/dcs.h ${CMAKE_SOURCE_DIR}/libdcs/include/dcs.hpp
  ${CMAKE_SOURCE_DIR}/libdcs/include/dcs_query.h ${CMAKE_SOURCE_DIR}/libdcs/include/dcs_paper.h
  ${CMAKE_SOURCE_DIR}/libdcs/include/dcs_lock.h ${CMAKE_SOURCE_DIR}/libdcs/include/grainlib.h
  ${CMAKE_SOURCE_DIR}/libdcs/include/grainlib.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(TARGETS drmaa LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/dcs COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/libdcs/drmaa/drmaa.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/dcs COMPONENT development)

# Daemons and commands find each other in the folder of their own executable.
foreach(name dcs_command dcs_scheduler dcs_backupd dcs_grainserver dcs_launcher dcs_container dcs_begin dcs_checkpoint find_factor ellipsc
    count_primes golomb primes_between queens_below golomb_below lucas_lehmer)
  if(TARGET ${name})
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  endif()
endforeach()
# Only what links libdcs.so: nothing that may be installed setuid finds libraries by where it lies.
set_target_properties(find_factor count_primes golomb PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
install(PROGRAMS ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/queens ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/mersenne
  DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES ${CMAKE_SOURCE_DIR}/libdcs/shell/dcs_grain.sh DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)

# Python: where a Python of that prefix looks for pure packages. The package knows by a file of its own where the
# library lies.
find_program(DCS_PYTHON NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(DCS_PYTHON AND NOT DCS_PYTHON_DIR)
  execute_process(OUTPUT_VARIABLE python_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND ${DCS_PYTHON} -c
    "import sysconfig; print(sysconfig.get_path('purelib', 'posix_prefix', vars={'base': ''}).lstrip('/'))")
endif()
set(DCS_PYTHON_DIR "${python_dir}" CACHE STRING "where the Python package goes, below the prefix")
if(DCS_PYTHON_DIR)
  file(RELATIVE_PATH from_package "/prefix/${DCS_PYTHON_DIR}/dcs" "/prefix/${CMAKE_INSTALL_LIBDIR}/libdcs.so.0")
  file(WRITE ${CMAKE_BINARY_DIR}/python/_installed.py "LIBRARY = \"${from_package}\"  # from the folder of this file\n")
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/libdcs/python/dcs DESTINATION ${DCS_PYTHON_DIR} COMPONENT python
    FILES_MATCHING PATTERN "*.py" PATTERN "__pycache__" EXCLUDE)
  install(FILES ${CMAKE_SOURCE_DIR}/libdcs/python/dcs_grain.py DESTINATION ${DCS_PYTHON_DIR} COMPONENT python)
  install(FILES ${CMAKE_BINARY_DIR}/python/_installed.py DESTINATION ${DCS_PYTHON_DIR}/dcs COMPONENT python)
  file(RELATIVE_PATH from_jobs "/prefix/${CMAKE_INSTALL_LIBEXECDIR}/dcs" "/prefix/${DCS_PYTHON_DIR}")
  dcs_bridges(${CMAKE_BINARY_DIR}/bridges ${from_jobs})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/bridges/ DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/dcs COMPONENT python
    USE_SOURCE_PERMISSIONS)
endif()

# Manual pages: those that docs/man/make_pages.py makes of headers, help texts and docs/, and the written ones.
if(DCS_PYTHON)
  set(manual ${CMAKE_BINARY_DIR}/man)
  file(GLOB manual_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md ${CMAKE_SOURCE_DIR}/docs/man/*.py
    ${CMAKE_SOURCE_DIR}/libdcs/include/*.h ${CMAKE_SOURCE_DIR}/README.md)
  set(manual_programs dcs_command dcs_scheduler dcs_grainserver dcs_backupd dcs_checkpoint)
  if(TARGET find_factor)
    list(APPEND manual_programs find_factor)
  endif()
  add_custom_command(OUTPUT ${manual}/made DEPENDS ${manual_sources} ${manual_programs}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${manual}
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${DCS_PYTHON} ${CMAKE_SOURCE_DIR}/docs/man/make_pages.py
      ${CMAKE_SOURCE_DIR} ${CMAKE_RUNTIME_OUTPUT_DIRECTORY} ${manual}
    COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_SOURCE_DIR}/docs/man/dcs_begin.1 ${CMAKE_SOURCE_DIR}/docs/man/dcs_lock.1
      ${manual}/man1
    COMMAND ${CMAKE_COMMAND} -E touch ${manual}/made COMMENT "Making manual pages" VERBATIM)
  add_custom_target(manual ALL DEPENDS ${manual}/made)
  add_dependencies(programs manual)  # man(1) finds bin/../man by PATH
  install(DIRECTORY ${manual}/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT development FILES_MATCHING PATTERN "*.[1-8]"
    PATTERN "dcs_begin.1" EXCLUDE PATTERN "dcs_lock.1" EXCLUDE)  # with their programs
endif()

# pkg-config and CMake.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/dcs)
file(RELATIVE_PATH DCS_PREFIX_FROM_PC "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
foreach(name dcs dcs-grain)
  configure_file(${CMAKE_CURRENT_LIST_DIR}/${name}.pc.in ${CMAKE_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
endforeach()
install(EXPORT dcs NAMESPACE dcs:: FILE dcs-config.cmake DESTINATION ${package_dir} COMPONENT development)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/dcs-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/dcs-config-version.cmake DESTINATION ${package_dir} COMPONENT development)
