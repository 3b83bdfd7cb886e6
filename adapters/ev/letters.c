/* SPDX-License-Identifier: MIT */
#include "adapters/ev/letters.h"

#include <weir/base.h>

#include "core/assert.h"

int weir__letters_init(struct weir__letters *letters)
{
    if (pthread_mutex_init(&letters->lock, NULL) != 0)
        return WEIR_ESYSTEM;
    letters->first = NULL;
    letters->end = &letters->first;
    letters->admitted = 0;
    letters->is_closed = false;
    return WEIR_OK;
}

void weir__letters_lock(struct weir__letters *letters)
{
    int rc = pthread_mutex_lock(&letters->lock);

    WEIR_ASSERT(rc == 0);
}

void weir__letters_unlock(struct weir__letters *letters)
{
    int rc = pthread_mutex_unlock(&letters->lock);

    WEIR_ASSERT(rc == 0);
}

int weir__letters_admit(struct weir__letters *letters, size_t size)
{
    int rc = WEIR_OK;

    weir__letters_lock(letters);
    if (letters->is_closed)
        rc = WEIR_ECANCELED;
    else if (size > WEIR__LETTERS_MAX - letters->admitted)
        rc = WEIR_EFULL;
    else
        letters->admitted += size;
    weir__letters_unlock(letters);
    return rc;
}

void weir__letters_release(struct weir__letters *letters, size_t size)
{
    weir__letters_lock(letters);
    WEIR_ASSERT(letters->admitted >= size);
    letters->admitted -= size;
    weir__letters_unlock(letters);
}

bool weir__letters_put(struct weir__letters *letters,
                       struct weir__letter *letter)
{
    bool was_empty = letters->first == NULL;

    WEIR_ASSERT(!letters->is_closed);
    letter->next = NULL;
    *letters->end = letter;
    letters->end = &letter->next;
    return was_empty;
}

void weir__letters_close(struct weir__letters *letters)
{
    weir__letters_lock(letters);
    letters->is_closed = true;
    weir__letters_unlock(letters);
}

static struct weir__letter *take_all(struct weir__letters *letters)
{
    struct weir__letter *first;

    weir__letters_lock(letters);
    first = letters->first;
    letters->first = NULL;
    letters->end = &letters->first;
    for (struct weir__letter *at = first; at != NULL; at = at->next) {
        WEIR_ASSERT(letters->admitted >= at->size);
        letters->admitted -= at->size;
    }
    weir__letters_unlock(letters);
    return first;
}

void weir__letters_read(struct weir__letters *letters, bool is_dropped)
{
    struct weir__letter *letter = take_all(letters);

    while (letter != NULL) {
        struct weir__letter *next = letter->next;

        letter->read(letter, is_dropped);
        letter = next;
    }
}

void weir__letters_fini(struct weir__letters *letters)
{
    WEIR_ASSERT(letters->first == NULL);
    (void)pthread_mutex_destroy(&letters->lock); /* nobody has it */
}
