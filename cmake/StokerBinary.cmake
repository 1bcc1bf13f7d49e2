# What makes the binary travel: everything but libc is linked in. And where it is installed.

option(STOKER_SELF_CONTAINED "Link all libraries but libc into the binary" ${PROJECT_IS_TOP_LEVEL})

# Points an imported target at the static archive beside its shared library. Debian's packages bring both,
# and their CMake files know the shared one only.
function(_stoker_prefer_archive target archive)
  if(NOT TARGET ${target})
    return()
  endif()
  find_library(STOKER_ARCHIVE_${archive} NAMES lib${archive}.a)
  mark_as_advanced(STOKER_ARCHIVE_${archive})
  if(NOT STOKER_ARCHIVE_${archive})
    message(STATUS "no lib${archive}.a: the binary will need lib${archive}.so where it runs")
    return()
  endif()
  get_target_property(configurations ${target} IMPORTED_CONFIGURATIONS)
  foreach(configuration IN LISTS configurations)
    if(configuration)
      set_target_properties(${target} PROPERTIES
        IMPORTED_LOCATION_${configuration} ${STOKER_ARCHIVE_${archive}})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${STOKER_ARCHIVE_${archive}})
endfunction()

if(STOKER_SELF_CONTAINED)
  _stoker_prefer_archive(ZLIB::ZLIB z)
  _stoker_prefer_archive(libjpeg-turbo::turbojpeg turbojpeg)
  _stoker_prefer_archive(PNG::PNG png16)
  _stoker_prefer_archive(${STOKER_SQLITE} sqlite3)
  # tar and gzip are all that is used of libarchive, and need zlib alone: its other members, and the libraries that
  # those need, are not linked.
  _stoker_prefer_archive(LibArchive::LibArchive archive)
endif()

# stoker_self_contained(TARGET): links the compiler's libraries in as well. scripts/check-binary tells
# whether it came true.
function(stoker_self_contained target)
  if(STOKER_SELF_CONTAINED)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()

# stoker_install(TARGET): bin/stoker and share/stoker (data) below the prefix. A wheel puts them into bin and share of
# the environment that it is installed into, so that the command is the binary itself and finds its data as ever.
function(stoker_install target)
  if(DEFINED SKBUILD)
    set(binary_folder ${SKBUILD_SCRIPTS_DIR})
    set(data_folder ${SKBUILD_DATA_DIR}/share/stoker)
  else()
    include(GNUInstallDirs)
    set(binary_folder ${CMAKE_INSTALL_BINDIR})
    set(data_folder ${CMAKE_INSTALL_DATADIR}/stoker)
  endif()
  install(TARGETS ${target} RUNTIME DESTINATION ${binary_folder} COMPONENT stoker)
  # Measured rows are for stoker-accuracy, which runs from the source tree.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/ DESTINATION ${data_folder} COMPONENT stoker
    PATTERN "measured" EXCLUDE)
endfunction()

# stoker_install_manual(FILE): share/man/man1 below the prefix, of a wheel below that of its environment.
function(stoker_install_manual file)
  if(DEFINED SKBUILD)
    set(manual_folder ${SKBUILD_DATA_DIR}/share/man)
  else()
    include(GNUInstallDirs)
    set(manual_folder ${CMAKE_INSTALL_MANDIR})
  endif()
  install(FILES ${file} DESTINATION ${manual_folder}/man1 COMPONENT stoker)
endfunction()
