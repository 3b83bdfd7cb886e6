# Writes OUTPUT, a C file with the bytes of files as a table of HEADER's:
# rows {name, bytes, length} of struct STRUCT, ended by an empty one. NAME=a+b
# is one with the bytes of a, then those of b.
#   cmake -DFROM=DIR -DFILES=a,b -DHEADER=... -DSTRUCT=... -DTABLE=...
#         -DOUTPUT=... -P embed_files.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(code "/* Made by cmake/embed_files.cmake. */\n")
string(APPEND code "#include \"${HEADER}\"\n\n")
set(table "")
set(number 0)
foreach(name IN LISTS FILES)
    set(parts "${name}")
    if(name MATCHES "^([^=]+)=(.+)$")
        set(name "${CMAKE_MATCH_1}")
        string(REPLACE "+" ";" parts "${CMAKE_MATCH_2}")
    endif()
    set(hex "")
    foreach(part IN LISTS parts)
        file(READ ${FROM}/${part} more HEX)
        string(APPEND hex "${more}")
    endforeach()
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
    string(APPEND code "static const char file_${number}[] = {${bytes}0};\n")
    string(APPEND table
        "    {\"${name}\", file_${number}, sizeof(file_${number}) - 1},\n")
    math(EXPR number "${number} + 1")
endforeach()
string(APPEND code "\nconst struct ${STRUCT} ${TABLE}[] = {\n"
    "${table}    {0, 0, 0}};\n")
file(WRITE ${OUTPUT} "${code}")
