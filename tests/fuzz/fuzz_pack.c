/* SPDX-License-Identifier: MIT */

/* Any bytes as a pack: ids and records lie inside of it, what is handed on as
 * an id is one, and a pack made of them is read the same. Other bytes say of
 * which lengths the ids of a pack are, and what is in them. */

#include <string.h>

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

enum { LEN_MAX = 300, LEN_READ = 255, SPEC = 4 };

/* Two bytes of length, one that is in the id, one that says where. */
static struct weir_slice make_id(const uint8_t *spec, char text[LEN_MAX])
{
    size_t len = (spec[0] | (size_t)spec[1] << 8) % (LEN_MAX + 1);

    memset(text, 'x', LEN_MAX);
    if (len > 0)
        text[spec[3] % len] = (char)spec[2];
    return weir__slice_of(text, len);
}

static void make_pack(const uint8_t *data, size_t size)
{
    static char texts[WEIR__SLOTS_MAX][LEN_MAX];
    struct weir__pack_job jobs[WEIR__SLOTS_MAX] = {{{0}, {0}}};
    struct weir_slice ids[WEIR__SLOTS_MAX];
    struct weir__buf buf = {0};
    struct weir__pack pack;
    size_t count = 0;
    bool is_long = false;

    for (; count < WEIR__SLOTS_MAX && (count + 1) * SPEC <= size; count++) {
        jobs[count].id = make_id(data + count * SPEC, texts[count]);
        is_long = is_long || jobs[count].id.len > LEN_READ;
    }
    if (count == 0)
        return;
    weir__pack_write(&buf, jobs, count, true);
    FUZZ_TRUE(weir__pack_read(weir__buf_slice(&buf), &pack) ==
              (is_long ? WEIR_EMALFORMED : WEIR_OK));
    if (!is_long)
        weir__pack_ids(&pack, ids);
    for (size_t i = 0; i < count && !is_long; i++) {
        bool is_one = weir__id_check_any(jobs[i].id, NULL) == WEIR_OK;

        FUZZ_TRUE(is_one ? weir__slice_equal(ids[i], jobs[i].id)
                         : ids[i].len == 0);
    }
    weir__buf_fini(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir__pack_job jobs[WEIR__SLOTS_MAX] = {{{0}, {0}}};
    struct weir_slice ids[WEIR__SLOTS_MAX] = {{0}};
    struct weir__record record;
    struct weir__pack pack;

    if (size > 0 && data[0] != 'W')
        make_pack(data, size);
    if (weir__pack_read(weir__slice_of(data, size), &pack) != WEIR_OK)
        return 0;
    FUZZ_TRUE(pack.count >= 1 && pack.count <= WEIR__SLOTS_MAX);
    if (pack.has_ids)
        weir__pack_ids(&pack, ids);
    for (size_t i = 0; i < pack.count; i++) {
        jobs[i].id = ids[i];
        jobs[i].record = weir__pack_record(&pack, i);
        fuzz_inside(jobs[i].id, data, size);
        FUZZ_TRUE(pack.has_ids && jobs[i].id.len == 0
                      ? pack.lacks_some
                      : !pack.has_ids || weir__id_is_sound(jobs[i].id));
        fuzz_inside(jobs[i].record, data, size);
        (void)weir__record_read(jobs[i].record, &record); /* any outcome */
    }
    write_again(&pack, jobs);
    return 0;
}
