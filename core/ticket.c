/* SPDX-License-Identifier: MIT */
#include "core/ticket.h"

#include "core/assert.h"
#include "core/mem.h"

enum { FIRST_PLACES = 64 };

static uint32_t place_of(uint64_t ticket)
{
    return (uint32_t)ticket;
}

static uint32_t generation_of(uint64_t ticket)
{
    return (uint32_t)(ticket >> 32);
}

static bool grow(struct weir__tickets *tickets)
{
    uint32_t count = tickets->count == 0 ? FIRST_PLACES : 2 * tickets->count;
    struct weir__ticket_place *places;

    if (count <= tickets->count)
        return false;
    places = weir__mem_grow(tickets->places, count, sizeof(*places));
    if (places == NULL)
        return false;
    tickets->places = places;
    for (uint32_t i = count; i > tickets->count; i--) {
        places[i - 1] = (struct weir__ticket_place){
            .next_free = tickets->first_free,
        };
        tickets->first_free = i;
    }
    tickets->count = count;
    return true;
}

uint64_t weir__ticket_take(struct weir__tickets *tickets, struct weir__run *run)
{
    struct weir__ticket_place *place;
    uint32_t at;

    WEIR_ASSERT(run != NULL);
    if (tickets->first_free == 0 && !grow(tickets))
        return 0;
    at = tickets->first_free - 1;
    place = &tickets->places[at];
    WEIR_ASSERT(place->run == NULL);
    tickets->first_free = place->next_free;
    place->run = run;
    place->generation++;
    if (place->generation == 0) /* 0 would make the first place's ticket 0 */
        place->generation = 1;
    tickets->taken++;
    return (uint64_t)place->generation << 32 | at;
}

struct weir__run *weir__ticket_find(const struct weir__tickets *tickets,
                                    uint64_t ticket)
{
    const struct weir__ticket_place *place;

    if (place_of(ticket) >= tickets->count)
        return NULL;
    place = &tickets->places[place_of(ticket)];
    return place->generation == generation_of(ticket) ? place->run : NULL;
}

static void release(struct weir__tickets *tickets, uint32_t at)
{
    tickets->places[at].run = NULL;
    tickets->places[at].is_orphan = false;
    tickets->places[at].next_free = tickets->first_free;
    tickets->first_free = at + 1;
}

void weir__ticket_drop(struct weir__tickets *tickets, uint64_t ticket)
{
    WEIR_ASSERT(weir__ticket_find(tickets, ticket) != NULL);
    release(tickets, place_of(ticket));
    tickets->taken--;
}

void weir__ticket_orphan(struct weir__tickets *tickets, uint64_t ticket,
                         char *name)
{
    struct weir__ticket_place *place = &tickets->places[place_of(ticket)];

    WEIR_ASSERT(weir__ticket_find(tickets, ticket) != NULL);
    WEIR_ASSERT(place->name == NULL);
    place->run = NULL;
    place->is_orphan = true;
    place->name = name;
    tickets->taken--;
    tickets->orphans++;
}

char *weir__ticket_shown(struct weir__tickets *tickets, uint64_t ticket)
{
    struct weir__ticket_place *place;
    char *name;

    if (place_of(ticket) >= tickets->count)
        return NULL;
    place = &tickets->places[place_of(ticket)];
    if (place->generation != generation_of(ticket) || !place->is_orphan)
        return NULL;
    name = place->name;
    place->name = NULL;
    release(tickets, place_of(ticket));
    tickets->orphans--;
    return name;
}

void weir__tickets_fini(struct weir__tickets *tickets)
{
    for (uint32_t i = 0; i < tickets->count; i++)
        weir__mem_free(tickets->places[i].name);
    weir__mem_free(tickets->places);
    *tickets = (struct weir__tickets){0};
}

void weir__tickets_check(const struct weir__tickets *tickets)
{
    size_t free_places = 0, taken = 0, orphans = 0;

    for (uint32_t at = tickets->first_free; at != 0;
         at = tickets->places[at - 1].next_free) {
        WEIR_ASSERT(tickets->places[at - 1].run == NULL);
        WEIR_ASSERT(!tickets->places[at - 1].is_orphan);
        free_places++;
        WEIR_ASSERT(free_places <= tickets->count);
    }
    for (uint32_t i = 0; i < tickets->count; i++) {
        taken += tickets->places[i].run != NULL;
        orphans += tickets->places[i].is_orphan;
    }
    WEIR_ASSERT(taken == tickets->taken && orphans == tickets->orphans);
    WEIR_ASSERT(taken + orphans + free_places == tickets->count);
}
