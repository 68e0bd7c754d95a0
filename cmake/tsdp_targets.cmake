# One function a kind of target, so that every module is declared in one line and warned about alike.

function(tsdp_compile_settings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual)
  if(TSDP_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Accounting and sensitivity depend on strict IEEE arithmetic: no contraction into fused operations.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)  # headers that are not installed
endfunction()

# Sources of vectorised kernels: they choose among versions of themselves by what the processor has.
function(tsdp_kernels)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS
    "-O3;-fno-math-errno;-fno-trapping-math;-ffp-contract=fast;$<$<CXX_COMPILER_ID:GNU>:-mprefer-vector-width=512>")
endfunction()

# tsdp_module(NAME SOURCES … [NEEDS …] [PRIVATE_NEEDS …] [TORCH])
function(tsdp_module name)
  cmake_parse_arguments(MODULE "TORCH" "" "SOURCES;NEEDS;PRIVATE_NEEDS" ${ARGN})
  add_library(tsdp_${name} STATIC ${MODULE_SOURCES})
  add_library(tsdp::${name} ALIAS tsdp_${name})
  set_target_properties(tsdp_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(tsdp_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(tsdp_${name} PUBLIC ${MODULE_NEEDS} PRIVATE ${MODULE_PRIVATE_NEEDS})
  target_compile_features(tsdp_${name} PUBLIC cxx_std_20)  # whoever includes the installed headers needs it, too
  tsdp_compile_settings(tsdp_${name})
  if(MODULE_TORCH)
    tsdp_torch_settings(tsdp_${name})
    set_property(GLOBAL APPEND PROPERTY TSDP_TORCH_MODULES tsdp_${name})
  else()
    set_property(GLOBAL APPEND PROPERTY TSDP_PLAIN_MODULES tsdp_${name})
  endif()
endfunction()

# at::parallel_for is a template that runs serially unless its users are compiled with OpenMP. The runtime must be the one
# that LibTorch itself runs on: two of them would fight for the cores.
function(tsdp_find_torch_openmp)
  add_library(tsdp_torch_openmp INTERFACE)
  target_compile_options(tsdp_torch_openmp INTERFACE $<BUILD_INTERFACE:-fopenmp>)
  file(GLOB runtime ${TORCH_INSTALL_PREFIX}/lib/libgomp*.so*)
  list(APPEND runtime gomp)
  list(GET runtime 0 runtime)
  target_link_libraries(tsdp_torch_openmp INTERFACE $<BUILD_INTERFACE:${runtime}> $<INSTALL_INTERFACE:gomp>)
  set_property(GLOBAL APPEND PROPERTY TSDP_TORCH_MODULES tsdp_torch_openmp)
endfunction()

# Arrow's library that reads Parquet files: an installed one (Arrow 21 or later), or that of the Python package pyarrow. By full paths, so that
# what is installed names no target of ours. Sets TSDP_PARQUET_LIBRARIES and TSDP_PARQUET_INCLUDE; empty without it.
set(TSDP_PARQUET AUTO CACHE STRING "Read Parquet files: ON, OFF or AUTO (where Arrow, or pyarrow of Python3_EXECUTABLE, is there)")
function(tsdp_find_parquet)
  set(libraries "")
  set(include "")
  if(NOT TSDP_PARQUET STREQUAL "OFF")
    find_package(Parquet CONFIG QUIET)
    find_package(Python3 COMPONENTS Interpreter QUIET)
    if(TARGET Parquet::parquet_shared)
      set(libraries $<TARGET_FILE:Parquet::parquet_shared> $<TARGET_FILE:Arrow::arrow_shared>)
      get_target_property(include Parquet::parquet_shared INTERFACE_INCLUDE_DIRECTORIES)
    elseif(Python3_EXECUTABLE)
      execute_process(COMMAND ${Python3_EXECUTABLE} -c "import pyarrow; print(pyarrow.get_library_dirs()[0], pyarrow.get_include(), sep=';')"
        OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
      if(found)
        list(GET found 0 folder)
        list(GET found 1 include)
        file(GLOB libraries ${folder}/libparquet.so.* ${folder}/libarrow.so.*)
      endif()
    endif()
    if(NOT libraries AND TSDP_PARQUET STREQUAL "ON")
      message(FATAL_ERROR "TSDP_PARQUET=ON: found neither Arrow with Parquet nor pyarrow of ${Python3_EXECUTABLE}; install one of them")
    endif()
  endif()
  set(TSDP_PARQUET_LIBRARIES "${libraries}" PARENT_SCOPE)
  set(TSDP_PARQUET_INCLUDE "${include}" PARENT_SCOPE)
endfunction()

# The C++ library comes before LibTorch, whose CUDA build exports parts of one of its own (std::filesystem): they crash
# when a program that is built with another compiler calls them. By its full path, since some compilers take the static
# one, and two C++ libraries in a process do not go together.
function(tsdp_find_cxx_library)
  add_library(tsdp_cxx_library INTERFACE)
  find_library(TSDP_CXX_LIBRARY libstdc++.so.6)
  if(TSDP_CXX_LIBRARY)
    target_link_libraries(tsdp_cxx_library INTERFACE $<BUILD_INTERFACE:${TSDP_CXX_LIBRARY}>)
  endif()
  set_property(GLOBAL APPEND PROPERTY TSDP_TORCH_MODULES tsdp_cxx_library)
endfunction()

# LibTorch's headers cost 15 s a file; all users share one precompiled header.
function(tsdp_torch_settings target)
  target_link_libraries(${target} PUBLIC tsdp_cxx_library torch tsdp_torch_openmp)
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "EXECUTABLE")
    # The precompiled header is made for libraries; programs must be compiled alike to use it.
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  if(TARGET tsdp_torch_pch)
    target_precompile_headers(${target} REUSE_FROM tsdp_torch_pch)
  endif()
endfunction()

# An installed program finds LibTorch where it was when it was built; one that lies in this checkout (the wheel in .venv) is
# installed beside the programs, since a checkout may move.
if(NOT DEFINED TSDP_INSTALL_LIBTORCH)
  set(TSDP_INSTALL_LIBTORCH AUTO CACHE STRING "Install LibTorch's libraries beside the programs: ON, OFF or AUTO (where they lie in the checkout)")
endif()

function(tsdp_install_program name)
  if(NOT TSDP_WITH_TORCH)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    return()
  endif()
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${TORCH_INSTALL_PREFIX}" NORMALIZE inside)
  if(TSDP_INSTALL_LIBTORCH STREQUAL "ON" OR (TSDP_INSTALL_LIBTORCH STREQUAL "AUTO" AND inside))
    set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/tsdp")
    install(TARGETS ${name} RUNTIME_DEPENDENCY_SET tsdp_programs RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    set_property(GLOBAL PROPERTY TSDP_INSTALLS_LIBTORCH ON)
  else()
    set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()

function(tsdp_install)
  include(CMakePackageConfigHelpers)
  get_property(plain GLOBAL PROPERTY TSDP_PLAIN_MODULES)
  get_property(torch GLOBAL PROPERTY TSDP_TORCH_MODULES)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tsdp)
  install(TARGETS ${plain} EXPORT tsdpTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT tsdpTargets NAMESPACE tsdp:: DESTINATION ${package_dir})
  if(torch)
    install(TARGETS ${torch} EXPORT tsdpTorchTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT tsdpTorchTargets NAMESPACE tsdp:: DESTINATION ${package_dir})
  endif()
  # What programs look for by bare names. Of the data only what may be passed on.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs ${PROJECT_SOURCE_DIR}/starts DESTINATION ${CMAKE_INSTALL_DATADIR}/tsdp)
  file(STRINGS ${PROJECT_SOURCE_DIR}/data/installed.txt installed)
  list(TRANSFORM installed PREPEND ${PROJECT_SOURCE_DIR}/data/)
  install(FILES ${installed} DESTINATION ${CMAKE_INSTALL_DATADIR}/tsdp/data)
  get_property(installs_libtorch GLOBAL PROPERTY TSDP_INSTALLS_LIBTORCH)
  if(installs_libtorch)
    # Libraries of the system stay the system's.
    install(RUNTIME_DEPENDENCY_SET tsdp_programs POST_EXCLUDE_REGEXES "^/lib" "^/usr" DIRECTORIES ${TORCH_INSTALL_PREFIX}/lib
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/tsdp)
  endif()
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tsdp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tsdpConfig.cmake.in
    ${CMAKE_BINARY_DIR}/tsdpConfig.cmake INSTALL_DESTINATION ${package_dir})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/tsdpConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/tsdpConfig.cmake ${CMAKE_BINARY_DIR}/tsdpConfigVersion.cmake
    DESTINATION ${package_dir})
endfunction()
