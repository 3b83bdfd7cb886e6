/* SPDX-License-Identifier: MIT */

/* cmsgpack as Redis gives it to scripts: which form a value gets, and the texts
 * of errors, are those of lua_cmsgpack.c in Redis 7.0. */

#include <lauxlib.h>
#include <limits.h>
#include <lua.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

enum { NESTING_MAX = 16 };

/* --- packing ------------------------------------------------------------- */

static void put_head(struct out *out, unsigned type, uint64_t value,
                     unsigned bytes)
{
    unsigned char head[9] = {(unsigned char)type};

    for (unsigned i = 0; i < bytes; i++)
        head[1 + i] = (unsigned char)(value >> (8 * (bytes - 1 - i)));
    out_bytes(out, head, 1 + bytes);
}

static void put_int(struct out *out, int64_t value)
{
    uint64_t bits = (uint64_t)value;

    if (value >= 0) {
        if (value <= 127)
            put_head(out, (unsigned)value, 0, 0);
        else if (value <= 0xff)
            put_head(out, 0xcc, bits, 1);
        else if (value <= 0xffff)
            put_head(out, 0xcd, bits, 2);
        else if (value <= 0xffffffffLL)
            put_head(out, 0xce, bits, 4);
        else
            put_head(out, 0xcf, bits, 8);
    } else if (value >= -32) {
        put_head(out, (unsigned)(bits & 0xff), 0, 0);
    } else if (value >= -128) {
        put_head(out, 0xd0, bits & 0xff, 1);
    } else if (value >= -32768) {
        put_head(out, 0xd1, bits & 0xffff, 2);
    } else if (value >= -2147483648LL) {
        put_head(out, 0xd2, bits & 0xffffffff, 4);
    } else {
        put_head(out, 0xd3, bits, 8);
    }
}

static void put_double(struct out *out, double value)
{
    float narrow = (float)value;
    uint32_t bits;
    uint64_t wide;

    if ((double)narrow == value) {
        memcpy(&bits, &narrow, sizeof(bits));
        put_head(out, 0xca, bits, 4);
    } else {
        memcpy(&wide, &value, sizeof(wide));
        put_head(out, 0xcb, wide, 8);
    }
}

static void put_number(struct out *out, double value)
{
    /* Beyond 2^63 the conversion of C is undefined; Redis' result there is no
     * integer that is equal. */
    if (value >= -9223372036854775808. && value < 9223372036854775808. &&
        (double)(int64_t)value == value)
        put_int(out, (int64_t)value);
    else
        put_double(out, value);
}

static void put_string(struct out *out, struct slice text)
{
    if (text.len < 32)
        put_head(out, 0xa0 | (unsigned)text.len, 0, 0);
    else if (text.len <= 0xff)
        put_head(out, 0xd9, text.len, 1);
    else if (text.len <= 0xffff)
        put_head(out, 0xda, text.len, 2);
    else
        put_head(out, 0xdb, text.len, 4);
    out_bytes(out, text.ptr, text.len);
}

/* Its keys are 1 to their number; so are those of an empty table. */
static bool is_array(lua_State *lua)
{
    double most = 0;
    size_t count = 0;

    lua_pushnil(lua);
    while (lua_next(lua, -2) != 0) {
        double key;

        lua_pop(lua, 1);
        key = lua_type(lua, -1) == LUA_TNUMBER ? lua_tonumber(lua, -1) : 0;
        if (key <= 0 || floor(key) != key) {
            lua_pop(lua, 1);
            return false;
        }
        count++;
        most = key > most ? key : most;
    }
    return most == (double)count;
}

static void put_value(lua_State *lua, struct out *out, int level);

static void put_array(lua_State *lua, struct out *out, int level)
{
    size_t count = lua_objlen(lua, -1);

    if (count <= 15)
        put_head(out, 0x90 | (unsigned)count, 0, 0);
    else if (count <= 0xffff)
        put_head(out, 0xdc, count, 2);
    else
        put_head(out, 0xdd, count, 4);
    for (size_t i = 1; i <= count; i++) {
        lua_rawgeti(lua, -1, (int)i);
        put_value(lua, out, level + 1);
    }
}

