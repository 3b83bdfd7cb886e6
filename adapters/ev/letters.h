/* SPDX-License-Identifier: MIT */
#ifndef WEIR_EV_LETTERS_H
#define WEIR_EV_LETTERS_H

/* A queue between threads: any of them puts letters in, one takes them all out,
 * in the order in which they were put. How it is woken is its owner's. */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* The first member of what is sent. */
struct weir__letter {
    struct weir__letter *next;
    size_t size; /* bytes that it was admitted with */
    /* Act on it and free it. `is_dropped`: where it was going is gone. */
    void (*read)(struct weir__letter *letter, bool is_dropped);
};

/* Most bytes that may be admitted at once. */
#define WEIR__LETTERS_MAX ((size_t)64 * 1024 * 1024)

/* What each letter counts at least, so that their number is bounded, too. */
enum { WEIR__LETTER_MIN = 1024 };

struct weir__letters {
    pthread_mutex_t lock; /* of what follows */
    struct weir__letter *first, **end;
    size_t admitted; /* bytes not yet read */
    bool is_closed;
};

/* WEIR_ESYSTEM (no lock to be had). */
int weir__letters_init(struct weir__letters *letters);

/* Under the lock: what must be so together with putting. */
void weir__letters_lock(struct weir__letters *letters);
void weir__letters_unlock(struct weir__letters *letters);

/* Take room for a letter of `size` bytes, or for what becomes one later. A
 * letter that was not admitted has size 0. WEIR_EFULL, WEIR_ECANCELED (it is
 * closed). */
int weir__letters_admit(struct weir__letters *letters, size_t size);

/* Give room back that no letter came for. */
void weir__letters_release(struct weir__letters *letters, size_t size);

/* Under the lock, and not when it is closed. True: it was empty, wake who
 * reads. */
bool weir__letters_put(struct weir__letters *letters,
                       struct weir__letter *letter);

/* Take no more letters. Those that are in stay. */
void weir__letters_close(struct weir__letters *letters);

/* Read all that are there now, the room they took given back before. */
void weir__letters_read(struct weir__letters *letters, bool is_dropped);

/* Closed and empty, and nobody comes any more. */
void weir__letters_fini(struct weir__letters *letters);

#endif
