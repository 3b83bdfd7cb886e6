/* SPDX-License-Identifier: MIT */
#include "adapters/redis/delay/backlog.h"

/* Prolonging leases. */

/* A lease whose last verdicts are on their way ends with them; where the server
 * did not take them it has to last until it does. */
static bool is_kept(const struct weir__lease *base)
{
    const struct weir__delay_lease *lease =
        (const struct weir__delay_lease *)base; /* its first member */

    return !lease->is_done || lease->held > 0;
}

static size_t count_kept(const struct weir__lease *lease)
{
    size_t count = 0;

    for (; lease != NULL && count < WEIR__CALL_SLOTS; lease = lease->next)
        count += is_kept(lease);
    return count;
}

void weir__delay_renew(struct weir__renewals *renewals,
                       const struct weir__store_topic *topic, int64_t lease_ms)
{
    const struct weir__lease *lease = topic->leases;

    for (;;) {
        size_t count = count_kept(lease);

        if (count == 0)
            return;
        weir__renewals_begin(renewals, &weir__script_delay_renew);
        weir__resp_eval(&renewals->bytes, &weir__script_delay_renew, 1,
                        1 + count);
        weir__prefix_key(&renewals->bytes, &topic->prefix, "lease");
        weir__resp_int(&renewals->bytes, lease_ms);
        for (; count > 0; lease = lease->next)
            if (is_kept(lease)) {
                weir__resp_int(&renewals->bytes, (int64_t)lease->token);
                count--;
            }
        weir__renewals_end(renewals);
    }
}
