# weir_flags: what every target of ours is compiled with.
add_library(weir_flags INTERFACE)
target_compile_definitions(weir_flags INTERFACE _POSIX_C_SOURCE=200809L)
target_include_directories(weir_flags INTERFACE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/core/include)
target_compile_options(weir_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wcast-qual
    -Wcast-align -Wwrite-strings -Wvla -Wundef -Wformat=2 -Wswitch-enum
    -Wnull-dereference -Wdouble-promotion -Wimplicit-fallthrough
    -fno-common -fno-omit-frame-pointer -g)
if(WEIR_WERROR)
    target_compile_options(weir_flags INTERFACE -Werror)
endif()
if(WEIR_SANITIZE)
    target_compile_options(weir_flags INTERFACE
        -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
endif()
