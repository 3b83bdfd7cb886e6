/* SPDX-License-Identifier: MIT */

/* Of the library struct that Redis gives to scripts, what weir's use: < > and
 * In, unsigned integers of n bytes. Anything else ends the program. */

#include <ctype.h>
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>

#include "tests/sim/server/private.h"

/* The size of the format's next integer, in bytes; 0: the format has ended. */
static unsigned next_size(const char **format, bool *is_little)
{
    char *end;
    unsigned long size;

    for (; **format == '<' || **format == '>'; ++*format)
        *is_little = **format == '<';
    if (**format == '\0')
        return 0;
    size = **format == 'I' && isdigit((unsigned char)(*format)[1])
               ? strtoul(*format + 1, &end, 10)
               : 0;
    if (size == 0 || size > 8)
        server_fail("the server does not know the format \"%s\" of struct",
                    *format);
    *format = end;
    return (unsigned)size;
}

static int pack(lua_State *lua)
{
    const char *format = luaL_checkstring(lua, 1);
    bool is_little = true;
    struct out out = {0};
    unsigned size;

    for (int i = 2; (size = next_size(&format, &is_little)) > 0; i++) {
        double number = luaL_checknumber(lua, i);
        uint64_t value =
            number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;

        for (unsigned k = 0; k < size; k++) {
            unsigned shift = 8 * (is_little ? k : size - 1 - k);
            unsigned char byte = (unsigned char)(value >> shift);

            out_bytes(&out, &byte, 1);
        }
    }
    lua_pushlstring(lua, out.ptr, out.len);
    out_free(&out);
    return 1;
}

static int unpack(lua_State *lua)
{
    const char *format = luaL_checkstring(lua, 1);
    size_t len, at;
    const char *bytes = luaL_checklstring(lua, 2, &len);
    bool is_little = true;
    unsigned size;

    at = (size_t)luaL_optinteger(lua, 3, 1) - 1;
    lua_settop(lua, 2);
    while ((size = next_size(&format, &is_little)) > 0) {
        uint64_t value = 0;

        luaL_argcheck(lua, size <= len && at <= len - size, 2,
                      "data string too short");
        luaL_checkstack(lua, 2, "too many results");
        for (unsigned k = 0; k < size; k++)
            value = value << 8 |
                    (unsigned char)bytes[at + (is_little ? size - 1 - k : k)];
        lua_pushnumber(lua, (double)value);
        at += size;
    }
    lua_pushinteger(lua, (lua_Integer)at + 1);
    return lua_gettop(lua) - 2;
}

void lua_open_struct(lua_State *lua)
{
    static const luaL_Reg functions[] = {
        {"pack", pack}, {"unpack", unpack}, {NULL, NULL}};

    luaL_register(lua, "struct", functions);
    lua_pop(lua, 1);
}
