/* SPDX-License-Identifier: MIT */
#include "tests/chaos/model/fault_search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/test.h"

enum { WORDS_CAP = 4096 };

long number_from(const char *variable, long otherwise)
{
    const char *text = getenv(variable);

    return text == NULL || *text == '\0' ? otherwise : strtol(text, NULL, 10);
}

/* The status of a run in a child, and what it printed. */
static int run_apart(const struct fault_search *search,
                     const struct fault *fault, uint64_t seed,
                     char ret_words[WORDS_CAP])
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
        search->run(search->proc, fault, seed);
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

static bool is_found(const struct fault_search *search,
                     const struct fault *fault, char ret_words[WORDS_CAP])
{
    for (unsigned seed = 1; seed <= search->seeds; seed++)
        if (run_apart(search, fault, seed, ret_words) == 1)
            return true;
    return false;
}

static bool is_wanted(const struct fault *fault, size_t index)
{
    const char *name = getenv("WEIR_TEST_FAULT"),
               *part = getenv("WEIR_TEST_PART");
    unsigned which = 0, parts = 1;

    if (part != NULL)
        EXPECT_TRUE(sscanf(part, "%u/%u", &which, &parts) == 2 &&
                    which < parts);
    return index % parts == which &&
           (name == NULL || strstr(fault->name, name) != NULL);
}

size_t faults_missed(const struct fault_search *search,
                     const struct fault *list, size_t count)
{
    char words[WORDS_CAP];
    size_t missed = 0;

    for (size_t i = 0; i < count; i++) {
        if (!is_wanted(&list[i], i))
            continue;
        if (is_found(search, &list[i], words)) {
            words[strcspn(words, "\n")] = '\0';
            printf("  %-48s %s\n", list[i].name, words);
            continue;
        }
        printf("  %s: not found\n%s", list[i].name, words);
        missed++;
    }
    return missed;
}

bool fault_search_is_sound(const struct fault_search *search)
{
    char words[WORDS_CAP];

    return getenv("WEIR_TEST_FAULT") != NULL || !is_found(search, NULL, words);
}
