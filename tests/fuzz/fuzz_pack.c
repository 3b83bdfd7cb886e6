/* SPDX-License-Identifier: MIT */

/* Any bytes as a pack: ids and records lie inside of it, and a pack made of
 * them is read the same. */

#include "adapters/msgpack/record.h"
#include "adapters/redis/node.h"
#include "adapters/redis/pack.h"
#include "tests/fuzz/fuzz.h"

static void write_again(const struct weir__pack *pack,
                        const struct weir__pack_job *jobs)
{
    struct weir__pack_size size =
        weir__pack_measure(jobs, pack->count, pack->has_ids);
    struct weir_slice ids[WEIR__SLOTS_MAX] = {{0}};
    struct weir__buf buf = {0};
    struct weir__pack again;

    weir__pack_write(&buf, jobs, pack->count, pack->has_ids);
    FUZZ_TRUE(!buf.failed && buf.len == size.len);
    FUZZ_TRUE(weir__pack_read(weir__buf_slice(&buf), &again) == WEIR_OK);
    FUZZ_TRUE(again.count == pack->count && again.has_ids == pack->has_ids &&
              again.header_len == size.header_len);
    if (again.has_ids)
        weir__pack_ids(&again, ids);
    for (size_t i = 0; i < again.count; i++)
        FUZZ_TRUE(
            weir__slice_equal(ids[i], jobs[i].id) &&
            weir__slice_equal(weir__pack_record(&again, i), jobs[i].record));
    weir__buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX] = {{{0}, {0}}};
    struct weir_slice ids[WEIR__SLOTS_MAX] = {{0}};
    struct weir__record record;
    struct weir__pack pack;

    if (weir__pack_read(weir__slice_of(data, size), &pack) != WEIR_OK)
        return 0;
    FUZZ_TRUE(pack.count >= 1 && pack.count <= WEIR__SLOTS_MAX);
    if (pack.has_ids)
        weir__pack_ids(&pack, ids);
    for (size_t i = 0; i < pack.count; i++) {
        jobs[i].id = ids[i];
        jobs[i].record = weir__pack_record(&pack, i);
        fuzz_inside(jobs[i].id, data, size);
        fuzz_inside(jobs[i].record, data, size);
        (void)weir__record_read(jobs[i].record, &record); /* any outcome */
    }
    write_again(&pack, jobs);
    return 0;
}
