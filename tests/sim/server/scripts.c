/* SPDX-License-Identifier: MIT */

/* Scripts: SCRIPT LOAD, EVALSHA and what redis.call does, as Redis 7.0 has
 * them. */

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/server/private.h"

static const char SERVER = 's'; /* its address is the registry's key */

static struct server *server_of(lua_State *lua)
{
    struct server *server;

    lua_pushlightuserdata(lua, (void *)(uintptr_t)&SERVER);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    server = lua_touserdata(lua, -1);
    lua_pop(lua, 1);
    return server;
}

/* --- replies become values ----------------------------------------------- */

static const char *end_of_line(const char *at)
{
    while (*at != '\r')
        at++;
    return at;
}

static void push_field(lua_State *lua, const char *name, const char *text,
                       size_t len)
{
    lua_createtable(lua, 0, 1);
    lua_pushlstring(lua, text, len);
    lua_setfield(lua, -2, name);
}

/* Pushes the reply at `at`; returns what is behind it. */
static const char *push_reply(lua_State *lua, const char *at)
{
    const char *line = at + 1, *end = end_of_line(line);
    long count = *at == '+' || *at == '-' ? 0 : strtol(line, NULL, 10);

    luaL_checkstack(lua, 4, "a reply is nested too deeply");
    if (*at == ':') {
        lua_pushnumber(lua, (lua_Number)strtoll(line, NULL, 10));
    } else if (*at == '+' || *at == '-') {
        push_field(lua, *at == '+' ? "ok" : "err", line, (size_t)(end - line));
    } else if (count < 0) {
        lua_pushboolean(lua, false);
    } else if (*at == '$') {
        lua_pushlstring(lua, end + 2, (size_t)count);
        return end + 2 + count + 2;
    } else {
        lua_createtable(lua, (int)count, 0);
        for (at = end + 2; count > 0; count--) {
            at = push_reply(lua, at);
            lua_rawseti(lua, -2, (int)lua_objlen(lua, -2) + 1);
        }
        return at;
    }
    return end + 2;
}

/* --- redis.call ---------------------------------------------------------- */

enum { WORDS_MAX = 8192 };

/* The words on the stack; NULL: there is none, or one is no text or number. */
static struct slice *words_of(lua_State *lua, size_t count)
{
    struct slice *words =
        count == 0 || count > WORDS_MAX ? NULL : malloc(count * sizeof(*words));

    for (size_t i = 0; words != NULL && i < count; i++) {
        char text[NUMBER_CAP];
        int index = (int)i + 1;

        if (lua_type(lua, index) == LUA_TNUMBER) {
            write_number(text, lua_tonumber(lua, index));
            lua_pushstring(lua, text);
            lua_replace(lua, index);
        }
        if (lua_type(lua, index) != LUA_TSTRING) {
            free(words);
            return NULL;
        }
        words[i].ptr = lua_tolstring(lua, index, &words[i].len);
    }
    return words;
}

static int call_command(lua_State *lua, bool raises)
{
    struct server *server = server_of(lua);
    size_t count = (size_t)lua_gettop(lua);
    struct slice *words = words_of(lua, count);
    struct call call = {.server = server,
                        .argv = words,
                        .argc = count,
                        .out = &server->scratch};

    server->scratch.len = 0;
    if (words == NULL)
        answer_error(&call, "ERR Lua redis lib command arguments must be "
                            "strings or integers");
    else
        run_command(&call);
    free(words);
    (void)push_reply(lua, server->scratch.ptr); /* that is all of it */
    if (raises && server->scratch.ptr[0] == '-')
        return lua_error(lua);
    return 1;
}

static int redis_call(lua_State *lua)
{
    return call_command(lua, true);
}

static int redis_pcall(lua_State *lua)
{
    return call_command(lua, false);
}

static int single_field(lua_State *lua, const char *name)
{
    size_t len;
    const char *text = lua_tolstring(lua, 1, &len);

    if (lua_gettop(lua) != 1 || lua_type(lua, 1) != LUA_TSTRING)
        return luaL_error(lua, "wrong number or type of arguments");
    push_field(lua, name, text, len);
    return 1;
}

/* An error without a code gets ERR, and loses a leading dash. */
static int error_reply(lua_State *lua)
{
    const char *text = lua_tostring(lua, 1);

    if (lua_gettop(lua) == 1 && text != NULL && text[0] == '-')
        lua_pushstring(lua, text + 1);
    else if (lua_gettop(lua) == 1 && text != NULL)
        lua_pushfstring(lua, "%s%s", strchr(text, ' ') == NULL ? "ERR " : "",
                        text);
    else
        return single_field(lua, "err");
    lua_replace(lua, 1);
    return single_field(lua, "err");
}

static int status_reply(lua_State *lua)
{
    return single_field(lua, "ok");
}

/* --- chance -------------------------------------------------------------- */

