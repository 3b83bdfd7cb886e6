# What `cmake --install` and `cpack -G DEB` put where: the library both ways,
# headers, programs, plugins, and how others find them.
include(CMakePackageConfigHelpers)

# Components are the Debian packages; `cmake --install` installs all.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME weir)

# --- the library -------------------------------------------------------------
# Programs of ours link core and adapters as they are; what is installed is the
# same objects as one library, of which the shared one shows <weir/*.h> only.
set(library_objects $<TARGET_OBJECTS:weir_core> $<TARGET_OBJECTS:libweir>
    $<TARGET_OBJECTS:weir_scripts>)
set(library_needs weir_dep_ev weir_dep_hiredis weir_dep_msgpack weir_dep_json
    Threads::Threads ${CMAKE_DL_LIBS})

add_library(weir_shared SHARED ${library_objects})
set_target_properties(weir_shared PROPERTIES
    OUTPUT_NAME weir EXPORT_NAME weir LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(weir_shared PRIVATE ${library_needs})
target_include_directories(weir_shared INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(weir_shared PRIVATE
    $<TARGET_PROPERTY:weir_flags,INTERFACE_LINK_OPTIONS>)
if(NOT WEIR_SANITIZE)
    target_link_options(weir_shared PRIVATE -Wl,-z,defs)
endif()

add_library(weir_static STATIC ${library_objects})
set_target_properties(weir_static PROPERTIES
    OUTPUT_NAME weir LINKER_LANGUAGE C
    ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

# For plugins: headers and nothing to link.
add_library(weir_plugin_headers INTERFACE)
set_target_properties(weir_plugin_headers PROPERTIES EXPORT_NAME plugin)
target_include_directories(weir_plugin_headers INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS weir_shared weir_plugin_headers EXPORT weirTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT lib NAMELINK_COMPONENT dev)
install(TARGETS weir_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/core/include/weir
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)

# --- programs and plugins ----------------------------------------------------
install(TARGETS weir weir-bench RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
get_property(plugins GLOBAL PROPERTY WEIR_PLUGINS)
install(TARGETS ${plugins}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weir/plugins
    COMPONENT plugins)
install(FILES adapters/cli/completion.bash RENAME weir
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)

# --- how others find it ------------------------------------------------------
# The files tell the prefix from where they lie, so that it may move.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH WEIR_PC_TO_PREFIX /${pc_dir} /)
string(REGEX REPLACE "/$" "" WEIR_PC_TO_PREFIX ${WEIR_PC_TO_PREFIX})
get_filename_component(WEIR_PC_MSGPACK ${MSGPACK_LIBRARY} NAME_WE)
string(REGEX REPLACE "^lib" "-l" WEIR_PC_MSGPACK ${WEIR_PC_MSGPACK})
if(HIREDIS_TLS_FOUND)
    set(WEIR_PC_TLS " -lhiredis_ssl -lssl -lcrypto")
endif()
foreach(name weir weir-plugin)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in
        ${CMAKE_BINARY_DIR}/lib/pkgconfig/${name}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/lib/pkgconfig/${name}.pc
        DESTINATION ${pc_dir} COMPONENT dev)
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
set(package_build_dir ${CMAKE_BINARY_DIR}/lib/cmake/weir)
write_basic_package_version_file(${package_build_dir}/weirConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
set(plugin_dir ${CMAKE_INSTALL_LIBDIR}/weir/plugins)
configure_package_config_file(cmake/weirConfig.cmake.in
    ${CMAKE_BINARY_DIR}/packaging/weirConfig.cmake
    INSTALL_DESTINATION ${package_dir} PATH_VARS plugin_dir)
install(FILES ${CMAKE_BINARY_DIR}/packaging/weirConfig.cmake
        ${package_build_dir}/weirConfigVersion.cmake
    DESTINATION ${package_dir} COMPONENT dev)
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${package_dir}
    COMPONENT dev)

# The same for this build tree, so that `weir plugin new` builds against it.
set(plugin_dir plugins)
configure_package_config_file(cmake/weirConfig.cmake.in
    ${package_build_dir}/weirConfig.cmake
    INSTALL_DESTINATION lib/cmake/weir PATH_VARS plugin_dir
    INSTALL_PREFIX ${CMAKE_BINARY_DIR})
export(EXPORT weirTargets NAMESPACE weir::
    FILE ${package_build_dir}/weirTargets.cmake)

# --- manual pages, the service -------------------------------------------------
foreach(page weir.1 weir-bench.1 weir.conf.5 weir-guarantees.7 weir-plugin.7)
    string(REGEX REPLACE ".*\\." "" section ${page})
    configure_file(${PROJECT_SOURCE_DIR}/docs/man/${page}.in
        ${CMAKE_BINARY_DIR}/man/${page} @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/man/${page}
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
# Written when it is installed: the prefix may be another one by then.
foreach(unit weir.service weir@.service)
    install(CODE "set(WEIR_BINDIR
            \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
        configure_file(
            \"${PROJECT_SOURCE_DIR}/adapters/cli/systemd/${unit}.in\"
            \"${CMAKE_BINARY_DIR}/systemd/${unit}\" @ONLY)")
    install(FILES ${CMAKE_BINARY_DIR}/systemd/${unit}
        DESTINATION lib/systemd/system)
endforeach()
# docs/wire.md: for clients in other languages.
foreach(script delay/push delay/pull delay/finish delay/add delay/slot
        delay/stats delay/claim delay/start delay/renew delay/settle store/beat)
    install(FILES ${CMAKE_BINARY_DIR}/scripts/${script}.lua
        DESTINATION ${CMAKE_INSTALL_DATADIR}/weir/scripts)
endforeach()
install(FILES README.md LICENSE docs/bundled-plugins.md docs/configuration.md
        docs/deploy.md docs/embedding.md docs/guarantees.md docs/kinds.md
        docs/limits.md docs/operating.md docs/packs.md docs/performance.md
        docs/once.md docs/plugins.md docs/recurring.md docs/scale.md
        docs/web.md docs/wire.md
        docs/wire-vectors.jsonl
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/observe docs/pictures
    DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
    PATTERN "CMakeLists.txt" EXCLUDE)

# --- the Debian packages -------------------------------------------------------
# An installation below another prefix has the sample among the examples.
install(CODE "if(CMAKE_INSTALL_PREFIX STREQUAL \"/usr\" AND
        NOT EXISTS \"\$ENV{DESTDIR}/etc/weir/weir.conf\")
    file(INSTALL \"${PROJECT_SOURCE_DIR}/docs/examples/weir.conf\"
        DESTINATION /etc/weir)
endif()")
file(WRITE ${CMAKE_BINARY_DIR}/packaging/conffiles "/etc/weir/weir.conf\n")

set(CPACK_PACKAGE_NAME weir)
set(CPACK_PACKAGE_CONTACT "weir maintainers <maintainers@weir.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "job reactor: holds jobs back and lets them through on time")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL weir lib dev plugins)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

set(about "weir keeps delayed jobs in Redis or Valkey and runs their handlers, in
C programs or in a worker of its own, on time and at least once. ")
set(CPACK_COMPONENT_WEIR_DESCRIPTION "${about}This package
has the command, a worker as a service, and the pages.")
set(CPACK_DEBIAN_WEIR_PACKAGE_NAME weir)
set(CPACK_DEBIAN_WEIR_PACKAGE_SECTION net)
set(CPACK_DEBIAN_WEIR_PACKAGE_CONTROL_EXTRA
    ${CMAKE_BINARY_DIR}/packaging/conffiles)
set(CPACK_DEBIAN_WEIR_PACKAGE_RECOMMENDS
    "weir-plugins, redis-server | valkey-server")
set(CPACK_DEBIAN_WEIR_PACKAGE_SUGGESTS libweir-dev)

set(CPACK_COMPONENT_LIB_DESCRIPTION "${about}This package
has the library that programs are linked with.")
set(CPACK_DEBIAN_LIB_PACKAGE_NAME libweir${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)

set(CPACK_COMPONENT_DEV_DESCRIPTION "${about}This package
has what plugins and programs with weir inside are built with.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME libweir-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libweir${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_SUGGESTS "weir, libev-dev")

set(CPACK_COMPONENT_PLUGINS_DESCRIPTION "${about}This package
has handlers: archive, deliver, echo, exec, flaky, notify.")
set(CPACK_DEBIAN_PLUGINS_PACKAGE_NAME weir-plugins)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PLUGINS_PACKAGE_ENHANCES weir)
include(CPack)
