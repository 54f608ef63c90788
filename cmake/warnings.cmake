# Warnings live in one INTERFACE target; sanitizers live in the presets.
add_library(warnings INTERFACE)
target_compile_options(warnings INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -Wundef
  -Wvla -Wwrite-strings -Wimplicit-fallthrough -Wswitch-enum -Wpointer-arith -fno-common)
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
  target_compile_options(warnings INTERFACE -Wlogical-op)
endif()
if(TXRELAY_WERROR)
  target_compile_options(warnings INTERFACE -Werror)
endif()
if(CMAKE_C_FLAGS MATCHES "NDEBUG" OR CMAKE_C_FLAGS_RELEASE MATCHES "NDEBUG" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  message(FATAL_ERROR "asserts stay on in release: do not define NDEBUG")
endif()
