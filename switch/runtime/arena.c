/* Arenas. The state of a large network is many times what a processor's caches hold, and in pages of 4 KiB also many times
 * what it knows the places of: in pages of 2 MiB the packets of a fat-tree with k = 32 take a fifth less time.
 *
 * Blocks begin small and double, so that small networks take little. Those of a large page or more are aligned to it,
 * and the kernel is asked for such pages (it gives those only that are written to).
 */
#include "arena.h"

#include <stdint.h>
#include <sys/mman.h>

#include "cache_lines.h"

#define FIRST_BYTES ((size_t)1 << 16)
#define LARGE_PAGE_BYTES ((size_t)1 << 21)
#define MOST_BYTES ((size_t)1 << 24)

/* At the beginning of each block. */
struct arena_block {
    struct arena_block *next;
    char *mapped;
    size_t mapped_bytes;
};

static size_t rounded(size_t bytes, size_t to) {
    return (bytes + to - 1) / to * to;
}

static struct arena_block *block_create(size_t bytes) {
    size_t align = bytes < LARGE_PAGE_BYTES ? 1 : LARGE_PAGE_BYTES, mapped_bytes = bytes + (align - 1);
    char *mapped = mmap(NULL, mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    char *begin = (char *)rounded((size_t)mapped, align);
    if (align > 1)
        madvise(begin, bytes, MADV_HUGEPAGE);       /* without them it is slower, no more */
    struct arena_block *block = (struct arena_block *)begin;
    block->mapped = mapped;
    block->mapped_bytes = mapped_bytes;
    return block;
}

/* A block of at least that many bytes besides its own record. */
static struct arena_block *add_block(struct arena *arena, size_t bytes) {
    size_t wanted = bytes + GB_LINE_BYTES;
    size_t usual = arena->next_bytes ? arena->next_bytes : FIRST_BYTES;
#ifdef __SANITIZE_ADDRESS__
    usual = wanted;                                 /* each piece apart: what is behind it is nobody's */
#endif
    size_t block_bytes = rounded(wanted > usual ? wanted : usual, 4096);
    struct arena_block *block = block_create(block_bytes);
    if (!block)
        return NULL;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->at = (char *)block + GB_LINE_BYTES;
    arena->end = (char *)block + block_bytes;
    arena->next_bytes = 2 * usual < MOST_BYTES ? 2 * usual : MOST_BYTES;
    return block;
}

void *arena_take(struct arena *arena, size_t bytes) {
    bytes = rounded(bytes, GB_LINE_BYTES);
    if ((size_t)(arena->end - arena->at) < bytes && !add_block(arena, bytes))
        return NULL;
    char *piece = arena->at;
#ifdef __SANITIZE_ADDRESS__
    piece = arena->end - bytes;
    arena->at = arena->end;
#else
    arena->at += bytes;
#endif
    return piece;
}

void arena_free(struct arena *arena) {
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        munmap(block->mapped, block->mapped_bytes);
    }
    *arena = (struct arena){0};
}
