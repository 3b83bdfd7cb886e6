# The commit that is checked out, as a C text; "" outside of a repository.
#
#   cmake -DTREE=<folder> -DOUTPUT=<file> -P commit.cmake

execute_process(COMMAND git --git-dir=${TREE}/.git rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
    set(commit "")
endif()
file(WRITE ${OUTPUT} "/* Made by cmake/commit.cmake. */
#include \"bench/where.h\"

const char bench_where_commit[] = \"${commit}\";
")
