# More of weir_flags: what has a memory error end the program rather than be of
# use to somebody. Not with sanitizers, which find the error itself.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckLinkerFlag)
include(CheckPIESupported)

check_pie_supported(LANGUAGES C) # else programs are linked as they please
if(WEIR_SANITIZE)
    return()
endif()

foreach(flag stack-protector-strong stack-clash-protection cf-protection)
    string(MAKE_C_IDENTIFIER WEIR_HAVE_${flag} has_flag)
    check_c_compiler_flag(-f${flag} ${has_flag})
    if(${has_flag})
        target_compile_options(weir_flags INTERFACE -f${flag})
    endif()
endforeach()

# Level 3 where both the compiler and the C library know it. A level that is a
# distribution's default, or in CFLAGS, is taken back first.
set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_c_source_compiles("
#include <string.h>
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL < 3
#error
#endif
int main(void) { return 0; }" WEIR_HAVE_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(level 2)
if(WEIR_HAVE_FORTIFY_3)
    set(level 3)
endif()
target_compile_options(weir_flags INTERFACE
    $<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>)

foreach(flag relro now noexecstack)
    check_linker_flag(C -Wl,-z,${flag} WEIR_HAVE_Z_${flag})
    if(WEIR_HAVE_Z_${flag})
        target_link_options(weir_flags INTERFACE -Wl,-z,${flag})
    endif()
endforeach()
