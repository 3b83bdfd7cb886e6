/* SPDX-License-Identifier: MIT */
#ifndef WEIR_TICKET_H
#define WEIR_TICKET_H

/* Tickets stand for runs that somebody outside finishes later. A ticket is a
 * place in a table and the place's generation: once it was given back it finds
 * nothing any more, whoever still holds it. Zeroed is an empty table. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct weir__run;

struct weir__ticket_place {
    struct weir__run *run; /* NULL: free, or an orphan */
    bool is_orphan;        /* its run is over, somebody still has the ticket */
    char *name;            /* of an orphan's job; owned, may be NULL */
    uint32_t generation;   /* of the last ticket; 0: none yet */
    uint32_t next_free;    /* place + 1; 0: the last one */
};

struct weir__tickets {
    struct weir__ticket_place *places;
    uint32_t count;
    uint32_t first_free; /* place + 1; 0: none */
    size_t taken;
    size_t orphans;
};

/* A ticket for the run, never 0; 0: out of memory. */
uint64_t weir__ticket_take(struct weir__tickets *tickets,
                           struct weir__run *run);

/* NULL: given back, or never taken. */
struct weir__run *weir__ticket_find(const struct weir__tickets *tickets,
                                    uint64_t ticket);

/* The ticket finds nothing from now on. It must be a taken one. */
void weir__ticket_drop(struct weir__tickets *tickets, uint64_t ticket);

/* Its run is over, but the ticket will still be shown, once. It finds nothing
 * from now on; the place is kept until weir__ticket_shown. Takes `name`, which
 * may be NULL. */
void weir__ticket_orphan(struct weir__tickets *tickets, uint64_t ticket,
                         char *name);

/* A ticket that finds nothing was shown. The name of an orphan, to be freed by
 * the caller; NULL: it is none, or has none. */
char *weir__ticket_shown(struct weir__tickets *tickets, uint64_t ticket);

void weir__tickets_fini(struct weir__tickets *tickets);

/* Assert that free places, orphans and taken ones are all of them. */
void weir__tickets_check(const struct weir__tickets *tickets);

#endif
