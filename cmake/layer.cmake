# layer_edges(NAME may-use...)  one row of the table of allowed edges.
function(layer_edges name)
  set_property(GLOBAL PROPERTY LAYER_EDGES_${name} "${ARGN}")
endfunction()

# layer(NAME SOURCES ... USES layer... WRAPS third-party targets...)
# Without SOURCES every .c file of the folder belongs to it. Public headers are <name>/include/<name>/*.h; all else is private to the folder. A USES that the
# table does not allow stops the configure step.
function(layer name)
  cmake_parse_arguments(L "" "" "SOURCES;USES;WRAPS" ${ARGN})
  get_property(allowed GLOBAL PROPERTY LAYER_EDGES_${name})
  foreach(use ${L_USES})
    if(NOT use IN_LIST allowed)
      message(FATAL_ERROR "layer '${name}' may not use '${use}': allowed are '${allowed}' (CMakeLists.txt)")
    endif()
  endforeach()
  if(NOT L_SOURCES)
    file(GLOB L_SOURCES CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
  endif()
  add_library(${name} STATIC ${L_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/include
                                     PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${L_USES} PRIVATE ${L_WRAPS} warnings)
endfunction()

# layer_test(NAME SOURCES ... LINKS ... [LABELS ...] [TIMEOUT s])  a cmocka program registered with ctest.
function(layer_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LINKS;LABELS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_include_directories(${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${T_LINKS} PkgConfig::CMOCKA warnings)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT T_LABELS)
    set(T_LABELS unit)
  endif()
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${T_TIMEOUT}
    ENVIRONMENT "ASAN_OPTIONS=handle_segv=2:detect_leaks=1;UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1")
endfunction()
