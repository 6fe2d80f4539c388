# Units of the daemons, and what the commands bring for shells. CMAKE_INSTALL_PREFIX is where the units find the programs.
set(services ${CMAKE_SOURCE_DIR}/deploy/systemd)
foreach(name dcs-scheduler dcs-grainserver dcs-launcher dcs-backupd dcs-renew)
  configure_file(${services}/${name}.service.in ${CMAKE_BINARY_DIR}/systemd/${name}.service @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/systemd/${name}.service DESTINATION lib/systemd/system COMPONENT service)
endforeach()
install(FILES ${services}/dcs-grainserver.path ${services}/dcs-backupd.path ${services}/dcs-renew.timer DESTINATION lib/systemd/system
  COMPONENT service)
install(FILES ${services}/dcs-client.sysusers DESTINATION lib/sysusers.d RENAME dcs-client.conf COMPONENT service)
foreach(name dcs-scheduler dcs-grainserver dcs-backup)
  install(FILES ${services}/${name}.tmpfiles DESTINATION lib/tmpfiles.d RENAME ${name}.conf COMPONENT service)
endforeach()

set(completion ${CMAKE_BINARY_DIR}/completion)
set(completion_scripts)
foreach(shell bash zsh fish)
  add_custom_command(OUTPUT ${completion}/${shell} DEPENDS dcs_command VERBATIM
    COMMAND ${CMAKE_COMMAND} -E make_directory ${completion}
    COMMAND sh -c "exec \"$1\" completion \"$2\" >\"$3\"" sh $<TARGET_FILE:dcs_command> ${shell} ${completion}/${shell})
  list(APPEND completion_scripts ${completion}/${shell})
endforeach()
add_custom_target(completion_scripts ALL DEPENDS ${completion_scripts})
add_dependencies(programs completion_scripts)  # which are installed
install(FILES ${completion}/bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME dcs
  COMPONENT runtime)
install(FILES ${completion}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _dcs COMPONENT runtime)
install(FILES ${completion}/fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME dcs.fish
  COMPONENT runtime)