/* Redis' own generator is that of nrand48. It goes on from script to script. */
static void seed_random(struct server *server, unsigned low, unsigned high)
{
    server->script_random[0] = 0x330e;
    server->script_random[1] = (unsigned short)low;
    server->script_random[2] = (unsigned short)high;
}

static int math_random(lua_State *lua)
{
    double part = (double)(nrand48(server_of(lua)->script_random) % INT32_MAX) /
                  INT32_MAX;
    double low = 1, high;

    if (lua_gettop(lua) == 0) {
        lua_pushnumber(lua, part);
        return 1;
    }
    if (lua_gettop(lua) > 1)
        low = luaL_checkint(lua, 1);
    high = luaL_checkint(lua, lua_gettop(lua));
    luaL_argcheck(lua, low <= high, lua_gettop(lua), "interval is empty");
    lua_pushnumber(lua, floor(part * (high - low + 1)) + low);
    return 1;
}

static int math_randomseed(lua_State *lua)
{
    unsigned seed = (unsigned)luaL_checkint(lua, 1);

    seed_random(server_of(lua), seed, seed >> 16);
    return 0;
}

/* --- values become replies ----------------------------------------------- */

/* A field of the table on top, if that is a text. */
static bool answer_field(lua_State *lua, struct call *call, const char *name,
                         void (*reply)(struct call *call, const char *text))
{
    bool is_text;

    lua_pushstring(lua, name);
    lua_rawget(lua, -2);
    is_text = lua_type(lua, -1) == LUA_TSTRING;
    if (is_text)
        reply(call, lua_tostring(lua, -1));
    lua_pop(lua, 1);
    return is_text;
}

/* As the cast does on the machines that Redis runs on. */
static int64_t integer_of(double number)
{
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0
               ? (int64_t)number
               : INT64_MIN;
}

/* Replies what is on top of the stack, and takes it off. */
static void answer_value(lua_State *lua, struct call *call)
{
    struct slice text;
    size_t count = 0;

    luaL_checkstack(lua, 4, "a reply is nested too deeply");
    switch (lua_type(lua, -1)) {
    case LUA_TSTRING:
        text.ptr = lua_tolstring(lua, -1, &text.len);
        answer_bulk(call, text);
        break;
    case LUA_TNUMBER:
        answer_int(call, integer_of(lua_tonumber(lua, -1)));
        break;
    case LUA_TBOOLEAN:
        if (lua_toboolean(lua, -1))
            answer_int(call, 1);
        else
            answer_nil(call);
        break;
    case LUA_TTABLE:
        if (answer_field(lua, call, "err", answer_error) ||
            answer_field(lua, call, "ok", answer_status))
            break;
        for (;; count++) {
            lua_rawgeti(lua, -1, (int)count + 1);
            if (lua_isnil(lua, -1))
                break;
            lua_pop(lua, 1);
        }
        lua_pop(lua, 1);
        answer_array(call, count);
        for (size_t i = 1; i <= count; i++) {
            lua_rawgeti(lua, -1, (int)i);
            answer_value(lua, call);
        }
        break;
    default:
        answer_nil(call);
    }
    lua_pop(lua, 1);
}

/* --- running ------------------------------------------------------------- */

static void push_words(lua_State *lua, const char *name,
                       const struct slice *words, size_t count)
{
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, words[i].ptr, words[i].len);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_pushstring(lua, name);
    lua_insert(lua, -2);
    lua_rawset(lua, LUA_GLOBALSINDEX);
}

/* As Redis 7.0 has it: the place where a script failed. */
static const char HANDLER[] = "handler";
static const char handler[] =
    "local getinfo = debug.getinfo "
    "return function(err) "
    "  local i = getinfo(2, 'nSl') "
    "  if i and i.what == 'C' then i = getinfo(3, 'nSl') end "
    "  if type(err) ~= 'table' then err = {err = 'ERR ' .. tostring(err)} end "
    "  err.place = i and i.source .. ':' .. i.currentline "
    "  return err "
    "end";

static void answer_failure(lua_State *lua, struct call *call, const char *sha)
{
    char text[1024];

    lua_getfield(lua, -1, "err");
    lua_getfield(lua, -2, "place");
    (void)snprintf(text, sizeof(text), "%s script: %s, on %s.",
                   lua_tostring(lua, -2), sha, lua_tostring(lua, -1)); /* cut */
    lua_pop(lua, 3);
    answer_error(call, text);
}

