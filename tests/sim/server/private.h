/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TEST_PRIVATE_H
#define WEIR_TEST_PRIVATE_H

/* One call of a command, and what its functions share. */

#include "tests/sim/server/server.h"
#include "tests/sim/server/store.h"

/* A reply, as RESP 2 has it. */
struct out {
    char *ptr;
    size_t len, cap;
};

struct lua_State;

struct server {
    int64_t now_us;
    uint64_t random; /* for what Redis chooses by chance */
    struct table keys;
    struct table scripts; /* SHA-1 -> text */
    struct lua_State *lua;
    uint64_t script_count;
    unsigned short script_random[3];
    int64_t last_client;
    uint64_t blocked_last; /* number of the last client that was blocked */
    char run_id[41];
    struct server_client *clients;
    struct out scratch;               /* a reply inside a script */
    unsigned faults;                  /* SERVER_FULL, ... */
    bool has_written;                 /* the script that runs */
    const char *forbidden, *allowed;  /* of server_forbid; borrowed */
    struct table saved;               /* the keys of server_save */
    const struct server_watch *watch; /* NULL: there is none */
    const char *plant_sha1, *plant_find, *plant_replace;
};

struct server_client {
    struct server *server;
    void (*send)(void *arg, const char *bytes, size_t len);
    void *arg;
    int64_t id;
    char *in; /* not a whole command yet */
    size_t len, cap;
    struct table channels;
    bool is_closing;
    struct text *blocked; /* the command that it waits in, or NULL; owned */
    size_t blocked_count;
    int64_t blocked_until_us;
    uint64_t blocked_number;
    struct server_client *next;
};

struct call {
    struct server *server;
    struct server_client *client; /* NULL: a script calls */
    const struct slice *argv;     /* the name first */
    size_t argc;
    struct out *out;
    bool is_again; /* of a client that waits: nothing refuses it */
};

/* --- replies ------------------------------------------------------------- */

void out_bytes(struct out *out, const void *bytes, size_t len);
void out_free(struct out *out);
void answer_status(struct call *call, const char *text);
void answer_error(struct call *call, const char *text); /* with its code */
void answer_int(struct call *call, int64_t value);
void answer_bulk(struct call *call, struct slice text);
void answer_text(struct call *call, const char *text); /* a bulk, too */
void answer_score(struct call *call, double score);
void answer_nil(struct call *call);
void answer_array(struct call *call, size_t count);
void answer_no_array(struct call *call);
void answer_syntax(struct call *call);

/* As "%.17g" does, which takes five times as long for an integer. */
enum { NUMBER_CAP = 64 };
void write_number(char text[NUMBER_CAP], double number);

/* --- arguments ----------------------------------------------------------- */

bool is_word(struct slice text, const char *word); /* without case */

/* As Redis reads one: no blank, plus or leading zero. */
bool parse_int(struct slice text, int64_t *ret_value);

/* False: replied that it is none. */
bool read_int(struct call *call, size_t i, int64_t *ret_value);
bool read_score(struct call *call, size_t i, double *ret_score);
bool read_bound(struct call *call, size_t i, struct bound *ret_bound);

/* By chance, from 0 to limit - 1. */
size_t server_below(struct server *server, size_t limit);

/* An option that is not simulated ends the program. */
_Noreturn void unknown_option(const struct call *call, size_t i);

/* Turns -1, ... into positions; returns how many elements are in the range. */
size_t range_of(int64_t from, int64_t to, size_t count, size_t *ret_first);

/* --- keys ---------------------------------------------------------------- */

int64_t now_ms(const struct server *server);

/* The object behind argument `i`, NULL if there is none. False: it is of
 * another type, which was replied. */
bool find_object(struct call *call, size_t i, enum object_type type,
                 struct object **ret_object);

/* The same, and made if there is none. */
bool make_object(struct call *call, size_t i, enum object_type type,
                 struct object **ret_object);

/* The key goes with its last element. */
void drop_if_empty(struct call *call, size_t i);

struct object *key_object(struct server *server, struct slice key);
void key_delete(struct server *server, struct slice key);
void keys_clear(struct table *keys);
void new_run_id(struct server *server);

/* --- commands ------------------------------------------------------------ */

/* Of a command, as COMMAND INFO has them, and where its keys are. */
enum {
    WRITES = 1,
    GROWS = 2,     /* refused with OOM: "denyoom" */
    LOADS = 4,     /* runs while the server loads */
    HAS_PARTS = 8, /* its second word names the command, too */
    ONE_KEY = 16,  /* the first word behind the name */
    TWO_KEYS = 32,
    ALL_KEYS = 64, /* all words */
    STREAMS = 128, /* half of the words behind STREAMS */
    SCRIPT = 256   /* runs a script, and has a number before its keys */
};

struct command {
    const char *name;
    int arity; /* words with the name; -n: at least n */
    void (*run)(struct call *call);
    unsigned flags;
};

extern const struct command key_commands[], hash_commands[], list_commands[],
    sorted_commands[], server_commands[], script_commands[], test_commands[],
    stream_commands[], group_commands[];

/* Runs argv; ends the program if there is no such command. */
void run_command(struct call *call);

/* True: the command is refused by a fault of the server, which was replied. */
bool refuse(struct call *call, const struct command *command);

void sorted_pop(struct call *call, bool is_max); /* ZPOPMIN, or ZPOPMAX */

/* --- blocked clients ----------------------------------------------------- */

/* The command that runs has no answer yet: its client waits for so long (0: for
 * ever). A script cannot wait. */
void block(struct call *call, int64_t us);
void unblock(struct server_client *client);
void serve_blocked(struct server *server);

/* --- scripts ------------------------------------------------------------- */

/* The script's SHA-1 in `sha`. False: replied that it does not compile. */
bool load_script(struct call *call, struct slice text, char sha[41]);
void run_evalsha(struct call *call);

struct lua_State *lua_open_server(struct server *server);
void lua_open_cmsgpack(struct lua_State *lua);
void lua_open_struct(struct lua_State *lua);
void lua_close_server(struct lua_State *lua);
void sha1_hex(struct slice text, char hex[41]);

#endif
