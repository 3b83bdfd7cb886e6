/* SPDX-License-Identifier: MIT */
#include "adapters/ev/spare_stack.h"

#include <signal.h>
#include <sys/mman.h>

enum { STACK_SIZE = 64 * 1024 };

void *weir__spare_stack_new(void)
{
    stack_t stack;

    if (sigaltstack(NULL, &stack) != 0 || (stack.ss_flags & SS_DISABLE) == 0)
        return NULL;
    stack = (stack_t){.ss_size = STACK_SIZE};
    stack.ss_sp = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp == MAP_FAILED)
        return NULL;
    if (sigaltstack(&stack, NULL) == 0)
        return stack.ss_sp;
    (void)munmap(stack.ss_sp, STACK_SIZE);
    return NULL;
}

void weir__spare_stack_free(void *stack)
{
    const stack_t none = {.ss_flags = SS_DISABLE};

    if (stack == NULL)
        return;
    (void)sigaltstack(&none, NULL);
    (void)munmap(stack, STACK_SIZE);
}
