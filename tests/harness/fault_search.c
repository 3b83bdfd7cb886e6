/* SPDX-License-Identifier: MIT */
#include "tests/harness/fault_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

enum { WORDS_CAP = 4096, ROW_CAP = 256 };

long number_from(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

/* The status of a run in a child, and what it printed. */
static int run_apart(const struct fault_search *search, size_t index,
                     uint64_t seed, char ret_words[WORDS_CAP])
{
    int ends[2], status = -1;
    size_t len = 0;
    ssize_t got;
    pid_t pid;

    (void)fflush(stdout); /* or the child prints it again */
    EXPECT_INT(0, pipe(ends));
    pid = fork();
    EXPECT_TRUE(pid >= 0);
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO); /* what it prints is read here */
        search->run(index, seed);
        (void)fflush(stdout);
        _exit(0);
    }
    (void)close(ends[1]); /* the child has it */
    while ((got = read(ends[0], ret_words + len, WORDS_CAP - 1 - len)) > 0)
        len += (size_t)got;
    ret_words[len] = '\0';
    (void)close(ends[0]); /* only read from */
    EXPECT_TRUE(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The next row of the model: "model TAB seed TAB name". */
static bool next_row(FILE *table, const char *model, uint64_t *ret_seed,
                     char ret_name[ROW_CAP])
{
    char line[ROW_CAP];

    while (fgets(line, sizeof(line), table) != NULL) {
        char *seed = strchr(line, '\t'),
             *name = seed == NULL ? NULL : strchr(seed + 1, '\t');

        if (name == NULL)
            continue;
        *seed = '\0';
        if (strcmp(line, model) != 0)
            continue;
        name[strcspn(name, "\n")] = '\0';
        *ret_seed = strtoull(seed + 1, NULL, 10);
        (void)snprintf(ret_name, ROW_CAP, "%s", name + 1);
        return true;
    }
    return false;
}

static FILE *open_table(void)
{
    FILE *table = fopen(WEIR_FAULTS, "r");

    EXPECT_TRUE(table != NULL);
    return table;
}

/* 0: the table has no row for this fault. */
static uint64_t seed_of(const char *model, const char *fault)
{
    FILE *table = open_table();
    char name[ROW_CAP];
    uint64_t seed = 0, found = 0;

    while (found == 0 && next_row(table, model, &seed, name))
        if (strcmp(name, fault) == 0)
            found = seed;
    (void)fclose(table); /* only read from */
    return found;
}

static bool is_fault(const struct fault_search *search, const char *name)
{
    for (size_t i = 0; i < search->count; i++)
        if (strcmp(search->name(i), name) == 0)
            return true;
    return false;
}

static size_t stray_rows(const struct fault_search *search)
{
    FILE *table = open_table();
    char name[ROW_CAP];
    uint64_t seed;
    size_t strays = 0;

    while (next_row(table, search->model, &seed, name))
        if (!is_fault(search, name)) {
            printf("  %s: in tests/faults.tsv, but no such fault\n", name);
            strays++;
        }
    (void)fclose(table); /* only read from */
    return strays;
}

/* The first seed from `first` to `last` that shows it; 0: none. */
static uint64_t find(const struct fault_search *search, size_t index,
                     uint64_t first, uint64_t last, char ret_words[WORDS_CAP])
{
    for (uint64_t seed = first; seed <= last; seed++)
        if (run_apart(search, index, seed, ret_words) == 1)
            return seed;
    return 0;
}

static bool is_missed(const struct fault_search *search, size_t index)
{
    const char *name = search->name(index);
    bool is_search = getenv("WEIR_TEST_FAULT_SEARCH") != NULL;
    uint64_t known = seed_of(search->model, name), seed = 0;
    char words[WORDS_CAP] = "";

    if (known != 0 && !is_search)
        seed = find(search, index, known, known, words);
    if (seed == 0) /* a changed script may draw other numbers */
        seed = find(search, index, 1, search->seeds, words);
    if (seed == 0) {
        printf("  %s: not found\n%s", name, words);
        return true;
    }
    words[strcspn(words, "\n")] = '\0';
    printf("  %-48s %s\n", name, words);
    if (known == 0 || is_search)
        printf("row: %s\t%llu\t%s\n", search->model, (unsigned long long)seed,
               name);
    return known == 0;
}

size_t faults_missed(const struct fault_search *search)
{
    const char *part = getenv("WEIR_TEST_FAULT");
    size_t missed = stray_rows(search);

    for (size_t i = 0; i < search->count; i++)
        if (part == NULL || strstr(search->name(i), part) != NULL)
            missed += is_missed(search, i);
    return missed;
}

bool fault_search_is_sound(const struct fault_search *search)
{
    char words[WORDS_CAP];

    for (uint64_t seed = 1; seed <= search->seeds; seed++) {
        int status = run_apart(search, NO_FAULT, seed, words);

        if (status == 0)
            continue;
        printf("  seed %llu without a fault: %s%s\n", (unsigned long long)seed,
               status == 1 ? "" : "it did not come to its end: ", words);
        return false;
    }
    return true;
}
