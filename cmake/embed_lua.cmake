# Writes OUTPUT, a C file that holds the Lua scripts SCRIPTS of the folder FROM
# (adapters/redis/script.h). A line "--#include name" stands for lib/name.lua; in
# a block its functions are made only where that is reached. "--#include
# delay/name" stands for another script without what that includes at its left
# margin: who includes it has the same.
# Comment lines, leading blanks and empty lines stay behind: weir sends a script
# to each server. With TEXTS they are written there as well, each complete, for
# other clients: the same bytes, so that a server has one of each.
#   cmake -DFROM=... -DSCRIPTS=delay/add,delay/claim -DOUTPUT=... [-DTEXTS=DIR]
#         -P embed_lua.cmake

# The code of a file with its lib files in place.
function(script_text path ret_text)
    file(READ ${path} text)
    string(REGEX MATCH "--#include [a-z_/]+\n" include "${text}")
    while(include) # of a lib file, too
        string(REGEX REPLACE "--#include ([a-z_/]+)\n" "\\1" lib "${include}")
        if(lib MATCHES "/")
            file(READ ${FROM}/${lib}.lua body)
            string(REGEX REPLACE "(\n--#include [a-z_]+)+\n" "\n" body
                "${body}")
        else()
            file(READ ${FROM}/lib/${lib}.lua body)
        endif()
        string(REPLACE "${include}" "${body}" text "${text}")
        string(REGEX MATCH "--#include [a-z_/]+\n" include "${text}")
    endwhile()
    string(REGEX MATCH "--#include[^\n]*" unknown "${text}")
    if(unknown)
        message(FATAL_ERROR "${path}: ${unknown}: not the name of a lib file")
    endif()
    string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\n[ \n]+" "\n" text "${text}")
    string(SUBSTRING "${text}" 1 -1 text)
    set(${ret_text} "${text}" PARENT_SCOPE)
endfunction()

# The bytes of a C array: one literal may not be longer than 4,095 bytes.
function(c_bytes text ret_bytes)
    file(WRITE ${OUTPUT}.tmp "${text}")
    file(READ ${OUTPUT}.tmp hex HEX)
    file(REMOVE ${OUTPUT}.tmp)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    set(${ret_bytes} "${bytes}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
set(code "/* Made by cmake/embed_lua.cmake. */\n")
string(APPEND code "#include \"adapters/redis/script.h\"\n\n")
set(table "")
foreach(name IN LISTS SCRIPTS)
    script_text(${FROM}/${name}.lua text)
    if(TEXTS)
        file(WRITE ${TEXTS}/${name}.lua "${text}")
    endif()
    string(REPLACE "/" "_" name ${name})
    string(SHA1 sha1 "${text}")
    string(LENGTH "${text}" len)
    set(head "*3\r\n\$6\r\nSCRIPT\r\n\$4\r\nLOAD\r\n\$${len}\r\n")
    string(LENGTH "${head}" head_len)
    math(EXPR load_len "${head_len} + ${len} + 2")
    c_bytes("${head}${text}\r\n" bytes)
    string(APPEND code "static const char load_of_${name}[] = {${bytes}0};\n"
        "const struct weir__script weir__script_${name} = {\n"
        "    \"${name}\", load_of_${name} + ${head_len}, ${len},\n"
        "    \"${sha1}\", load_of_${name}, ${load_len}};\n\n")
    string(APPEND table "    &weir__script_${name},\n")
endforeach()
string(APPEND code "const struct weir__script *const weir__scripts[] = {\n"
    "${table}    NULL};\n")
file(WRITE ${OUTPUT} "${code}")
