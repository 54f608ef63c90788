# embed_text(TARGET PREFIX file...)  compiles text files (SQL) into TARGET as
#   const struct embedded_file PREFIX_files[]; const size_t PREFIX_count;   (sorted by name)
# The files stay files: psql runs them as they are.
set(EMBED_INCLUDE ${CMAKE_CURRENT_LIST_DIR}/include)
set(EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed_run.cmake)
function(embed_text target prefix)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${prefix}_files.c)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DPREFIX=${prefix} "-DFILES=${ARGN}" -P ${EMBED_SCRIPT}
    DEPENDS ${ARGN} ${EMBED_SCRIPT} VERBATIM)
  target_sources(${target} PRIVATE ${out})
  target_include_directories(${target} PRIVATE ${EMBED_INCLUDE})
endfunction()