static void put_map(lua_State *lua, struct out *out, int level)
{
    size_t count = 0;

    lua_pushnil(lua);
    for (; lua_next(lua, -2) != 0; count++)
        lua_pop(lua, 1);
    if (count <= 15)
        put_head(out, 0x80 | (unsigned)count, 0, 0);
    else if (count <= 0xffff)
        put_head(out, 0xde, count, 2);
    else
        put_head(out, 0xdf, count, 4);
    lua_pushnil(lua);
    while (lua_next(lua, -2) != 0) {
        lua_pushvalue(lua, -2);
        put_value(lua, out, level + 1); /* the key */
        put_value(lua, out, level + 1);
    }
}

/* Packs what is on top of the stack, and takes it off. */
static void put_value(lua_State *lua, struct out *out, int level)
{
    struct slice text;
    int type = lua_type(lua, -1);

    luaL_checkstack(lua, 4, "too many tables");
    if (type == LUA_TTABLE && level == NESTING_MAX)
        type = LUA_TNIL;
    if (type == LUA_TSTRING) {
        text.ptr = lua_tolstring(lua, -1, &text.len);
        put_string(out, text);
    } else if (type == LUA_TNUMBER) {
        put_number(out, lua_tonumber(lua, -1));
    } else if (type == LUA_TBOOLEAN) {
        put_head(out, lua_toboolean(lua, -1) ? 0xc3 : 0xc2, 0, 0);
    } else if (type == LUA_TTABLE) {
        if (is_array(lua))
            put_array(lua, out, level);
        else
            put_map(lua, out, level);
    } else {
        put_head(out, 0xc0, 0, 0);
    }
    lua_pop(lua, 1);
}

static int pack(lua_State *lua)
{
    int count = lua_gettop(lua);
    struct out out = {0};

    if (count == 0)
        return luaL_argerror(lua, 0, "MessagePack pack needs input.");
    for (int i = 1; i <= count; i++) {
        lua_pushvalue(lua, i);
        put_value(lua, &out, 0);
    }
    lua_pushlstring(lua, out.ptr, out.len);
    out_free(&out);
    return 1;
}

/* --- unpacking ----------------------------------------------------------- */

struct input {
    const unsigned char *at;
    size_t left;
    const char *error; /* NULL: none */
};

static bool needs(struct input *input, size_t bytes)
{
    if (input->left < bytes)
        input->error = "Missing bytes in input.";
    return input->error == NULL;
}

static uint64_t bits_at(const unsigned char *at, unsigned bytes)
{
    uint64_t bits = 0;

    for (unsigned i = 0; i < bytes; i++)
        bits = bits << 8 | at[i];
    return bits;
}

static void consume(struct input *input, size_t bytes)
{
    input->at += bytes;
    input->left -= bytes;
}

static void take_value(lua_State *lua, struct input *input);

static void take_string(lua_State *lua, struct input *input, size_t head,
                        size_t len)
{
    if (!needs(input, head + len))
        return;
    lua_pushlstring(lua, (const char *)input->at + head, len);
    consume(input, head + len);
}

static void take_array(lua_State *lua, struct input *input, size_t count)
{
    lua_newtable(lua);
    luaL_checkstack(lua, 4, "in function mp_decode_to_lua_array");
    for (size_t i = 1; i <= count; i++) {
        lua_pushnumber(lua, (double)i);
        take_value(lua, input);
        if (input->error != NULL)
            return;
        lua_settable(lua, -3);
    }
}

static void take_map(lua_State *lua, struct input *input, size_t count)
{
    lua_newtable(lua);
    luaL_checkstack(lua, 4, "in function mp_decode_to_lua_hash");
    for (; count > 0; count--) {
        take_value(lua, input);
        if (input->error != NULL)
            return;
        take_value(lua, input);
        if (input->error != NULL)
            return;
        lua_settable(lua, -3);
    }
}

static int64_t signed_of(uint64_t bits, unsigned bytes)
{
    unsigned shift = 64 - 8 * bytes;

    return (int64_t)(bits << shift) >> shift;
}

static void take_number(lua_State *lua, struct input *input, unsigned type)
{
    unsigned bytes = type == 0xca   ? 4
                     : type == 0xcb ? 8
                     : type < 0xd0  ? 1u << (type - 0xcc)
                                    : 1u << (type - 0xd0);
    uint64_t bits;
    uint32_t narrow;
    float real;
    double wide;

    if (!needs(input, 1 + bytes))
        return;
    bits = bits_at(input->at + 1, bytes);
    if (type == 0xca) {
        narrow = (uint32_t)bits;
        memcpy(&real, &narrow, sizeof(real));
        lua_pushnumber(lua, (lua_Number)real);
    } else if (type == 0xcb) {
        memcpy(&wide, &bits, sizeof(wide));
        lua_pushnumber(lua, wide);
    } else if (type < 0xd0) {
        lua_pushnumber(lua, (double)bits);
    } else {
        lua_pushnumber(lua, (double)signed_of(bits, bytes));
    }
    consume(input, 1 + bytes);
}

