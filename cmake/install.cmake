# What `./dev install` and `./dev package` put under a prefix, and `./dev wheel` into a wheel. Everything is found relative
# to the programs, so that the prefix can be moved and this checkout deleted.
set_target_properties(hstu hstu-prepare PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/hstu")
install(TARGETS hstu hstu-prepare RUNTIME_DEPENDENCY_SET hstu_libraries RUNTIME DESTINATION bin)
# For programs in other languages: the libraries and their headers.
set(HSTU_SHARED_LIBRARIES hstu_score_so hstu_tables_so)
if(TARGET hstu_attention_so)
  list(APPEND HSTU_SHARED_LIBRARIES hstu_attention_so)
endif()
set_target_properties(${HSTU_SHARED_LIBRARIES} PROPERTIES INSTALL_RPATH "$ORIGIN/hstu")
install(TARGETS ${HSTU_SHARED_LIBRARIES} RUNTIME_DEPENDENCY_SET hstu_libraries LIBRARY DESTINATION lib)
install(FILES include/hstu/score.h include/hstu/attention.h include/hstu/tables.h DESTINATION include/hstu)
add_custom_target(installed DEPENDS hstu hstu-prepare ${HSTU_SHARED_LIBRARIES})  # what `cmake --install` needs
# Arrow, and what a bare Debian lacks or has in another version: all libraries but glibc's.
install(RUNTIME_DEPENDENCY_SET hstu_libraries
  PRE_EXCLUDE_REGEXES "^(ld-linux.*|lib(c|m|dl|rt|pthread))\\.so" DIRECTORIES ${HSTU_CROSS_LIBRARIES} DESTINATION lib/hstu)
install(DIRECTORY configs/ DESTINATION share/hstu/configs FILES_MATCHING PATTERN "*.toml")

install(FILES share/hstu.bash DESTINATION share/bash-completion/completions RENAME hstu)
install(FILES share/hstu.zsh DESTINATION share/zsh/site-functions RENAME _hstu)
install(FILES share/hstu.fish DESTINATION share/fish/vendor_completions.d)
install(CODE "
  file(REMOVE_RECURSE \"${CMAKE_BINARY_DIR}/man\")
  file(MAKE_DIRECTORY \"${CMAKE_BINARY_DIR}/man\")
  foreach(program \"$<TARGET_FILE:hstu>\" \"$<TARGET_FILE:hstu-prepare>\")
    execute_process(COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} \${program} --man \"${CMAKE_BINARY_DIR}/man\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()")
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION share/man/man1)

# Licences of what the programs contain or bring along: the distribution's files, and Arrow's.
install(FILES LICENSE DESTINATION share/doc/hstu)
foreach(package libfmt-dev libcli11-dev libtomlplusplus-dev nlohmann-json3-dev libxxhash-dev
                libssl-dev libboost-dev libgomp1 libstdc++6)
  install(FILES /usr/share/doc/${package}/copyright DESTINATION share/doc/hstu/licenses RENAME ${package}.txt OPTIONAL)
endforeach()
install(FILES ${HSTU_ARROW_ROOT}/LICENSE.txt DESTINATION share/doc/hstu/licenses RENAME arrow.txt)
install(FILES ${HSTU_ARROW_ROOT}/NOTICE.txt DESTINATION share/doc/hstu/licenses RENAME arrow-notice.txt)

# The list of these files, relative to the prefix: `./dev uninstall` removes them and nothing else.
install(CODE "
  set(list share/hstu/files.txt)
  string(REPLACE \"\${CMAKE_INSTALL_PREFIX}/\" \"\" files \"\${CMAKE_INSTALL_MANIFEST_FILES};\${list}\")
  list(SORT files)
  list(JOIN files \"\\n\" text)
  file(WRITE \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/\${list}\" \"\${text}\\n\")")
