/* SPDX-License-Identifier: MIT */

/* What weir doctor makes of what the sentinels of an address say. */

#include "adapters/cli/doctor.h"

#include <stdio.h>
#include <string.h>

enum {
    ASK_MS = 1000,
    PLACE_CAP = WEIR__REDIS_TEXT_CAP + 8,
    SENTENCE_CAP = 768
};

struct survey {
    struct weir__doctor *doctor;
    const char *service;
    size_t count, named;        /* sentinels; of them, who name a primary */
    char who[PLACE_CAP];        /* the first of those */
    char primary[PLACE_CAP];    /* whom that one names */
    char other[SENTENCE_CAP];   /* who names another one; "", as below */
    char missing[SENTENCE_CAP]; /* who names none, and why; the last of them */
    char quorum[128];           /* what one told of it */
    bool lacks_quorum; /* one told otherwise; that is a finding already */
};

static void print_host(const struct weir__redis_host *host, char *buf,
                       size_t cap)
{
    (void)snprintf(buf, cap, "%s:%u", host->name, host->port); /* fits */
}

/* --- the primary --------------------------------------------------------- */

/* `text` is nothing, or a line for the host and one for its port. */
static void note_primary(struct survey *survey, const char *who,
                         const char *text)
{
    char primary[PLACE_CAP];
    char *end;

    (void)snprintf(primary, sizeof(primary), "%s", text); /* cut */
    end = strchr(primary, '\n');
    if (end == NULL) {
        (void)snprintf(survey->missing, sizeof(survey->missing),
                       "%s: it knows no primary named %s", who,
                       survey->service); /* cut */
        return;
    }
    *end = ':';
    survey->named++;
    if (survey->primary[0] == '\0') {
        (void)snprintf(survey->who, sizeof(survey->who), "%s", who); /* fits */
        memcpy(survey->primary, primary, sizeof(primary));
    } else if (strcmp(primary, survey->primary) != 0) {
        (void)snprintf(survey->other, sizeof(survey->other), "%s names %s", who,
                       primary); /* cut */
    }
}

static void report_primary(const struct survey *survey)
{
    const char *verb = survey->named == 1 ? "names" : "name";
    char advice[256];

    if (survey->other[0] != '\0') {
        (void)snprintf(advice, sizeof(advice),
                       "wait for the end of a failover, or SENTINEL REMOVE %s "
                       "and MONITOR at who is wrong",
                       survey->service); /* fits */
        weir__doctor_note(survey->doctor, "sentinels", WEIR__HEALTH_FAILED,
                          advice, "%s names %s, %s", survey->who,
                          survey->primary, survey->other);
        return;
    }
    weir__doctor_note(survey->doctor, "sentinels",
                      survey->named == survey->count ? WEIR__HEALTH_OK
                      : survey->named == 0           ? WEIR__HEALTH_FAILED
                                                     : WEIR__HEALTH_WARNING,
                      "start it, or mend its settings or the address",
                      "%zu of %zu %s %s%s%s", survey->named, survey->count,
                      verb, survey->named == 0 ? "a primary" : survey->primary,
                      survey->missing[0] == '\0' ? "" : "; ", survey->missing);
}

/* --- the quorum ---------------------------------------------------------- */

static void note_quorum(struct survey *survey, const char *who, int rc,
                        const char *text)
{
    bool has_none = strncmp(text, "NOQUORUM", 8) == 0;

    if (rc == WEIR_OK)
        (void)snprintf(survey->quorum, sizeof(survey->quorum), "%s",
                       text + (strncmp(text, "OK ", 3) == 0 ? 3 : 0)); /* cut */
    if (rc == WEIR_OK || survey->lacks_quorum)
        return;
    survey->lacks_quorum = true;
    weir__doctor_note(
        survey->doctor, "quorum",
        has_none ? WEIR__HEALTH_FAILED : WEIR__HEALTH_WARNING,
        has_none ? "no failover can begin: start sentinels"
                 : "ACL SETUSER with +sentinel|ckquorum at each sentinel",
        "%s: %s", who, text);
}

/* --- asking --------------------------------------------------------------- */

static void ask(struct survey *survey, struct weir__probe *probe,
                const char *who)
{
    const char *find[] = {"SENTINEL", "get-master-addr-by-name",
                          survey->service, NULL};
    const char *check[] = {"SENTINEL", "CKQUORUM", survey->service, NULL};
    const char *text;
    int rc = weir__probe_ask(probe, find, &text);

    if (rc != WEIR_OK) {
        (void)snprintf(survey->missing, sizeof(survey->missing), "%s: %s", who,
                       text); /* cut */
        return;
    }
    note_primary(survey, who, text);
    if (text[0] == '\0')
        return; /* of that name it knows no quorum, either */
    rc = weir__probe_ask(probe, check, &text);
    note_quorum(survey, who, rc, text);
}

void weir__doctor_sentinels(struct weir__doctor *doctor,
                            const struct weir__redis_url *url)
{
    struct survey survey = {
        .doctor = doctor, .service = url->service, .count = url->host_count};

    for (size_t i = 0; i < url->host_count; i++) {
        char who[PLACE_CAP];
        struct weir__redis_url own;
        struct weir__probe *probe;
        struct weir_error err = {0};

        print_host(&url->hosts[i], who, sizeof(who));
        weir__redis_url_of_sentinel(url, &url->hosts[i], &own);
        if (weir__probe_open(&own, ASK_MS, &probe, &err) == WEIR_OK) {
            ask(&survey, probe, who);
            weir__probe_close(probe);
        } else {
            (void)snprintf(survey.missing, sizeof(survey.missing), "%s: %s",
                           who, err.text); /* cut */
        }
    }
    report_primary(&survey);
    if (survey.quorum[0] != '\0' && !survey.lacks_quorum)
        weir__doctor_note(doctor, "quorum", WEIR__HEALTH_OK, NULL, "%s",
                          survey.quorum);
}