/* Strings, arrays and maps whose length stands behind the type. */
static void take_long(lua_State *lua, struct input *input, unsigned type)
{
    unsigned bytes = type == 0xd9                   ? 1
                     : type == 0xda || type == 0xdc ? 2
                     : type == 0xde                 ? 2
                                                    : 4;
    size_t len;

    if (!needs(input, 1 + bytes))
        return;
    len = (size_t)bits_at(input->at + 1, bytes);
    if (type <= 0xdb) {
        take_string(lua, input, 1 + bytes, len);
        return;
    }
    consume(input, 1 + bytes);
    if (type <= 0xdd)
        take_array(lua, input, len);
    else
        take_map(lua, input, len);
}

/* Pushes one value, unless there is an error. */
static void take_value(lua_State *lua, struct input *input)
{
    unsigned type;

    if (!needs(input, 1))
        return;
    luaL_checkstack(lua, 1,
                    "too many return values at once; use unpack_one or "
                    "unpack_limit instead.");
    type = input->at[0];
    if (type < 0x80 || type >= 0xe0) {
        lua_pushnumber(lua, (double)signed_of(type, 1));
        consume(input, 1);
    } else if (type < 0x90) {
        consume(input, 1);
        take_map(lua, input, type & 0xf);
    } else if (type < 0xa0) {
        consume(input, 1);
        take_array(lua, input, type & 0xf);
    } else if (type < 0xc0) {
        take_string(lua, input, 1, type & 0x1f);
    } else if (type == 0xc0) {
        lua_pushnil(lua);
        consume(input, 1);
    } else if (type == 0xc2 || type == 0xc3) {
        lua_pushboolean(lua, type == 0xc3);
        consume(input, 1);
    } else if (type >= 0xca && type <= 0xd3) {
        take_number(lua, input, type);
    } else if (type >= 0xd9 && type <= 0xdf) {
        take_long(lua, input, type);
    } else {
        input->error = "Bad data format in input.";
    }
}

static int unpack_some(lua_State *lua, int limit, int offset)
{
    size_t len;
    const char *text = luaL_checklstring(lua, 1, &len);
    bool is_all = limit == 0 && offset == 0;
    struct input input = {0};
    int count = 0;

    if (offset < 0 || limit < 0)
        return luaL_error(
            lua, "Invalid request to unpack with offset of %d and limit of %d.",
            offset, limit);
    if ((size_t)offset > len)
        return luaL_error(lua, "Start offset %d greater than input length %d.",
                          offset, (int)len);
    input.at = (const unsigned char *)text + offset;
    input.left = len - (size_t)offset;
    for (limit = is_all ? INT_MAX : limit; input.left > 0 && count < limit;
         count++) {
        take_value(lua, &input);
        if (input.error != NULL)
            return luaL_error(lua, input.error);
    }
    if (is_all)
        return count;
    luaL_checkstack(lua, 1, "too many values");
    lua_pushinteger(lua, input.left == 0 ? -1 : (int)(len - input.left));
    lua_insert(lua, 2);
    return count + 1;
}

static int unpack(lua_State *lua)
{
    return unpack_some(lua, 0, 0);
}

static int unpack_one(lua_State *lua)
{
    int offset = (int)luaL_optinteger(lua, 2, 0);

    lua_pop(lua, lua_gettop(lua) - 1);
    return unpack_some(lua, 1, offset);
}

static int unpack_limit(lua_State *lua)
{
    int limit = (int)luaL_checkinteger(lua, 2);
    int offset = (int)luaL_optinteger(lua, 3, 0);

    lua_pop(lua, lua_gettop(lua) - 1);
    return unpack_some(lua, limit, offset);
}

void lua_open_cmsgpack(lua_State *lua)
{
    static const luaL_Reg functions[] = {{"pack", pack},
                                         {"unpack", unpack},
                                         {"unpack_one", unpack_one},
                                         {"unpack_limit", unpack_limit},
                                         {NULL, NULL}};

    luaL_register(lua, "cmsgpack", functions);
    lua_pop(lua, 1);
}
