# The command line is parsed by argp. glibc has it; with musl it is a library of its own (argp-standalone). The target argp
# links what is needed.
include(CheckFunctionExists)
check_function_exists(argp_parse TXRELAY_LIBC_HAS_ARGP)
add_library(argp INTERFACE)
if(NOT TXRELAY_LIBC_HAS_ARGP)
  find_library(ARGP_LIBRARY argp)
  find_path(ARGP_INCLUDE_DIR argp.h)
  if(NOT ARGP_LIBRARY OR NOT ARGP_INCLUDE_DIR)
    message(FATAL_ERROR "This C library has no argp_parse, and there is no libargp with its argp.h. Install it: Alpine's package is argp-standalone. If it is in a folder of its own, pass -DCMAKE_PREFIX_PATH=FOLDER.")
  endif()
  target_link_libraries(argp INTERFACE ${ARGP_LIBRARY})
  target_include_directories(argp SYSTEM INTERFACE ${ARGP_INCLUDE_DIR})
endif()
