# Writes OUTPUT, a C file with the bytes of files as the table
# weir__templates (adapters/cli/template.h).
#   cmake -DFROM=DIR -DFILES=a,b -DOUTPUT=... -P embed_files.cmake
string(REPLACE "," ";" FILES "${FILES}")
set(code "/* Made by cmake/embed_files.cmake. */\n")
string(APPEND code "#include \"adapters/cli/template.h\"\n\n")
set(table "")
set(number 0)
foreach(name IN LISTS FILES)
    file(READ ${FROM}/${name} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND code "static const char file_${number}[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", file_${number}},\n")
    math(EXPR number "${number} + 1")
endforeach()
string(APPEND code "\nconst struct weir__template weir__templates[] = {\n"
    "${table}    {0, 0}};\n")
file(WRITE ${OUTPUT} "${code}")
