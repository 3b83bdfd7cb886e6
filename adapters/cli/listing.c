/* SPDX-License-Identifier: MIT */
#include "adapters/cli/listing.h"

#include "adapters/cli/output.h"

static bool print_json(struct weir__listing *listing,
                       const struct weir_job_info *job)
{
    struct json_object *object = weir__job_json(listing->topic, job);
    bool is_good =
        object != NULL &&
        weir__print_json(listing->count == 0 ? "[\n" : ",\n", object);

    (void)json_object_put(object);
    return is_good;
}

void weir__listing_take(int code, const struct weir_job_info *job, void *arg)
{
    struct weir__listing *listing = arg;

    if (job == NULL) {
        if (listing->is_short_of_memory)
            code = WEIR_ENOMEM;
        weir__client_finish(&listing->client, code);
        return;
    }
    if (listing->is_short_of_memory)
        return;
    if (listing->count == listing->limit) {
        listing->is_more = true;
        return;
    }
    if (!listing->client.cli->json)
        listing->print_line(job);
    else
        listing->is_short_of_memory = !print_json(listing, job);
    listing->count += listing->is_short_of_memory ? 0 : 1;
}

enum weir__exit weir__listing_finish(struct weir__listing *listing, int code,
                                     const char *doing)
{
    enum weir__exit rc;

    if (code == WEIR_OK)
        code = weir__client_wait(&listing->client);
    if (code == WEIR_ENOTFOUND || (code == WEIR_OK && listing->count == 0))
        rc = weir__client_not_found(&listing->client, listing->topic, NULL);
    else
        rc = weir__client_exit(&listing->client, code, doing);
    if (!listing->client.cli->json)
        return rc;
    if (listing->count > 0)
        (void)printf("\n]\n"); /* closed also when it broke off */
    else if (rc == WEIR__EXIT_DONE)
        (void)printf("[]\n");
    return rc;
}