void run_evalsha(struct call *call)
{
    lua_State *lua = call->server->lua;
    struct entry *script;
    int64_t keys;

    if (!read_int(call, 2, &keys))
        return;
    if (keys < 0 || (size_t)keys > call->argc - 3) {
        answer_error(call, keys < 0 ? "ERR Number of keys can't be negative"
                                    : "ERR Number of keys can't be greater "
                                      "than number of args");
        return;
    }
    script = table_find(&call->server->scripts, call->argv[1]);
    if (script == NULL) {
        answer_error(call, "NOSCRIPT No matching script. Please use EVAL.");
        return;
    }
    call->server->script_count++;
    call->server->has_written = false;
    lua_getfield(lua, LUA_REGISTRYINDEX, HANDLER);
    lua_pushlstring(lua, call->argv[1].ptr, call->argv[1].len);
    lua_rawget(lua, LUA_REGISTRYINDEX);
    push_words(lua, "KEYS", call->argv + 3, (size_t)keys);
    push_words(lua, "ARGV", call->argv + 3 + keys,
               call->argc - 3 - (size_t)keys);
    if (lua_pcall(lua, 0, 1, -2) == 0)
        answer_value(lua, call);
    else
        answer_failure(lua, call, script->name);
    lua_pop(lua, 1); /* the handler */
}

/* The text with the fault that is planted in it; the caller's to be freed. */
static char *text_with_fault(const struct server *server, struct slice text)
{
    const char *find = server->plant_find, *replace = server->plant_replace;
    size_t len = text.len + strlen(replace) + 1;
    char *whole = malloc(len), *at;

    if (whole == NULL)
        server_fail("the server has no memory for a script");
    memcpy(whole, text.ptr, text.len);
    whole[text.len] = '\0';
    at = strstr(whole, find);
    if (at == NULL || strstr(at + 1, find) != NULL)
        server_fail("\"%s\" is not exactly once in a script", find);
    memmove(at + strlen(replace), at + strlen(find),
            strlen(at + strlen(find)) + 1);
    memcpy(at, replace, strlen(replace));
    return whole;
}

bool load_script(struct call *call, struct slice text, char sha[41])
{
    lua_State *lua = call->server->lua;
    struct slice name = {sha, 40};
    char error[512], *altered = NULL;

    sha1_hex(text, sha);
    if (table_find(&call->server->scripts, name) != NULL)
        return true;
    if (call->server->plant_sha1 != NULL &&
        memcmp(sha, call->server->plant_sha1, 40) == 0) {
        altered = text_with_fault(call->server, text);
        text = (struct slice){altered, strlen(altered)};
    }
    if (luaL_loadbuffer(lua, text.ptr, text.len, "@user_script") != 0) {
        (void)snprintf(error, sizeof(error),
                       "ERR Error compiling script (new function): %s",
                       lua_tostring(lua, -1)); /* cut */
        lua_pop(lua, 1);
        answer_error(call, error);
        free(altered);
        return false;
    }
    lua_pushlstring(lua, sha, 40);
    lua_insert(lua, -2);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    entry_set(table_add(&call->server->scripts, name), text);
    free(altered);
    return true;
}

static void run_script(struct call *call)
{
    char sha[41];

    if (is_word(call->argv[1], "LOAD") && call->argc == 3) {
        if (load_script(call, call->argv[2], sha))
            answer_text(call, sha);
    } else if (is_word(call->argv[1], "EXISTS")) {
        answer_array(call, call->argc - 2);
        for (size_t i = 2; i < call->argc; i++)
            answer_int(call, table_find(&call->server->scripts,
                                        call->argv[i]) != NULL);
    } else {
        unknown_option(call, 1);
    }
}

/* --- life ---------------------------------------------------------------- */

lua_State *lua_open_server(struct server *server)
{
    static const luaL_Reg redis[] = {{"call", redis_call},
                                     {"pcall", redis_pcall},
                                     {"error_reply", error_reply},
                                     {"status_reply", status_reply},
                                     {NULL, NULL}};
    static const luaL_Reg math[] = {
        {"random", math_random}, {"randomseed", math_randomseed}, {NULL, NULL}};
    lua_State *lua = luaL_newstate();

    if (lua == NULL)
        server_fail("the server has no memory for Lua");
    seed_random(server, 0xabcd, 0x1234); /* as nrand48 begins */
    luaL_openlibs(lua);
    luaL_register(lua, "redis", redis);
    luaL_register(lua, "math", math);
    if (luaL_dostring(lua, handler) != 0)
        server_fail("the handler of errors: %s", lua_tostring(lua, -1));
    lua_setfield(lua, LUA_REGISTRYINDEX, HANDLER);
    lua_settop(lua, 0);
    lua_open_cmsgpack(lua);
    lua_open_struct(lua);
    lua_pushlightuserdata(lua, (void *)(uintptr_t)&SERVER);
    lua_pushlightuserdata(lua, server);
    lua_rawset(lua, LUA_REGISTRYINDEX);
    return lua;
}

void lua_close_server(lua_State *lua)
{
    lua_close(lua);
}

const struct command script_commands[] = {
    {"SCRIPT", -2, run_script, HAS_PARTS},
    {"EVALSHA", -3, run_evalsha, SCRIPT},
    {0},
};
