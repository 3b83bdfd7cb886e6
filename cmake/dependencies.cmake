# Imported targets for the libraries weir stands on. Their headers are SYSTEM
# includes. Debian's libev ships no .pc file, and the one of msgpack-c 6 names
# folders that do not exist.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

find_path(EV_INCLUDE_DIR ev.h)
find_library(EV_LIBRARY ev)
if(NOT EV_INCLUDE_DIR OR NOT EV_LIBRARY)
    message(FATAL_ERROR "libev is missing: install libev-dev")
endif()
add_library(weir_dep_ev INTERFACE)
target_include_directories(weir_dep_ev SYSTEM INTERFACE ${EV_INCLUDE_DIR})
target_link_libraries(weir_dep_ev INTERFACE ${EV_LIBRARY})

pkg_check_modules(HIREDIS IMPORTED_TARGET hiredis)
if(NOT HIREDIS_FOUND)
    message(FATAL_ERROR "hiredis is missing: install libhiredis-dev")
endif()
add_library(weir_dep_hiredis INTERFACE)
target_link_libraries(weir_dep_hiredis INTERFACE PkgConfig::HIREDIS)

find_path(MSGPACK_INCLUDE_DIR msgpack.h)
find_library(MSGPACK_LIBRARY NAMES msgpack-c msgpackc)
if(NOT MSGPACK_INCLUDE_DIR OR NOT MSGPACK_LIBRARY)
    message(FATAL_ERROR "msgpack-c is missing: install libmsgpack-dev, "
        "or libmsgpack-c-dev where it is named so")
endif()
add_library(weir_dep_msgpack INTERFACE)
target_include_directories(weir_dep_msgpack SYSTEM INTERFACE
    ${MSGPACK_INCLUDE_DIR})
target_link_libraries(weir_dep_msgpack INTERFACE ${MSGPACK_LIBRARY})

pkg_check_modules(JSONC IMPORTED_TARGET json-c)
if(NOT JSONC_FOUND)
    message(FATAL_ERROR "json-c is missing: install libjson-c-dev")
endif()
add_library(weir_dep_json INTERFACE)
target_link_libraries(weir_dep_json INTERFACE PkgConfig::JSONC)

pkg_check_modules(SQLITE IMPORTED_TARGET sqlite3)
if(NOT SQLITE_FOUND)
    message(FATAL_ERROR "SQLite is missing: install libsqlite3-dev")
endif()
add_library(weir_dep_sqlite INTERFACE)
target_link_libraries(weir_dep_sqlite INTERFACE PkgConfig::SQLITE)
pkg_check_modules(CURL IMPORTED_TARGET libcurl)
if(NOT CURL_FOUND)
    message(FATAL_ERROR "libcurl is missing: install libcurl4-openssl-dev")
endif()
add_library(weir_dep_curl INTERFACE)
target_link_libraries(weir_dep_curl INTERFACE PkgConfig::CURL)

pkg_check_modules(CRYPTO IMPORTED_TARGET libcrypto)
if(NOT CRYPTO_FOUND)
    message(FATAL_ERROR "libcrypto is missing: install libssl-dev")
endif()
add_library(weir_dep_crypto INTERFACE)
target_link_libraries(weir_dep_crypto INTERFACE PkgConfig::CRYPTO)
